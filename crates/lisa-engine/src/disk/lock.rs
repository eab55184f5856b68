//! Locks between processes: `flock` on a file of their own, released by the kernel when the holder dies.

use crate::error::{Error, Kind, Result};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::File,
    path::Path,
    time::{Duration, Instant},
};

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    waited: Duration,
}

impl Lock {
    /// Takes the lock, waiting at most `limit` for whoever holds it.
    pub fn take(path: &Path, limit: Duration) -> Result<Self> {
        let file =
            super::open_private(path, |options| options.read(true).write(true).create(true).truncate(false))
                .map_err(|error| Error::io("open", path, &error))?;
        let began = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file, waited: began.elapsed() }),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) if began.elapsed() < limit => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(10));
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                    return Err(Error::new(
                        Kind::LockTimeout,
                        format!("{} is held by another process for more than {limit:?}", path.display()),
                        "try again; if it stays so, look for a Lisa process that hangs (LISA_STATE_LOCK_TIMEOUT_MS sets the limit)",
                    ));
                }
                Err(error) => return Err(Error::io("lock", path, &error.into())),
            }
        }
    }

    /// A descriptor that keeps the lock as well: a child that gets it holds the lock on if this process is killed.
    /// Dropping the lock releases it for both.
    pub fn shared(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// How long it took to get.
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it would not do where a child has it, too.
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
        // As when its process is killed: nothing is let go.
        std::mem::forget(again);
        assert_eq!(Lock::take(&path, Duration::from_millis(30)).unwrap_err().kind(), Kind::LockTimeout);
        for child in [&mut child, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
