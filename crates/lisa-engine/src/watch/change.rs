//! The only way to change a session: lock, read, decide, write, tell the journal.
//!
//! A [`Change`] is one transaction. Events are written into the session's record together with their consequences,
//! atomically; only then is the journal told. A process that is killed in between leaves either the old record, or a
//! record with events that the journal lacks; the next process tells those. If a record can't be written, nothing is
//! told. So no event is told twice, or told and then forgotten.

use super::{
    journal::Journal,
    record::{CLOCK_SET_MS, Note, Record},
};
use crate::{
    api::{EventKind, words::State},
    classify::observation::At,
    disk::{self, Cache, Lock},
    error::{Error, Result},
    session::{Marks, SessionDir, Told, find::SessionSnapshot},
};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// How long a record stays on disk if only its time has changed. Until then the time of the last look is only kept in
/// the session's marks, so frequent polling costs no file writes.
pub(crate) const KEPT_MS: u64 = 1_000;

/// How long a start may take until its first record is written.
const STARTED_WITHIN_MS: i64 = 30_000;

/// What is needed to change sessions.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The journal.
    pub journal: &'a Journal,
    /// Timeout for a session's lock.
    pub lock_limit: Duration,
    /// This process's cache of records.
    pub records: &'a Cache<Arc<Record>>,
}

/// One change of one session; holds its lock.
#[derive(Debug)]
pub struct Change<'a> {
    /// The session's record, to be changed.
    pub record: Record,
    /// The record as it was read.
    kept: Arc<Record>,
    name: &'a str,
    dir: &'a SessionDir,
    journal: &'a Journal,
    marks: Marks,
    lock: Lock,
    trouble: Option<String>,
    /// Texts that are too long for an event, each with the number of its turn.
    texts: Vec<(u64, String)>,
}

/// The result of a change.
#[derive(Debug)]
pub struct Changed {
    /// The record afterwards.
    pub record: Record,
    /// Why the journal couldn't be told; whoever changes the session next tells it.
    pub untold: Option<Error>,
}

/// Why a session can't be changed.
#[derive(Debug)]
pub enum OpenError {
    /// It was removed, or replaced by another run.
    Gone(Error),
    /// Somebody is starting it and will create its record.
    Starting(Error),
    /// Its lock is held by somebody else, or its files are unusable.
    Failed(Error),
}

impl From<OpenError> for Error {
    fn from(why: OpenError) -> Self {
        match why {
            OpenError::Gone(error) | OpenError::Starting(error) | OpenError::Failed(error) => error,
        }
    }
}

