//! A session's metadata, from the moment it is started: `meta.json`.

use crate::{
    api::{PermissionPolicy, Size, words::Mode},
    classify::observation::At,
    process::Identity,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// The schema version of the files in a session's directory.
pub const SCHEMA: u32 = 1;

/// The metadata of a session. It holds no secrets: only the names of environment variables, not their values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The schema version of this file.
    pub schema: u32,
    /// The session's name.
    pub name: String,
    /// The agent's profile.
    pub agent: String,
    /// `interactive` or `exec`.
    pub mode: Mode,
    /// The id of this run; a resumed session gets a new one.
    pub run_id: String,
    /// The machine it runs on.
    pub host: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The root directory of its project.
    pub project_root: PathBuf,
    /// The label that its caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How deeply it is nested.
    pub depth: u32,
    /// When this run was started.
    pub started_at: At,
    /// The program and its arguments, without the prompt.
    pub argv: Vec<String>,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Columns and rows.
    pub size: Size,
    /// The agent's own conversation id, if it was chosen beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// Whether Lisa may answer yes to a trust dialog.
    #[serde(default)]
    pub trust: bool,
    /// Whether the caller switched off the agent's safety checks.
    #[serde(default)]
    pub dangerous: bool,
    /// What is allowed or denied without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PermissionPolicy>,
    /// Names of the environment variables that the caller added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_names: Vec<String>,
    /// Directories from the agent's environment that its own files are found by (such as its home), never secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, PathBuf>,
    /// The process that is starting the session; if that process is gone and there is no pane, the session is a
    /// leftover.
    pub starter: Option<Identity>,
    /// The pane's process, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<Identity>,
    /// The pane's id: the session is this pane, wherever a person moves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane_id: Option<String>,
    /// The pane's terminal, which is watched for output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<PathBuf>,
    /// The tmux server that the pane was created in; the pane can't outlive it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Identity>,
    /// Whether this file was lost and rebuilt from the pane, without what the pane doesn't know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rebuilt: bool,
}
