//! What is known about a session from the moment it is started: `meta.json`.

use crate::{
    api::{PermissionPolicy, Size},
    observation::{At, Mode},
    process::Identity,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// The version of the files in a session's folder.
pub const SCHEMA: u32 = 1;

/// What was decided when the session was started. Secrets are not among it: of the environment only names are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The version of this file.
    pub schema: u32,
    /// The session's name.
    pub name: String,
    /// The agent's profile.
    pub agent: String,
    /// How it runs the agent.
    pub mode: Mode,
    /// This run: a resumed session has a new one.
    pub run_id: String,
    /// The machine it runs on.
    pub host: String,
    /// The folder it works in.
    pub cwd: PathBuf,
    /// The root of its project.
    pub project_root: PathBuf,
    /// The label its caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How deep it is nested.
    pub depth: u32,
    /// When this run was started.
    pub started_at: At,
    /// The program and its arguments, with the prompt left out.
    pub argv: Vec<String>,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Columns and rows.
    pub size: Size,
    /// The agent's own id of the conversation, where it was chosen beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// Whether a trust dialog may be answered with yes.
    #[serde(default)]
    pub trust: bool,
    /// Whether the agent's safety was switched off by its caller.
    #[serde(default)]
    pub dangerous: bool,
    /// What may be decided without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PermissionPolicy>,
    /// Names of the environment variables that the caller added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    /// Folders from the agent's environment that its own files are found by (such as its home), never secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, PathBuf>,
    /// The process that is starting the session; a session without a pane whose starter is gone is a leftover.
    pub starter: Option<Identity>,
    /// The pane's process, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<Identity>,
    /// The pane's id: the session is this pane, wherever a person moves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane_id: Option<String>,
    /// The pane's terminal, which tells when the agent writes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<PathBuf>,
    /// The tmux server that the pane was made in: when it is gone, so is the pane, whatever the agent did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Identity>,
    /// Whether this file was lost and rebuilt from the pane: what a pane does not tell is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rebuilt: bool,
}
