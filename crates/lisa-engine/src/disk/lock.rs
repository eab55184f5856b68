//! Locks between processes: `flock` on a dedicated file; the kernel releases it when the holder dies.

use crate::error::{Error, Kind, Result};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::File,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: Arc<File>,
    waited: Duration,
}

impl Lock {
    /// Takes the lock; waits at most `limit`.
    pub fn take(path: &Path, limit: Duration) -> Result<Self> {
        let file =
            super::open_private(path, |options| options.read(true).write(true).create(true).truncate(false))
                .map_err(|error| Error::io("open", path, &error))?;
        let began = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file: Arc::new(file), waited: began.elapsed() }),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) if began.elapsed() < limit => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(10));
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                    return Err(Error::new(
                        Kind::LockTimeout,
                        format!("another process has held {} for more than {limit:?}", path.display()),
                        "retry; if this persists, look for a hung Lisa process (LISA_STATE_LOCK_TIMEOUT_MS sets the timeout)",
                    ));
                }
                Err(error) => return Err(Error::io("lock", path, &error.into())),
            }
        }
    }

    /// A descriptor that shares the lock: a child that gets it keeps the lock if this process is killed. Dropping the
    /// lock releases it for both.
    pub fn shared(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// The file of the lock, for what is kept in it. Using it doesn't keep the lock.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// How long it took to get the lock.
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file wouldn't release the lock if a child shares it.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_waits_and_then_gives_up_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = Lock::take(&path, Duration::ZERO).unwrap();
        let error = Lock::take(&path, Duration::from_millis(30)).unwrap_err();
        assert_eq!(error.kind(), Kind::LockTimeout);
        drop(held);
        Lock::take(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_child_keeps_the_lock_of_a_parent_that_is_gone_and_not_of_one_that_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = Lock::take(&path, Duration::ZERO).unwrap();
        let mut child =
            std::process::Command::new("sleep").arg("60").stderr(lock.shared().unwrap()).spawn().unwrap();
        drop(lock);
        let again = Lock::take(&path, Duration::ZERO).unwrap();
        let mut other =
            std::process::Command::new("sleep").arg("60").stderr(again.shared().unwrap()).spawn().unwrap();
        // Simulates a killed process: nothing is released explicitly.
        std::mem::forget(again);
        assert_eq!(Lock::take(&path, Duration::from_millis(30)).unwrap_err().kind(), Kind::LockTimeout);
        for child in [&mut child, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
