//! Driving sessions: send, answer, interrupt, resume, kill.

use crate::{
    api::Session,
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
    /// A prompt: pasted whole, submitted, and proven to be. Up to 1 MB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Instead of text: named keys, such as `Escape`, `Enter`, `C-c`, `Up`, `Tab`, or single characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Send to a working agent too; it takes the prompt up when its turn is over.
    #[serde(default)]
    pub queue: bool,
    /// Replace what somebody has typed into the input box but not sent.
    #[serde(default)]
    pub replace_draft: bool,
    /// Press keys even while a dialog is open. Never applies to text.
    #[serde(default)]
    pub force: bool,
    /// Wait up to this many seconds for an agent that is still starting; 30 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<f64>,
}

crate::words::words! {
    /// What became of a prompt.
    Delivery {
        /// It was submitted, and something other than the sender proves it.
        Submitted = "submitted",
        /// The agent holds it until its turn is over.
        Queued = "queued",
        /// It was not sent; `refusal` and `hint` say why and what to do instead.
        Refused = "refused",
        /// It was sent, but nothing has proven yet that the agent took it.
        Unconfirmed = "unconfirmed",
    }
}

crate::words::words! {
    /// Why the write gate is shut.
    Refusal {
        /// A prompt is open: answer it instead.
        PromptOpen = "prompt_open",
        /// The agent's process has ended: resume it or start another.
        PaneDead = "pane_dead",
        /// A shell or another program sits where the agent was.
        NotAgent = "not_agent",
        /// Somebody has typed something and not sent it.
        DraftPresent = "draft_present",
        /// The agent works: wait for it, queue the text, or interrupt it.
        Busy = "busy",
        /// The agent is not ready, or Lisa can not tell.
        NotReady = "not_ready",
    }
}

/// What became of a prompt, and the turn it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// The turn: give it to a wait to wait for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// What became of the prompt.
    pub delivered: Delivery,
    /// What proves it: a hook, a transcript line, or the emptied input box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// When.
    pub at: Timestamp,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether it is in the journal; false where it was done and the disk did not take it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub recorded: bool,
}

/// The answer to a send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SendResponse {
    /// The session's name.
    pub session: String,
    /// What became of it.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// What the session is doing now, coarsely.
    pub status: Status,
    /// What the session is doing now, finely.
    pub state: StateName,
    /// Where the journal stands.
    pub cursor: u64,
    /// What to do next.
    pub next: String,
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
    /// Several choices: for a prompt that takes several, or one for each question of a form, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// An answer in free text, where the prompt takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The prompt's `id` as it was read. If another prompt is open by now, nothing is pressed.
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
    /// The line that asked.
    pub title: String,
    /// The labels of what was chosen, or the text that was given.
    pub answered: Vec<String>,
    /// What choosing it did, where that is one thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Whether it is in the journal; false where it was done and the disk did not take it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub recorded: bool,
    /// What the session is doing now, coarsely.
    pub status: Status,
    /// What the session is doing now, finely.
    pub state: StateName,
    /// Where the journal stands.
    pub cursor: u64,
    /// What to do next.
    pub next: String,
}

/// Name one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    /// The session's name.
    pub session: String,
}

/// End a session: its agent, the agent's processes, the sessions it started, and its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillRequest {
    /// The session's exact name.
    pub session: String,
    /// End the agent at once instead of letting it end by itself first.
    #[serde(default)]
    pub force: bool,
}

/// End several sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillAllRequest {
    /// Only those of this project (a folder below its root); all of this user's otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Only those of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// End the agents at once.
    #[serde(default)]
    pub force: bool,
}

/// What happened to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// The session's name.
    pub name: String,
    /// What it was doing before, coarsely.
    pub was: Status,
    /// What was done: `killed`, `already_gone`, `interrupted`, `not_working`, `resumed`, `removed`, …
    pub done: String,
    /// Anything worth knowing about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether it is in the journal; false where it was done and the disk did not take it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub recorded: bool,
}

/// What happened to several sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Actions {
    /// One entry for each.
    pub sessions: Vec<Action>,
}

/// Take up the agent's own conversation again after it has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeRequest {
    /// The session's exact name.
    pub session: String,
    /// A prompt to go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Wait up to this many seconds for the agent to be ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ready_s: Option<f64>,
}

/// The answer to an interrupt or a resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActResponse {
    /// What was done.
    #[serde(flatten)]
    pub action: Action,
    /// The session afterwards, where it still exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// Where the journal stands.
    pub cursor: u64,
    /// What to do next.
    pub next: String,
}
