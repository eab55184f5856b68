//! What Lisa itself has written and may find malformed.

use super::input;
use crate::{
    api::{
        Event, EventKind,
        words::{StateName, Status},
    },
    classify::{
        observation::{Done, Observation},
        resolve::step,
    },
    error::{Error, Result},
    observe::Screens,
    session::{Marks, Meta, Told},
    watch::{
        self,
        journal::{Entry, EventId, Journal, Tail},
        record::Record,
    },
};
use serde::Deserialize;
use std::{fs, path::Path};

/// The session of the journal's events, and its run.
const SESSION: &str = "s";
const RUN: &str = "fuzz";

/// Files of a session; a state that can be parsed is judged from.
pub(super) fn records(bytes: &[u8]) {
    for part in input::parts(bytes) {
        if let Ok(meta) = serde_json::from_slice::<Meta>(part) {
            input::same_when_read_again(&meta);
        }
        if let Ok(done) = serde_json::from_slice::<Done>(part) {
            input::same_when_read_again(&done);
        }
        if let Ok(record) = serde_json::from_slice::<Record>(part) {
            input::same_when_read_again(&record);
            judged_from(record);
        }
    }
}

/// Judges from a parsed state; one from the future stays as it is.
fn judged_from(record: Record) {
    let Some(profile) = input::generic() else { return };
    let began = record.turn.as_ref().map(|turn| turn.began);
    let mut memory = record.memory;
    for at in [1_000, 90_000] {
        let look = input::look(at, input::pane(), Screens::none());
        memory = step(&profile, memory, &Observation { prompt_sent_at: began, ..look }).memory;
    }
    let _ = (memory.usage(), memory.last_message(), memory.turn_over_since(began));
}

/// A segment with these bytes: read, followed and appended to, as after a killed process.
pub(super) fn journal(bytes: &[u8]) {
    let Some((first, segment)) = bytes.split_first() else { return };
    let first = u64::from(*first) + 1;
    let lines: Vec<Line> =
        segment.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    if !plausible(first, &lines) {
        return;
    }
    input::in_scratch(|dir| {
        let made = prepare(dir).and_then(|()| Journal::at(dir)).and_then(|journal| {
            let path = journal.dir().join(format!("{first:020}.jsonl"));
            fs::write(&path, segment).map_err(|error| Error::io("write", &path, &error)).map(|()| journal)
        });
        let Ok(journal) = made else {
            assert!(made.is_ok(), "{made:?}");
            return;
        };
        tell(&journal, lines.iter().any(|line| line.id.run == RUN));
    });
}

/// A line as Lisa writes it.
#[derive(Deserialize)]
struct Line {
    id: EventId,
    session: String,
    cursor: u64,
}

/// Whether Lisa could have written these cursors: they increase from the one in the segment's name. A crash or a full
/// disk leaves incomplete or missing lines, not other cursors.
fn plausible(first: u64, lines: &[Line]) -> bool {
    let cursors = lines.iter().map(|line| line.cursor);
    let grows =
        cursors.clone().zip(std::iter::once(first - 1).chain(cursors)).all(|(now, before)| before < now);
    let named = lines.iter().all(|line| !line.session.contains('/') && line.id.number < u64::MAX / 2);
    grows && named && lines.last().is_none_or(|last| last.cursor < u64::MAX / 2)
}

/// A state directory with one session that the journal knows nothing about.
fn prepare(dir: &Path) -> Result<()> {
    for name in ["journal", "sessions"] {
        let _ = fs::remove_dir_all(dir.join(name));
    }
    let session = dir.join("sessions").join(SESSION);
    let made = fs::create_dir_all(&session).and_then(|()| fs::write(session.join("lock"), ""));
    made.map_err(|error| Error::io("make", &session, &error))?;
    let marks = Marks::open(&session)?;
    marks.map_or(Ok(()), |marks| marks.set_told(&Told { run: RUN.to_owned(), number: 0 }))
}

/// Tells the journal two events, twice. If `known`, it may already have some of them.
fn tell(journal: &Journal, known: bool) {
    let (Ok(before), Ok(oldest)) = (journal.cursor(), journal.oldest()) else { return };
    let _ = journal.read(oldest, 10, |_| true);
    let Ok(mut tail) = Tail::new(journal.clone()) else { return };
    let entries = [1, 2].map(|number| Entry {
        id: EventId { run: RUN.to_owned(), number },
        parent: None,
        event: event(),
    });
    let told = journal.tell(SESSION, &entries);
    assert!(told.is_ok(), "{told:?}");
    let after = journal.cursor().unwrap_or_default();
    assert!(if known { after <= before + 2 } else { after == before + 2 }, "{before} became {after}");
    let found = journal.read(before, 10, |_| true).map(|found| found.events).unwrap_or_default();
    let cursors: Vec<u64> = found.iter().map(|event| event.cursor).collect();
    assert!(cursors == (before + 1..=after).collect::<Vec<_>>(), "{cursors:?} came after {before}");
    let followed = tail.sessions().ok().flatten().unwrap_or_default();
    assert!(followed.contains_key(SESSION) == (after > before), "a follower was told {followed:?}");
    let again = journal.tell(SESSION, &entries).and_then(|()| journal.cursor());
    assert!(matches!(&again, Ok(again) if *again == after), "told twice: {again:?} after {after}");
}

fn event() -> Event {
    Event {
        cursor: 0,
        at: jiff::Timestamp::UNIX_EPOCH,
        session: SESSION.to_owned(),
        event: EventKind::Transition,
        status: Status::InProgress,
        state: StateName::Working,
        detail: String::new(),
        turn: None,
        data: None,
    }
}

/// Questions from other processes, and answers as those read them.
pub(super) fn door(bytes: &[u8]) {
    for line in watch::answers(bytes) {
        let again = watch::answer_line(&line);
        assert!(again.as_ref() == Some(&line), "{line:?} is read as {again:?}");
    }
    if let Some(line) = watch::answer_line(bytes) {
        let fraction = serde_json::from_slice(&line).is_ok_and(|value| input::has_fraction(&value));
        let again = watch::answer_line(&line);
        assert!(fraction || again.as_ref() == Some(&line), "{line:?} is read as {again:?}");
    }
}
