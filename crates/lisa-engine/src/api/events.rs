//! The journal: events that happened, and waits for events to come.

use crate::api::{
    Next, Session,
    words::{StateName, Status},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

crate::api::words::words! {
    /// The kind of an event.
    EventKind {
        /// A session was started.
        Spawned = "spawned",
        /// Its status or state changed.
        Transition = "transition",
        /// The agent opened a prompt.
        Prompt = "prompt",
        /// Somebody answered the prompt.
        Answer = "answer",
        /// A prompt was sent to it.
        Send = "send",
        /// A turn ended: `detail` begins with finished, interrupted, failed or died.
        TurnEnded = "turn_ended",
        /// A policy allowed or denied something without asking.
        Policy = "policy",
        /// Lisa interrupted it.
        Interrupt = "interrupt",
        /// Its conversation was resumed.
        Resumed = "resumed",
        /// Its process ended.
        Exited = "exited",
        /// Lisa ended and removed it.
        Killed = "killed",
        /// It had already ended, and Lisa removed it.
        Removed = "removed",
    }
}

crate::api::words::words! {
    /// How a turn ended.
    TurnOutcome {
        /// The agent finished it.
        Finished = "finished",
        /// Somebody stopped it.
        Interrupted = "interrupted",
        /// The model's API failed and the agent gave up.
        Failed = "failed",
        /// The agent's process ended during the turn.
        Died = "died",
    }
}

/// One event of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its position in the journal; strictly increasing per user.
    pub cursor: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The session.
    pub session: String,
    /// The kind of event.
    pub event: EventKind,
    /// The session's status at that time.
    pub status: Status,
    /// The session's state at that time.
    pub state: StateName,
    /// One line that describes it.
    pub detail: String,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Further data: a prompt, an answer, tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Map<String, serde_json::Value>>,
}

crate::api::words::words! {
    /// Whether one of the sessions is enough or all of them are needed.
    #[derive(Default)]
    WaitMode {
        /// The first one is enough.
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
    /// Names of the sessions (default: all of the caller's own).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// `any`: return as soon as one session is there; `all`: wait for all of them.
    #[serde(default)]
    pub mode: WaitMode,
    /// What to wait for: `attention` (default), a status, a state, `turn` (the end of `turn`, or a prompt in
    /// it), or `event` (anything after `since`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The turn to wait for, from a receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The cursor of an earlier result: `events` then has everything after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// How many seconds to wait, up to 3600 (default: 45). 0 checks once and returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}

/// The result of a wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitResponse {
    /// Events after `since`, oldest first; at most 200. Pass `cursor` as `since` to get the rest.
    pub events: Vec<Event>,
    /// The sessions of this wait that changed or satisfy it.
    pub sessions: Vec<Session>,
    /// Whether the wait timed out. No event is lost: pass `cursor` as `since` to the next wait.
    pub timed_out: bool,
    /// The journal's current cursor: pass it as `since` to the next wait.
    pub cursor: u64,
    /// What to do next.
    #[schemars(with = "String")]
    pub next: Next,
}

/// Follow the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchRequest {
    /// Names of the sessions (default: all).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Kinds of events (default: all).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventKind>,
    /// The cursor to start from (default: now, so only new events).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}
