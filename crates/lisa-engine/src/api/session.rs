//! What Lisa says about a session.

use crate::{
    observation::Mode,
    words::{Activity, Attention, Confidence, Exit, Failure, Prompt, StateName, Status},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session, as one look saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The session's name: what every other operation takes.
    pub name: String,
    /// The agent's profile.
    pub agent: String,
    /// What it is doing, coarsely.
    pub status: Status,
    /// What it is doing, finely.
    pub state: StateName,
    /// Whether somebody should look at it now.
    pub attention: Attention,
    /// The rule that decided, as a stable word.
    pub reason: String,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// The signal that decided.
    pub source: String,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// Milliseconds since anything about it last changed.
    pub idle_ms: u64,
    /// When it was started.
    pub started_at: Timestamp,
    /// What a working agent is busy with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// The tool that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the agent asks, where it is blocked on an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
    /// The agent's last message, where the turn is over.
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
    /// Where it is stalled: what was expected to happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Where Lisa could not look: the signals that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_signals: Vec<String>,
    /// Whether it takes prompt after prompt or runs one to completion.
    pub mode: Mode,
    /// The folder it works in.
    pub cwd: String,
    /// The project's name: the last part of its root folder.
    pub project: String,
    /// The project's root, hashed.
    pub project_hash: String,
    /// The label its caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How deep it is nested: 0 where no session started it.
    pub depth: u32,
    /// The machine it runs on.
    pub host: String,
    /// The agent's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// This run of the session.
    pub run_id: String,
    /// The agent's own id of the conversation, for resuming it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// The turn that runs or ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Subagents at work.
    #[serde(default)]
    pub subagents: u32,
    /// Background tasks at work.
    #[serde(default)]
    pub background_tasks: u32,
    /// The agent's checklist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Todos>,
    /// Estimated seconds until it is worth looking again, while it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_estimate_s: Option<u32>,
    /// Tokens, cost, model and context, where the agent publishes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Every signal with its value, age and error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The agent's checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todos {
    /// Items done.
    pub done: u32,
    /// Items in all.
    pub total: u32,
    /// The item at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
}

/// What the conversation has used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens in the model's context at the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Tokens that the context can hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// Cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A session in a list: the columns that most readers want, and no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The session's name.
    pub name: String,
    /// The agent's profile.
    pub agent: String,
    /// What it is doing, coarsely.
    pub status: Status,
    /// Milliseconds since anything about it last changed.
    pub idle_ms: u64,
    /// When it was started.
    pub started_at: Timestamp,
    /// What it is doing, finely.
    pub state: StateName,
    /// Whether somebody should look at it now.
    pub attention: Attention,
    /// The line that asks, where it is blocked on an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The project's name.
    pub project: String,
    /// The folder it works in.
    pub cwd: String,
    /// Whether it takes prompt after prompt or runs one to completion.
    pub mode: Mode,
    /// The agent's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The label its caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The machine it runs on.
    pub host: String,
    /// The rule that decided.
    pub reason: String,
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
            reason: s.reason.clone(),
        }
    }
}
