//! Looking: list, read, tree, explain, doctor, cleanup.

use crate::{
    api::{Row, Session},
    words::{StateName, Status},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRequest {
    /// Only those with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Only those of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only those of this project: its name, its hash, or a folder in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// At most this many; all unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Begin after this name: the `cursor` of an earlier answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Sessions, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListResponse {
    /// The sessions.
    pub sessions: Vec<Row>,
    /// How many there are in all, before `limit`.
    pub total: u32,
    /// Where to begin the next list, if there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

crate::words::words! {
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
        /// What happened to the session.
        Events = "events",
        /// The terminal with its history; in exec mode, what the run printed.
        Output = "output",
    }
}

/// Read what a session shows or has said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadRequest {
    /// The session's name, or a unique prefix or tag of it.
    pub session: String,
    /// What to read: last_message (unless said), turn, screen, transcript, events, output.
    #[serde(default)]
    pub view: View,
    /// The cursor of an earlier read of the same view: only what came after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// At most this many lines; 80 unless said, 2000 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lines: Option<u32>,
    /// Keep colours and other escape sequences (screen and output only).
    #[serde(default)]
    pub ansi: bool,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadResponse {
    /// The text.
    pub text: String,
    /// Where it ends: give it as `since` to read on.
    pub cursor: u64,
    /// Whether there is more after it already.
    pub more: bool,
}

/// A session and those it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TreeNode {
    /// The session.
    pub session: Row,
    /// How deep it stands, from 0.
    pub depth: u32,
    /// The sessions it started.
    pub children: Vec<TreeNode>,
}

/// Why Lisa says what it says about a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The session.
    pub session: Session,
    /// The rule that decided.
    pub rule: String,
    /// What that rule says.
    pub rule_says: String,
    /// What speaks for the verdict, strongest first.
    pub evidence_for: Vec<EvidenceItem>,
    /// What speaks against it.
    pub evidence_against: Vec<EvidenceItem>,
    /// Stronger rules that did not apply, in order, with why not.
    pub passed_over: Vec<PassedOver>,
    /// Signals that could not be read, and what each would have told.
    pub failed: Vec<FailedSignal>,
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceItem {
    /// What it says.
    pub claim: String,
    /// Which signal says it.
    pub source: String,
    /// Its authority, from 1 (the process) to 5 (timing).
    pub authority: u8,
    /// How old it is, in milliseconds.
    pub age_ms: u64,
    /// The words that prove it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
}

/// A rule that stands above the one that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassedOver {
    /// The rule.
    pub rule: String,
    /// Why it did not apply.
    pub why_not: String,
}

/// A signal that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedSignal {
    /// The signal.
    pub signal: String,
    /// Why it could not be read.
    pub why: String,
    /// What it would have told.
    pub would_tell: String,
}

/// Whether everything is in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorResponse {
    /// Whether nothing that Lisa needs is missing.
    pub ok: bool,
    /// Each thing that was checked.
    pub checks: Vec<Check>,
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Whether it is as it should be.
    pub ok: bool,
    /// Whether Lisa needs it; an agent that is not installed is no failure.
    pub required: bool,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What a cleanup removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupResponse {
    /// Each thing removed.
    pub removed: Vec<Removed>,
}

/// One thing that a cleanup removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// What it was: `session`, `folder` or `socket`.
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
    /// What it was doing, coarsely.
    pub status: Status,
    /// What it was doing, finely.
    pub state: StateName,
    /// The rule that decided.
    pub reason: String,
    /// How sure the verdict is.
    pub confidence: crate::words::Confidence,
    /// The signal that decided.
    pub source: String,
}
