//! The gate before typing: whether a prompt may be typed into a session now. Decides from one look; the default is no.

use crate::{
    api::{
        Refusal,
        words::{State, StateName},
    },
    classify::profile::Profile,
    session::find::SessionSnapshot,
    watch::judge::Judged,
};

/// A decision of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The prompt may be sent and starts a turn.
    Open,
    /// The prompt may be sent; a working agent takes it up later.
    OpenQueued,
    /// The agent is still starting: look again.
    NotYet,
    /// The prompt must not be sent.
    Shut(Refusal),
}

/// What a sender permits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allows {
    /// A working agent may queue the prompt.
    pub queue: bool,
    /// Unsent text of somebody else may be replaced.
    pub replace_draft: bool,
}

/// Decides from one look.
pub fn decide(session: &SessionSnapshot, judged: &Judged, profile: &Profile, allows: Allows) -> Gate {
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
    // If a program's input box can't be read, it is never known to be ready. A sender that allows queueing may send
    // anyway.
    let waits = allows.queue && profile.screen.input.is_none();
    if matches!(state, State::Starting) && !waits {
        return Gate::NotYet;
    }
    if known_by_process && signals.agent_pid.is_none() {
        // If the process list can't be read, another program may be there as well.
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
        Refusal::PromptOpen => "it has an open prompt: read and answer that first",
        Refusal::PaneDead => "its process has ended: resume the session, or start another one",
        Refusal::NotAgent => {
            "the agent is gone and another program would get the text: read its screen, then resume or kill the session"
        }
        Refusal::DraftPresent => {
            "the input box holds unsent text: read its screen, or send with `replace_draft`"
        }
        Refusal::Busy => "it is working: wait for it, send with `queue`, or interrupt it first",
        Refusal::NotReady => {
            "Lisa can't tell whether it takes input: use explain to find out why, then retry"
        }
    }
}
