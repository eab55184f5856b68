//! Kernel notifications about ended processes and output on terminals.
//!
//! One thread sleeps in epoll on a pidfd per process and on one inotify with a watch per terminal. A program that
//! writes to its terminal modifies the terminal's file. This costs the program, tmux and Lisa next to nothing; a
//! thousand silent terminals cost no CPU time at all.

use super::{Handle, SentinelEvent};
use rustix::{
    event::{EventfdFlags, epoll, eventfd},
    fs::inotify,
};
use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// epoll keys of the inotify and of the descriptor that stops the thread; all other values are keys of processes.
const OUTPUT: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
/// How long output is collected before it is reported (debounce): a spinner writes many times a second.
const DEBOUNCE: Duration = Duration::from_millis(3);
/// Size of the fixed part of an inotify event, in bytes.
const EVENT: usize = 16;

/// Watches processes and terminals. Dropping it stops its thread.
#[derive(Debug)]
pub struct Sentinel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    epoll: OwnedFd,
    inotify: OwnedFd,
    stop: OwnedFd,
    watched: Mutex<Watched>,
    /// Whether the thread has taken events from the kernel that it hasn't reported yet.
    telling: AtomicBool,
}

#[derive(Debug, Default)]
struct Watched {
    processes: HashMap<u64, Handle>,
    terminals: HashMap<i32, u64>,
    watches: HashMap<u64, i32>,
}