impl<'a> Writer<'a> {
    /// Takes the session's lock and reads its record.
    pub fn open(&self, session: &'a SessionSnapshot) -> std::result::Result<Change<'a>, OpenError>
    where
        Self: 'a,
    {
        let gone = || OpenError::Gone(Error::not_found(&session.meta.name, &[]));
        let lock = match session.dir.lock(self.lock_limit) {
            Ok(lock) => lock,
            Err(_) if !session.dir.path().exists() => return Err(gone()),
            Err(error) => return Err(OpenError::Failed(error)),
        };
        let marks = Marks::of(&lock, session.dir.path());
        if !marks.are_current() {
            return Err(gone());
        }
        let run = session.meta.run_id.as_str();
        let (found, trouble) = match read_record_again(&session.dir, self.records) {
            Ok(found) => (found.filter(|record| record.run_id == run), None),
            Err(why) => (None, Some(why)),
        };
        let told = marks.told();
        let other = told.as_ref().is_some_and(|told| told.run != run);
        if found.is_none() && (told.is_none() || other) {
            if session.meta.starter.is_some_and(|starter| starter.alive()) && !self.was_lost(session) {
                return Err(OpenError::Starting(Error::not_found(&session.meta.name, &[])));
            }
            if other && !is_current(session) {
                return Err(gone());
            }
        }
        let restored = match (found, told) {
            (Some(found), Some(told)) => Ok((found, told.number)),
            (None, Some(_)) if other => self.begin_late(session, &marks),
            (found, told) => self.restore(session, (&marks, told), found),
        };
        let (kept, told) = restored.map_err(OpenError::Failed)?;
        let mut record = Record::clone(&kept);
        record.outbox.retain(|entry| entry.id.number > told);
        let now = At(jiff::Timestamp::now().as_millisecond());
        record.keep_to(now);
        if let Some(looked) = marks.last_look().filter(|looked| looked.since(now) <= CLOCK_SET_MS) {
            record.memory.looked_again(looked);
        }
        Ok(self.change(session, (kept, record), (lock, marks), trouble))
    }

    /// Begins the record of a run whose starter was killed before it could.
    fn begin_late(&self, session: &SessionSnapshot, marks: &Marks) -> Result<(Arc<Record>, u64)> {
        let run = &session.meta.run_id;
        let before = self.end_previous(session)?;
        marks.set_told(&Told { run: run.clone(), number: 0 })?;
        let turns = before.map_or(0, |before| before.turns);
        Ok((Arc::new(Record { turns, ..Record::fresh(run) }), 0))
    }

    /// Tells the journal what it doesn't have of the run before; returns that run's record.
    fn end_previous(&self, session: &SessionSnapshot) -> Result<Option<Arc<Record>>> {
        let before = read_record_again(&session.dir, self.records).ok().flatten();
        if let Some(before) = &before {
            self.journal.tell(&session.meta.name, &before.outbox)?;
        }
        Ok(before)
    }

    /// Whether a session without a record had one: it isn't about to get its first one.
    fn was_lost(&self, session: &SessionSnapshot) -> bool {
        let age = jiff::Timestamp::now().as_millisecond() - session.meta.started_at.0;
        let known = || self.journal.of_run(&session.meta.run_id).is_ok_and(|entries| !entries.is_empty());
        age > STARTED_WITHIN_MS && known()
    }

    /// Restores what was lost of a session's record and marks from what the journal has of its run. Numbers of events
    /// and turns that were already given are not given again, and what has ended doesn't end twice.
    fn restore(
        &self,
        session: &SessionSnapshot,
        (marks, told): (&Marks, Option<Told>),
        found: Option<Arc<Record>>,
    ) -> Result<(Arc<Record>, u64)> {
        let run = session.meta.run_id.as_str();
        let entries = self.journal.of_run(run)?;
        tracing::warn!(
            session = session.meta.name,
            run,
            events = entries.len(),
            record = found.is_some(),
            marks = told.is_some(),
            "restoring a session's record from the journal"
        );
        // The journal may have dropped what the marks still count.
        let last = entries.last().map_or(0, |entry| entry.id.number);
        let number = told.map_or(last, |told| told.number.max(last));
        marks.set_told(&Told { run: run.to_owned(), number })?;
        let kept = found.unwrap_or_else(|| {
            let mut lost = Record { seq: number, ..Record::fresh(run) };
            lost.recall(entries.iter().map(|entry| &entry.event));
            Arc::new(lost)
        });
        Ok((kept, number))
    }

    /// The session's record, read without its lock; `None` if there is none or it is malformed.
    pub(crate) fn read(&self, session: &SessionSnapshot) -> Option<Arc<Record>> {
        let record = read_record_again(&session.dir, self.records).ok().flatten();
        record.filter(|record| record.run_id == session.meta.run_id)
    }

    /// Whether the journal has all events of a record.
    pub(crate) fn is_told(&self, session: &SessionSnapshot, record: &Record) -> bool {
        let told = Marks::open(session.dir.path()).ok().flatten().and_then(|marks| marks.told());
        told.is_some_and(|told| told.run == record.run_id && told.number >= record.seq)
    }

    /// Starts the record of a new run, in a directory that may hold the record of an earlier one. That one's events
    /// are told first.
    pub fn begin(&self, session: &'a SessionSnapshot, fresh: Record) -> Result<Change<'a>>
    where
        Self: 'a,
    {
        let lock = session.dir.lock(self.lock_limit)?;
        let marks = Marks::of(&lock, session.dir.path());
        self.end_previous(session)?;
        marks.set_told(&Told { run: fresh.run_id.clone(), number: 0 })?;
        Ok(self.change(session, (Arc::default(), fresh), (lock, marks), None))
    }

    fn change(
        &self,
        session: &'a SessionSnapshot,
        (kept, mut record): (Arc<Record>, Record),
        (lock, marks): (Lock, Marks),
        trouble: Option<String>,
    ) -> Change<'a> {
        let (name, dir, journal) = (session.meta.name.as_str(), &session.dir, self.journal);
        record.parent.clone_from(&session.meta.parent);
        Change { record, kept, name, dir, journal, marks, lock, trouble, texts: Vec::new() }
    }
}

impl Change<'_> {
    /// How long it took to get the lock.
    pub fn waited(&self) -> Duration {
        self.lock.waited()
    }

