//! Lisa's own files: private directories, atomic writes, whole-line appends and locks.
//!
//! A directory is used only if it is a real directory of this user that nobody else can enter. A symlink in its place,
//! or a directory of somebody else, is an error and never followed. Files are replaced atomically, so a reader sees
//! the old or the new one. Lines are appended in one write, so a crash leaves at most an incomplete last line.

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

/// Larger than most files.
const USUAL: usize = 8 << 10;

/// Creates a private directory with its parents, or checks that the existing one is private.
pub fn private_dir(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) => check_private(path, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(|error| Error::io("make", parent, &error))?;
            }
            match DirBuilder::new().mode(0o700).create(path) {
                Ok(()) => Ok(()),
                // Another process won the race: its directory is checked like any other.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_private_dir(path),
                Err(error) => Err(Error::io("make", path, &error)),
            }
        }
        Err(error) => Err(Error::io("check", path, &error)),
    }
}

/// Checks that a directory is a real one, belongs to this user, and is closed to everybody else.
pub fn check_private_dir(path: &Path) -> Result<()> {
    let found = fs::symlink_metadata(path).map_err(|error| Error::io("check", path, &error))?;
    check_private(path, &found)
}

fn check_private(path: &Path, found: &fs::Metadata) -> Result<()> {
    let unsafe_dir = |what: String, hint: &str| Err(Error::new(Kind::UnsafeStateDir, what, hint));
    if found.is_symlink() {
        return unsafe_dir(
            format!("{} is a symbolic link, and Lisa does not follow it", path.display()),
            "remove it, or set LISA_STATE_DIR to the directory itself",
        );
    }
    if !found.is_dir() {
        return unsafe_dir(
            format!("{} is not a directory", path.display()),
            "move it away, or set LISA_STATE_DIR to another directory",
        );
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return unsafe_dir(
            format!("{} belongs to another user (uid {})", path.display(), found.uid()),
            "set LISA_STATE_DIR to a directory of your own",
        );
    }
    if found.mode() & 0o077 != 0 {
        return unsafe_dir(
            format!("{} is accessible to other users (mode {:o})", path.display(), found.mode() & 0o777),
            "run `chmod 700` on it, or set LISA_STATE_DIR to another directory",
        );
    }
    Ok(())
}

/// Replaces a file atomically: a reader sees the old or the new content, never a mix.
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

/// Appends one line in one write. After an incomplete line (a full disk, a kill), starts a new one.
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

/// Drops the older half of a file of lines that is larger than `max` bytes. A line that another process appends
/// meanwhile may be lost, so use this only for files that are a copy of something else.
pub fn trim_lines(path: &Path, max: u64) -> Result<()> {
    let length = fs::symlink_metadata(path).map_or(0, |found| found.len());
    if length <= max {
        return Ok(());
    }
    let bytes = read_at(path, length - max / 2, u64::MAX)?.unwrap_or_default();
    let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    write_atomic(path, &bytes[begin..])
}

/// Reads one of Lisa's own files; `None` if there is none. Doesn't follow symlinks.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    read_at(path, 0, u64::MAX)
}

/// Reads at most `limit` bytes of a file from `offset` on; `None` if there is none.
pub fn read_at(path: &Path, offset: u64, limit: u64) -> Result<Option<Vec<u8>>> {
    let file = match open_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path, &error)),
    };
    read_from(file, offset, limit).map(Some).map_err(|error| Error::io("read", path, &error))
}

/// Opens one of Lisa's own files for reading.
pub fn open_read(path: &Path) -> io::Result<File> {
    open_private(path, |options| options.read(true))
}

/// Opens one of Lisa's own files: private, not through a symlink, without blocking, and only a regular file. A fifo in
/// its place would otherwise hang the caller.
pub fn open_private(
    path: &Path,
    choose: impl FnOnce(&mut OpenOptions) -> &mut OpenOptions,
) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    regular(choose(&mut options).custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK)).open(path)?)
}

/// Opens a file that isn't Lisa's for reading; symlinks are allowed, but it must be a regular file.
pub fn open_foreign(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(flags(OFlags::NONBLOCK)).open(path)?)
}

/// Reads at most `limit` bytes of a file that isn't Lisa's.
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
    // Most files here are small: one read, and a second one that finds the end.
    let mut bytes = Vec::with_capacity(usize::try_from(limit).unwrap_or(usize::MAX).min(USUAL));
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The complete lines among appended bytes, and how many bytes they take; an incomplete last line is left for the next
/// read.
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
    fn a_symlink_in_place_of_the_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        assert_eq!(private_dir(&link).unwrap_err().kind(), Kind::UnsafeStateDir);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused_and_a_new_one_is_private() {
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
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
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
