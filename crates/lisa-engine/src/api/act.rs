//! Driving sessions: send, answer, interrupt, resume, kill.

use crate::api::{
    Next, Session,
    words::{Effect, StateName, Status},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this form")]
const fn is_yes(recorded: &bool) -> bool {
    *recorded
}

/// Send text or keys to a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendRequest {
    /// The session's exact name.
    pub session: String,
    /// A prompt (up to 1 MB). Lisa pastes it, submits it, and checks that the agent took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Named keys to press instead of text: `Escape`, `Enter`, `C-c`, `Up`, `Tab`, or single characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Also send to a working agent, which takes up the prompt when its turn is over.
    #[serde(default)]
    pub queue: bool,
    /// Replace unsent text that somebody typed into the input box.
    #[serde(default)]
    pub replace_draft: bool,
    /// Press keys even while a dialog is open. Never applies to text.
    #[serde(default)]
    pub force: bool,
    /// How many seconds to wait for an agent that is still starting (default: 30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
}

crate::api::words::words! {
    /// What happened to a prompt.
    Delivery {
        /// Submitted, and confirmed by something other than the sender.
        Submitted = "submitted",
        /// The agent holds it until its turn is over.
        Queued = "queued",
        /// Not sent; `refusal` and `hint` say why and what to do instead.
        Refused = "refused",
        /// Sent, but nothing has confirmed yet that the agent took it.
        Unconfirmed = "unconfirmed",
    }
}

crate::api::words::words! {
    /// Why Lisa refused to type.
    Refusal {
        /// A prompt is open: answer it instead.
        PromptOpen = "prompt_open",
        /// The agent's process has ended: resume it or start another.
        PaneDead = "pane_dead",
        /// A shell or another program runs where the agent was.
        NotAgent = "not_agent",
        /// The input box holds unsent text that somebody typed.
        DraftPresent = "draft_present",
        /// The agent is working: wait for it, queue the text, or interrupt it.
        Busy = "busy",
        /// The agent isn't ready, or Lisa can't tell.
        NotReady = "not_ready",
    }
}

/// What happened to a prompt, and the turn it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// The turn it started; pass it to a wait to wait for the end of this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// What happened to the prompt.
    pub delivered: Delivery,
    /// What confirmed it: a hook, a transcript line, or the emptied input box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// When it was sent or refused.
    pub at: Timestamp,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the journal has it; false if it was done but could not be written to disk.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub recorded: bool,
}

/// The result of a send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SendResponse {
    /// The session's name.
    pub session: String,
    /// What happened to the prompt.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// What the session is doing now: one of eight statuses.
    pub status: Status,
    /// What the session is doing now, in more detail than `status`.
    pub state: StateName,
    /// The journal's current cursor.
    pub cursor: u64,
    /// What to do next.
    #[schemars(with = "String")]
    pub next: Next,
}

/// Answer the prompt that a session is blocked on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    /// The session's exact name.
    pub session: String,
    /// An option's key (`1`), its label, or its effect (`allow_once`, `allow_always`, `deny`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// Several choices: for a prompt that accepts more than one, or one per question of a form, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// An answer in free text, if the prompt accepts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The `id` of the prompt you read. If another prompt is open by now, Lisa presses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerResponse {
    /// The session's name.
    pub session: String,
    /// The prompt that was answered.
    pub prompt_id: String,
    /// The question.
    pub title: String,
    /// The labels of the chosen options, or the text that was given.
    pub answered: Vec<String>,
    /// The effect of the chosen option, if there is exactly one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Whether the journal has it; false if it was done but could not be written to disk.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub recorded: bool,
    /// What the session is doing now: one of eight statuses.
    pub status: Status,
    /// What the session is doing now, in more detail than `status`.
    pub state: StateName,
    /// The journal's current cursor.
    pub cursor: u64,
    /// What to do next.
    #[schemars(with = "String")]
    pub next: Next,
}

/// Names one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    /// The session's name.
    pub session: String,
}

/// End a session: its agent, the agent's processes, the sessions it started, and its state directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillRequest {
    /// The session's exact name.
    pub session: String,
    /// Kill the agent at once instead of first letting it exit by itself.
    #[serde(default)]
    pub force: bool,
}

/// End several sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillAllRequest {
    /// Only sessions of this project (a directory inside it); default: all sessions of this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Only sessions of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Kill the agents at once.
    #[serde(default)]
    pub force: bool,
}

/// What happened to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// The session's name.
    pub name: String,
    /// Its status before the action.
    pub was: Status,
    /// What was done: `killed`, `already_gone`, `interrupted`, `not_working`, `resumed`, `removed`, …
    pub done: String,
    /// More about it, if there is something to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether the journal has it; false if it was done but could not be written to disk.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub recorded: bool,
}

/// What happened to several sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Actions {
    /// One entry per session.
    pub sessions: Vec<Action>,
}

/// Resume the agent's own conversation after the agent has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeRequest {
    /// The session's exact name.
    pub session: String,
    /// A prompt to continue with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// How many seconds to wait for the agent to be ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ready_s: Option<f64>,
}

/// The result of an interrupt or a resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActResponse {
    /// What was done.
    #[serde(flatten)]
    pub action: Action,
    /// The session afterwards, if it still exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The journal's current cursor.
    pub cursor: u64,
    /// What to do next.
    #[schemars(with = "String")]
    pub next: Next,
}
