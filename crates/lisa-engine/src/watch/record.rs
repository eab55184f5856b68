//! A session's record, kept between looks: `state.json`.

use super::journal::{Entry, EventId};
use crate::{
    api::{Event, EventKind, TurnOutcome, words::State},
    classify::{memory::Memory, observation::At, text::one_line},
    process::Identity,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum characters of an event's detail line, and of a text that belongs to it.
const DETAIL_MAX: usize = 300;
const TEXT_MAX: usize = 2_000;
/// If a record is this many milliseconds ahead of the clock, the clock was set back.
pub(super) const CLOCK_SET_MS: u64 = 2_000;

/// A session's record, kept between looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The classifier's memory.
    pub memory: Memory,
    /// The current or last turn.
    pub turn: Option<Turn>,
    /// How many turns were started.
    pub turns: u64,
    /// The id of the last prompt that was recorded.
    pub asked: Option<String>,
    /// The number of the run's last event.
    pub seq: u64,
    /// Events that may not be in the journal yet (an outbox).
    pub outbox: Vec<Entry>,
    /// The run that this record is about.
    pub run_id: String,
    /// The session that started this one.
    pub parent: Option<String>,
    /// Whether the run's end has been recorded; nothing follows it.
    pub ended: bool,
    /// What somebody is about to do to the session.
    pub intent: Option<Intent>,
}

/// A turn: from a prompt to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: String,
    /// When it started.
    pub began: At,
    /// Whether the agent was seen working on it.
    pub running: bool,
    /// Whether Lisa was asked to interrupt it: an agent that is ready after that hasn't finished.
    #[serde(default)]
    pub stopping: bool,
    /// How it ended.
    pub ended: Option<TurnOutcome>,
}

/// Something that is about to be done to a session. It is written before it is done, so that the next process can
/// report it if the one that did it couldn't.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// The event that it will become.
    pub kind: EventKind,
    /// When it was started.
    pub at: At,
    /// The process that does it.
    pub by: Option<Identity>,
    /// The text of the event.
    pub note: Note,
}

impl Intent {
    /// What this process is about to do.
    pub fn new(kind: EventKind, at: At, note: Note) -> Self {
        Self { kind, at, by: Identity::of(std::process::id()), note }
    }
}

/// The text and data of an event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// One line.
    pub detail: String,
    /// The turn it belongs to.
    pub turn: Option<String>,
    /// Further data.
    pub data: Map<String, Value>,
}

impl Note {
    /// Just one line.
    pub fn line(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..Self::default() }
    }

    /// Adds a text, truncated if it is long; `NAME_chars` then has its original length.
    #[must_use]
    pub fn with_text(mut self, name: &str, text: &str) -> Self {
        let kept: String = text.chars().take(TEXT_MAX).collect();
        if is_cut(text) {
            self.data.insert(format!("{name}_chars"), text.chars().count().into());
        }
        self.data.insert(name.to_owned(), kept.into());
        self
    }
}

/// Whether a text is too long for an event.
pub fn is_cut(text: &str) -> bool {
    text.chars().nth(TEXT_MAX).is_some()
}

impl Record {
    /// The record of a run that nobody has looked at yet.
    pub fn fresh(run_id: &str) -> Self {
        Self { run_id: run_id.to_owned(), ..Self::default() }
    }

    /// Whether only time has passed since `before`. Ignores what the journal has been told.
    pub(super) fn is_only_later_than(&self, before: &Self) -> bool {
        let Self { memory, turn, turns, asked, seq, outbox: _, run_id, parent, ended, intent } = self;
        memory.is_only_later_than(&before.memory)
            && (turn, turns, seq) == (&before.turn, &before.turns, &before.seq)
            && asked == &before.asked
            && (run_id, parent) == (&before.run_id, &before.parent)
            && (ended, intent) == (&before.ended, &before.intent)
    }

