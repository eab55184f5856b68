//! One file of the journal: lines with consecutive cursors.

use super::{Entry, EventId};
use crate::{
    disk,
    error::{Error, Result},
};
use serde::Deserialize;
use std::{
    fs,
    io::{ErrorKind, Write},
    path::PathBuf,
};

/// Tail sizes to read, in turn, until the wanted lines are found: mostly the last few lines are enough.
pub(super) const TAILS: [u64; 4] = [4 << 10, 64 << 10, 1 << 20, u64::MAX];

/// One file of the journal, named after its first cursor.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) first: u64,
    pub(super) path: PathBuf,
}

/// The end of a journal.
#[derive(Debug, Clone, Default)]
pub(super) struct End {
    /// The cursor of the next event.
    pub(super) next: u64,
    /// How many bytes the complete lines of the last segment take.
    pub(super) whole: u64,
    /// The last line.
    pub(super) last: Option<Line>,
}

/// The parts of a line that writers and followers need.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Line {
    pub(super) id: EventId,
    #[serde(default)]
    pub(super) parent: Option<String>,
    pub(super) session: String,
    pub(super) cursor: u64,
}

impl Line {
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

impl Segment {
    /// The part of the segment with everything after a cursor, from the start of a line; `None` if the segment was
    /// dropped.
    pub(super) fn after(&self, since: u64) -> Result<Option<Vec<u8>>> {
        if since < self.first {
            return disk::read(&self.path);
        }
        for tail in TAILS {
            let Some(length) = self.length()? else { return Ok(None) };
            let from = length.saturating_sub(tail);
            let Some(mut bytes) = disk::read_at(&self.path, from, u64::MAX)? else { return Ok(None) };
            if from == 0 {
                return Ok(Some(bytes));
            }
            // The first line is probably incomplete.
            let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
            bytes.drain(..begin);
            let first = disk::whole_lines(&bytes).0.into_iter().find_map(Line::of);
            if first.is_some_and(|line| line.cursor <= since.saturating_add(1)) {
                return Ok(Some(bytes));
            }
        }
        disk::read(&self.path)
    }

    /// Its size in bytes; `None` if it was dropped.
    pub(super) fn length(&self) -> Result<Option<u64>> {
        match fs::metadata(&self.path) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &self.path, &error)),
        }
    }

    /// The end of the segment.
    pub(super) fn end(&self) -> Result<End> {
        let Some(length) = self.length()? else { return Ok(End { next: self.first, ..End::default() }) };
        for tail in TAILS {
            let from = length.saturating_sub(tail);
            let bytes = disk::read_at(&self.path, from, u64::MAX)?.unwrap_or_default();
            let (lines, used) = disk::whole_lines(&bytes);
            let whole = from + used as u64;
            if let Some(last) = lines.into_iter().rev().find_map(Line::of) {
                return Ok(End { next: last.cursor.saturating_add(1), whole, last: Some(last) });
            }
            if from == 0 {
                return Ok(End { next: self.first, whole, last: None });
            }
        }
        Ok(End { next: self.first, ..End::default() })
    }

    /// Appends entries after the last complete line; cuts off what a killed writer left after it.
    pub(super) fn append(&self, whole: u64, entries: &[Entry]) -> Result<()> {
        let mut text = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut text, entry).map_err(|error| {
                Error::invalid(format!("could not serialize an event: {error}"), "report this as a bug")
            })?;
            text.push(b'\n');
        }
        let io = |error: std::io::Error| Error::io("append to", &self.path, &error);
        let mut file =
            disk::open_private(&self.path, |options| options.append(true).create(true)).map_err(io)?;
        if file.metadata().map_err(io)?.len() > whole {
            file.set_len(whole).map_err(io)?;
        }
        file.write_all(&text).map_err(|error| {
            // A full disk: half an entry wouldn't harm readers, but would be read again and again.
            let _ = file.set_len(whole);
            io(error)
        })
    }
}