impl Sentinel {
    /// Starts the thread, which calls `tell`.
    pub fn start(tell: impl Fn(SentinelEvent) + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            inotify: inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?,
            stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            watched: Mutex::default(),
            telling: AtomicBool::new(false),
        });
        let of = |number| epoll::EventData::new_u64(number);
        epoll::add(&shared.epoll, &shared.inotify, of(OUTPUT), epoll::EventFlags::IN)?;
        epoll::add(&shared.epoll, &shared.stop, of(STOP), epoll::EventFlags::IN)?;
        let own = Arc::clone(&shared);
        thread::Builder::new().name("lisa-sentinel".to_owned()).spawn(move || own.run(&tell))?;
        Ok(Self { shared })
    }

    /// Watches a process; the key must not be in use.
    pub fn watch_process(&self, key: u64, pid: u32) -> io::Result<()> {
        let handle = Handle::open(pid)?;
        let mut watched = self.shared.watched();
        epoll::add(
            &self.shared.epoll,
            handle.as_fd(),
            epoll::EventData::new_u64(key),
            epoll::EventFlags::IN,
        )?;
        watched.processes.insert(key, handle);
        Ok(())
    }

    /// Watches a terminal.
    pub fn watch_terminal(&self, key: u64, terminal: &Path) -> io::Result<()> {
        let mut watched = self.shared.watched();
        let watch = inotify::add_watch(&self.shared.inotify, terminal, inotify::WatchFlags::MODIFY)?;
        watched.terminals.insert(watch, key);
        watched.watches.insert(key, watch);
        Ok(())
    }

    /// Whether there are events that haven't been reported yet.
    pub fn is_pending(&self) -> bool {
        let mut event = Vec::with_capacity(1);
        let now = Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 });
        let waiting = epoll::wait(&self.shared.epoll, rustix::buffer::spare_capacity(&mut event), now);
        // The order matters: events that the thread takes from the kernel between these two checks set `telling`
        // first.
        waiting != Ok(0) || self.shared.telling.load(Ordering::SeqCst)
    }

    /// Stops watching everything under this key.
    pub fn forget(&self, key: u64) {
        let mut watched = self.shared.watched();
        if let Some(handle) = watched.processes.remove(&key) {
            let _ = epoll::delete(&self.shared.epoll, handle.as_fd());
        }
        if let Some(watch) = watched.watches.remove(&key) {
            watched.terminals.remove(&watch);
            // A terminal that is gone has already lost its watch.
            let _ = inotify::remove_watch(&self.shared.inotify, watch);
        }
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, tell: &dyn Fn(SentinelEvent)) {
        let mut events = Vec::with_capacity(256);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "could not watch processes and terminals any longer; sweeps go on");
                    return;
                }
            }
            self.telling.store(true, Ordering::SeqCst);
            let mut output = false;
            for event in &events {
                match event.data.u64() {
                    STOP => return,
                    OUTPUT => output = true,
                    key => {
                        let ended = self.watched().processes.remove(&key);
                        if let Some(handle) = ended {
                            let _ = epoll::delete(&self.epoll, handle.as_fd());
                            tell(SentinelEvent::Ended(key));
                        }
                    }
                }
            }
            if output {
                self.heard().into_iter().for_each(|key| tell(SentinelEvent::Output(key)));
            }
            self.telling.store(false, Ordering::SeqCst);
            if output {
                thread::sleep(DEBOUNCE);
            }
        }
    }

    /// The keys of the terminals that were written to, without duplicates.
    fn heard(&self) -> Vec<u64> {
        let mut keys = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        while let Ok(read) = rustix::io::read(&self.inotify, &mut chunk) {
            let watched = self.watched();
            for watch in watches(&chunk[..read]) {
                match watch {
                    OVERFLOW => keys.extend(watched.terminals.values()),
                    watch => keys.extend(watched.terminals.get(&watch)),
                }
            }
            if read < chunk.len() / 2 {
                break;
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// What inotify gives instead of a watch descriptor when its queue was full: any of the files may have changed.
const OVERFLOW: i32 = -1;

/// The watch descriptors of inotify events.
fn watches(mut bytes: &[u8]) -> Vec<i32> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(EVENT) {
        let field = |at: usize| head.get(at..at + 4).and_then(|field| field.try_into().ok());
        let (Some(watch), Some(length)) = (field(0), field(12)) else { break };
        found.push(i32::from_ne_bytes(watch));
        let name = usize::try_from(u32::from_ne_bytes(length)).unwrap_or(usize::MAX);
        bytes = rest.get(name..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Write, os::unix::process::CommandExt, process::Command, sync::mpsc::channel};

    fn started() -> (Sentinel, std::sync::mpsc::Receiver<SentinelEvent>) {
        let (sender, receiver) = channel();
        (
            Sentinel::start(move |event| {
                let _ = sender.send(event);
            })
            .unwrap(),
            receiver,
        )
    }

    #[test]
    fn the_end_of_a_process_is_told_once() {
        let (sentinel, events) = started();
        let mut child = Command::new("sleep").arg("0.1").spawn().unwrap();
        sentinel.watch_process(7, child.id()).unwrap();
        assert_eq!(events.recv_timeout(Duration::from_secs(5)).unwrap(), SentinelEvent::Ended(7));
        child.wait().unwrap();
        assert!(events.recv_timeout(Duration::from_millis(50)).is_err());
        assert!(sentinel.watch_process(8, child.id()).is_err(), "a process that is gone cannot be watched");
    }

    #[test]
    fn what_is_written_to_a_file_that_is_watched_is_told_until_it_is_forgotten() {
        let (sentinel, events) = started();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        sentinel.watch_terminal(3, file.path()).unwrap();
        assert!(!sentinel.is_pending());
        file.write_all(b"x").unwrap();
        assert_eq!(events.recv_timeout(Duration::from_secs(5)).unwrap(), SentinelEvent::Output(3));
        sentinel.forget(3);
        while events.recv_timeout(Duration::from_millis(20)).is_ok() {}
        file.write_all(b"y").unwrap();
        assert!(events.recv_timeout(Duration::from_millis(50)).is_err());
    }

    #[test]
    fn a_sentinel_that_is_dropped_leaves_no_thread() {
        let (sentinel, events) = started();
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        sentinel.watch_process(1, child.id()).unwrap();
        drop(sentinel);
        // The thread holds the other end of the channel.
        let ended = events.recv_timeout(Duration::from_secs(5));
        assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
