//! Reads a growing file of JSON lines: only new lines, only complete lines.

use crate::{
    classify::observation::{At, Line},
    disk,
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::Path,
};

/// Maximum bytes per read.
const READ_MAX: u64 = 4 << 20;
/// Maximum bytes per look. A verdict from half of what an agent has said would be about the past, so a file that has
/// grown by more than this is read from near its end, as if it were new.
const LOOK_MAX: u64 = 64 << 20;
/// A larger file is read from near its end when it is first seen.
const FIRST_MAX: u64 = 1 << 20;

/// How far a file was read. If the file was replaced or truncated, reading restarts at its beginning.
#[derive(Debug)]
pub struct Tail<'a> {
    key: &'a str,
    path: &'a Path,
    offset: u64,
    inode: u64,
    seen_before: bool,
}

impl<'a> Tail<'a> {
    /// Continues where an earlier look ended.
    pub fn resume(key: &'a str, path: &'a Path, offsets: &BTreeMap<String, u64>) -> Self {
        let inode = offsets.get(&format!("{key}.inode")).copied();
        Self {
            key,
            path,
            offset: offsets.get(key).copied().unwrap_or(0),
            inode: inode.unwrap_or(0),
            seen_before: inode.is_some(),
        }
    }

    /// What to remember for the next look.
    pub fn offsets(&self) -> [(String, u64); 2] {
        [(self.key.to_owned(), self.offset), (format!("{}.inode", self.key), self.inode)]
    }

    /// The complete lines since the last look; none if the file doesn't exist.
    pub fn read(&mut self, at: At) -> io::Result<Vec<Line>> {
        let mut file = match disk::open_foreign(self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let found = file.metadata()?;
        if !self.seen_before || found.ino() != self.inode || found.len() < self.offset {
            self.inode = found.ino();
            self.offset = 0;
            if found.len() > FIRST_MAX {
                self.offset = line_start(&mut file, found.len() - FIRST_MAX)?;
            }
            self.seen_before = true;
        }
        if found.len().saturating_sub(self.offset) > LOOK_MAX {
            tracing::warn!(path = %self.path.display(), "a file has grown by more than a look reads");
            self.offset = line_start(&mut file, found.len() - FIRST_MAX)?;
        }
        let mut all = Vec::new();
        while self.offset < found.len() {
            file.seek(SeekFrom::Start(self.offset))?;
            let mut bytes = Vec::new();
            (&file).take(READ_MAX).read_to_end(&mut bytes)?;
            let (lines, used) = lines(&bytes, at);
            all.extend(lines);
            match used {
                // A single line that is longer than a whole read can't be useful: it is skipped.
                0 if bytes.len() as u64 == READ_MAX => self.offset += READ_MAX,
                // The last line isn't complete yet.
                0 => break,
                used => self.offset += used as u64,
            }
        }
        Ok(all)
    }
}

/// The complete lines in `bytes`, and how many bytes they take.
pub(crate) fn lines(bytes: &[u8], at: At) -> (Vec<Line>, usize) {
    let (lines, used) = disk::whole_lines(bytes);
    (lines.into_iter().map(|line| Line { at, payload: parse(line) }).collect(), used)
}

fn parse(line: &[u8]) -> Result<serde_json::Value, String> {
    serde_json::from_slice(line).map_err(|error| {
        let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
        format!("`{shown}` is not valid JSON: {error}")
    })
}

/// The first line that starts at or after an offset.
fn line_start(file: &mut File, offset: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = vec![0; 1 << 20];
    let read = file.read(&mut bytes)?;
    Ok(bytes[..read].iter().position(|byte| *byte == b'\n').map_or(offset, |at| offset + at as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn next(path: &Path, offsets: &mut BTreeMap<String, u64>) -> Vec<Result<serde_json::Value, String>> {
        let mut tail = Tail::resume("t", path, offsets);
        let lines = tail.read(At(0)).unwrap();
        offsets.extend(tail.offsets());
        lines.into_iter().map(|line| line.payload).collect()
    }

    #[test]
    fn each_line_is_read_once_and_a_torn_one_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let mut offsets = BTreeMap::new();
        assert!(next(&path, &mut offsets).is_empty());
        let mut file = File::create(&path).unwrap();
        file.write_all(b"{\"n\":1}\n{\"n\":").unwrap();
        assert_eq!(next(&path, &mut offsets), [Ok(serde_json::json!({"n": 1}))]);
        assert!(next(&path, &mut offsets).is_empty());
        file.write_all(b"2}\nnonsense\n").unwrap();
        let lines = next(&path, &mut offsets);
        assert_eq!(lines[0], Ok(serde_json::json!({"n": 2})));
        assert!(lines[1].as_ref().unwrap_err().contains("nonsense"));
    }

    #[test]
    fn a_file_that_was_replaced_is_read_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let mut offsets = BTreeMap::new();
        std::fs::write(&path, "{\"n\":1}\n").unwrap();
        next(&path, &mut offsets);
        std::fs::write(dir.path().join("new"), "{\"n\":7}\n{\"n\":8}\n").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(next(&path, &mut offsets).len(), 2);
    }

    #[test]
    fn a_backlog_is_read_to_its_end_in_one_look() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let mut offsets = BTreeMap::new();
        std::fs::write(&path, "{\"n\":1}\n").unwrap();
        next(&path, &mut offsets);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        let filler = "x".repeat(1 << 10);
        for n in 0..3 * READ_MAX / (1 << 10) {
            writeln!(file, "{{\"n\":{n},\"filler\":\"{filler}\"}}").unwrap();
        }
        write!(file, "{{\"n\":").unwrap();
        let lines = next(&path, &mut offsets);
        assert_eq!(lines.len() as u64, 3 * READ_MAX / (1 << 10));
        assert!(next(&path, &mut offsets).is_empty(), "the last line is torn");
        writeln!(file, "7}}").unwrap();
        assert_eq!(next(&path, &mut offsets), [Ok(serde_json::json!({"n": 7}))]);
    }

    #[test]
    fn a_long_file_met_for_the_first_time_is_read_from_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let text: String = (0..200_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        std::fs::write(&path, &text).unwrap();
        let lines = next(&path, &mut BTreeMap::new());
        assert!(lines.len() < 100_000 && lines.iter().all(Result::is_ok));
        assert_eq!(*lines.last().unwrap(), Ok(serde_json::json!({"n": 199_999})));
    }
}
