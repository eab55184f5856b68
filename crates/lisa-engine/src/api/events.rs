//! The journal: what happened, and waiting for what will.

use crate::{
    api::Session,
    words::{StateName, Status},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::words::words! {
    /// What kind of thing happened.
    EventKind {
        /// A session was started.
        Spawned = "spawned",
        /// Its status or state changed.
        Transition = "transition",
        /// It asks something.
        Prompt = "prompt",
        /// Somebody answered what it asked.
        Answer = "answer",
        /// A prompt was sent to it.
        Send = "send",
        /// A turn ended: `detail` begins with finished, interrupted, failed or died.
        TurnEnded = "turn_ended",
        /// A policy decided without asking.
        Policy = "policy",
        /// It was interrupted by Lisa.
        Interrupt = "interrupt",
        /// Its conversation was taken up again.
        Resumed = "resumed",
        /// Its process ended.
        Exited = "exited",
        /// It was ended and removed by Lisa.
        Killed = "killed",
        /// It had ended before, and was removed by Lisa.
        Removed = "removed",
    }
}

crate::words::words! {
    /// How a turn ended.
    TurnOutcome {
        /// The agent finished it.
        Finished = "finished",
        /// Somebody stopped it.
        Interrupted = "interrupted",
        /// The model's service failed and the agent gave up.
        Failed = "failed",
        /// The agent's process ended before the turn did.
        Died = "died",
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its place in the journal: strictly increasing for each user.
    pub cursor: u64,
    /// When.
    pub at: Timestamp,
    /// The session.
    pub session: String,
    /// What kind of thing happened.
    pub event: EventKind,
    /// What the session was doing then, coarsely.
    pub status: Status,
    /// What the session was doing then, finely.
    pub state: StateName,
    /// One line about it.
    pub detail: String,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Whatever else belongs to it: a prompt, an answer, tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Map<String, serde_json::Value>>,
}

crate::words::words! {
    /// Whether one of the sessions is enough or all are needed.
    #[derive(Default)]
    WaitMode {
        /// The first is enough.
        #[default]
        Any = "any",
        /// All of them.
        All = "all",
    }
}

/// Wait until sessions need attention.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitRequest {
    /// Names of the sessions; all of the caller's own unless said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// `any`: the first is enough; `all`: all of them.
    #[serde(default)]
    pub mode: WaitMode,
    /// What to wait for: `attention` (unless said), a status, a state, `turn` (the end of `turn`, or a prompt in
    /// it), or `event` (anything after `since`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The turn of a receipt, where its end is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The cursor of an earlier answer: everything that happened after it is in `events`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// How long to wait, in seconds; 45 unless said, 3600 at most. 0 looks once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}

/// What a wait saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitResponse {
    /// What happened after `since`, oldest first; at most 200, the rest after `cursor`.
    pub events: Vec<Event>,
    /// The sessions that the wait was for and that changed or satisfy it.
    pub sessions: Vec<Session>,
    /// Whether the time passed before it came true. Nothing is lost: wait again with `cursor`.
    pub timed_out: bool,
    /// Where the journal stands: give it as `since` to the next wait.
    pub cursor: u64,
    /// What to do next.
    pub next: String,
}

/// Follow the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchRequest {
    /// Names of the sessions; all unless said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Kinds of events; all unless said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventKind>,
    /// Where to begin; with what happens from now on unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}
