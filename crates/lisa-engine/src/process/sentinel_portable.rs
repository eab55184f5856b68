//! Detects ended processes on systems without pidfds, by polling their start times. Reports no output on terminals;
//! the caller has to poll tmux.

use super::{Identity, SentinelEvent};
use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
    time::Duration,
};

/// How often to poll.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

type Processes = Mutex<HashMap<u64, Identity>>;

/// Watches processes. Dropping it stops its thread.
#[derive(Debug)]
pub struct Sentinel {
    processes: Arc<Processes>,
}

impl Sentinel {
    /// Starts the thread, which calls `tell`.
    pub fn start(tell: impl Fn(SentinelEvent) + Send + 'static) -> io::Result<Self> {
        let processes: Arc<Processes> = Arc::default();
        let seen = Arc::downgrade(&processes);
        thread::Builder::new().name("lisa-sentinel".to_owned()).spawn(move || run(&seen, &tell))?;
        Ok(Self { processes })
    }

    /// Watches a process; the key must not be in use.
    pub fn watch_process(&self, key: u64, pid: u32) -> io::Result<()> {
        let identity = Identity::of(pid).ok_or(io::ErrorKind::NotFound)?;
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).insert(key, identity);
        Ok(())
    }

    /// Does nothing: terminals report no output here.
    pub fn watch_terminal(&self, _key: u64, _terminal: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether there may be events that haven't been reported yet: always, since this polls.
    pub fn is_pending(&self) -> bool {
        true
    }

    /// Stops watching everything under this key.
    pub fn forget(&self, key: u64) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

fn run(processes: &Weak<Processes>, tell: &dyn Fn(SentinelEvent)) {
    loop {
        thread::sleep(POLL_INTERVAL);
        let Some(processes) = processes.upgrade() else { return };
        let mut ended = Vec::new();
        processes.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, identity| {
            let alive = identity.alive();
            if !alive {
                ended.push(*key);
            }
            alive
        });
        ended.into_iter().for_each(|key| tell(SentinelEvent::Ended(key)));
    }
}
