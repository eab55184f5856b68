//! Counts commits in a project since a time: reads the reflog of HEAD, without starting git.

use crate::{classify::observation::At, disk};
use std::{
    fs,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// Only the end of the log matters.
const TAIL: u64 = 64 << 10;

/// How many commits were made since `began`; `None` if that isn't known or there is no repository.
pub(super) fn since(project: &Path, began: Option<At>) -> Option<u32> {
    let began = began?.0 / 1000;
    let mut log = disk::open_foreign(&git_dir(project)?.join("logs/HEAD")).ok()?;
    let length = log.metadata().ok()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let made = text.lines().filter(|line| commit_time(line).is_some_and(|time| time >= began)).count();
    u32::try_from(made).ok()
}

/// The time of a commit in a line of the log: `OLD NEW NAME <MAIL> SECONDS ZONE\tcommit: …`.
fn commit_time(line: &str) -> Option<i64> {
    let (head, what) = line.split_once('\t')?;
    if !what.starts_with("commit") {
        return None;
    }
    head.rsplit(' ').nth(1)?.parse().ok()
}

/// A work tree's `.git` is a directory, or a file with the path of that directory.
fn git_dir(project: &Path) -> Option<PathBuf> {
    let path = project.join(".git");
    if fs::metadata(&path).ok()?.is_dir() {
        return Some(path);
    }
    let text = String::from_utf8(disk::read_foreign(&path, TAIL).ok()?).ok()?;
    Some(project.join(text.trim().strip_prefix("gitdir: ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_after_the_turn_began_count() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".git/logs")).unwrap();
        let line = |time: u32, what: &str| format!("0 1 Dev <dev@example.org> {time} +0100\t{what}\n");
        let log = [
            line(100, "commit (initial): a"),
            line(200, "checkout: moving"),
            line(300, "commit: b"),
            line(301, "commit (amend): b"),
        ];
        fs::write(dir.path().join(".git/logs/HEAD"), log.concat()).unwrap();
        assert_eq!(since(dir.path(), Some(At(150_000))), Some(2));
        assert_eq!(since(dir.path(), Some(At(400_000))), Some(0));
        assert_eq!(since(dir.path(), None), None);
        assert_eq!(since(&dir.path().join("no"), Some(At(0))), None);
    }
}
