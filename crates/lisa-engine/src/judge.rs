//! The one way from a look to a session's state: lock, remember, step, write, tell.
//!
//! Everybody goes through here, one-shot or resident. What a look changed is noted in the state file together with
//! the state itself (the outbox) and written to the journal after the lock is released; whoever comes next finishes
//! what a killed process left there.

use crate::{
    api::{Event, EventKind, TurnOutcome},
    disk::{self, Cache},
    error::Kind,
    memory::Memory,
    observation::{At, Observation},
    observe::{self, Before, Screens},
    profile::Profile,
    resolve::{Outcome, Verdict, step},
    session::{Folder, find::Sighting},
    watch::journal::{Entry, Journal},
    words::{Attention, Confidence, State},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// How long a state file stands although nothing in it has changed but the time. Until then the time of the last look
/// is left in the lock alone: a parent that asks again and again costs no file each time.
const KEPT_MS: u64 = 1_000;

/// What is kept of a session between looks: `state.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// What the classifier remembers.
    pub memory: Memory,
    /// The turn that runs, or ran last.
    pub turn: Option<Turn>,
    /// How many turns were begun.
    pub turns: u64,
    /// How many events were noted.
    pub noted: u64,
    /// Events that may not be in the journal yet.
    pub outbox: Vec<Entry>,
    /// A cursor that is older than everything in the outbox.
    pub outbox_since: u64,
    /// The run that this is about.
    pub run_id: String,
}

/// A turn: from a prompt to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: String,
    /// When it began.
    pub began: At,
    /// Whether the agent was seen at work on it.
    pub running: bool,
    /// Whether Lisa was asked to stop it: an agent that is ready after that has not finished.
    #[serde(default)]
    pub stopping: bool,
    /// How it ended.
    pub ended: Option<TurnOutcome>,
}

/// What a judged look gives.
#[derive(Debug, Clone)]
pub struct Judged {
    /// What the step gave.
    pub outcome: Outcome,
    /// What was looked at.
    pub observation: Observation,
    /// The session's record afterwards.
    pub record: Record,
    /// The agent's own files that were read, or looked for.
    pub files: Vec<PathBuf>,
    /// Why the state could not be read or written, or the journal not be written.
    pub troubles: Vec<(&'static str, String)>,
}

/// What judging needs beside the session.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// The journal.
    pub journal: &'a Journal,
    /// How long to wait for the state lock.
    pub lock_limit: Duration,
    /// What this process has read before.
    pub records: &'a Cache<Arc<Record>>,
}

/// Looks at everything but the screen, judges, and writes down what came of it.
pub fn judge(session: &Sighting, profile: &Profile, screens: Screens, at: At, bench: Bench<'_>) -> Judged {
    if session.starting() {
        let starting = Verdict {
            state: State::Starting,
            reason: "being_started".to_owned(),
            confidence: Confidence::Certain,
            source: None,
            since: session.meta.started_at,
            attention: Attention::Autonomous,
        };
        return judged_apart(session, profile, screens, at, starting);
    }
    let lock = match session.folder.lock(bench.lock_limit) {
        Ok(lock) => lock,
        // Somebody else holds the state for too long.
        Err(error) => {
            let timeout = error.kind() == Kind::LockTimeout;
            let unknown = Verdict {
                state: State::Unknown { failed: vec!["state_lock".to_owned()] },
                reason: if timeout { "state_lock_timeout" } else { "state_unwritable" }.to_owned(),
                confidence: Confidence::Certain,
                source: None,
                since: at,
                attention: Attention::NeedsYou,
            };
            let mut judged = judged_apart(session, profile, screens, at, unknown);
            judged.outcome.signals.state_lock_wait_ms =
                u64::try_from(bench.lock_limit.as_millis()).unwrap_or(u64::MAX);
            return judged;
        }
    };
    let mut troubles = Vec::new();
    let kept =
        read_record_again(&session.folder, &session.meta.run_id, bench.records).unwrap_or_else(|why| {
            troubles.push(("state_read_error", why));
            Arc::new(Record::fresh(&session.meta.run_id))
        });
    let mut record = Record::clone(&kept);
    let kept_at = record.memory.observed_at;
    if let Some(left) = lock.left() {
        record.memory.looked_again(At(left));
    }
    let before = Before { memory: &record.memory, turn_began: record.turn.as_ref().map(|turn| turn.began) };
    let mut look = observe::look(session, profile, before, screens, at);
    look.observation.lock_wait_ms = u64::try_from(lock.waited().as_millis()).unwrap_or(u64::MAX);
    look.observation.stream_errors.append(&mut troubles.clone());
    let previous = kept.memory.verdict.as_ref();
    let mut outcome = step(profile, std::mem::take(&mut record.memory), &look.observation);
    if !outcome.stale {
        outcome.memory.offsets.extend(look.offsets);
        record.memory = outcome.memory.clone();
        note_changes(&mut record, session, previous, &outcome.verdict, at, bench.journal);
        let recent = kept_at.is_some_and(|kept| at.since(kept) < KEPT_MS);
        let written = match recent && record.is_only_later_than(&kept) {
            true => lock.leave(at.0),
            false => write_record(&session.folder, &record),
        };
        if let Err(error) = written {
            troubles.push(("state_read_error", error.to_string()));
        }
    } else {
        record.memory = outcome.memory.clone();
    }
    drop(lock);
    if let Err(error) = flush(&session.folder, &record, bench.journal) {
        troubles.push(("events_write_error", error.to_string()));
    }
    for (name, why) in &troubles {
        outcome.signals.note_error(name, why);
    }
    Judged { outcome, observation: look.observation, record, files: look.files, troubles }
}

