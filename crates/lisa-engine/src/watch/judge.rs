//! The only way from a look to a session's state: open a change, observe, step, commit.
//!
//! One-shot commands and long-lived processes both use it.

use crate::{
    api::{
        EventKind, TurnOutcome,
        words::{Attention, Confidence, Reason, SignalError, State, Status},
    },
    classify::{
        observation::{At, Observation},
        profile::Profile,
        prompt,
        resolve::{Outcome, Verdict, step},
    },
    disk::Lock,
    error::Error,
    observe::{self, Moment, PreviousLook},
    session::find::SessionSnapshot,
    watch::{
        change::{Change, Changed, OpenError, Writer, read_record},
        record::{Note, Record, is_cut},
    },
};
use serde_json::Value;
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long it may take until a session that is being ended has ended.
const ENDS_WITHIN_MS: u64 = 15_000;

/// A verdict, with everything that it is based on.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The result of the step.
    pub outcome: Outcome,
    /// What was observed.
    pub observation: Observation,
    /// The session's record afterwards.
    pub record: Record,
    /// The agent's own files that were read or looked for.
    pub files: Vec<PathBuf>,
    /// Whether the session was removed during the look.
    pub gone: bool,
    /// The result of the look, if it couldn't be written.
    pub unwritten: Option<Unwritten>,
}

/// A verdict that couldn't be written, so that callers get `state_unwritable` instead.
#[derive(Debug, Clone)]
pub struct Unwritten {
    /// The verdict.
    pub verdict: Verdict,
    /// Why it couldn't be written.
    pub error: Error,
}

/// Reads everything but the screen, judges, and writes the result.
pub fn judge(session: &SessionSnapshot, profile: &Profile, moment: Moment<'_>, writer: Writer<'_>) -> Judged {
    let at = moment.at;
    let apart = |verdict| judged_apart(session, profile, moment.clone(), verdict);
    if session.starting() {
        return apart(being_started(session));
    }
    match writer.open(session) {
        Ok(change) => judge_in(change, session, profile, moment),
        Err(OpenError::Starting(_)) => apart(being_started(session)),
        Err(OpenError::Gone(error)) => {
            Judged { gone: true, ..apart(unrecorded(SignalError::StateLock, error.to_string(), at)) }
        }
        // Somebody else holds the lock for too long, or the state file is unusable.
        Err(OpenError::Failed(error)) => {
            let mut judged = apart(unrecorded(SignalError::StateLock, error.to_string(), at));
            if error.kind() == crate::error::Kind::LockTimeout {
                judged.outcome.verdict.reason = Reason::StateLockTimeout;
                judged.outcome.signals.state_lock_wait_ms = millis(writer.lock_limit);
            }
            judged
        }
    }
}

/// The last verdict on a session whose end is recorded and whose pane is gone: only a resume can change it, which
/// starts another run. This makes a list with a thousand of them cheap.
pub fn ended(session: &SessionSnapshot, at: At, writer: Writer<'_>) -> Option<Judged> {
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
    session: &SessionSnapshot,
    profile: &Profile,
    mut moment: Moment<'_>,
) -> Judged {
    let before = Arc::clone(change.before());
    // If two looks have the same millisecond, nobody knows which one saw the later screen. The one that is judged
    // first counts, and the other one is repeated.
    if change.record.memory.observed_at == Some(moment.at) {
        moment.at = At(moment.at.0 - 1);
    }
    let at = moment.at;
    let record = &change.record;
    let known = PreviousLook {
        memory: &record.memory,
        turn_began: record.turn.as_ref().map(|turn| turn.began),
        prompt_sent_at: record.prompt_sent_at(),
    };
    let began = Instant::now();
    let mut look = observe::gather(session, profile, known, moment);
    let observed = Instant::now();
    look.observation.lock_wait_ms = millis(change.waited());
    look.observation.state_error = change.trouble().map(str::to_owned);
    let mut outcome = step(profile, std::mem::take(&mut change.record.memory), &look.observation);
    if let Some(verdict) = before.memory.verdict.clone().filter(|_| is_being_ended(&change.record, at)) {
        keep_until_ended(&mut outcome, verdict);
    }
    let judged = Instant::now();
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
            outcome.signals.events_write_error = untold.map(|error| error.to_string());
            record
        }
        // Nothing was recorded, so the previous record is still valid.
        Err(error) => {
            let withheld = unrecorded(SignalError::StateWrite, error.to_string(), at);
            let verdict = std::mem::replace(&mut outcome.verdict, withheld);
            outcome.signals.state_read_error = Some(error.to_string());
            unwritten = Some(Unwritten { verdict, error });
            Record::clone(&before)
        }
    };
    tracing::debug!(
        session = session.meta.name,
        stale,
        waited_ms = look.observation.lock_wait_ms,
        observe_us = observed.duration_since(began).as_micros(),
        classify_us = judged.duration_since(observed).as_micros(),
        write_us = judged.elapsed().as_micros(),
        "judged a session"
    );
    Judged { outcome, observation: look.observation, record, files: look.files, gone, unwritten }
}

