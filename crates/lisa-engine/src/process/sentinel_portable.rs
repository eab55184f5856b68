//! Ends of processes where the system has no descriptor for one: their start times are looked at now and then. Output on
//! terminals is not told here; whoever needs it asks tmux.

use super::{Identity, Sight};
use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
    time::Duration,
};

/// How often the processes are looked at.
const STEP: Duration = Duration::from_millis(200);

type Processes = Mutex<HashMap<u64, Identity>>;

/// Watches processes. Dropping it ends its thread.
#[derive(Debug)]
pub struct Sentinel {
    processes: Arc<Processes>,
}

impl Sentinel {
    /// Starts the thread; `tell` is called on it.
    pub fn start(tell: impl Fn(Sight) + Send + 'static) -> io::Result<Self> {
        let processes: Arc<Processes> = Arc::default();
        let seen = Arc::downgrade(&processes);
        thread::Builder::new().name("lisa-sentinel".to_owned()).spawn(move || run(&seen, &tell))?;
        Ok(Self { processes })
    }

    /// Watches a process under a key that is not in use.
    pub fn watch_process(&self, key: u64, pid: u32) -> io::Result<()> {
        let identity = Identity::of(pid).ok_or(io::ErrorKind::NotFound)?;
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).insert(key, identity);
        Ok(())
    }

    /// Terminals tell nothing here.
    pub fn watch_terminal(&self, _key: u64, _terminal: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether there is something to tell that was not told yet: here it always may be.
    pub fn is_pending(&self) -> bool {
        true
    }

    /// Watches nothing under this key any more.
    pub fn forget(&self, key: u64) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

fn run(processes: &Weak<Processes>, tell: &dyn Fn(Sight)) {
    loop {
        thread::sleep(STEP);
        let Some(processes) = processes.upgrade() else { return };
        let mut ended = Vec::new();
        processes.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, identity| {
            let alive = identity.alive();
            if !alive {
                ended.push(*key);
            }
            alive
        });
        ended.into_iter().for_each(|key| tell(Sight::Ended(key)));
    }
}
