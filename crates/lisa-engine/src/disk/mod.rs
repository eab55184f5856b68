//! Files that are Lisa's own: private folders, atomic writes, whole-line appends and locks.
//!
//! A folder is used only if it is a real folder of this user that nobody else can enter; a symlink in its place, or
//! somebody else's folder, is an error and never followed. A file is replaced in one step, so that a reader sees the
//! old one or the new one; a line is appended in one write, so that a torn last line is the worst a crash leaves.

mod lock;
mod stamp;

pub use lock::Lock;
pub use stamp::{Cache, Stamp};

use crate::error::{Error, Kind, Result};
use rustix::fs::OFlags;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// More than most files hold.
const USUAL: usize = 8 << 10;

/// Makes a private folder with its parents, or checks that the one that is there is private.
pub fn private_dir(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) => check_private(path, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(|error| Error::io("make", parent, &error))?;
            }
            match DirBuilder::new().mode(0o700).create(path) {
                Ok(()) => Ok(()),
                // Another process was faster: what it made is checked like any other.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_private_dir(path),
                Err(error) => Err(Error::io("make", path, &error)),
            }
        }
        Err(error) => Err(Error::io("look at", path, &error)),
    }
}

/// Checks that a folder is a real one, of this user, and closed to everybody else.
pub fn check_private_dir(path: &Path) -> Result<()> {
    let found = fs::symlink_metadata(path).map_err(|error| Error::io("look at", path, &error))?;
    check_private(path, &found)
}

fn check_private(path: &Path, found: &fs::Metadata) -> Result<()> {
    let unsafe_dir = |what: String, hint: &str| Err(Error::new(Kind::UnsafeStateDir, what, hint));
    if found.is_symlink() {
        return unsafe_dir(
            format!("{} is a symbolic link, which is not followed", path.display()),
            "remove it, or set LISA_STATE_DIR to the folder itself",
        );
    }
    if !found.is_dir() {
        return unsafe_dir(
            format!("{} is not a folder", path.display()),
            "move it away, or set LISA_STATE_DIR to another folder",
        );
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return unsafe_dir(
            format!("{} belongs to another user (uid {})", path.display(), found.uid()),
            "set LISA_STATE_DIR to a folder of your own",
        );
    }
    if found.mode() & 0o077 != 0 {
        return unsafe_dir(
            format!("{} is open to others (mode {:o})", path.display(), found.mode() & 0o777),
            "close it with `chmod 700`, or set LISA_STATE_DIR to another folder",
        );
    }
    Ok(())
}

/// Replaces a file in one step: a reader sees the old text or the new one, whole.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
    let temporary = PathBuf::from(temporary);
    let written = private_options()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        Error::io("write", path, &error)
    })
}

/// Appends one line in one write.
pub fn append_line(path: &Path, line: &str) -> Result<()> {
    let mut bytes = Vec::with_capacity(line.len() + 1);
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    let mut file = private_options()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|error| Error::io("open", path, &error))?;
    file.write_all(&bytes).map_err(|error| Error::io("append to", path, &error))
}

/// Reads a file of Lisa's own; `None` where there is none. A symlink is not followed.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    read_at(path, 0, u64::MAX)
}

/// Reads at most `limit` bytes of a file from `offset` on; `None` where there is none.
pub fn read_at(path: &Path, offset: u64, limit: u64) -> Result<Option<Vec<u8>>> {
    let file = match open_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path, &error)),
    };
    read_from(file, offset, limit).map(Some).map_err(|error| Error::io("read", path, &error))
}

/// Opens a file for reading without following a symlink.
pub fn open_read(path: &Path) -> io::Result<File> {
    private_options().read(true).open(path)
}

fn read_from(mut file: File, offset: u64, limit: u64) -> io::Result<Vec<u8>> {
    use std::io::Seek;
    if offset > 0 {
        file.seek(io::SeekFrom::Start(offset))?;
    }
    // Most files here are small: one read, and one more to see that nothing follows.
    let mut bytes = Vec::with_capacity(usize::try_from(limit).unwrap_or(usize::MAX).min(USUAL));
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// For files that only this user can read, and never through a symlink.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0));
    options
}

/// The whole lines among appended bytes, and how many bytes they take: a torn last line is left for the next time.
pub fn whole_lines(bytes: &[u8]) -> (Vec<&[u8]>, usize) {
    let used = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let lines = bytes[..used].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    (lines, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_symlink_in_place_of_the_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        assert_eq!(private_dir(&link).unwrap_err().kind(), Kind::UnsafeStateDir);
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused_and_a_new_one_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(private_dir(&open).unwrap_err().kind(), Kind::UnsafeStateDir);
        let made = dir.path().join("a/b/made");
        private_dir(&made).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_reached_through_a_symlink_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "secret").unwrap();
        symlink(&real, &link).unwrap();
        assert!(read(&link).is_err());
        assert!(append_line(&link, "x").is_err());
        write_atomic(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "secret");
    }

    #[test]
    fn written_files_are_private_and_leave_nothing_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("meta.json");
        write_atomic(&path, b"1").unwrap();
        write_atomic(&path, b"22").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(read(&path).unwrap().unwrap(), b"22");
    }

    #[test]
    fn a_torn_last_line_is_left_for_later() {
        let (lines, used) = whole_lines(b"one\ntwo\nthr");
        assert_eq!((lines, used), (vec![&b"one"[..], b"two"], 8));
    }
}
