//! How an agent is started: the `[launch]` table of a profile.
//!
//! A template is a list of arguments. `{args}` stands for the caller's own arguments; any other `{name}` is filled
//! in, and a group in brackets is dropped whole when one of its names has no value, so that
//! `["--model", "{model}"]` vanishes where no model was asked for.

use serde::Deserialize;
use std::collections::BTreeMap;

/// How an agent is started.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The program and how to come by it.
    pub executable: Executable,
    /// A terminal session that takes prompt after prompt.
    pub interactive: Template,
    /// One prompt, run to completion; absent where the agent has no such mode.
    pub exec: Option<Template>,
    /// The agent's own conversation taken up again; absent where the agent can not.
    pub resume: Option<Template>,
    /// Whether the agent lets its caller choose the conversation's id beforehand.
    #[serde(default)]
    pub chooses_session_id: bool,
    /// Flags that switch the agent's safety off: used only when the caller asks for `dangerous`, and refused
    /// among a caller's arguments otherwise.
    #[serde(default)]
    pub dangerous: Vec<String>,
    /// Environment that the agent needs.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// A settings file that is written into the session's folder for this launch only, as `{settings}`.
    pub settings: Option<Settings>,
}

/// The program and how to come by it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executable {
    /// Names to look for on PATH, in order. Empty for a profile that runs any command.
    pub names: Vec<String>,
    /// What to tell somebody who does not have it.
    pub install: String,
    /// Arguments that make it print its version.
    #[serde(default = "version_flag")]
    pub version_args: Vec<String>,
}

fn version_flag() -> Vec<String> {
    vec!["--version".to_owned()]
}

/// The arguments of one way to start.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The arguments after the program.
    pub argv: Vec<Arg>,
    /// How the prompt reaches the agent.
    pub prompt: PromptWay,
}

/// One element of a template.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Arg {
    /// One argument.
    One(String),
    /// Several that stand or fall together.
    Group(Vec<String>),
}

/// How the first prompt reaches the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptWay {
    /// As `{prompt}` among the arguments; one too long for that is pasted once the agent is ready.
    Argv,
    /// On standard input.
    Stdin,
    /// Pasted once the agent is ready.
    Paste,
}

/// A settings file for one launch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The file's name inside the session's folder.
    pub file: String,
    /// Hook events to register; each calls Lisa's hook command.
    pub events: Vec<String>,
    /// The file's text, with `{events}` replaced by one `entry` for each event, joined by commas.
    pub text: String,
    /// One event's entry, with `{event}` and `{hook}` (the hook command as a JSON string) filled in.
    pub entry: String,
}
