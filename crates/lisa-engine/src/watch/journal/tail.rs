//! Somebody who follows the journal from where it stood: each read gives what came since, and reads nothing twice.

use super::{EventId, Journal, segment::Line};
use crate::{disk, error::Result};
use std::collections::BTreeMap;

/// How far the journal was read.
#[derive(Debug)]
pub(crate) struct Tail {
    journal: Journal,
    /// The segment that is read, and how far.
    segment: u64,
    offset: u64,
}

impl Tail {
    /// Begins at the end.
    pub(crate) fn new(journal: Journal) -> Result<Self> {
        let (segment, offset) = match journal.segments()?.last() {
            Some(last) => (last.first, last.end()?.whole),
            None => (0, 0),
        };
        Ok(Self { journal, segment, offset })
    }

    /// The sessions that something was written about since the last read, each with the id of the last event; `None`
    /// where parts of that are gone already, so that it may have been any of them.
    pub(crate) fn sessions(&mut self) -> Result<Option<BTreeMap<String, EventId>>> {
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
            names.extend(lines.map(|line| (line.session, line.id)));
        }
        Ok((!missed).then_some(names))
    }
}
