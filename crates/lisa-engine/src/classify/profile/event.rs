//! An agent's feeds of events: hooks, notifications and transcript lines share the same kind of rule.

use super::Pattern;
use crate::api::words::{DialogKind, PromptKind};
use crate::classify::channel::Channel;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A feed of JSON lines: the channel it is, where its lines come from, and what they mean.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// The channel. An agent has at most one feed for each.
    pub channel: Channel,
    /// Where its lines come from. If absent, no launch attaches it, and only recordings have its lines.
    pub from: Option<FeedSource>,
    /// Whether it reports every change as it happens, so that nothing else needs to be watched.
    #[serde(default)]
    pub complete: bool,
    /// Where a line has its conversation id; lines of other conversations are ignored.
    pub session: Option<String>,
    /// Where a line names the turn that it belongs to. Lines of a turn that is over, or older than another one, come late
    /// and say nothing about the present.
    pub turn: Option<String>,
    /// Where a line names the subagent that it is about; it says nothing about the turn.
    pub subagent: Option<String>,
    /// Whether a line only counts if its conversation is already known from another channel.
    #[serde(default)]
    pub known_session_only: bool,
    /// Where a line has its name, for `explain`.
    pub name: Option<String>,
    /// The rules; all that match apply, in order.
    #[serde(default)]
    pub on: Vec<EventRule>,
    /// Which lines to show to people who read the conversation; the first match shows a line.
    #[serde(default)]
    pub show: Vec<Show>,
    /// Where a block of a message has its parts, if messages are lists of blocks.
    #[serde(default)]
    pub blocks: Blocks,
}

/// Where the lines of a feed come from. For paths, see [`Native::file`](super::Native::file).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FeedSource {
    /// Lisa's hook command, which the launch attaches.
    Hook,
    /// A file, by its path.
    File(String),
    /// A file that the agent's process has open.
    Open(OpenFile),
}

/// A file that the agent's process has open.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFile {
    /// How its path ends (`*` matches any text).
    pub path: String,
    /// Which of several, if the title tells: the start of the conversation id, which is also in the file's name.
    pub titled: Option<Pattern>,
}

/// A kind of line to show to people.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// Fields (JSON pointers) with their required values.
    pub when: BTreeMap<String, Want>,
    /// Who speaks.
    pub role: String,
    /// Where its text is (a JSON pointer).
    pub text: String,
}

/// Where a block of a message has its parts (JSON pointers).
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Blocks {
    /// Its text.
    pub text: Option<String>,
    /// The name of the called tool, in a block that also has an input.
    pub tool: Option<String>,
    /// The tool's input.
    pub input: Option<String>,
    /// The tool's output.
    pub output: Option<String>,
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
    pub asks: Option<Asks>,
    /// Whether it is the first line of its conversation. If others have come before it, it is late.
    #[serde(default)]
    pub first: bool,
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

/// The prompt that an agent announces. A profile has one word for it: a kind (`permission`), or a dialog (`menu`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Asks {
    /// Its kind.
    pub kind: PromptKind,
    /// Which dialog, if the kind is `dialog`.
    pub dialog: Option<DialogKind>,
}

impl Asks {
    /// Asks for permission to use a tool.
    pub(crate) const PERMISSION: Self = Self { kind: PromptKind::Permission, dialog: None };
}

impl TryFrom<String> for Asks {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let dialog = DialogKind::parse(&word);
        let kind = dialog.map(|_| PromptKind::Dialog).or_else(|| PromptKind::parse(&word));
        kind.map(|kind| Self { kind, dialog })
            .ok_or_else(|| format!("unknown kind of prompt `{word}`: use a prompt's `kind` or `dialog`"))
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
    /// The background tasks still running: a list (each with its `id`), or their number.
    pub background: Option<String>,
    /// Which tasks of that list bring the agent back by themselves: subagents. Others, such as shells, may run forever.
    pub returns: BTreeMap<String, Want>,
    /// The number of subagents still running.
    pub subagents: Option<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_is_a_kind_or_a_dialog() {
        let read = |word: &str| Asks::try_from(word.to_owned());
        assert_eq!(read("permission"), Ok(Asks::PERMISSION));
        assert_eq!(read("menu"), Ok(Asks { kind: PromptKind::Dialog, dialog: Some(DialogKind::Menu) }));
        assert!(read("riddle").unwrap_err().contains("`riddle`"));
    }
}
