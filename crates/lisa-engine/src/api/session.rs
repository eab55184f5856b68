//! What Lisa says about a session.

use crate::api::words::{
    Activity, Attention, Confidence, Exit, Failure, Mode, Prompt, Reason, SignalError, StateName, Status,
    Todos,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session at the time of one look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The session's name, as all other operations take it.
    pub name: String,
    /// The agent's profile.
    pub agent: String,
    /// What it is doing: one of eight statuses.
    pub status: Status,
    /// What it is doing, in more detail than `status`.
    pub state: StateName,
    /// Whether somebody should look at it now.
    pub attention: Attention,
    /// The rule that decided, as a stable word.
    #[schemars(with = "String")]
    pub reason: Reason,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// The signal that decided.
    pub source: String,
    /// When it entered this state.
    pub since: Timestamp,
    /// Milliseconds since anything about the session last changed.
    pub idle_ms: u64,
    /// When it was started.
    pub started_at: Timestamp,
    /// What a working agent is busy with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// The tool that is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The open prompt, if the session is blocked on an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
    /// The agent's last message, if the turn is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_message: Option<String>,
    /// Whether that message ends in a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<bool>,
    /// Why the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// How the process ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// If it is stalled: what was expected to happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// If Lisa couldn't observe enough: the signals that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub failed_signals: Vec<SignalError>,
    /// `interactive` (takes one prompt after another) or `exec` (runs one prompt to completion).
    pub mode: Mode,
    /// Its working directory.
    pub cwd: String,
    /// The project's name: the last part of its root directory.
    pub project: String,
    /// A hash of the project's root directory.
    pub project_hash: String,
    /// The label that its caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How deeply it is nested: 0 if no session started it.
    pub depth: u32,
    /// The machine it runs on.
    pub host: String,
    /// The process id of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The id of this run of the session.
    pub run_id: String,
    /// The agent's own id for the conversation; a resume uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// The current or last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// How many subagents are working.
    #[serde(default)]
    pub subagents: u32,
    /// How many background tasks are running.
    #[serde(default)]
    pub background_tasks: u32,
    /// The agent's checklist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Todos>,
    /// While it works: estimated seconds until it is worth looking again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_estimate_s: Option<u32>,
    /// Tokens, cost, model and context, if the agent publishes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Every signal with its value, age and error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<serde_json::Map<String, serde_json::Value>>,
}

/// What the conversation has used so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens in the model's context at the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Size of the context window, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// Cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A session in a list: only the most useful columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The session's name.
    pub name: String,
    /// The agent's profile.
    pub agent: String,
    /// What it is doing: one of eight statuses.
    pub status: Status,
    /// Milliseconds since anything about the session last changed.
    pub idle_ms: u64,
    /// When it was started.
    pub started_at: Timestamp,
    /// What it is doing, in more detail than `status`.
    pub state: StateName,
    /// Whether somebody should look at it now.
    pub attention: Attention,
    /// The question, if it is blocked on an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The project's name.
    pub project: String,
    /// Its working directory.
    pub cwd: String,
    /// `interactive` or `exec`.
    pub mode: Mode,
    /// The process id of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The label that its caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The machine it runs on.
    pub host: String,
    /// The rule that decided.
    #[schemars(with = "String")]
    pub reason: Reason,
}

impl From<&Session> for Row {
    fn from(s: &Session) -> Self {
        Self {
            name: s.name.clone(),
            agent: s.agent.clone(),
            status: s.status,
            idle_ms: s.idle_ms,
            started_at: s.started_at,
            state: s.state,
            attention: s.attention,
            prompt: s.prompt.as_ref().map(|prompt| prompt.title.clone()),
            project: s.project.clone(),
            cwd: s.cwd.clone(),
            mode: s.mode,
            pid: s.pid,
            tag: s.tag.clone(),
            parent: s.parent.clone(),
            host: s.host.clone(),
            reason: s.reason,
        }
    }
}
