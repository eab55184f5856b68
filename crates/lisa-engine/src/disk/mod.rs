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
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt},
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
    let written = open_private(&temporary, |options| options.write(true).create_new(true))
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        Error::io("write", path, &error)
    })
}

/// Appends one line in one write. Where a writer left half a line (a full disk, a kill), it begins a new one.
pub fn append_line(path: &Path, line: &str) -> Result<()> {
    let mut file = open_private(path, |options| options.read(true).append(true).create(true))
        .map_err(|error| Error::io("open", path, &error))?;
    let io = |error: io::Error| Error::io("append to", path, &error);
    let mut bytes = Vec::with_capacity(line.len() + 2);
    if !ends_with_newline(&file).map_err(io)? {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    file.write_all(&bytes).map_err(io)
}

fn ends_with_newline(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last == [b'\n'])
}

/// Drops the older half of a file of lines that has grown beyond `max` bytes. A line that another process appends
/// meanwhile may be lost: only for files that are a view of something that is kept elsewhere.
pub fn trim_lines(path: &Path, max: u64) -> Result<()> {
    let length = fs::symlink_metadata(path).map_or(0, |found| found.len());
    if length <= max {
        return Ok(());
    }
    let bytes = read_at(path, length - max / 2, u64::MAX)?.unwrap_or_default();
    let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    write_atomic(path, &bytes[begin..])
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

/// Opens a file of Lisa's own for reading.
pub fn open_read(path: &Path) -> io::Result<File> {
    open_private(path, |options| options.read(true))
}

/// Opens a file of Lisa's own: private, never through a symlink, never waiting, and a regular file. A fifo in its place
/// would otherwise hang whoever opens it.
pub fn open_private(
    path: &Path,
    choose: impl FnOnce(&mut OpenOptions) -> &mut OpenOptions,
) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    regular(choose(&mut options).custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK)).open(path)?)
}

/// Opens a file of somebody else's for reading: it may be reached through a symlink, but must be a regular file.
pub fn open_foreign(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(flags(OFlags::NONBLOCK)).open(path)?)
}

/// Reads a file of somebody else's, at most `limit` bytes of it.
pub fn read_foreign(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_from(open_foreign(path)?, 0, limit)
}

fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or(0)
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
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
    fn half_a_line_that_a_full_disk_left_does_not_swallow_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hooks.jsonl");
        append_line(&path, "one").unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"tw").unwrap();
        append_line(&path, "three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n{\"tw\nthree\n");
    }

    #[test]
    fn a_fifo_in_place_of_a_file_is_refused_and_hangs_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("meta.json");
        crate::helper::launch::make_fifo(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("not a regular file"));
        assert!(append_line(&path, "x").is_err());
        assert!(open_foreign(&path).is_err());
        assert!(Lock::take(&path, std::time::Duration::ZERO).is_err());
    }

    #[test]
    fn a_file_of_lines_keeps_its_newer_half() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        (0..100).for_each(|n| append_line(&path, &format!("line {n}")).unwrap());
        trim_lines(&path, 1000).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 100, "it is short enough");
        trim_lines(&path, 400).unwrap();
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept.starts_with("line ") && kept.ends_with("line 99\n") && kept.len() <= 200, "{kept}");
    }

    #[test]
    fn a_torn_last_line_is_left_for_later() {
        let (lines, used) = whole_lines(b"one\ntwo\nthr");
        assert_eq!((lines, used), (vec![&b"one"[..], b"two"], 8));
    }
}
