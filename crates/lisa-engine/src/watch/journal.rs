//! The journal: every event of a user's sessions, one line each, under a cursor that only grows.
//!
//! It is kept in segments, each named after its first cursor. Cursors follow each other without a gap, so the next
//! one is known from the end of the last segment, and a torn last line, the worst that a crash can leave, is cut off
//! by the next writer. Old segments are dropped whole; a cursor from before them is an error that says so, never a
//! silent gap.
//!
//! Writing is idempotent: each event has an id of its own, and one that is there already is not written again. That
//! is what lets an event be noted in the session's state first and written here outside its lock.

use crate::{
    api::Event,
    config::Config,
    disk::{self, Lock},
    error::{Error, Kind, Result},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How long a writer waits for another.
const LOCK_LIMIT: Duration = Duration::from_secs(5);
/// How much of a segment's end is read, until what is looked for stands in it: mostly the last few lines are.
const TAILS: [u64; 4] = [4 << 10, 64 << 10, 1 << 20, u64::MAX];
/// The journal is dropped in pieces of this fraction of its limit.
const SEGMENTS: u64 = 8;

/// An event as it is stored: with the id that keeps it from being written twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The id: the run, and the event's number in it.
    pub id: String,
    /// The event. Its cursor is given when it is written.
    #[serde(flatten)]
    pub event: Event,
}

/// The journal of one user.
#[derive(Debug, Clone)]
pub struct Journal {
    dir: PathBuf,
    max_bytes: u64,
    max_lines: u64,
    max_age: Duration,
}

/// What a read found.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// The cursor of the last one that was looked at, whether it passed the filter or not.
    pub cursor: u64,
    /// Whether there is more behind it.
    pub more: bool,
}

impl Journal {
    /// The journal below a state folder.
    pub fn open(config: &Config) -> Result<Self> {
        let dir = config.state_dir.join("journal");
        disk::private_dir(&dir)?;
        Ok(Self {
            dir,
            max_bytes: config.events_max_bytes.max(64 << 10),
            max_lines: config.events_max_lines.max(100),
            max_age: config.events_max_age,
        })
    }

    /// The journal below a state folder, for a writer that knows no limits: whoever reads drops what is too much.
    pub fn at(state_dir: &Path) -> Result<Self> {
        let dir = state_dir.join("journal");
        disk::private_dir(&dir)?;
        Ok(Self { dir, max_bytes: u64::MAX, max_lines: u64::MAX, max_age: Duration::MAX })
    }

    /// The folder to watch for news.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The cursor of the newest event; 0 before there is any.
    pub fn cursor(&self) -> Result<u64> {
        match self.segments()?.last() {
            None => Ok(0),
            Some(last) => Ok(last.next_cursor()?.0 - 1),
        }
    }

