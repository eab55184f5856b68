//! What to do next, as data; each front end words it for its users.

use super::{Refusal, Session, words::StateName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a caller can do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Next {
    /// Start a session: there are none.
    Spawn,
    /// Wait for a session that is working.
    Wait {
        /// The session.
        session: String,
        /// The cursor to wait from.
        since: u64,
    },
    /// Wait again for the same sessions.
    WaitAgain {
        /// The cursor to wait from.
        since: u64,
        /// Whether there are already events after the cursor.
        more: bool,
    },
    /// Answer the prompt with one of its options.
    Answer {
        /// The session.
        session: String,
    },
    /// Read the open dialog, and answer it only if you want what it offers.
    ReadDialog {
        /// The session.
        session: String,
    },
    /// Read its result, then send more or end it.
    Collect {
        /// The session.
        session: String,
    },
    /// Tell it what to do instead, or end it.
    Redirect {
        /// The session.
        session: String,
    },
    /// Send more to continue.
    Send {
        /// The session.
        session: String,
    },
    /// Read its error; if it is recoverable, send again later.
    Retry {
        /// The session.
        session: String,
    },
    /// Read its output; resume it to continue, or end it.
    Resume {
        /// The session.
        session: String,
    },
    /// Find out why nothing moves, then interrupt or end it.
    Unblock {
        /// The session.
        session: String,
    },
    /// Find out why nothing is known about it; the installation may be broken.
    Diagnose {
        /// The session.
        session: String,
    },
    /// Fix what kept a prompt from being sent.
    Overcome {
        /// Why it was not sent.
        refusal: Refusal,
    },
}

/// The next step for a session in this state; `cursor` is the journal's current one.
pub fn next_step(session: &Session, cursor: u64) -> Next {
    let name = session.name.clone();
    match session.state {
        StateName::Starting | StateName::Working => Next::Wait { session: name, since: cursor },
        StateName::AwaitingPermission | StateName::AwaitingQuestion | StateName::AwaitingPlan => {
            Next::Answer { session: name }
        }
        StateName::AwaitingDialog => Next::ReadDialog { session: name },
        StateName::Ready => Next::Collect { session: name },
        StateName::Interrupted => Next::Redirect { session: name },
        StateName::Error => Next::Retry { session: name },
        StateName::Exited => Next::Resume { session: name },
        StateName::Stalled => Next::Unblock { session: name },
        StateName::Unknown => Next::Diagnose { session: name },
    }
}
