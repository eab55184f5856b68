//! Detects whether a file has changed, without reading it.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The worst resolution of a file system's clock: two writes within one tick look the same.
const TICK: Duration = Duration::from_millis(50);

/// Metadata that changes with each write, and when another file replaces this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    length: u64,
    changed: Duration,
}

impl Stamp {
    /// The stamp of a file now; `None` if there is none.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let changed = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec().try_into().ok()?);
        Some(Self { file: (found.dev(), found.ino()), length: found.len(), changed })
    }

    /// The stamp, if it is older than one clock tick, so that any later write gets a different one.
    pub fn settled(path: &Path) -> Option<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Self::of(path).filter(|stamp| stamp.changed + TICK < now)
    }
}

/// Maximum number of cached files.
const REMEMBERED: usize = 4_000;

/// A cache of parsed files, for small files that are read again and again.
#[derive(Debug)]
pub struct Cache<T>(Mutex<HashMap<PathBuf, (Stamp, T)>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Cache<T> {
    /// The parsed file; calls `read` only if the file changed.
    pub fn read<E>(&self, path: &Path, read: impl FnOnce() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
        // The stamp is taken before the read: a file that is replaced in between is read again next time.
        let file = Stamp::settled(path);
        let known =
            self.known().get(path).filter(|(stamp, _)| file == Some(*stamp)).map(|(_, made)| made.clone());
        if known.is_some() {
            return Ok(known);
        }
        let made = read()?;
        let mut known = self.known();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        match (file, &made) {
            (Some(file), Some(made)) => known.insert(path.to_owned(), (file, made.clone())),
            _ => known.remove(path),
        };
        Ok(made)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, (Stamp, T)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_only_when_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let cache: Cache<String> = Cache::default();
        let reads = std::cell::Cell::new(0);
        let read = || {
            cache.read(&path, || {
                reads.set(reads.get() + 1);
                Ok::<_, ()>(fs::read_to_string(&path).ok())
            })
        };
        assert_eq!(read(), Ok(None));
        fs::write(&path, "a").unwrap();
        std::thread::sleep(TICK * 2);
        assert_eq!((read(), read()), (Ok(Some("a".into())), Ok(Some("a".into()))));
        assert_eq!(reads.get(), 2);
        // Replaces the file as Lisa replaces its own files.
        fs::write(dir.path().join("next"), "b").unwrap();
        fs::rename(dir.path().join("next"), &path).unwrap();
        assert_eq!(read(), Ok(Some("b".into())));
        fs::remove_file(&path).unwrap();
        assert_eq!(read(), Ok(None));
    }

    #[test]
    fn a_file_has_another_stamp_after_each_write_once_it_is_settled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(Stamp::of(&path), None);
        fs::write(&path, "a").unwrap();
        assert_eq!(Stamp::settled(&path), None, "it may be written again within the same tick");
        std::thread::sleep(TICK * 2);
        let before = Stamp::settled(&path).unwrap();
        assert_eq!(Stamp::of(&path), Some(before));
        fs::write(&path, "b").unwrap();
        assert_ne!(Stamp::of(&path), Some(before));
    }
}
