//! What an agent's events mean: hooks, notifications and transcript lines are read by the same kind of rule.

use crate::words::{DialogKind, PromptKind};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One channel of JSON lines and what its lines mean.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stream {
    /// Where a line names the conversation it belongs to; lines of another conversation are not this session's.
    pub session: Option<String>,
    /// Whether a line counts only if its conversation is already known from another channel.
    pub known_session_only: bool,
    /// Where a line has its name, for `explain`.
    pub name: Option<String>,
    /// The rules; every one that matches applies, in order.
    pub on: Vec<EventRule>,
}

/// What one kind of line means.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRule {
    /// Fields (JSON pointers) and the values they must have.
    #[serde(default)]
    pub when: BTreeMap<String, Want>,
    /// Fields and values of which none may be there.
    #[serde(default)]
    pub unless: BTreeMap<String, Want>,
    /// The meaning.
    pub says: Meaning,
    /// What kind of prompt, where `says` is `asked`.
    pub asks: Option<AskKind>,
    /// Where the data of the event stand.
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
    /// A turn begins.
    TurnStarted,
    /// A turn runs: a sign of life that never opens a turn that is over.
    Alive,
    /// The answer is being written.
    Streaming,
    /// A tool is called.
    ToolStarted,
    /// A tool has returned.
    ToolFinished,
    /// A prompt was opened.
    Asked,
    /// A prompt was answered.
    Answered,
    /// A subagent begins.
    SubagentStarted,
    /// A subagent is done.
    SubagentStopped,
    /// The conversation is being compacted.
    CompactStarted,
    /// Compaction is over; the turn goes on.
    CompactFinished,
    /// The model's service failed; the agent tries again.
    Retrying,
    /// The turn is over.
    TurnEnded,
    /// The turn failed for good.
    TurnFailed,
    /// Somebody stopped the turn.
    TurnInterrupted,
    /// Only data (usage, message), no statement about the turn.
    Data,
}

/// Which prompt an agent says it has opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// May it use a tool?
    Permission,
    /// A question.
    Question,
    /// A plan.
    Plan,
    /// A menu or another dialog.
    Menu,
    /// A tool server asks for input.
    Elicitation,
}

impl AskKind {
    /// The public kind of prompt, and which dialog it is.
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

/// Where the data of an event stand: JSON pointers, which also lead into JSON that is carried as a string.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Take {
    /// The tool's name.
    pub tool: Option<String>,
    /// The command it is to run.
    pub command: Option<String>,
    /// The file it is to touch.
    pub file: Option<String>,
    /// The conversation's own id, where only some lines name it.
    pub session: Option<String>,
    /// The id of the call or of the subagent.
    pub id: Option<String>,
    /// The agent's message.
    pub message: Option<String>,
    /// The question, or the text of a failure.
    pub text: Option<String>,
    /// The agent's own word for a failure.
    pub kind: Option<String>,
    /// The background tasks that still run: a list, or their number.
    pub background: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Tokens read for the last answer: the fields are added up.
    pub input_tokens: Vec<String>,
    /// Tokens written for the last answer.
    pub output_tokens: Option<String>,
    /// The size of the model's context.
    pub context_window: Option<String>,
}

/// The value that a field must have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Want {
    /// One value; a `*` at its end stands for any rest, a lone `*` for any value but null.
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

/// Whether all of these fields have the values they must have.
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

/// The value at a JSON pointer; where the way leads through a string that is JSON itself, into that.
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
