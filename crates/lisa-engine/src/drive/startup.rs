//! Seeing a session through its start. No dialog gets a blind Enter: one is answered only if the caller said yes to
//! it by name when the session was started.

use super::Driver;
use crate::{
    api::{EventKind, SpawnRequest},
    error::{Kind, Result},
    watch::record::Note,
    words::{DialogKind, Effect, Prompt, State},
};
use std::time::{Duration, Instant};

impl Driver<'_> {
    /// Waits until the agent is up, answering what the caller said yes to.
    pub(crate) fn see_through_start(&self, request: &SpawnRequest, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (asked, sighting, judged) =
                self.watch(left, |_, judged| match &judged.outcome.verdict.state {
                    State::Starting if !self.engine.is_cancelled() => None,
                    state => Some(state.prompt().cloned()),
                })?;
            let Some(Some(prompt)) = asked else { return Ok(()) };
            let Some(option) = consented(&prompt, request).and_then(|()| yes(&prompt)) else { return Ok(()) };
            match self.choose(&prompt, option) {
                Ok(()) => {}
                // Another dialog came up, or somebody was faster: look again.
                Err(error) if matches!(error.kind(), Kind::PromptChanged | Kind::NoPrompt) => continue,
                Err(error) => return Err(error),
            }
            let note = Note::line(format!("{}: {} (said at the start)", prompt.title, option.label));
            self.fulfil(&sighting, EventKind::Answer, &judged.outcome.verdict.state, note);
            // The same dialog must be gone before anything else is pressed.
            self.watch(Duration::from_secs(8), |_, judged| {
                let shown = judged.outcome.verdict.state.prompt();
                (shown.map(|shown| &shown.id) != Some(&prompt.id)).then_some(())
            })?;
        }
    }
}

/// Whether the caller said yes to this very dialog.
fn consented(prompt: &Prompt, request: &SpawnRequest) -> Option<()> {
    match prompt.dialog? {
        DialogKind::Trust => request.trust.then_some(()),
        DialogKind::Bypass => request.dangerous.then_some(()),
        _ => None,
    }
}

/// The option that says yes: never the one that leaves or refuses.
fn yes(prompt: &Prompt) -> Option<&crate::words::PromptOption> {
    prompt.options.iter().find(|option| !matches!(option.effect, Effect::Exit | Effect::Deny))
}