    /// Writes events, in order, that are not there yet. `since` is a cursor that is older than all of them: only
    /// what came after it is searched. Returns those that were written, with their cursors.
    pub fn append(&self, entries: &[Entry], since: u64) -> Result<Vec<Event>> {
        let _lock = Lock::take(&self.dir.join("lock"), LOCK_LIMIT)?;
        let mut segments = self.segments()?;
        let (first_new, whole) = match segments.last() {
            Some(last) => last.next_cursor()?,
            None => (1, 0),
        };
        let known = self.ids_since(&segments, since.min(first_new - 1))?;
        let (mut text, mut written) = (String::new(), Vec::new());
        for (cursor, entry) in (first_new..).zip(entries.iter().filter(|entry| !known.contains(&entry.id))) {
            let mut entry = entry.clone();
            entry.event.cursor = cursor;
            let line = serde_json::to_string(&entry).map_err(|error| {
                Error::invalid(format!("an event can not be written: {error}"), "report this")
            })?;
            text.push_str(&line);
            text.push('\n');
            written.push(entry.event);
        }
        if written.is_empty() {
            return Ok(written);
        }
        let current = segments.last().filter(|last| !self.full(last, first_new, whole));
        let path = match current {
            Some(current) => {
                current.cut_to(whole)?;
                current.path.clone()
            }
            None => {
                let path = self.dir.join(format!("{first_new:020}.jsonl"));
                segments.push(Segment { first: first_new, path: path.clone() });
                path
            }
        };
        disk::private_options()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Error::io("append to", &path, &error))?;
        self.drop_old(&segments, first_new + written.len() as u64);
        Ok(written)
    }

    /// Events after a cursor that pass a filter, at most `limit` of them.
    pub fn read(&self, since: u64, limit: usize, pass: impl Fn(&Event) -> bool) -> Result<Read> {
        let segments = self.segments()?;
        let oldest = segments.first().map_or(1, |segment| segment.first);
        if since + 1 < oldest {
            return Err(Error::new(
                Kind::CursorExpired,
                format!("the journal no longer has what came after cursor {since}; it begins at {oldest}"),
                format!("look at the sessions anew, then go on from cursor {}", oldest - 1),
            ));
        }
        let mut found = Read { events: Vec::new(), cursor: since, more: false };
        let begin = segments.iter().rposition(|segment| segment.first <= since + 1).unwrap_or(0);
        for segment in segments.get(begin..).unwrap_or_default() {
            // Another process dropped it since the list was made: what was in it is missed, and that must be said.
            let Some(bytes) = segment.after(since)? else { return self.read(since, limit, pass) };
            for line in disk::whole_lines(&bytes).0 {
                let Ok(entry) = serde_json::from_slice::<Entry>(line) else { continue };
                if entry.event.cursor <= since {
                    continue;
                }
                if found.events.len() == limit {
                    found.more = true;
                    return Ok(found);
                }
                found.cursor = entry.event.cursor;
                if pass(&entry.event) {
                    found.events.push(entry.event);
                }
            }
        }
        Ok(found)
    }

    /// Where to begin to see everything that is still kept.
    pub fn oldest(&self) -> Result<u64> {
        Ok(self.segments()?.first().map_or(0, |segment| segment.first - 1))
    }

    fn ids_since(&self, segments: &[Segment], since: u64) -> Result<HashSet<String>> {
        let begin = segments.iter().rposition(|segment| segment.first <= since + 1).unwrap_or(0);
        let mut ids = HashSet::new();
        for segment in segments.get(begin..).unwrap_or_default() {
            let bytes = segment.after(since)?.unwrap_or_default();
            for line in disk::whole_lines(&bytes).0.into_iter().rev() {
                let Ok(entry) = serde_json::from_slice::<Entry>(line) else { continue };
                if entry.event.cursor <= since {
                    break;
                }
                ids.insert(entry.id);
            }
        }
        Ok(ids)
    }

    fn segments(&self) -> Result<Vec<Segment>> {
        let entries = fs::read_dir(&self.dir).map_err(|error| Error::io("list", &self.dir, &error))?;
        let mut segments: Vec<Segment> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let first = name.strip_suffix(".jsonl")?.parse().ok()?;
                Some(Segment { first, path: entry.path() })
            })
            .collect();
        segments.sort_by_key(|segment| segment.first);
        Ok(segments)
    }

    fn full(&self, segment: &Segment, next: u64, bytes: u64) -> bool {
        bytes >= self.max_bytes / SEGMENTS || next - segment.first >= (self.max_lines / SEGMENTS).max(1)
    }

    /// Drops whole segments from the front until the rest is within the limits. The last one always stays.
    fn drop_old(&self, segments: &[Segment], next: u64) {
        let size = |segment: &Segment| fs::metadata(&segment.path).map_or(0, |found| found.len());
        let mut bytes: u64 = segments.iter().map(size).sum();
        let mut lines = next - segments.first().map_or(next, |segment| segment.first);
        for (index, segment) in segments.iter().enumerate().take(segments.len().saturating_sub(1)) {
            let age = fs::metadata(&segment.path)
                .and_then(|found| found.modified())
                .ok()
                .and_then(|time| SystemTime::now().duration_since(time).ok())
                .unwrap_or_default();
            if bytes <= self.max_bytes && lines <= self.max_lines && age <= self.max_age {
                break;
            }
            bytes -= size(segment).min(bytes);
            lines -= (segments[index + 1].first - segment.first).min(lines);
            let _ = fs::remove_file(&segment.path);
        }
    }
}

/// Somebody who follows the journal from where it stood: each read gives what came since, and reads nothing twice.
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
            Some(last) => (last.first, last.next_cursor()?.1),
            None => (0, 0),
        };
        Ok(Self { journal, segment, offset })
    }

    /// The sessions that something was written about since the last read, each with the id of the last event; `None`
    /// where parts of that are gone already, so that it may have been any of them.
    pub(crate) fn sessions(&mut self) -> Result<Option<BTreeMap<String, String>>> {
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
            let about = lines.iter().filter_map(|line| serde_json::from_slice::<About>(line).ok());
            names.extend(about.map(|about| (about.session, about.id)));
        }
        Ok((!missed).then_some(names))
    }
}

