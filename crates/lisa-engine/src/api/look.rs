//! Queries: list, read, tree, explain, doctor, cleanup.

use crate::api::{
    Row, Session,
    words::{EvidenceItem, FailedSignal, PassedOver, Reason, StateName, Status},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRequest {
    /// Only sessions with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Only sessions of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only sessions of this project: its name, its hash, or a directory in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// At most this many (default: all).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Start after this name: the `cursor` of an earlier result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Sessions, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListResponse {
    /// The sessions.
    pub sessions: Vec<Row>,
    /// How many sessions there are in total, before `limit`.
    pub total: u32,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

crate::api::words::words! {
    /// What to read of a session.
    #[derive(Default)]
    View {
        /// The agent's last message.
        #[default]
        LastMessage = "last_message",
        /// Everything since the last prompt: messages and tools.
        Turn = "turn",
        /// What the terminal shows.
        Screen = "screen",
        /// The whole conversation.
        Transcript = "transcript",
        /// Events of the session.
        Events = "events",
        /// The terminal with its scrollback; in exec mode, the output of the run.
        Output = "output",
    }
}

/// Read what a session shows or said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadRequest {
    /// The session's name, or a unique prefix or tag of it.
    pub session: String,
    /// What to read: last_message (default), turn, screen, transcript, events, output.
    #[serde(default)]
    pub view: View,
    /// The cursor of an earlier read of the same view: only return what came after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Maximum number of lines, up to 2000 (default: 80).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lines: Option<u32>,
    /// Keep colours and other escape sequences (only for screen and output).
    #[serde(default)]
    pub ansi: bool,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadResponse {
    /// The text.
    pub text: String,
    /// Where the text ends: pass it as `since` to continue.
    pub cursor: u64,
    /// Whether there is already more text after it.
    pub more: bool,
}

/// A session and the sessions that it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeNode {
    /// The session.
    pub session: Row,
    /// Its depth in the tree, from 0.
    pub depth: u32,
    /// The sessions it started.
    pub children: Vec<TreeNode>,
}

/// Why Lisa gave this verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The session.
    pub session: Session,
    /// The rule that decided.
    pub rule: String,
    /// The rule's description.
    pub rule_says: String,
    /// Evidence for the verdict, strongest first.
    pub evidence_for: Vec<EvidenceItem>,
    /// Evidence against it.
    pub evidence_against: Vec<EvidenceItem>,
    /// Earlier rules that didn't apply, in order, and why not.
    pub passed_over: Vec<PassedOver>,
    /// Signals that couldn't be read, and what each would have told.
    pub failed: Vec<FailedSignal>,
}

/// Whether the installation works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorResponse {
    /// Whether everything that Lisa needs is there.
    pub ok: bool,
    /// The checks.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Whether it passed.
    pub ok: bool,
    /// Whether Lisa needs it; an agent that isn't installed is not a failure.
    pub required: bool,
    /// What was found.
    pub detail: String,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What a cleanup removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupResponse {
    /// The removed things.
    pub removed: Vec<Removed>,
}

/// One thing that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// What it was: `session`, `directory`, `server` or `socket`.
    pub kind: String,
    /// Its name or path.
    pub name: String,
    /// Why it was removed.
    pub why: String,
}

/// The verdict on one frame of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayRow {
    /// Milliseconds since the recording began.
    pub t: i64,
    /// What the session was doing: one of eight statuses.
    pub status: Status,
    /// What the session was doing, in more detail than `status`.
    pub state: StateName,
    /// The rule that decided.
    #[schemars(with = "String")]
    pub reason: Reason,
    /// How sure the verdict is.
    pub confidence: crate::api::words::Confidence,
    /// The signal that decided.
    pub source: String,
}