    /// Why the record was unreadable, if it was; it is then started anew.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The record as it was read.
    pub fn before(&self) -> &Arc<Record> {
        &self.kept
    }

    /// Adds an event.
    pub fn note(&mut self, kind: EventKind, state: &State, at: At, note: Note) {
        self.record.note(self.name, kind, state, at, note);
    }

    /// Keeps a text of the current turn that is too long for an event in a file of that turn; returns its path.
    pub fn keep_text(&mut self, text: String) -> PathBuf {
        let turn = self.record.turns;
        self.texts.push((turn, text));
        self.dir.turn_text(turn)
    }

    /// Writes the changes, releases the session, and tells the journal. If the record can't be written, nothing has
    /// happened and nothing is told.
    pub fn commit(self) -> Result<Changed> {
        self.write()?;
        let Self { record, name, journal, lock, .. } = self;
        drop(lock);
        let untold = journal.tell(name, &record.outbox).err();
        Ok(Changed { record, untold })
    }

    /// The same after a look at `at`; if the look found nothing new, only writes its time.
    pub fn commit_look(self, at: At) -> Result<Changed> {
        let recent = self.kept.memory.observed_at.is_some_and(|kept| at.since(kept) < KEPT_MS);
        if !(recent && self.record.is_only_later_than(&self.kept)) {
            return self.commit();
        }
        self.marks.set_last_look(at)?;
        Ok(self.leave())
    }

    /// Releases the session without a change.
    pub fn leave(self) -> Changed {
        let Self { record, name, journal, lock, .. } = self;
        drop(lock);
        let untold = journal.tell(name, &record.outbox).err();
        Changed { record, untold }
    }

    /// Writes the changes, tells the journal, and removes the session's directory. If the journal can't be told, the
    /// directory stays, and the next process tells it and removes the directory.
    pub fn commit_and_remove(self) -> Result<Changed> {
        self.write()?;
        let untold = self.journal.tell(self.name, &self.record.outbox).err();
        if untold.is_none() {
            self.dir.remove()?;
        }
        Ok(Changed { record: self.record, untold })
    }

    /// Writes texts first: an event that refers to a file is only told if the file exists.
    fn write(&self) -> Result<()> {
        for (turn, text) in &self.texts {
            self.dir.write_turn_text(*turn, text)?;
        }
        write_record(self.dir, &self.record)
    }
}

/// Whether a session is still in this run, and not in one that replaced it since it was read.
fn is_current(session: &SessionSnapshot) -> bool {
    session.dir.meta().is_ok_and(|meta| meta.is_some_and(|meta| meta.run_id == session.meta.run_id))
}

/// Reads a session's record; `None` if there is none of this run.
pub fn read_record(dir: &SessionDir, run_id: &str) -> std::result::Result<Option<Record>, String> {
    let record = read_record_again(dir, &Cache::default())?;
    Ok(record.filter(|record| record.run_id == run_id).map(Arc::unwrap_or_clone))
}

/// Reads the record in a directory, with a cache.
fn read_record_again(
    dir: &SessionDir,
    records: &Cache<Arc<Record>>,
) -> std::result::Result<Option<Arc<Record>>, String> {
    let path = dir.file("state.json");
    records.read(&path, || match disk::read(&path) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => {
            let record = serde_json::from_slice(&bytes);
            record
                .map(|record| Some(Arc::new(record)))
                .map_err(|error| format!("state.json is malformed: {error}"))
        }
        Err(error) => Err(error.to_string()),
    })
}

fn write_record(dir: &SessionDir, record: &Record) -> Result<()> {
    let text = serde_json::to_vec(record).map_err(|error| {
        Error::invalid(format!("could not serialize the state: {error}"), "report this as a bug")
    })?;
    disk::write_atomic(&dir.file("state.json"), &text)
}
