//! Handles a session's start. No dialog gets a blind Enter: Lisa only answers one that the caller explicitly consented
//! to when the session was started.

use super::Driver;
use crate::{
    api::{
        SpawnRequest,
        words::{DialogKind, Effect, Prompt, State},
    },
    error::{Kind, Result},
};
use std::time::{Duration, Instant};

impl Driver<'_> {
    /// Waits until the agent is up, and answers dialogs that the caller consented to.
    pub(crate) fn handle_startup(&self, request: &SpawnRequest, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (asked, ..) = self.watch(left, |_, judged| match &judged.outcome.verdict.state {
                State::Starting if !self.cancel.is_cancelled() => None,
                state => Some(state.prompt().cloned()),
            })?;
            let Some(Some(prompt)) = asked else { return Ok(()) };
            let Some(option) = consented(&prompt, request).and_then(|()| yes(&prompt)) else { return Ok(()) };
            match self.answer(std::slice::from_ref(&option.key), None, Some(&prompt.id)) {
                Ok(_) => {}
                // Another dialog opened, or somebody else was faster (race): look again.
                Err(error) if matches!(error.kind(), Kind::PromptChanged | Kind::NoPrompt) => {}
                // It doesn't react to its own key: the caller sees that it's still open.
                Err(error) if error.kind() == Kind::AnswerUnconfirmed => return Ok(()),
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                return Ok(());
            }
        }
    }
}

/// Whether the caller consented to this dialog.
fn consented(prompt: &Prompt, request: &SpawnRequest) -> Option<()> {
    match prompt.dialog? {
        DialogKind::Trust => request.trust.then_some(()),
        DialogKind::Bypass => request.dangerous.then_some(()),
        _ => None,
    }
}

/// The option that says yes; never one that exits or denies.
fn yes(prompt: &Prompt) -> Option<&crate::api::words::PromptOption> {
    prompt.options.iter().find(|option| !matches!(option.effect, Effect::Exit | Effect::Deny))
}