    /// Restores a lost record from the run's events: an end isn't recorded twice, and turn ids aren't reused.
    pub(super) fn recall<'a>(&mut self, events: impl Iterator<Item = &'a Event>) {
        for event in events {
            self.ended |= matches!(event.event, EventKind::Exited | EventKind::Killed);
            let Some(id) = &event.turn else { continue };
            let number = id.rsplit_once('#').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
            let ended =
                (event.event == EventKind::TurnEnded).then(|| TurnOutcome::parse(&event.detail)).flatten();
            self.turns = self.turns.max(number);
            let before = self.turn.take().filter(|turn| turn.id == *id);
            let began = before.as_ref().map_or(At(event.at.as_millisecond()), |turn| turn.began);
            let ended = before.and_then(|turn| turn.ended).or(ended);
            self.turn = Some(Turn { id: id.clone(), began, running: true, stopping: false, ended });
        }
    }

    /// Adjusts the record to the current time: it may be from the future if the clock was set back.
    pub(super) fn keep_to(&mut self, now: At) {
        let ahead = self.memory.observed_at.map_or(0, |observed| observed.since(now));
        if ahead > CLOCK_SET_MS {
            tracing::warn!(ahead, "the clock was set back");
            self.memory.set_back(ahead);
            self.turn.iter_mut().for_each(|turn| turn.began.set_back(ahead));
        }
    }

    /// Starts a turn and returns its id.
    pub fn begin_turn(&mut self, session: &str, at: At) -> String {
        self.turns += 1;
        let id = format!("{session}#{}", self.turns);
        self.turn = Some(Turn { id: id.clone(), began: at, running: false, stopping: false, ended: None });
        id
    }

    /// Removes a turn whose prompt wasn't submitted after all, and restores the one before it.
    pub fn withdraw_turn(&mut self, id: Option<&str>, before: Option<Turn>) {
        let unused = |turn: &Turn| Some(turn.id.as_str()) == id && !turn.running && turn.ended.is_none();
        if self.turn.as_ref().is_some_and(unused) {
            self.turn = before;
        }
    }

    /// When the prompt of the running turn was sent.
    pub fn prompt_sent_at(&self) -> Option<At> {
        self.turn.as_ref().filter(|turn| turn.ended.is_none()).map(|turn| turn.began)
    }

    /// The id of the running turn.
    pub fn open_turn(&self) -> Option<&str> {
        self.turn.as_ref().filter(|turn| turn.ended.is_none()).map(|turn| turn.id.as_str())
    }

    /// Ends the running turn, if there is one, and records that.
    pub fn end_turn(&mut self, session: &str, outcome: TurnOutcome, state: &State, at: At, note: Note) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.ended.is_none()) else { return };
        turn.ended = Some(outcome);
        let note = Note { detail: outcome.as_str().to_owned(), turn: Some(turn.id.clone()), ..note };
        self.note(session, EventKind::TurnEnded, state, at, note);
    }

    /// Adds an event, to be told to the journal after the record is written. A run ends once, and only the removal of
    /// its session can follow.
    pub fn note(&mut self, session: &str, kind: EventKind, state: &State, at: At, note: Note) {
        if self.ended && kind != EventKind::Removed {
            tracing::debug!(session, event = kind.as_str(), "dropped an event: the run has ended");
            return;
        }
        self.ended |= matches!(kind, EventKind::Exited | EventKind::Killed);
        self.seq += 1;
        let id = EventId { run: self.run_id.clone(), number: self.seq };
        let event = Event {
            cursor: 0,
            at: timestamp(at),
            session: session.to_owned(),
            event: kind,
            status: state.status(),
            state: state.name(),
            detail: one_line(&note.detail, DETAIL_MAX),
            turn: note.turn,
            data: (!note.data.is_empty()).then_some(note.data),
        };
        self.outbox.push(Entry { id, parent: self.parent.clone(), event });
    }
}

/// Converts a time for the API.
pub fn timestamp(at: At) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(record: &Record) -> Vec<EventKind> {
        record.outbox.iter().map(|entry| entry.event.event).collect()
    }

    #[test]
    fn a_run_ends_once_and_nothing_but_its_removal_comes_after_that() {
        let mut record = Record::fresh("r");
        let mut note = |kind| record.note("s", kind, &State::Starting, At(1), Note::default());
        [EventKind::Spawned, EventKind::Exited, EventKind::Killed, EventKind::Transition, EventKind::Removed]
            .into_iter()
            .for_each(&mut note);
        assert_eq!(kinds(&record), [EventKind::Spawned, EventKind::Exited, EventKind::Removed]);
        let ids: Vec<String> = record.outbox.iter().map(|entry| entry.id.to_string()).collect();
        assert_eq!(ids, ["r:1", "r:2", "r:3"]);
    }

    #[test]
    fn what_is_kept_keeps_its_order_when_the_clock_is_set_back() {
        let mut record = Record::fresh("r");
        record.begin_turn("s", At(3_600_500));
        record.memory.observed_at = Some(At(3_601_000));
        record.memory.feeds.hook.turn_at = At(3_600_700);
        let same = record.clone();
        record.keep_to(At(3_600_000));
        assert_eq!(record, same, "another process may have looked a moment later");
        record.keep_to(At(1_000));
        let turn = record.turn.as_ref().unwrap();
        assert_eq!((record.memory.observed_at, turn.began), (Some(At(1_000)), At(500)));
        assert_eq!((record.memory.feeds.hook.turn_at, record.memory.feeds.hook.phase_at), (At(700), At(0)));
    }

    #[test]
    fn a_turn_ends_once() {
        let mut record = Record::fresh("r");
        let id = record.begin_turn("s", At(1));
        assert_eq!(record.prompt_sent_at(), Some(At(1)));
        for outcome in [TurnOutcome::Finished, TurnOutcome::Died] {
            record.end_turn("s", outcome, &State::Starting, At(2), Note::default());
        }
        assert_eq!(kinds(&record), [EventKind::TurnEnded]);
        assert_eq!(
            record.prompt_sent_at(),
            None,
            "an agent that exits after it hasn't just been sent a prompt"
        );
        let event = &record.outbox[0].event;
        assert_eq!((event.detail.as_str(), event.turn.as_deref()), ("finished", Some(id.as_str())));
    }

    #[test]
    fn an_event_is_short_and_has_no_control_characters_in_its_line() {
        let mut record = Record::fresh("r");
        let detail = format!("a\u{1b}[31mb\nc{}", "d".repeat(1_000));
        let note = Note::line(detail).with_text("last_message", &"é".repeat(5_000));
        record.note("s", EventKind::Send, &State::Starting, At(1), note);
        let event = &record.outbox[0].event;
        assert!(
            event.detail.starts_with("ab c") && event.detail.chars().count() <= DETAIL_MAX,
            "{}",
            event.detail
        );
        let data = event.data.as_ref().unwrap();
        assert_eq!(data["last_message"].as_str().unwrap().chars().count(), TEXT_MAX);
        assert_eq!(data["last_message_chars"], 5_000);
    }
}
