//! The one way in which a session changes: lock, read, decide, write, tell.
//!
//! A [`Change`] is one transaction. What happened is written into the session's record together with what it led to, in
//! one step; only then is the journal told. A process that is killed anywhere in between leaves either the record as it
//! was, or a record with events that the journal lacks, which whoever comes next tells. A record that cannot be written
//! tells nothing, so nothing is ever told twice or told and then forgotten.

use super::{
    journal::Journal,
    record::{CLOCK_SET_MS, Note, Record},
};
use crate::{
    api::{Event, EventKind},
    disk::{self, Cache, Lock},
    error::{Error, Result},
    observation::At,
    session::{Folder, Marks, Told, find::Sighting},
    words::State,
};
use std::{sync::Arc, time::Duration};

/// How long a record stays although nothing in it has changed but the time. Until then the time of the last look is
/// kept in the session's marks alone: a parent that asks again and again costs no file each time.
pub(crate) const KEPT_MS: u64 = 1_000;

/// What changing sessions takes.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The journal.
    pub journal: &'a Journal,
    /// How long to wait for a session's lock.
    pub lock_limit: Duration,
    /// What this process has read before.
    pub records: &'a Cache<Arc<Record>>,
}

/// One change of one session, while its lock is held.
#[derive(Debug)]
pub struct Change<'a> {
    /// What is kept of the session, to be changed.
    pub record: Record,
    /// The same as it was found.
    kept: Arc<Record>,
    name: &'a str,
    folder: &'a Folder,
    journal: &'a Journal,
    marks: Marks,
    lock: Lock,
    trouble: Option<String>,
}

/// What became of a change.
#[derive(Debug)]
pub struct Changed {
    /// The record as it is now.
    pub record: Record,
    /// Why the journal could not be told; whoever changes the session next tells it.
    pub untold: Option<Error>,
}

/// Why a session cannot be changed.
#[derive(Debug)]
pub enum Unopened {
    /// It was removed, or another run has followed the one that was meant.
    Gone(Error),
    /// Somebody is starting it: its record is about to be begun.
    Starting(Error),
    /// Its lock is held by somebody else, or its files cannot be used.
    Failed(Error),
}

impl From<Unopened> for Error {
    fn from(why: Unopened) -> Self {
        match why {
            Unopened::Gone(error) | Unopened::Starting(error) | Unopened::Failed(error) => error,
        }
    }
}

impl<'a> Writer<'a> {
    /// Takes the session's lock and reads its record.
    pub fn open(&self, session: &'a Sighting) -> std::result::Result<Change<'a>, Unopened>
    where
        Self: 'a,
    {
        let gone = || Unopened::Gone(Error::not_found(&session.meta.name, &[]));
        let lock = match session.folder.lock(self.lock_limit) {
            Ok(lock) => lock,
            Err(_) if !session.folder.path().exists() => return Err(gone()),
            Err(error) => return Err(Unopened::Failed(error)),
        };
        let marks = Marks::of(&lock, session.folder.path()).map_err(Unopened::Failed)?;
        if !marks.are_current() {
            return Err(gone());
        }
        let run = session.meta.run_id.as_str();
        let (found, trouble) = match read_record_again(&session.folder, self.records) {
            Ok(found) => (found.filter(|record| record.run_id == run), None),
            Err(why) => (None, Some(why)),
        };
        let told = marks.told();
        if found.is_none() && told.as_ref().is_none_or(|told| told.run != run) {
            if session.meta.starter.is_some_and(|starter| starter.alive()) {
                return Err(Unopened::Starting(Error::not_found(&session.meta.name, &[])));
            }
            if told.is_some() {
                return Err(gone());
            }
        }
        let told = told.map_or(0, |told| told.number);
        let kept = found.unwrap_or_else(|| {
            // Numbers that the journal has are not given again, even if the record was lost.
            let mut lost = Record { seq: told, ..Record::fresh(run) };
            lost.recall(&own_events(&session.folder, run));
            Arc::new(lost)
        });
        let mut record = Record::clone(&kept);
        record.outbox.retain(|entry| entry.id.number > told);
        let now = At(jiff::Timestamp::now().as_millisecond());
        record.keep_to(now);
        if let Some(looked) = marks.looked().filter(|looked| looked.since(now) <= CLOCK_SET_MS) {
            record.memory.looked_again(looked);
        }
        Ok(self.change(session, (kept, record), (lock, marks), trouble))
    }

    /// The record of a session as it is, without its lock; `None` where there is none, or it cannot be read.
    pub(crate) fn read(&self, session: &Sighting) -> Option<Arc<Record>> {
        let record = read_record_again(&session.folder, self.records).ok().flatten();
        record.filter(|record| record.run_id == session.meta.run_id)
    }

    /// Whether the journal has everything that a record holds.
    pub(crate) fn is_told(&self, session: &Sighting, record: &Record) -> bool {
        let told = Marks::open(session.folder.path()).ok().flatten().and_then(|marks| marks.told());
        told.is_some_and(|told| told.run == record.run_id && told.number >= record.seq)
    }

    /// Begins the record of a new run, in a directory that may have had another. Everything of that one is told first.
    pub fn begin(&self, session: &'a Sighting, fresh: Record) -> Result<Change<'a>>
    where
        Self: 'a,
    {
        let lock = session.folder.lock(self.lock_limit)?;
        let marks = Marks::of(&lock, session.folder.path())?;
        if let Ok(Some(before)) = read_record_again(&session.folder, self.records) {
            self.journal.tell(&session.meta.name, &before.outbox)?;
        }
        marks.set_told(&Told { run: fresh.run_id.clone(), number: 0 })?;
        Ok(self.change(session, (Arc::default(), fresh), (lock, marks), None))
    }

    fn change(
        &self,
        session: &'a Sighting,
        (kept, record): (Arc<Record>, Record),
        (lock, marks): (Lock, Marks),
        trouble: Option<String>,
    ) -> Change<'a> {
        let (name, folder, journal) = (session.meta.name.as_str(), &session.folder, self.journal);
        Change { record, kept, name, folder, journal, marks, lock, trouble }
    }
}

impl Change<'_> {
    /// How long it took to get the lock.
    pub fn waited(&self) -> Duration {
        self.lock.waited()
    }

