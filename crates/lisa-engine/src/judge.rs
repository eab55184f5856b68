//! The one way from a look to a session's state: open a change, remember, step, commit.
//!
//! Everybody goes through here, one-shot or resident.

use crate::{
    api::{EventKind, TurnOutcome},
    disk::Lock,
    error::Error,
    observation::{At, Observation},
    observe::{self, Before, Screens},
    profile::Profile,
    resolve::{Outcome, Verdict, step},
    session::find::Sighting,
    watch::{
        change::{Change, Changed, Unopened, Writer, read_record},
        record::{Note, Record},
    },
    words::{Attention, Confidence, State, Status},
};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc, time::Duration};

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
    /// Whether the session was removed while it was looked at.
    pub gone: bool,
    /// Why what the look found could not be written down.
    pub unwritten: Option<Error>,
}

/// Looks at everything but the screen, judges, and writes down what came of it.
pub fn judge(session: &Sighting, profile: &Profile, screens: Screens, at: At, writer: Writer<'_>) -> Judged {
    let apart = |verdict| judged_apart(session, profile, screens.clone(), at, verdict);
    if session.starting() {
        return apart(being_started(session));
    }
    match writer.open(session) {
        Ok(change) => judge_in(change, session, profile, screens, at),
        Err(Unopened::Starting(_)) => apart(being_started(session)),
        Err(Unopened::Gone(error)) => {
            Judged { gone: true, ..apart(unrecorded("state_lock", error.to_string(), at)) }
        }
        // Somebody else holds the state for too long, or its file cannot be used.
        Err(Unopened::Failed(error)) => {
            let mut judged = apart(unrecorded("state_lock", error.to_string(), at));
            if error.kind() == crate::error::Kind::LockTimeout {
                judged.outcome.verdict.reason = "state_lock_timeout".to_owned();
                judged.outcome.signals.state_lock_wait_ms = millis(writer.lock_limit);
            }
            judged
        }
    }
}

/// A session whose end is written down and whose pane is gone, as it was last judged: nothing can change it but a resume,
/// which begins another run. A thousand of them cost a list next to nothing.
pub fn ended(session: &Sighting, at: At, writer: Writer<'_>) -> Option<Judged> {
    let lost = session.pane.is_none() && !session.starting() && !session.elsewhere();
    let record =
        lost.then(|| writer.read(session))?.filter(|record| record.ended && record.intent.is_none())?;
    let verdict = record
        .memory
        .verdict
        .clone()
        .filter(|_| record.outbox.is_empty() || writer.is_told(session, &record))?;
    let outcome = Outcome::again(verdict, record.memory.clone());
    let observation = Observation::none(at, session.meta.started_at, &session.meta.run_id, session.meta.mode);
    let record = Record::clone(&record);
    Some(Judged { outcome, observation, record, files: Vec::new(), gone: false, unwritten: None })
}

