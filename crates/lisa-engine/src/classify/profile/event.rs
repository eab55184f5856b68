//! The meaning of an agent's events: hooks, notifications and transcript lines share the same kind of rule.

use crate::api::words::{DialogKind, PromptKind};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One channel of JSON lines, and what its lines mean.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// Where a line has its conversation id; lines of other conversations are ignored.
    pub session: Option<String>,
    /// Whether a line only counts if its conversation is already known from another channel.
    pub known_session_only: bool,
    /// Where a line has its name, for `explain`.
    pub name: Option<String>,
    /// The rules; all that match apply, in order.
    pub on: Vec<EventRule>,
}

/// The meaning of one kind of line.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRule {
    /// Fields (JSON pointers) with their required values.
    #[serde(default)]
    pub when: BTreeMap<String, Want>,
    /// Fields with values that must not be present.
    #[serde(default)]
    pub unless: BTreeMap<String, Want>,
    /// The meaning.
    pub says: Meaning,
    /// The kind of prompt, if `says` is `asked`.
    pub asks: Option<AskKind>,
    /// Where the event has its data.
    #[serde(default)]
    pub take: Take,
}

/// What an event can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// The agent is up.
    SessionStarted,
    /// The agent is leaving.
    SessionEnded,
    /// A turn starts.
    TurnStarted,
    /// A turn is running: a sign of life that never reopens a turn that is over.
    Alive,
    /// The agent is writing its answer.
    Streaming,
    /// A tool was called.
    ToolStarted,
    /// A tool returned.
    ToolFinished,
    /// A prompt opened.
    Asked,
    /// A prompt was answered.
    Answered,
    /// A subagent started.
    SubagentStarted,
    /// A subagent is done.
    SubagentStopped,
    /// The conversation is being compacted.
    CompactStarted,
    /// Compaction is over; the turn goes on.
    CompactFinished,
    /// The model's API failed; the agent retries.
    Retrying,
    /// The turn is over.
    TurnEnded,
    /// The turn failed for good.
    TurnFailed,
    /// Somebody interrupted the turn.
    TurnInterrupted,
    /// Only data (usage, message), no statement about the turn.
    Data,
}

/// The kind of prompt that an agent announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// Asks for permission to use a tool.
    Permission,
    /// A question.
    Question,
    /// A plan.
    Plan,
    /// A menu or another dialog.
    Menu,
    /// A tool server (MCP) asks for input.
    Elicitation,
}

impl AskKind {
    /// The public kind of the prompt, and which dialog it is.
    pub const fn prompt(self) -> (PromptKind, Option<DialogKind>) {
        match self {
            Self::Permission => (PromptKind::Permission, None),
            Self::Question => (PromptKind::Question, None),
            Self::Plan => (PromptKind::Plan, None),
            Self::Menu => (PromptKind::Dialog, Some(DialogKind::Menu)),
            Self::Elicitation => (PromptKind::Dialog, Some(DialogKind::Elicitation)),
        }
    }
}

/// Where an event has its data: JSON pointers, which also lead into JSON that is embedded as a string.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Take {
    /// The tool's name.
    pub tool: Option<String>,
    /// The tool's command.
    pub command: Option<String>,
    /// The tool's file.
    pub file: Option<String>,
    /// The conversation id, if only some lines have it.
    pub session: Option<String>,
    /// The id of the call or the subagent.
    pub id: Option<String>,
    /// The agent's message.
    pub message: Option<String>,
    /// The question, or the error message.
    pub text: Option<String>,
    /// The agent's own word for the kind of failure.
    pub kind: Option<String>,
    /// The background tasks still running: a list, or their number.
    pub background: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Input tokens of the last answer; the fields are added up.
    pub input_tokens: Vec<String>,
    /// Output tokens of the last answer.
    pub output_tokens: Option<String>,
    /// The size of the model's context window.
    pub context_window: Option<String>,
}

/// The required value of a field.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Want {
    /// One value; a trailing `*` matches any rest, a lone `*` any value but null.
    One(String),
    /// One of several.
    Any(Vec<String>),
    /// Whether it is true.
    Flag(bool),
}

impl Want {
    fn holds(&self, value: Option<&Value>) -> bool {
        match self {
            Self::One(word) => holds_word(word, value),
            Self::Any(words) => words.iter().any(|word| holds_word(word, value)),
            Self::Flag(flag) => value.and_then(Value::as_bool).unwrap_or(false) == *flag,
        }
    }
}

fn holds_word(word: &str, value: Option<&Value>) -> bool {
    let Some(value) = value.filter(|value| !value.is_null()) else { return false };
    let text = match value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        other => Cow::Owned(other.to_string()),
    };
    match word.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == word,
    }
}

/// Whether all these fields have their required values.
pub(crate) fn all_hold(fields: &BTreeMap<String, Want>, line: &Value) -> bool {
    fields.iter().all(|(pointer, want)| want.holds(lookup(line, pointer).as_deref()))
}

impl EventRule {
    /// Whether the rule applies to this line.
    pub fn applies(&self, line: &Value) -> bool {
        all_hold(&self.when, line)
            && !self.unless.iter().any(|(pointer, want)| want.holds(lookup(line, pointer).as_deref()))
    }
}

/// The value at a JSON pointer; follows the pointer into strings that are JSON themselves.
pub fn lookup<'a>(line: &'a Value, pointer: &str) -> Option<Cow<'a, Value>> {
    if let Some(value) = line.pointer(pointer) {
        return Some(Cow::Borrowed(value));
    }
    let mut here = line;
    let mut rest = pointer.strip_prefix('/')?;
    loop {
        if let Value::String(text) = here {
            let inner: Value = serde_json::from_str(text).ok()?;
            return lookup(&inner, &format!("/{rest}")).map(|value| Cow::Owned(value.into_owned()));
        }
        let (step, left) = rest.split_once('/')?;
        here = here.pointer(&format!("/{step}"))?;
        rest = left;
        if let Value::String(_) = here {
            continue;
        }
    }
}

/// The text at a JSON pointer, if there is any.
pub(crate) fn text_at(line: &Value, pointer: Option<&String>) -> Option<String> {
    match lookup(line, pointer?)?.as_ref() {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// The number at a JSON pointer, if there is one.
pub(crate) fn number_at(line: &Value, pointer: &str) -> Option<u64> {
    lookup(line, pointer)?.as_u64()
}
