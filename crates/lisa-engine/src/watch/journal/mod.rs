//! The journal: every event of a user's sessions, one line each, with a cursor that only grows.
//!
//! It is stored in segments, each named after its first cursor. Cursors have no gaps, so the next one is known from
//! the end of the last segment. A crash leaves at most an incomplete last line, which the next writer cuts off. Old
//! segments are dropped as a whole; a cursor from before them is an explicit error, never a silent gap.
//!
//! Each event has an id: its run and its number in that run. After every write, the session's [`Marks`] note how far
//! the journal has been told about the run. A writer that is killed between the two leaves its event as the last line
//! of the journal, where the next writer finds and marks it. So an event is told once, however often it is retried.

mod entry;
mod segment;
mod tail;

pub use entry::{Entry, EventId};
pub(crate) use tail::{Latest, Tail};

use crate::{
    api::Event,
    config::Config,
    disk::{self, Lock},
    error::{Error, Kind, Result},
    session::{Marks, Told},
};
use segment::{End, Segment};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Timeout for the journal's lock. Shorter than that of a session's lock, since some write while they hold one.
const LOCK_LIMIT: Duration = Duration::from_secs(1);
/// The journal drops its oldest part in pieces of this fraction of its limit.
const SEGMENTS: u64 = 8;
/// Maximum size of a session's own event list.
const OWN_MAX: u64 = 512 << 10;

/// The journal of one user.
#[derive(Debug, Clone)]
pub struct Journal {
    dir: PathBuf,
    sessions: PathBuf,
    max_bytes: u64,
    max_lines: u64,
    max_age: Duration,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// The cursor of the last event examined, whether it passed the filter or not.
    pub cursor: u64,
    /// Whether there are more events after it.
    pub more: bool,
}

impl Journal {
    /// The journal in a state directory.
    pub fn open(config: &Config) -> Result<Self> {
        Ok(Self {
            max_bytes: config.events_max_bytes.max(64 << 10),
            max_lines: config.events_max_lines.max(100),
            max_age: config.events_max_age,
            ..Self::at(&config.state_dir)?
        })
    }

    /// The journal in a state directory, for a writer without limits: readers drop what is too much.
    pub fn at(state_dir: &Path) -> Result<Self> {
        let dir = state_dir.join("journal");
        disk::private_dir(&dir)?;
        let sessions = state_dir.join("sessions");
        Ok(Self { dir, sessions, max_bytes: u64::MAX, max_lines: u64::MAX, max_age: Duration::MAX })
    }

    /// The directory to watch for changes.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The cursor of the newest event; 0 if there are none.
    pub fn cursor(&self) -> Result<u64> {
        Ok(self.end(self.segments()?.last())?.next.saturating_sub(1))
    }

    /// Writes those of a session's events that the journal doesn't have yet, in order. All are of one run. Writes
    /// nothing for a session that was removed, or whose name belongs to another run by now: everything was told before
    /// that.
    pub fn tell(&self, session: &str, entries: &[Entry]) -> Result<()> {
        let Some(run) = entries.first().map(|entry| entry.id.run.as_str()) else { return Ok(()) };
        let _lock = Lock::take(&self.dir.join("lock"), LOCK_LIMIT)?;
        let directory = self.sessions.join(session);
        let Some(marks) = Marks::open(&directory)? else { return Ok(()) };
        let told = match marks.told() {
            Some(told) if told.run != run => return Ok(()),
            told => told.map_or(0, |told| told.number),
        };
        let segments = self.segments()?;
        let end = self.end(segments.last())?;
        let told = match &end.last {
            // Its writer was killed before it could update the marks.
            Some(last) if last.id.run == run => told.max(last.id.number),
            Some(last) => {
                self.note_told(&last.session, &last.id);
                told
            }
            None => told,
        };
        let news: Vec<Entry> = (end.next..)
            .zip(entries.iter().filter(|entry| entry.id.number > told))
            .map(|(cursor, entry)| {
                let mut entry = entry.clone();
                entry.event.cursor = cursor;
                entry
            })
            .collect();
        let number = news.last().map_or(told, |entry| entry.id.number);
        if !news.is_empty() {
            self.write(&segments, &end, &news)?;
        }
        // If this fails, the last line tells the next writer.
        let _ = marks.set_told(&Told { run: run.to_owned(), number });
        self.keep_own(&directory, &news);
        Ok(())
    }