/// Whether somebody is ending the session right now. An end that failed leaves its intent behind, and must not keep the
/// verdict for longer than an end takes.
fn is_being_ended(record: &Record, at: At) -> bool {
    record.intent.as_ref().is_some_and(|intent| {
        let alive = intent.by.is_some_and(|by| by.alive());
        intent.kind == EventKind::Killed && alive && at.since(intent.at) < ENDS_WITHIN_MS
    })
}

/// An agent that is told to exit takes down its screen, its title and its files one after the other. What that looks
/// like meanwhile says nothing about its work, so the verdict from before stays until it has ended.
fn keep_until_ended(outcome: &mut Outcome, before: Verdict) {
    if !matches!(outcome.verdict.state, State::Exited { .. }) {
        outcome.memory.verdict = Some(before.clone());
        outcome.verdict = before;
    }
}

/// The verdict on a session that somebody is starting.
fn being_started(session: &SessionSnapshot) -> Verdict {
    Verdict {
        state: State::Starting,
        reason: Reason::BeingStarted,
        confidence: Confidence::Certain,
        source: None,
        since: session.meta.started_at,
        attention: Attention::Autonomous,
    }
}

/// The verdict on a session whose state can't be read or written: its state isn't reported, because it can't be
/// recorded.
fn unrecorded(signal: SignalError, why: String, at: At) -> Verdict {
    tracing::warn!(%signal, why, "could not record a look");
    Verdict {
        state: State::Unknown { failed: vec![signal] },
        reason: Reason::StateUnwritable,
        confidence: Confidence::Certain,
        source: None,
        since: at,
        attention: Attention::NeedsYou,
    }
}

/// Uses a verdict that doesn't come from the rules, with the signals of a look; writes nothing.
fn judged_apart(
    session: &SessionSnapshot,
    profile: &Profile,
    moment: Moment<'_>,
    verdict: Verdict,
) -> Judged {
    let record = read_record(&session.dir, &session.meta.run_id)
        .ok()
        .flatten()
        .unwrap_or_else(|| Record::fresh(&session.meta.run_id));
    let before = PreviousLook { memory: &record.memory, turn_began: None, prompt_sent_at: None };
    let look = observe::gather(session, profile, before, moment);
    let mut outcome = step(profile, record.memory.clone(), &look.observation);
    outcome.verdict = verdict;
    Judged { outcome, observation: look.observation, record, files: look.files, gone: false, unwritten: None }
}

fn millis(long: Duration) -> u64 {
    u64::try_from(long.as_millis()).unwrap_or(u64::MAX)
}

/// Whether somebody has ended the session and only its directory is left to remove; anybody may do that.
fn is_to_be_removed(record: &Record, session: &SessionSnapshot) -> bool {
    let killed = record.intent.as_ref().is_some_and(|intent| intent.kind == EventKind::Killed);
    killed && record.ended && session.pane.is_none()
}

/// Whether nobody drives the session, so that nobody will finish its intent.
fn is_undriven(session: &SessionSnapshot) -> bool {
    Lock::take(&session.dir.file("drive.lock"), Duration::ZERO).is_ok()
}