    /// Why the record could not be read, where it could not: it is begun again.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The record as it was found.
    pub fn before(&self) -> &Arc<Record> {
        &self.kept
    }

    /// Notes an event.
    pub fn note(&mut self, kind: EventKind, state: &State, at: At, note: Note) {
        self.record.note(self.name, kind, state, at, note);
    }

    /// Writes what has changed, lets go of the session, and tells the journal. Where the record cannot be written nothing
    /// has happened, and nothing is told.
    pub fn commit(self) -> Result<Changed> {
        write_record(self.folder, &self.record)?;
        let Self { record, name, journal, lock, .. } = self;
        drop(lock);
        let untold = journal.tell(name, &record.outbox).err();
        Ok(Changed { record, untold })
    }

    /// The same after a look at `at`: if it found nothing new, only the time is noted.
    pub fn commit_look(self, at: At) -> Result<Changed> {
        let recent = self.kept.memory.observed_at.is_some_and(|kept| at.since(kept) < KEPT_MS);
        if !(recent && self.record.is_only_later_than(&self.kept)) {
            return self.commit();
        }
        self.marks.set_looked(at)?;
        Ok(self.leave())
    }

    /// Lets go of the session without having changed it.
    pub fn leave(self) -> Changed {
        let Self { record, name, journal, lock, .. } = self;
        drop(lock);
        let untold = journal.tell(name, &record.outbox).err();
        Changed { record, untold }
    }

    /// Writes what has changed, tells the journal, and removes the session's directory. Where the journal cannot be told
    /// the directory stays, and whoever comes next tells it and removes it.
    pub fn commit_and_remove(self) -> Result<Changed> {
        write_record(self.folder, &self.record)?;
        let untold = self.journal.tell(self.name, &self.record.outbox).err();
        if untold.is_none() {
            self.folder.remove()?;
        }
        Ok(Changed { record: self.record, untold })
    }
}

/// What the session's own list of events has of a run; events of an earlier run end where this one was begun.
fn own_events(folder: &Folder, run: &str) -> Vec<Event> {
    let bytes = disk::read(&folder.file("events.jsonl")).ok().flatten().unwrap_or_default();
    let lines = disk::whole_lines(&bytes).0.into_iter();
    let events: Vec<Event> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let begun = |event: &Event| matches!(event.event, EventKind::Spawned | EventKind::Resumed);
    let begin = events.iter().rposition(begun).unwrap_or(0);
    tracing::warn!(run, events = events.len() - begin, "a lost record is begun again from its events");
    events.into_iter().skip(begin).collect()
}

/// Reads a session's record; `None` where there is none of this run.
pub fn read_record(folder: &Folder, run_id: &str) -> std::result::Result<Option<Record>, String> {
    let record = read_record_again(folder, &Cache::default())?;
    Ok(record.filter(|record| record.run_id == run_id).map(Arc::unwrap_or_clone))
}

/// The record in a directory, for a process that reads it again and again.
fn read_record_again(
    folder: &Folder,
    records: &Cache<Arc<Record>>,
) -> std::result::Result<Option<Arc<Record>>, String> {
    let path = folder.file("state.json");
    records.read(&path, || match disk::read(&path) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => {
            let record = serde_json::from_slice(&bytes);
            record
                .map(|record| Some(Arc::new(record)))
                .map_err(|error| format!("state.json is torn: {error}"))
        }
        Err(error) => Err(error.to_string()),
    })
}

fn write_record(folder: &Folder, record: &Record) -> Result<()> {
    let text = serde_json::to_vec(record).map_err(|error| {
        Error::invalid(format!("the state cannot be written: {error}"), "report this as a bug")
    })?;
    disk::write_atomic(&folder.file("state.json"), &text)
}