    /// Updates the marks of another session whose writer couldn't.
    fn note_told(&self, session: &str, id: &EventId) {
        let Ok(Some(marks)) = Marks::open(&self.sessions.join(session)) else { return };
        let behind = |told: &Told| told.run == id.run && told.number < id.number;
        if marks.told().as_ref().is_some_and(behind)
            && let Err(error) = marks.set_told(&Told { run: id.run.clone(), number: id.number })
        {
            tracing::warn!(%error, session, "could not update marks; events may be told twice");
        }
    }

    /// Appends to the session's own list of its last events, a fast copy of part of the journal.
    fn keep_own(&self, directory: &Path, entries: &[Entry]) {
        let own = directory.join("events.jsonl");
        let kept = entries.iter().try_for_each(|entry| {
            let line = serde_json::to_string(&entry.event).unwrap_or_default();
            disk::append_line(&own, &line)
        });
        if let Err(error) = kept.and_then(|()| disk::trim_lines(&own, OWN_MAX)) {
            tracing::warn!(%error, "could not write a session's own event list");
        }
    }

    fn write(&self, segments: &[Segment], end: &End, entries: &[Entry]) -> Result<()> {
        let current = segments.last().filter(|last| !self.is_full(last, end));
        let new = Segment { first: end.next, path: self.dir.join(format!("{:020}.jsonl", end.next)) };
        match current {
            Some(current) => current.append(end.whole, entries)?,
            None => new.append(0, entries)?,
        }
        let opened = if current.is_none() { vec![new] } else { Vec::new() };
        let all: Vec<&Segment> = segments.iter().chain(&opened).collect();
        self.drop_old(&all, end.next.saturating_add(entries.len() as u64))
    }