fn note_changes(
    change: &mut Change<'_>,
    session: &SessionSnapshot,
    previous: Option<&Verdict>,
    now: &Verdict,
    at: At,
) {
    if change.record.seq == 0 {
        // The process that started it was killed before it could record that.
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
    let id = |verdict: &Verdict| verdict.state.prompt().map(|prompt| prompt.id.clone());
    // A prompt that was gone before anybody could read it still counts as asked.
    if let Some(before) = previous.filter(|before| id(before) != id(now)) {
        note_prompt(change, before, at);
    }
    let ended = matches!(now.state, State::Exited { .. });
    let turn = change.record.turn.as_ref().map(|turn| turn.id.clone());
    if ended {
        note_turn(change, &session.meta.name, now, at);
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
    if !now.state.prompt().is_some_and(|prompt| prompt::is_being_drawn(prompt, at.0 - now.since.0)) {
        note_prompt(change, now, at);
    }
    note_turn(change, &session.meta.name, now, at);
}

/// Records the open prompt, once.
fn note_prompt(change: &mut Change<'_>, verdict: &Verdict, at: At) {
    let Some(prompt) = verdict.state.prompt() else { return };
    if change.record.asked.as_ref() == Some(&prompt.id) {
        return;
    }
    change.record.asked = Some(prompt.id.clone());
    let mut note = Note::line(prompt.title.clone());
    note.turn = change.record.turn.as_ref().map(|turn| turn.id.clone());
    if let Ok(value) = serde_json::to_value(prompt) {
        note.data.insert("prompt".to_owned(), value);
    }
    change.note(EventKind::Prompt, &verdict.state, at, note);
}

/// Records something that was started but whose end wasn't written, because its process was killed or the disk was
/// full.
fn note_abandoned(change: &mut Change<'_>, session: &SessionSnapshot, now: &Verdict) {
    let Some(intent) = &change.record.intent else { return };
    // A kill shows in the session itself: it has ended, or it wasn't killed.
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

/// Tracks turns: one that the agent starts by itself gets an id too, and each ends exactly once.
fn note_turn(change: &mut Change<'_>, name: &str, now: &Verdict, at: At) {
    let record = &mut change.record;
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
            // That a process is alive is no sign of a turn.
            if record.open_turn().is_none() && now.confidence != Confidence::Guess {
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
            if let Some(message) = record.memory.last_message().map(str::to_owned) {
                note = note.with_text("last_message", &message);
                if is_cut(&message) {
                    let file = change.keep_text(message).display().to_string();
                    note.data.insert("last_message_file".to_owned(), file.into());
                }
            }
            let record = &mut change.record;
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
        classify::profile::Profiles,
        disk::Cache,
        observe::Screens,
        process::Trees,
        session::{Meta, SessionDir},
        watch::{change::KEPT_MS, journal::Journal, record::Intent},
    };

    #[test]
    fn an_end_that_failed_does_not_keep_the_verdict_for_good() {
        let record = |kind| Record {
            intent: Some(Intent::new(kind, At(1_000), Note::default())),
            ..Record::fresh("r")
        };
        assert!(is_being_ended(&record(EventKind::Killed), At(15_999)));
        assert!(!is_being_ended(&record(EventKind::Killed), At(16_000)));
        assert!(!is_being_ended(&record(EventKind::Send), At(1_001)));
        let mut left = record(EventKind::Killed);
        left.intent.iter_mut().for_each(|intent| intent.by = None);
        assert!(!is_being_ended(&left, At(1_001)), "whoever began it is gone");
    }

    /// Judges a session whose pane is gone at these times; returns each verdict and the state file after it.
    fn judged_at(times: &[i64]) -> Vec<(Judged, String)> {
        let temp = tempfile::tempdir().unwrap();
        let dir = SessionDir::at(temp.path()).unwrap();
        let meta: Meta = serde_json::from_value(serde_json::json!({
            "schema": 1, "name": "s", "agent": "generic", "mode": "interactive", "run_id": "r", "host": "h",
            "cwd": "/", "project_root": "/", "depth": 0, "started_at": 0, "argv": [], "starter": null,
            "size": { "columns": 80, "rows": 24 },
        }))
        .unwrap();
        let session = SessionSnapshot { dir, meta, pane: None };
        let profile = Profiles::shipped().get("generic").unwrap();
        let journal = Journal::at(&temp.path().join("state")).unwrap();
        let (records, trees) = (Cache::default(), Trees::default());
        let writer = Writer { journal: &journal, lock_limit: Duration::from_secs(1), records: &records };
        let look = |at: &i64| {
            let moment = Moment { at: At(*at), screens: Screens::none(), trees: &trees };
            let judged = judge(&session, &profile, moment, writer);
            (judged, std::fs::read_to_string(session.dir.file("state.json")).unwrap())
        };
        times.iter().map(look).collect()
    }

    #[test]
    fn a_look_that_finds_nothing_new_writes_no_file_for_a_while() {
        let looks = judged_at(&[60_000, 60_100, 60_200, 60_100 + KEPT_MS.cast_signed()]);
        // The first one records events, the second one that the journal has them.
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
