//! Whether a file is still the one that it was, without reading it.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// How coarse a file system's clock may be. What was written within one tick of it looks the same.
const TICK: Duration = Duration::from_millis(50);

/// What changes with each write, and with each file that takes another's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    length: u64,
    changed: Duration,
}

impl Stamp {
    /// The file at a path as it is now; `None` where there is none.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let changed = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec().try_into().ok()?);
        Some(Self { file: (found.dev(), found.ino()), length: found.len(), changed })
    }

    /// The same, if whatever is written from now on will have another: what was written a moment ago may be replaced
    /// within the same tick.
    pub fn settled(path: &Path) -> Option<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Self::of(path).filter(|stamp| stamp.changed + TICK < now)
    }
}

/// More than this many files are not remembered.
const REMEMBERED: usize = 4_000;

/// What a process has made of small files that it reads again and again.
#[derive(Debug)]
pub struct Cache<T>(Mutex<HashMap<PathBuf, (Stamp, T)>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Cache<T> {
    /// What `read` makes of a file, or made of it when the file was the same.
    pub fn read<E>(&self, path: &Path, read: impl FnOnce() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
        // Looked at before it is read: a file that is replaced in between is read again the next time.
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
        // Replaced as Lisa's own files are.
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
