//! The write gate: whether a prompt may be typed into a session now. It decides from one look, and no is the default.

use crate::{
    api::Refusal,
    judge::Judged,
    profile::Profile,
    session::find::Sighting,
    words::{State, StateName},
};

/// What the gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The prompt may be sent and begins a turn.
    Open,
    /// The prompt may be sent; a working agent will take it up later.
    OpenQueued,
    /// The agent is still starting: look again.
    NotYet,
    /// The prompt must not be sent.
    Shut(Refusal),
}

/// What a sender allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allows {
    /// A working agent may queue the prompt.
    pub queue: bool,
    /// What somebody has typed and not sent may be replaced.
    pub replace_draft: bool,
}

/// Decides from one look.
pub fn decide(session: &Sighting, judged: &Judged, profile: &Profile, allows: Allows) -> Gate {
    let state = &judged.outcome.verdict.state;
    let signals = &judged.outcome.signals;
    if session.pane.as_ref().is_none_or(|row| row.pane.dead) && !session.starting() {
        return Gate::Shut(Refusal::PaneDead);
    }
    let known_by_process = !profile.process.names.is_empty();
    if matches!(state, State::Exited { .. }) {
        return Gate::Shut(if known_by_process { Refusal::NotAgent } else { Refusal::PaneDead });
    }
    if state.prompt().is_some() || signals.prompt_waiting {
        return Gate::Shut(Refusal::PromptOpen);
    }
    // Of a program whose input nobody can read it is never known that it is ready. Whoever lets a text wait may send it.
    let waits = allows.queue && profile.screen.input.is_none();
    if matches!(state, State::Starting) && !waits {
        return Gate::NotYet;
    }
    if known_by_process && signals.agent_pid.is_none() {
        // Where processes can not be read, something else may sit there as well.
        let unread = signals.agent_scan_error.is_some();
        return Gate::Shut(if unread { Refusal::NotReady } else { Refusal::NotAgent });
    }
    if signals.draft.is_some() && !allows.replace_draft {
        return Gate::Shut(Refusal::DraftPresent);
    }
    match state.name() {
        StateName::Ready | StateName::Interrupted | StateName::Error => Gate::Open,
        StateName::Working if allows.queue => Gate::OpenQueued,
        StateName::Working => Gate::Shut(Refusal::Busy),
        StateName::Starting | StateName::Stalled if waits => Gate::OpenQueued,
        _ => Gate::Shut(Refusal::NotReady),
    }
}

/// What to do instead.
pub fn hint(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::PromptOpen => {
            "it asks something: read `prompt` with session_status and answer it with answer_prompt"
        }
        Refusal::PaneDead => "its process has ended: resume the session, or start another",
        Refusal::NotAgent => {
            "the agent is not there any more, something else would get the text: look with read_session view=screen, then resume or kill the session"
        }
        Refusal::DraftPresent => {
            "somebody has typed something and not sent it: look with read_session view=screen, or send with replace_draft"
        }
        Refusal::Busy => "it works: wait for it, send with queue, or interrupt it first",
        Refusal::NotReady => {
            "Lisa can not tell that it would take the text: explain_session says why, then try again"
        }
    }
}
