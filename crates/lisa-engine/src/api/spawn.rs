//! Starting sessions, and what there is to start.

use crate::{
    api::{Receipt, Session},
    observation::Mode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Start an agent in a session of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpawnRequest {
    /// The agent's profile: claude, codex, opencode, demo, generic, or one of your own.
    pub agent: String,
    /// What to ask of it; any text up to 1 MB. Without one an interactive agent starts idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The folder to work in (absolute, or relative to the caller's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// A name of your own: letters, digits, `_` and `-`, at most 64. Without one a unique name is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A label that becomes part of a made name; at most 16 characters are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// `interactive` (takes prompt after prompt) or `exec` (runs one prompt to completion).
    #[serde(default)]
    pub mode: Mode,
    /// The model, in the agent's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Further arguments for the agent, as they are. For `generic`: the command to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Further environment for the agent. Never written to disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Columns and rows of the terminal; 220 x 60 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// What may be decided without asking anybody; `ask` for everything unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PermissionPolicy>,
    /// Whether a dialog that asks to trust the working folder may be answered with yes.
    #[serde(default)]
    pub trust: bool,
    /// Whether the agent's own safety may be switched off. A warning that asks for it is then accepted.
    #[serde(default)]
    pub dangerous: bool,
    /// Wait up to this many seconds for the agent to be ready or blocked before answering; 0 does not wait.
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

/// What may be decided without asking anybody, where the agent offers a way that needs no keys.
/// A pattern is a tool's name (`Read`), or a tool and a pattern for its command or file with `*` for any text
/// (`Bash(git status*)`). Deny wins over allow; what neither names is asked.
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
    /// The session as it was seen right after the start.
    pub session: Session,
    /// What became of the prompt, where one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Where the journal stands: events after it are news.
    pub cursor: u64,
    /// What to do next.
    pub next: String,
}

/// Make a session name without starting anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NameRequest {
    /// The agent's profile.
    pub agent: String,
    /// The session's mode.
    #[serde(default)]
    pub mode: Mode,
    /// A label that becomes part of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The folder to work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// The command that a spawn would run, without running it.
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
    /// Further arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

/// An agent that can be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// The profile's id: what `spawn` takes.
    pub id: String,
    /// The agent's name for people.
    pub title: String,
    /// Whether it can be started here: its program was found, or it needs none of its own.
    pub installed: bool,
    /// Where its program is, if it has one and that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Versions that the profile was recorded with.
    pub recorded_with: Vec<String>,
    /// Whether it has an exec mode.
    pub exec: bool,
    /// Whether its conversations can be resumed.
    pub resume: bool,
    /// Whether a prompt given at its start is one of its arguments, which every user of the machine can read.
    pub prompt_in_arguments: bool,
    /// Whether the profile is the user's own.
    pub own: bool,
    /// What to tell somebody who does not have it.
    pub install: String,
}
