//! Follows the journal: each read returns what is new since the last one.

use super::{EventId, Journal, segment::Line};
use crate::{disk, error::Result};
use std::collections::BTreeMap;

/// The last event of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Latest {
    pub(crate) id: EventId,
    /// The parent of the event's session.
    pub(crate) parent: Option<String>,
}

/// A position in the journal.
#[derive(Debug)]
pub(crate) struct Tail {
    journal: Journal,
    /// The current segment, and how far it was read.
    segment: u64,
    offset: u64,
}

impl Tail {
    /// Starts at the end.
    pub(crate) fn new(journal: Journal) -> Result<Self> {
        let (segment, offset) = match journal.segments()?.last() {
            Some(last) => (last.first, last.end()?.whole),
            None => (0, 0),
        };
        Ok(Self { journal, segment, offset })
    }

    /// The sessions with new events since the last read, each with its last one; `None` if some events have already
    /// been dropped, so that it may be any session.
    pub(crate) fn sessions(&mut self) -> Result<Option<BTreeMap<String, Latest>>> {
        let segments = self.journal.segments()?;
        let mut names = BTreeMap::new();
        let missed = self.segment != 0 && segments.iter().all(|segment| segment.first != self.segment);
        let from = self.segment;
        for segment in segments.iter().filter(|segment| segment.first >= from) {
            if segment.first != self.segment {
                (self.segment, self.offset) = (segment.first, 0);
            }
            let bytes = disk::read_at(&segment.path, self.offset, u64::MAX)?.unwrap_or_default();
            let (lines, used) = disk::whole_lines(&bytes);
            self.offset += used as u64;
            let lines = lines.into_iter().filter_map(Line::of);
            names.extend(lines.map(|line| (line.session, Latest { id: line.id, parent: line.parent })));
        }
        Ok((!missed).then_some(names))
    }
}