    /// Events after a cursor that pass a filter, at most `limit`.
    pub fn read(&self, since: u64, limit: usize, pass: impl Fn(&Entry) -> bool) -> Result<Read> {
        let segments = self.segments()?;
        let oldest = segments.first().map_or(1, |segment| segment.first);
        if since.saturating_add(1) < oldest {
            return Err(Error::new(
                Kind::CursorExpired,
                format!("the journal no longer has the events after cursor {since}; its oldest is {oldest}"),
                format!("list the sessions again, then continue from cursor {}", oldest - 1),
            ));
        }
        let mut found = Read { events: Vec::new(), cursor: since, more: false };
        let begin = segments.iter().rposition(|segment| segment.first <= since + 1).unwrap_or(0);
        for segment in segments.get(begin..).unwrap_or_default() {
            // Another process dropped this segment after the list was made (race): events are missed, so return an
            // error.
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
                if pass(&entry) {
                    found.events.push(entry.event);
                }
            }
        }
        Ok(found)
    }

    /// Everything that is still kept of a run, in order. Reads the whole journal.
    pub fn of_run(&self, run: &str) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        for segment in self.segments()? {
            // One that was dropped since is none.
            let bytes = segment.after(0)?.unwrap_or_default();
            let lines = disk::whole_lines(&bytes).0.into_iter();
            let entries = lines.filter_map(|line| serde_json::from_slice::<Entry>(line).ok());
            found.extend(entries.filter(|entry| entry.id.run == run));
        }
        Ok(found)
    }

    /// The cursor from which everything that is still kept can be read.
    pub fn oldest(&self) -> Result<u64> {
        Ok(self.segments()?.first().map_or(0, |segment| segment.first.saturating_sub(1)))
    }

    fn segments(&self) -> Result<Vec<Segment>> {
        let io = |error: std::io::Error| Error::io("list", &self.dir, &error);
        let mut segments = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry.file_name();
            let first = name.to_str().and_then(|name| name.strip_suffix(".jsonl")?.parse().ok());
            segments
                .extend(first.filter(|first| *first > 0).map(|first| Segment { first, path: entry.path() }));
        }
        segments.sort_by_key(|segment| segment.first);
        Ok(segments)
    }

    fn end(&self, last: Option<&Segment>) -> Result<End> {
        last.map_or_else(|| Ok(End { next: 1, ..End::default() }), Segment::end)
    }

    fn is_full(&self, segment: &Segment, end: &End) -> bool {
        let lines = end.next.saturating_sub(segment.first);
        end.whole >= self.max_bytes / SEGMENTS || lines >= (self.max_lines / SEGMENTS).max(1)
    }

    /// Drops whole segments from the front until the rest is within the limits. Keeps the last one, and everything if
    /// a segment can't be read.
    fn drop_old(&self, segments: &[&Segment], next: u64) -> Result<()> {
        let mut sizes = Vec::with_capacity(segments.len());
        for segment in segments {
            sizes.push(segment.length()?.unwrap_or(0));
        }
        let mut bytes: u64 = sizes.iter().sum();
        for ((segment, later), size) in segments.iter().zip(segments.iter().skip(1)).zip(sizes) {
            let lines = next.saturating_sub(segment.first);
            let age = fs::metadata(&segment.path)
                .and_then(|found| found.modified())
                .ok()
                .and_then(|time| SystemTime::now().duration_since(time).ok())
                .unwrap_or_default();
            if bytes <= self.max_bytes && lines <= self.max_lines && age <= self.max_age {
                break;
            }
            tracing::debug!(first = segment.first, next = later.first, "dropping an old part of the journal");
            bytes = bytes.saturating_sub(size);
            let _ = fs::remove_file(&segment.path);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::{
            EventKind,
            words::{StateName, Status},
        },
        config::Environment,
    };

    fn journal(dir: &Path, lines: u64) -> Journal {
        let env = Environment::from_pairs([("HOME", "/nowhere"), ("LISA_STATE_DIR", dir.to_str().unwrap())]);
        let mut config = Config::load(&env).unwrap();
        config.events_max_lines = lines;
        session(dir, "s", "r");
        Journal::open(&config).unwrap()
    }

    /// A session whose run the journal hasn't been told about.
    fn session(dir: &Path, name: &str, run: &str) {
        let session = dir.join("sessions").join(name);
        fs::create_dir_all(&session).unwrap();
        fs::write(session.join("lock"), "").unwrap();
        let marks = Marks::open(&session).unwrap().unwrap();
        marks.set_told(&Told { run: run.to_owned(), number: 0 }).unwrap();
    }

    fn told(dir: &Path, name: &str) -> u64 {
        Marks::open(&dir.join("sessions").join(name)).unwrap().unwrap().told().unwrap().number
    }

    /// Events of a run of the session `s`, with these numbers.
    fn entries(run: &str, numbers: impl IntoIterator<Item = u64>) -> Vec<Entry> {
        numbers.into_iter().map(|number| entry("s", run, number)).collect()
    }

    fn entry(session: &str, run: &str, number: u64) -> Entry {
        Entry {
            parent: None,
            id: EventId { run: run.to_owned(), number },
            event: Event {
                cursor: 0,
                at: jiff::Timestamp::UNIX_EPOCH,
                session: session.to_owned(),
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

    fn all(journal: &Journal) -> Vec<u64> {
        cursors(&journal.read(0, 10_000, |_| true).unwrap())
    }

    #[test]
    fn cursors_grow_without_a_gap_and_a_reader_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        assert_eq!(journal.cursor().unwrap(), 0);
        journal.tell("s", &entries("r", 1..=2)).unwrap();
        journal.tell("s", &entries("r", 3..=3)).unwrap();
        assert_eq!(journal.cursor().unwrap(), 3);
        let first = journal.read(0, 2, |_| true).unwrap();
        assert_eq!((cursors(&first), first.cursor, first.more), (vec![1, 2], 2, true));
        let rest = journal.read(first.cursor, 10, |_| true).unwrap();
        assert_eq!((cursors(&rest), rest.more), (vec![3], false));
    }

    #[test]
    fn a_reader_gets_the_same_whether_the_end_of_a_segment_or_all_of_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100_000);
        // Lines of very different lengths, so that each tail size cuts one somewhere.
        for number in 1..=200_u64 {
            let mut entry = entry("s", "r", number);
            entry.event.detail = "x".repeat(usize::try_from(number * number % 4_099).unwrap());
            journal.tell("s", &[entry]).unwrap();
        }
        assert!(journal.segments().unwrap()[0].length().unwrap().unwrap() > segment::TAILS[1]);
        for since in 0..=200 {
            let read = journal.read(since, 1000, |_| true).unwrap();
            assert_eq!(cursors(&read), (since + 1..=200).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_reader_whose_next_segment_is_dropped_under_it_is_told_that_it_missed_something() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100);
        for number in 1..=40 {
            journal.tell("s", &entries("r", [number])).unwrap();
        }
        let segments = journal.segments().unwrap();
        assert!(segments.len() > 2, "{segments:?}");
        // Another process drops the two oldest segments while the first of them is read.
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
        journal.tell("s", &entries("r", [1])).unwrap();
        let mut tail = Tail::new(journal.clone()).unwrap();
        assert_eq!(tail.sessions().unwrap().unwrap().len(), 0);
        for number in 0..40 {
            let name = format!("s{number}");
            session(dir.path(), &name, &name);
            journal.tell(&name, &[entry(&name, &name, 1)]).unwrap();
        }
        let told = tail.sessions().unwrap().unwrap();
        assert_eq!((told.len(), told["s7"].id.to_string().as_str()), (40, "s7:1"));
        assert_eq!(tail.sessions().unwrap().unwrap().len(), 0);
        let mut late = Tail::new(journal.clone()).unwrap();
        for number in 2..400 {
            journal.tell("s", &entries("r", [number])).unwrap();
        }
        assert_eq!(late.sessions().unwrap(), None, "the segment that it read is gone");
        assert_eq!(late.sessions().unwrap().unwrap().len(), 0);
    }

    #[test]
    fn a_line_that_is_missing_or_broken_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        journal.tell("s", &entries("r", 1..=5)).unwrap();
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
    fn an_event_is_told_once_however_often_it_is_tried() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        journal.tell("s", &entries("r", 1..=2)).unwrap();
        journal.tell("s", &entries("r", 1..=3)).unwrap();
        journal.tell("s", &entries("r", 1..=2)).unwrap();
        assert_eq!(all(&journal), [1, 2, 3]);
    }

    #[test]
    fn an_event_whose_part_of_the_journal_was_dropped_is_not_told_again() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100);
        session(dir.path(), "quiet", "q");
        journal.tell("quiet", &[entry("quiet", "q", 1)]).unwrap();
        (1..=400).for_each(|number| journal.tell("s", &entries("r", [number])).unwrap());
        assert!(journal.oldest().unwrap() > 1);
        journal.tell("quiet", &[entry("quiet", "q", 1)]).unwrap();
        assert_eq!(journal.cursor().unwrap(), 401);
    }

    #[test]
    fn a_writer_that_was_killed_before_it_noted_what_it_told_makes_nobody_tell_it_again() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        session(dir.path(), "other", "o");
        let forget = || {
            let marks = Marks::open(&dir.path().join("sessions/s")).unwrap().unwrap();
            marks.set_told(&Told { run: "r".to_owned(), number: 0 }).unwrap();
        };
        journal.tell("s", &entries("r", 1..=2)).unwrap();
        forget();
        journal.tell("s", &entries("r", 1..=2)).unwrap();
        assert_eq!((all(&journal), told(dir.path(), "s")), (vec![1, 2], 2));
        // The same, found by a writer for another session.
        forget();
        journal.tell("other", &[entry("other", "o", 1)]).unwrap();
        assert_eq!(told(dir.path(), "s"), 2);
        journal.tell("s", &entries("r", 1..=3)).unwrap();
        assert_eq!(all(&journal), [1, 2, 3, 4]);
    }

    #[test]
    fn nothing_is_told_of_a_session_that_was_removed_or_of_a_run_that_another_has_followed() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        journal.tell("s", &entries("before", 1..=2)).unwrap();
        journal.tell("nobody", &[entry("nobody", "n", 1)]).unwrap();
        assert_eq!(all(&journal), Vec::<u64>::new());
    }

    #[test]
    fn a_torn_last_line_is_cut_off_by_the_next_writer() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 1000);
        journal.tell("s", &entries("r", [1])).unwrap();
        let path = journal.segments().unwrap()[0].path.clone();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"id\":\"b\",\"cur").unwrap();
        assert_eq!(all(&journal), [1]);
        journal.tell("s", &entries("r", [2])).unwrap();
        assert_eq!(all(&journal), [1, 2]);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }

    #[test]
    fn old_events_are_dropped_and_a_cursor_from_before_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100);
        (1..=400).for_each(|number| journal.tell("s", &entries("r", [number])).unwrap());
        let error = journal.read(3, 10, |_| true).unwrap_err();
        assert_eq!(error.kind(), Kind::CursorExpired);
        let oldest = journal.oldest().unwrap();
        assert!((280..=310).contains(&oldest), "{oldest}");
        let kept = journal.read(oldest, 1000, |_| true).unwrap();
        assert_eq!((kept.events.len() as u64, kept.cursor), (400 - oldest, 400));
    }

    #[test]
    fn a_segment_that_cannot_be_read_stops_the_writer_and_drops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100);
        (1..=60).for_each(|number| journal.tell("s", &entries("r", [number])).unwrap());
        let segments = journal.segments().unwrap();
        let last = &segments.last().unwrap().path;
        fs::rename(last, dir.path().join("aside")).unwrap();
        fs::create_dir(last).unwrap();
        assert!(journal.tell("s", &entries("r", [61])).is_err());
        assert_eq!(journal.segments().unwrap().len(), segments.len());
        fs::remove_dir(last).unwrap();
        fs::rename(dir.path().join("aside"), last).unwrap();
        journal.tell("s", &entries("r", [61])).unwrap();
        assert_eq!(all(&journal), (1..=61).collect::<Vec<_>>());
    }

    #[test]
    fn a_session_s_own_list_of_events_stays_short() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 100_000);
        for number in 1..=300 {
            let mut entry = entry("s", "r", number);
            entry.event.detail = "x".repeat(3_000);
            journal.tell("s", &[entry]).unwrap();
        }
        let own = fs::read_to_string(dir.path().join("sessions/s/events.jsonl")).unwrap();
        assert!(own.len() as u64 <= OWN_MAX + 4_000, "{}", own.len());
        let last: Event = serde_json::from_str(own.lines().last().unwrap()).unwrap();
        assert_eq!(last.cursor, 300);
    }

    #[test]
    fn writers_in_parallel_lose_nothing_and_share_no_cursor() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path(), 10_000);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let name = format!("w{worker}");
                session(dir.path(), &name, &name);
                let journal = &journal;
                scope.spawn(move || {
                    for number in 1..=50 {
                        journal.tell(&name, &[entry(&name, &name, number)]).unwrap();
                    }
                });
            }
        });
        assert_eq!(all(&journal), (1..=200).collect::<Vec<u64>>());
    }
}