/// A line, as far as a follower needs it.
#[derive(Deserialize)]
struct About {
    id: String,
    session: String,
}

/// A line, as far as whoever writes the next one needs it.
#[derive(Deserialize)]
struct Numbered {
    cursor: u64,
}

impl Numbered {
    fn of(line: &[u8]) -> Option<u64> {
        serde_json::from_slice::<Self>(line).ok().map(|line| line.cursor)
    }
}

#[derive(Debug, Clone)]
struct Segment {
    first: u64,
    path: PathBuf,
}

impl Segment {
    /// The end of it that holds everything after a cursor, from the beginning of a line on; `None` where it was dropped.
    fn after(&self, since: u64) -> Result<Option<Vec<u8>>> {
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
            // The first line is most likely the end of one.
            let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
            bytes.drain(..begin);
            let first = disk::whole_lines(&bytes).0.into_iter().find_map(Numbered::of);
            if first.is_some_and(|cursor| cursor <= since + 1) {
                return Ok(Some(bytes));
            }
        }
        disk::read(&self.path)
    }

    fn length(&self) -> Result<Option<u64>> {
        match fs::metadata(&self.path) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &self.path, &error)),
        }
    }

    /// The cursor of the next event, and how many bytes of whole lines there are.
    fn next_cursor(&self) -> Result<(u64, u64)> {
        let Some(length) = self.length()? else { return Ok((self.first, 0)) };
        for tail in TAILS {
            let from = length.saturating_sub(tail);
            let bytes = disk::read_at(&self.path, from, u64::MAX)?.unwrap_or_default();
            let (lines, used) = disk::whole_lines(&bytes);
            if let Some(cursor) = lines.into_iter().rev().find_map(Numbered::of) {
                return Ok((cursor + 1, from + used as u64));
            }
            if from == 0 {
                return Ok((self.first, used as u64));
            }
        }
        Ok((self.first, 0))
    }

    /// Cuts off what a writer that was killed left behind its last whole line.
    fn cut_to(&self, whole: u64) -> Result<()> {
        let io = |error: std::io::Error| Error::io("mend", &self.path, &error);
        let file = disk::private_options().write(true).open(&self.path).map_err(io)?;
        if file.metadata().map_err(io)?.len() > whole { file.set_len(whole).map_err(io) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::EventKind,
        config::Environment,
        words::{StateName, Status},
    };

    fn journal(dir: &Path, lines: u64) -> Journal {
        let env = Environment::from_pairs([("HOME", "/nowhere"), ("LISA_STATE_DIR", dir.to_str().unwrap())]);
        let mut config = Config::load(&env).unwrap();
        config.events_max_lines = lines;
        Journal::open(&config).unwrap()
    }

    fn entry(id: &str) -> Entry {
        Entry {
            id: id.to_owned(),
            event: Event {
                cursor: 0,
                at: jiff::Timestamp::UNIX_EPOCH,
                session: "s".to_owned(),
                event: EventKind::Transition,
                status: Status::InProgress,
                state: StateName::Working,
                detail: String::new(),
                turn: None,
                data: None,
            },
        }
    }

    fn cursors(read: &Read) -> Vec<u64> {
        read.events.iter().map(|event| event.cursor).collect()
    }

    #[test]
    fn cursors_grow_without_a_gap_and_a_reader_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        assert_eq!(journal.cursor().unwrap(), 0);
        journal.append(&[entry("a"), entry("b")], 0).unwrap();
        assert_eq!(journal.append(&[entry("c")], 0).unwrap()[0].cursor, 3);
        let first = journal.read(0, 2, |_| true).unwrap();
        assert_eq!((cursors(&first), first.cursor, first.more), (vec![1, 2], 2, true));
        let rest = journal.read(first.cursor, 10, |_| true).unwrap();
        assert_eq!((cursors(&rest), rest.more), (vec![3], false));
    }

    #[test]
    fn a_reader_gets_the_same_whether_the_end_of_a_segment_or_all_of_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100_000);
        // Lines of very different lengths, so that every tail that is tried cuts one somewhere.
        for id in 1..=200_u64 {
            let mut entry = entry(&id.to_string());
            entry.event.detail = "x".repeat(usize::try_from(id * id % 4_099).unwrap());
            journal.append(&[entry], id - 1).unwrap();
        }
        assert!(fs::metadata(&journal.segments().unwrap()[0].path).unwrap().len() > TAILS[1]);
        for since in 0..=200 {
            let read = journal.read(since, 1000, |_| true).unwrap();
            assert_eq!(cursors(&read), (since + 1..=200).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_reader_whose_next_segment_is_dropped_under_it_is_told_that_it_missed_something() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100);
        for id in 0..40 {
            journal.append(&[entry(&id.to_string())], 0).unwrap();
        }
        let segments = journal.segments().unwrap();
        assert!(segments.len() > 2, "{segments:?}");
        // Another process drops the two oldest while the first of them is read.
        let read = journal.read(0, 100, |_| {
            for segment in &segments[..2] {
                let _ = fs::remove_file(&segment.path);
            }
            true
        });
        assert_eq!(read.unwrap_err().kind(), Kind::CursorExpired);
    }

    #[test]
    fn a_follower_is_told_of_each_session_once_across_segments_and_of_what_it_missed() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100);
        journal.append(&[entry("before")], 0).unwrap();
        let mut tail = Tail::new(journal.clone()).unwrap();
        assert_eq!(tail.sessions().unwrap(), Some(BTreeMap::new()));
        for id in 0..40 {
            let mut entry = entry(&id.to_string());
            entry.event.session = format!("s{id}");
            journal.append(&[entry], 0).unwrap();
        }
        assert_eq!(tail.sessions().unwrap().unwrap().len(), 40);
        assert_eq!(tail.sessions().unwrap(), Some(BTreeMap::new()));
        let mut late = Tail::new(journal.clone()).unwrap();
        for id in 40..400 {
            journal.append(&[entry(&id.to_string())], 0).unwrap();
        }
        assert_eq!(late.sessions().unwrap(), None, "the segment that it read is gone");
        assert_eq!(late.sessions().unwrap(), Some(BTreeMap::new()));
    }

    #[test]
    fn a_line_that_is_missing_or_broken_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        journal.append(&["a", "b", "c", "d", "e"].map(entry), 0).unwrap();
        let path = journal.segments().unwrap()[0].path.clone();
        let whole = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        for text in [[lines[0], lines[2], lines[3], lines[4]], [lines[0], "{torn", lines[3], lines[4]]] {
            fs::write(&path, text.join("\n") + "\n").unwrap();
            for since in 0..=5 {
                let seen = cursors(&journal.read(since, 10, |_| true).unwrap());
                assert!(
                    seen.contains(&5) == (since < 5) && seen.contains(&4) == (since < 4),
                    "{since}: {seen:?}"
                );
            }
        }
    }

    #[test]
    fn an_event_that_is_there_already_is_not_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        journal.append(&[entry("a"), entry("b")], 0).unwrap();
        assert_eq!(journal.append(&[entry("a"), entry("b"), entry("c")], 0).unwrap().len(), 1);
        assert_eq!(journal.read(0, 10, |_| true).unwrap().events.len(), 3);
    }

    #[test]
    fn a_torn_last_line_is_cut_off_by_the_next_writer() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        journal.append(&[entry("a")], 0).unwrap();
        let path = journal.segments().unwrap()[0].path.clone();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"id\":\"b\",\"cur").unwrap();
        assert_eq!(journal.read(0, 10, |_| true).unwrap().events.len(), 1);
        assert_eq!(journal.append(&[entry("b")], 0).unwrap()[0].cursor, 2);
        assert_eq!(cursors(&journal.read(0, 10, |_| true).unwrap()), [1, 2]);
    }

    #[test]
    fn old_events_are_dropped_and_a_cursor_from_before_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100);
        for n in 0..400 {
            journal.append(&[entry(&n.to_string())], n).unwrap();
        }
        let error = journal.read(3, 10, |_| true).unwrap_err();
        assert_eq!(error.kind(), Kind::CursorExpired);
        let oldest = journal.oldest().unwrap();
        assert!((280..=310).contains(&oldest), "{oldest}");
        let kept = journal.read(oldest, 1000, |_| true).unwrap();
        assert_eq!((kept.events.len() as u64, kept.cursor), (400 - oldest, 400));
    }

    #[test]
    fn writers_in_parallel_lose_nothing_and_share_no_cursor() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 10_000);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let journal = &journal;
                scope.spawn(move || {
                    for n in 0..50 {
                        journal.append(&[entry(&format!("{worker}-{n}"))], 0).unwrap();
                    }
                });
            }
        });
        assert_eq!(cursors(&journal.read(0, 1000, |_| true).unwrap()), (1..=200).collect::<Vec<u64>>());
    }
}