/// A verdict that does not come from the rules, beside what a look sees; nothing is written.
fn judged_apart(session: &Sighting, profile: &Profile, screens: Screens, at: At, verdict: Verdict) -> Judged {
    let record = read_record(&session.folder, &session.meta.run_id)
        .unwrap_or_else(|_| Record::fresh(&session.meta.run_id));
    let before = Before { memory: &record.memory, turn_began: None };
    let look = observe::look(session, profile, before, screens, at);
    let mut outcome = step(profile, record.memory.clone(), &look.observation);
    outcome.verdict = verdict;
    Judged { outcome, observation: look.observation, record, files: look.files, troubles: Vec::new() }
}

impl Record {
    /// A record of a run that nobody has looked at yet.
    pub fn fresh(run_id: &str) -> Self {
        Self { run_id: run_id.to_owned(), ..Self::default() }
    }

    /// Whether nothing has happened since but time.
    fn is_only_later_than(&self, before: &Self) -> bool {
        let Self { memory, turn, turns, noted, outbox, outbox_since, run_id } = self;
        memory.is_only_later_than(&before.memory)
            && (turn, turns, noted) == (&before.turn, &before.turns, &before.noted)
            && (outbox, outbox_since, run_id) == (&before.outbox, &before.outbox_since, &before.run_id)
    }

    /// Begins a turn and returns its id.
    pub fn begin_turn(&mut self, session: &str, at: At) -> String {
        self.turns += 1;
        let id = format!("{session}#{}", self.turns);
        self.turn = Some(Turn { id: id.clone(), began: at, running: false, stopping: false, ended: None });
        id
    }

    /// Takes back a turn whose prompt was not submitted after all; the one before it is the last one again.
    pub fn withdraw_turn(&mut self, id: Option<&str>, before: Option<Turn>) {
        let unused = |turn: &Turn| Some(turn.id.as_str()) == id && !turn.running && turn.ended.is_none();
        if self.turn.as_ref().is_some_and(unused) {
            self.turn = before;
        }
    }

    /// Notes an event, to be written to the journal after the state is.
    pub fn note(
        &mut self,
        session: &str,
        kind: EventKind,
        state: &State,
        at: At,
        note: Note,
        journal: &Journal,
    ) {
        if self.outbox.is_empty() {
            self.outbox_since = journal.cursor().unwrap_or(0);
        }
        self.noted += 1;
        let id = format!("{}:{}", self.run_id, self.noted);
        let event = Event {
            cursor: 0,
            at: timestamp(at),
            session: session.to_owned(),
            event: kind,
            status: state.status(),
            state: state.name(),
            detail: note.detail,
            turn: note.turn,
            data: (!note.data.is_empty()).then_some(note.data),
        };
        self.outbox.push(Entry { id, event });
    }
}

