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
    _file: File,
    waited: Duration,
}

impl Lock {
    /// Takes the lock, waiting at most `limit` for whoever holds it.
    pub fn take(path: &Path, limit: Duration) -> Result<Self> {
        let file = super::private_options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| Error::io("open", path, &error))?;
        let began = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file, waited: began.elapsed() }),
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

    /// How long it took to get.
    pub fn waited(&self) -> Duration {
        self.waited
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
}
