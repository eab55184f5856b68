//! Two small values of a session that change often: the time of the last look, and how far the journal has been told.
//!
//! They are written in place, in the session's lock file. That is much cheaper than replacing a file and needs no new
//! block on a full disk. A killed process can't leave them incomplete, because each is one short write. `last_look` is
//! written under the session's lock, `told` under the journal's.

use crate::{
    classify::observation::At,
    disk::{self, Lock},
    error::{Error, Result},
};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

const LAST_LOOK_AT: u64 = 0;
/// Digits of a timestamp, including its sign.
const LAST_LOOK_LENGTH: usize = 20;
const TOLD_AT: u64 = 64;
const TOLD_LENGTH: usize = 128;

/// How far the journal has been told about a run: the number of the last event that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The run.
    pub run: String,
    /// The number of its last event in the journal; 0 if there is none yet.
    pub number: u64,
}

/// The marks of one session.
#[derive(Debug)]
pub struct Marks {
    file: Arc<File>,
    path: PathBuf,
}

impl Marks {
    /// Opens the marks in a session's directory; `None` if the session is gone.
    pub fn open(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join("lock");
        match disk::open_private(&path, |options| options.read(true).write(true)) {
            Ok(file) => Ok(Some(Self { file: Arc::new(file), path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("open", &path, &error)),
        }
    }

    /// Opens the marks next to a lock that is held.
    pub fn of(lock: &Lock, directory: &Path) -> Self {
        Self { file: lock.file(), path: directory.join("lock") }
    }

    /// The time of the last look; `None` if it was never written or is malformed.
    pub fn last_look(&self) -> Option<At> {
        let mut digits = [0; LAST_LOOK_LENGTH];
        self.file.read_exact_at(&mut digits, LAST_LOOK_AT).ok()?;
        std::str::from_utf8(&digits).ok()?.parse().ok().map(At)
    }

    /// Writes the time of the last look.
    pub fn set_last_look(&self, at: At) -> Result<()> {
        self.write(&format!("{:0LAST_LOOK_LENGTH$}", at.0), LAST_LOOK_AT)
    }

    /// How far the journal has been told; `None` if it was never written or is malformed.
    pub fn told(&self) -> Option<Told> {
        let mut bytes = [0; TOLD_LENGTH];
        let read = self.file.read_at(&mut bytes, TOLD_AT).ok()?;
        // Without its end, the number may be cut.
        let (line, _) = std::str::from_utf8(bytes.get(..read)?).ok()?.split_once('\n')?;
        let (run, number) = line.split_once(' ')?;
        Some(Told { run: run.to_owned(), number: number.parse().ok()? })
    }

    /// Writes how far the journal has been told.
    pub fn set_told(&self, told: &Told) -> Result<()> {
        self.write(&format!("{} {:020}\n", told.run, told.number), TOLD_AT)
    }

    /// Whether this is still the file at its path; removing a session removes its lock file.
    pub fn are_current(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let own = self.file.metadata().map(|found| (found.dev(), found.ino()));
        let there = std::fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino()));
        matches!((own, there), (Ok(own), Ok(there)) if own == there)
    }

    fn write(&self, text: &str, at: u64) -> Result<()> {
        self.file.write_all_at(text.as_bytes(), at).map_err(|error| Error::io("write", &self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_read_back_and_leaves_the_other_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Marks::open(dir.path()).unwrap().is_none());
        std::fs::write(dir.path().join("lock"), "").unwrap();
        let marks = Marks::open(dir.path()).unwrap().unwrap();
        assert_eq!((marks.last_look(), marks.told()), (None, None));
        let long = Told { run: "a-rather-long-run-id".to_owned(), number: u64::MAX };
        let short = Told { run: "r".to_owned(), number: 7 };
        for told in [long, short] {
            marks.set_told(&told).unwrap();
            for at in [1_794_875_206_030, -7, i64::MAX].map(At) {
                marks.set_last_look(at).unwrap();
                assert_eq!((marks.last_look(), marks.told()), (Some(at), Some(told.clone())));
            }
        }
        let path = dir.path().join("lock");
        let whole = std::fs::read(&path).unwrap();
        let end = whole.iter().position(|byte| *byte == b'\n').unwrap();
        std::fs::write(&path, &whole[..end]).unwrap();
        assert_eq!(marks.told(), None, "a digit may be missing");
        std::fs::write(&path, "torn").unwrap();
        assert_eq!((marks.last_look(), marks.told()), (None, None));
    }

    #[test]
    fn the_marks_of_a_session_that_was_removed_are_not_current() {
        let dir = tempfile::tempdir().unwrap();
        let session = dir.path().join("s");
        std::fs::create_dir(&session).unwrap();
        std::fs::write(session.join("lock"), "").unwrap();
        let marks = Marks::open(&session).unwrap().unwrap();
        assert!(marks.are_current());
        std::fs::rename(&session, dir.path().join("aside")).unwrap();
        assert!(!marks.are_current());
        std::fs::create_dir(&session).unwrap();
        std::fs::write(session.join("lock"), "").unwrap();
        assert!(!marks.are_current(), "another session has its name");
    }
}