/// What to say of an event.
#[derive(Debug, Clone, Default)]
pub struct Note {
    /// One line.
    pub detail: String,
    /// The turn it belongs to.
    pub turn: Option<String>,
    /// Whatever else belongs to it.
    pub data: Map<String, Value>,
}

impl Note {
    /// One line and nothing else.
    pub fn line(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..Self::default() }
    }
}

/// A moment as the API writes it.
pub fn timestamp(at: At) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

fn note_changes(
    record: &mut Record,
    session: &Sighting,
    previous: Option<&Verdict>,
    now: &Verdict,
    at: At,
    journal: &Journal,
) {
    let name = session.meta.name.as_str();
    // What an earlier look noted is in the journal by now, unless its process died: then it is finished here.
    if flush(&session.folder, record, journal).is_ok() {
        record.outbox.clear();
    }
    let changed_state = previous.is_none_or(|before| {
        before.state.name() != now.state.name()
            || before.status() != now.status()
            || before.attention != now.attention
    });
    let prompt_id = |verdict: &Verdict| verdict.state.prompt().map(|prompt| prompt.id.clone());
    let turn = record.turn.as_ref().map(|turn| turn.id.clone());
    if changed_state {
        let was = previous.map_or("nothing", |before| before.state.name().as_str());
        let kind =
            if matches!(now.state, State::Exited { .. }) { EventKind::Exited } else { EventKind::Transition };
        let mut note = Note::line(format!("{was} -> {}: {}", now.state.name(), now.reason));
        note.turn.clone_from(&turn);
        record.note(name, kind, &now.state, at, note, journal);
    }
    if let Some(prompt) = now.state.prompt()
        && previous.and_then(prompt_id) != Some(prompt.id.clone())
    {
        let mut note = Note::line(prompt.title.clone());
        note.turn.clone_from(&turn);
        if let Ok(value) = serde_json::to_value(prompt) {
            note.data.insert("prompt".to_owned(), value);
        }
        record.note(name, EventKind::Prompt, &now.state, at, note, journal);
    }
    note_turn(record, name, now, at, journal);
}

/// Follows the turn: a turn that the agent begins by itself gets an id too, and each ends exactly once.
fn note_turn(record: &mut Record, name: &str, now: &Verdict, at: At, journal: &Journal) {
    let over = match &now.state {
        State::Working { .. } => None,
        State::Ready { .. } => Some(TurnOutcome::Finished),
        State::Interrupted => Some(TurnOutcome::Interrupted),
        State::Error { .. } => Some(TurnOutcome::Failed),
        State::Exited { exit } => match exit.status() {
            crate::words::Status::Completed => Some(TurnOutcome::Finished),
            _ => Some(TurnOutcome::Died),
        },
        _ => return,
    };
    let open = record.turn.as_ref().is_some_and(|turn| turn.ended.is_none());
    match over {
        None => {
            if !open {
                record.begin_turn(name, at);
            }
            if let Some(turn) = &mut record.turn {
                turn.running = true;
            }
        }
        Some(outcome) => {
            let said = record.memory.turn_over_since(record.turn.as_ref().map(|turn| turn.began));
            let Some(turn) = record.turn.as_mut().filter(|turn| turn.ended.is_none()) else { return };
            let dead = matches!(now.state, State::Exited { .. });
            if !turn.running && !said && !dead {
                return;
            }
            let outcome = match outcome {
                TurnOutcome::Finished if turn.stopping && !dead => TurnOutcome::Interrupted,
                outcome => outcome,
            };
            turn.ended = Some(outcome);
            let id = turn.id.clone();
            let message = record.memory.last_message().map(str::to_owned);
            let mut note = Note::line(outcome.as_str());
            note.turn = Some(id);
            if let Some(message) = message {
                note.data.insert("last_message".to_owned(), message.into());
            }
            let usage = record.memory.usage();
            if let Ok(Value::Object(tokens)) = serde_json::to_value(usage)
                && !tokens.is_empty()
            {
                note.data.insert("usage".to_owned(), Value::Object(tokens));
            }
            record.note(name, EventKind::TurnEnded, &now.state, at, note, journal);
        }
    }
}

