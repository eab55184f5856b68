//! Interrupts a turn, and clears what that put back into the input box.

use super::{BOX_ROWS, Driver, GUARD_RETRIES};
use crate::{
    api::{
        ActResponse, Action, EventKind, Next, SessionRequest, next_step,
        words::{State, StateName},
    },
    error::Result,
    observe::now,
    tmux::Typed,
    watch::{
        Cancel, Context, describe,
        record::{Intent, Note, Record},
    },
};
use std::time::Duration;

/// How long an agent may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Interrupts the running turn. Does nothing if the agent isn't working.
pub(crate) fn interrupt(context: &Context, cancel: &Cancel, request: &SessionRequest) -> Result<ActResponse> {
    let driver = Driver::acquire(context, cancel, &request.session)?;
    let (mut snapshot, mut judged) = driver.look()?;
    let was = judged.outcome.verdict.status();
    let mut done = "not_working";
    let mut detail = None;
    let mut recorded = true;
    let draft_before = judged.outcome.signals.draft.is_some();
    for _ in 0..GUARD_RETRIES {
        // A new look each time: in a dialog the same key would be an answer.
        if !matches!(judged.outcome.verdict.state, State::Working { .. }) {
            done = "not_working";
            break;
        }
        let stopping = |record: &mut Record, stopping: bool| {
            if let Some(turn) = &mut record.turn {
                turn.stopping = stopping;
            }
        };
        driver.update(&snapshot, |record| {
            stopping(record, true);
            let turn = record.turn.as_ref().map(|turn| turn.id.clone());
            let note = Note { turn, ..Note::line("interrupted") };
            record.intent = Some(Intent::new(EventKind::Interrupt, now(), note));
        })?;
        let pressed = driver.press((&snapshot, &judged), BOX_ROWS, &[&driver.profile.keys.interrupt])?;
        if !matches!(pressed, Typed::Done(_)) {
            driver.withdraw(&snapshot, |record| stopping(record, false));
            (snapshot, judged) = driver.look()?;
            done = "not_confirmed";
            continue;
        }
        let (stopped, ..) = driver.watch(STOP_LIMIT, |_, judged| {
            (judged.outcome.verdict.state.name() != StateName::Working).then_some(())
        })?;
        done = if stopped.is_some() { "interrupted" } else { "not_confirmed" };
        tracing::debug!(done, "pressed the interrupt key");
        if stopped.is_none() {
            driver.withdraw(&snapshot, |record| stopping(record, false));
        }
        let (_, after) = driver.look()?;
        // If the turn hadn't shown anything yet, its prompt comes back as a draft and would become part of the next
        // prompt.
        if !draft_before && after.outcome.signals.draft.is_some() {
            let cleared = driver.clear_box()?;
            let left = "the prompt came back into the input box and could not be cleared";
            let gone = "the prompt came back into the input box and was cleared";
            detail = Some(if cleared { gone } else { left }.to_owned());
        }
        recorded = driver.record_done(
            &snapshot,
            EventKind::Interrupt,
            &after.outcome.verdict.state,
            Note::line(done),
        );
        break;
    }
    let (snapshot, judged) = driver.look()?;
    let session = describe(&snapshot, &judged, false);
    let cursor = context.cursor()?;
    // An agent that takes back its prompt looks ready, but has no result.
    let next = match (done, session.state) {
        ("interrupted", StateName::Ready) => Next::Redirect { session: session.name.clone() },
        _ => next_step(&session, cursor),
    };
    Ok(ActResponse {
        action: Action { name: session.name.clone(), was, done: done.to_owned(), detail, recorded },
        next,
        session: Some(session),
        cursor,
    })
}
