//! Stopping a turn, and clearing what that put back into the input box.

use super::{BOX_ROWS, Driver, MOVED_MAX};
use crate::{
    api::{ActResponse, Action, EventKind, SessionRequest},
    engine::{Engine, next_step},
    error::Result,
    tmux::Typed,
    watch::record::Note,
    words::{State, StateName},
};
use std::time::Duration;

/// How long an agent may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

impl Engine {
    /// Stops the turn that runs. An agent that does not work is left alone.
    pub fn interrupt(&self, request: &SessionRequest) -> Result<ActResponse> {
        let driver = Driver::take(self, &request.session)?;
        let (mut sighting, mut judged) = driver.look()?;
        let was = judged.outcome.verdict.status();
        let mut done = "not_working";
        let mut detail = None;
        let mut recorded = true;
        let draft_before = judged.outcome.signals.draft.is_some();
        for _ in 0..MOVED_MAX {
            // Looked at anew each time: in a dialog the same key would be an answer.
            if !matches!(judged.outcome.verdict.state, State::Working { .. }) {
                done = "not_working";
                break;
            }
            let stopping = |stopping: bool| {
                driver.update(&sighting, |record| {
                    if let Some(turn) = &mut record.turn {
                        turn.stopping = stopping;
                    }
                })
            };
            stopping(true)?;
            let pressed = driver.press((&sighting, &judged), BOX_ROWS, &[&driver.profile.keys.interrupt])?;
            if !matches!(pressed, Typed::Done(_)) {
                stopping(false)?;
                (sighting, judged) = driver.look()?;
                done = "not_confirmed";
                continue;
            }
            let (stopped, ..) = driver.watch(STOP_LIMIT, |_, judged| {
                (judged.outcome.verdict.state.name() != StateName::Working).then_some(())
            })?;
            done = if stopped.is_some() { "interrupted" } else { "not_confirmed" };
            if stopped.is_none() {
                stopping(false)?;
            }
            let (_, after) = driver.look()?;
            // A turn that had shown nothing yet comes back as a draft; left there, it would join the next prompt.
            if !draft_before && after.outcome.signals.draft.is_some() {
                let cleared = driver.clear_box()?;
                let left = "the prompt came back into the input box and could not be cleared";
                let gone = "the prompt came back into the input box and was cleared";
                detail = Some(if cleared { gone } else { left }.to_owned());
            }
            recorded = driver.fulfil(
                &sighting,
                EventKind::Interrupt,
                &after.outcome.verdict.state,
                Note::line(done),
            );
            break;
        }
        let (sighting, judged) = driver.look()?;
        let session = self.describe(&sighting, &judged, false);
        let cursor = self.cursor()?;
        // An agent that takes its prompt back looks ready, but has delivered nothing.
        let next = match (done, session.state) {
            ("interrupted", StateName::Ready) => {
                format!("send_input to {} with what to do instead, or kill_session", session.name)
            }
            _ => next_step(&session, cursor),
        };
        Ok(ActResponse {
            action: Action { name: session.name.clone(), was, done: done.to_owned(), detail, recorded },
            next,
            session: Some(session),
            cursor,
        })
    }
}