fn judge_in(
    mut change: Change<'_>,
    session: &Sighting,
    profile: &Profile,
    screens: Screens,
    at: At,
) -> Judged {
    let before = Arc::clone(change.before());
    // Of two looks of the same millisecond nobody knows which saw the later screen: the one that is judged first counts,
    // and the other is taken again.
    let at = if change.record.memory.observed_at == Some(at) { At(at.0 - 1) } else { at };
    let mut troubles: Vec<(&'static str, String)> = Vec::new();
    troubles.extend(change.trouble().map(|why| ("state_read_error", why.to_owned())));
    let record = &change.record;
    let known = Before { memory: &record.memory, turn_began: record.turn.as_ref().map(|turn| turn.began) };
    let mut look = observe::look(session, profile, known, screens, at);
    look.observation.lock_wait_ms = millis(change.waited());
    look.observation.stream_errors.extend(troubles.iter().cloned());
    let mut outcome = step(profile, std::mem::take(&mut change.record.memory), &look.observation);
    let stale = outcome.stale;
    if !stale {
        outcome.memory.offsets.extend(look.offsets);
    }
    change.record.memory = outcome.memory.clone();
    if !stale {
        note_changes(&mut change, session, before.memory.verdict.as_ref(), &outcome.verdict, at);
    }
    let gone = !stale && is_to_be_removed(&change.record, session);
    let done = match (stale, gone) {
        (true, _) => Ok(change.leave()),
        (false, true) => change.commit_and_remove(),
        (false, false) => change.commit_look(at),
    };
    let mut unwritten = None;
    let record = match done {
        Ok(Changed { record, untold }) => {
            troubles.extend(untold.map(|error| ("events_write_error", error.to_string())));
            record
        }
        // Nothing has happened that could be told: what was known before still is.
        Err(error) => {
            outcome.verdict = unrecorded("state_write", error.to_string(), at);
            troubles.push(("state_read_error", error.to_string()));
            unwritten = Some(error);
            Record::clone(&before)
        }
    };
    for (name, why) in &troubles {
        outcome.signals.note_error(name, why);
    }
    Judged { outcome, observation: look.observation, record, files: look.files, gone, unwritten }
}

/// A session that somebody is making.
fn being_started(session: &Sighting) -> Verdict {
    Verdict {
        state: State::Starting,
        reason: "being_started".to_owned(),
        confidence: Confidence::Certain,
        source: None,
        since: session.meta.started_at,
        attention: Attention::Autonomous,
    }
}

/// A session whose state cannot be read or written: what it does is not said, because nobody could be told of it.
fn unrecorded(signal: &str, why: String, at: At) -> Verdict {
    tracing::warn!(signal, why, "a look could not be written down");
    Verdict {
        state: State::Unknown { failed: vec![signal.to_owned()] },
        reason: "state_unwritable".to_owned(),
        confidence: Confidence::Certain,
        source: None,
        since: at,
        attention: Attention::NeedsYou,
    }
}

/// A verdict that does not come from the rules, beside what a look sees; nothing is written.
fn judged_apart(session: &Sighting, profile: &Profile, screens: Screens, at: At, verdict: Verdict) -> Judged {
    let record = read_record(&session.folder, &session.meta.run_id)
        .ok()
        .flatten()
        .unwrap_or_else(|| Record::fresh(&session.meta.run_id));
    let before = Before { memory: &record.memory, turn_began: None };
    let look = observe::look(session, profile, before, screens, at);
    let mut outcome = step(profile, record.memory.clone(), &look.observation);
    outcome.verdict = verdict;
    Judged { outcome, observation: look.observation, record, files: look.files, gone: false, unwritten: None }
}

fn millis(long: Duration) -> u64 {
    u64::try_from(long.as_millis()).unwrap_or(u64::MAX)
}

/// Whether somebody has ended the session and all that is left is to remove it: it does not matter who does.
fn is_to_be_removed(record: &Record, session: &Sighting) -> bool {
    let killed = record.intent.as_ref().is_some_and(|intent| intent.kind == EventKind::Killed);
    killed && record.ended && session.pane.is_none()
}

/// Whether nobody drives the session: what was begun there is not going to be finished.
fn is_undriven(session: &Sighting) -> bool {
    Lock::take(&session.folder.file("drive.lock"), Duration::ZERO).is_ok()
}

fn note_changes(
    change: &mut Change<'_>,
    session: &Sighting,
    previous: Option<&Verdict>,
    now: &Verdict,
    at: At,
) {
    if change.record.seq == 0 {
        // Whoever started it was killed before that could be told.
        change.note(
            EventKind::Spawned,
            &State::Starting,
            session.meta.started_at,
            Note::line(&session.meta.agent),
        );
    }
    note_abandoned(change, session, now);
    let changed_state = previous.is_none_or(|before| {
        before.state.name() != now.state.name()
            || before.status() != now.status()
            || before.attention != now.attention
    });
    let prompt_id = |verdict: &Verdict| verdict.state.prompt().map(|prompt| prompt.id.clone());
    let ended = matches!(now.state, State::Exited { .. });
    let turn = change.record.turn.as_ref().map(|turn| turn.id.clone());
    if ended {
        note_turn(&mut change.record, &session.meta.name, now, at);
    }
    if changed_state {
        let was = previous.map_or("nothing", |before| before.state.name().as_str());
        let mut note = Note::line(format!("{was} -> {}: {}", now.state.name(), now.reason));
        note.turn.clone_from(&turn);
        let kind = match &change.record.intent {
            Some(intent) if ended && intent.kind == EventKind::Killed => EventKind::Killed,
            _ if ended => EventKind::Exited,
            _ => EventKind::Transition,
        };
        change.note(kind, &now.state, at, note);
    }
    if let Some(prompt) = now.state.prompt()
        && previous.and_then(prompt_id) != Some(prompt.id.clone())
    {
        let mut note = Note::line(prompt.title.clone());
        note.turn.clone_from(&turn);
        if let Ok(value) = serde_json::to_value(prompt) {
            note.data.insert("prompt".to_owned(), value);
        }
        change.note(EventKind::Prompt, &now.state, at, note);
    }
    note_turn(&mut change.record, &session.meta.name, now, at);
}

/// Tells of something that was begun and whose end nobody could write down: its process was killed, or the disk was full.
fn note_abandoned(change: &mut Change<'_>, session: &Sighting, now: &Verdict) {
    let Some(intent) = &change.record.intent else { return };
    // A kill shows in the session itself: it has ended, or it was not killed.
    if intent.kind == EventKind::Killed {
        let given_up = intent.by.is_none_or(|by| !by.alive());
        if given_up && !matches!(now.state, State::Exited { .. }) {
            change.record.intent = None;
        }
        return;
    }
    let Some(intent) = change.record.intent.take_if(|_| is_undriven(session)) else { return };
    let mut note = intent.note;
    note.data.insert("unconfirmed".to_owned(), true.into());
    change.note(intent.kind, &now.state, intent.at, note);
}

/// Follows the turn: a turn that the agent begins by itself gets an id too, and each ends exactly once.
fn note_turn(record: &mut Record, name: &str, now: &Verdict, at: At) {
    let over = match &now.state {
        State::Working { .. } => None,
        State::Ready { .. } => Some(TurnOutcome::Finished),
        State::Interrupted => Some(TurnOutcome::Interrupted),
        State::Error { .. } => Some(TurnOutcome::Failed),
        State::Exited { exit } => match exit.status() {
            Status::Completed => Some(TurnOutcome::Finished),
            _ => Some(TurnOutcome::Died),
        },
        _ => return,
    };
    match over {
        None => {
            if record.open_turn().is_none() {
                record.begin_turn(name, at);
            }
            if let Some(turn) = &mut record.turn {
                turn.running = true;
            }
        }
        Some(outcome) => {
            let said = record.memory.turn_over_since(record.turn.as_ref().map(|turn| turn.began));
            let Some(turn) = record.turn.as_ref().filter(|turn| turn.ended.is_none()) else { return };
            let dead = matches!(now.state, State::Exited { .. });
            if !turn.running && !said && !dead {
                return;
            }
            let outcome = match outcome {
                TurnOutcome::Finished if turn.stopping && !dead => TurnOutcome::Interrupted,
                outcome => outcome,
            };
            let mut note = Note::default();
            if let Some(message) = record.memory.last_message() {
                note = note.with_text("last_message", message);
            }
            if let Ok(Value::Object(tokens)) = serde_json::to_value(record.memory.usage())
                && !tokens.is_empty()
            {
                note.data.insert("usage".to_owned(), Value::Object(tokens));
            }
            record.end_turn(name, outcome, &now.state, at, note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        disk::Cache,
        profile::Profiles,
        session::{Folder, Meta},
        watch::{change::KEPT_MS, journal::Journal},
    };

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
        let writer = Writer { journal: &journal, lock_limit: Duration::from_secs(1), records: &records };
        let look = |at: &i64| {
            let judged = judge(&session, &profile, Screens::none(), At(*at), writer);
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
    fn of_two_looks_of_the_same_millisecond_the_one_that_is_judged_first_counts() {
        let looks = judged_at(&[60_000, 60_000, 60_001]);
        let stale: Vec<bool> = looks.iter().map(|(judged, _)| judged.outcome.stale).collect();
        assert_eq!(stale, [false, true, false]);
    }

    #[test]
    fn a_look_that_wrote_no_file_still_outdates_the_looks_before_it() {
        let looks = judged_at(&[60_000, 60_100, 60_200, 60_150, 60_250]);
        let stale: Vec<bool> = looks.iter().map(|(judged, _)| judged.outcome.stale).collect();
        assert_eq!(stale, [false, false, false, true, false]);
        assert_eq!(looks[2].1, looks[1].1, "the third look wrote a file");
    }
}
