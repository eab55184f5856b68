//! Starting sessions, and listing the agents that can be started.

use crate::api::{Next, Receipt, Session, words::Mode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Start an agent in a new session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpawnRequest {
    /// The agent's profile: claude, codex, opencode, demo, generic, or one of your own.
    pub agent: String,
    /// The first prompt (up to 1 MB). Without one, an interactive agent starts idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The working directory: absolute, or relative to the caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The session's name: letters, digits, `_` and `-`, at most 64 characters (default: a generated unique name).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A label that becomes part of a generated name; at most 16 characters are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// `interactive` (takes prompt after prompt) or `exec` (runs one prompt to completion).
    #[serde(default)]
    pub mode: Mode,
    /// The model, as the agent itself names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Extra arguments, passed to the agent unchanged. For `generic`: the command to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Extra environment variables for the agent. Never written to disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Columns and rows of the terminal (default: 220 x 60).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// What is allowed or denied without asking anybody (default: ask about everything).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PermissionPolicy>,
    /// Whether Lisa may answer yes to a dialog that asks to trust the working directory.
    #[serde(default)]
    pub trust: bool,
    /// Whether the agent's own safety checks may be switched off. Lisa then accepts the agent's warning about it.
    #[serde(default)]
    pub dangerous: bool,
    /// How many seconds to wait for the agent to be ready or blocked; 0 returns at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ready_s: Option<f64>,
}

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Columns, from 20 to 1000.
    pub columns: u16,
    /// Rows, from 5 to 500.
    pub rows: u16,
}

/// What is allowed or denied without asking anybody, for agents whose hooks can decide this without key presses. A
/// pattern is a tool's name (`Read`), or a tool with a pattern for its command or file, where `*` matches any text
/// (`Bash(git status*)`). Deny takes precedence over allow; anything else is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionPolicy {
    /// Allowed without asking.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Denied without asking.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// The session that was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpawnResponse {
    /// The session right after the start.
    pub session: Session,
    /// What happened to the prompt, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// The journal's current cursor: later events are new.
    pub cursor: u64,
    /// What to do next.
    #[schemars(with = "String")]
    pub next: Next,
}

/// Generate a session name without starting anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NameRequest {
    /// The agent's profile.
    pub agent: String,
    /// The session's mode.
    #[serde(default)]
    pub mode: Mode,
    /// A label to put into the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Show the command that a spawn would run, without running it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildCommandRequest {
    /// The agent's profile.
    pub agent: String,
    /// The session's mode.
    #[serde(default)]
    pub mode: Mode,
    /// The prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Extra arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

/// An agent that can be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// The profile's id, as `spawn` takes it.
    pub id: String,
    /// The agent's display name.
    pub title: String,
    /// Whether it can be started here: its program was found, or it needs none.
    pub installed: bool,
    /// The path of its program, if found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Agent versions that the profile's recordings were made with.
    pub recorded_with: Vec<String>,
    /// Whether it has an exec mode.
    pub exec: bool,
    /// Whether it can resume conversations.
    pub resume: bool,
    /// Whether a prompt given at the start becomes a command-line argument, which every user of this machine can read.
    pub prompt_in_arguments: bool,
    /// Whether it is a profile of the user's own.
    pub own: bool,
    /// How to install it.
    pub install: String,
}