/// Reads a session's record. One of an earlier run says nothing about this one.
pub fn read_record(folder: &Folder, run_id: &str) -> Result<Record, String> {
    read_record_again(folder, run_id, &Cache::default()).map(Arc::unwrap_or_clone)
}

/// The same for a process that reads it again and again.
fn read_record_again(
    folder: &Folder,
    run_id: &str,
    records: &Cache<Arc<Record>>,
) -> Result<Arc<Record>, String> {
    let path = folder.file("state.json");
    let record = records.read(&path, || match disk::read(&path) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => {
            let record = serde_json::from_slice(&bytes);
            record
                .map(|record| Some(Arc::new(record)))
                .map_err(|error| format!("state.json is torn: {error}"))
        }
        Err(error) => Err(error.to_string()),
    })?;
    Ok(record.filter(|record| record.run_id == run_id).unwrap_or_else(|| Arc::new(Record::fresh(run_id))))
}

/// Writes a session's record. The session's lock must be held.
pub fn write_record(folder: &Folder, record: &Record) -> crate::error::Result<()> {
    let text = serde_json::to_vec(record).map_err(|error| {
        crate::error::Error::invalid(format!("the state can not be written: {error}"), "report this")
    })?;
    disk::write_atomic(&folder.file("state.json"), &text)
}

/// Writes what was noted, and is not there yet, to the journal and to the session's own list of events.
pub fn flush(folder: &Folder, record: &Record, journal: &Journal) -> crate::error::Result<()> {
    tell(folder, &record.outbox, record.outbox_since, journal)
}

/// Writes events that are not there yet to both. `since` is a cursor that is older than all of them.
pub fn tell(folder: &Folder, events: &[Entry], since: u64, journal: &Journal) -> crate::error::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let own = folder.file("events.jsonl");
    for event in journal.append(events, since)? {
        if let Ok(line) = serde_json::to_string(&event) {
            // The journal has it; this file is only the session's own, quicker view.
            let _ = disk::append_line(&own, &line);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{profile::Profiles, session::Meta};

    /// A session whose pane is gone, judged at these moments; what was said, and the state file after each.
    fn judged_at(times: &[i64]) -> Vec<(Judged, String)> {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path()).unwrap();
        let meta: Meta = serde_json::from_value(serde_json::json!({
            "schema": 1, "name": "s", "agent": "generic", "mode": "interactive", "run_id": "r", "host": "h",
            "cwd": "/", "project_root": "/", "depth": 0, "started_at": 0, "argv": [], "starter": null,
            "size": { "columns": 80, "rows": 24 },
        }))
        .unwrap();
        let session = Sighting { folder, meta, pane: None };
        let profile = Profiles::load(None).unwrap().get("generic").unwrap();
        let journal = Journal::at(&dir.path().join("state")).unwrap();
        let records = Cache::default();
        let bench = Bench { journal: &journal, lock_limit: Duration::from_secs(1), records: &records };
        let look = |at: &i64| {
            let judged = judge(&session, &profile, Screens::none(), At(*at), bench);
            (judged, std::fs::read_to_string(session.folder.file("state.json")).unwrap())
        };
        times.iter().map(look).collect()
    }

    #[test]
    fn a_look_that_finds_nothing_new_writes_no_file_for_a_while() {
        let looks = judged_at(&[60_000, 60_100, 60_200, 60_100 + KEPT_MS.cast_signed()]);
        // The first notes events, the second that they are in the journal.
        let [_, second, third, fourth] = looks.as_slice() else { unreachable!() };
        assert_eq!(third.1, second.1);
        assert_ne!(fourth.1, third.1);
        assert_eq!(fourth.0.record.memory.observed_at, Some(At(60_100 + KEPT_MS.cast_signed())));
    }

    #[test]
    fn a_look_that_wrote_no_file_still_outdates_the_looks_before_it() {
        let looks = judged_at(&[60_000, 60_100, 60_200, 60_150, 60_250]);
        let stale: Vec<bool> = looks.iter().map(|(judged, _)| judged.outcome.stale).collect();
        assert_eq!(stale, [false, false, false, true, false]);
        assert_eq!(looks[2].1, looks[1].1, "the third look wrote a file");
    }
}
