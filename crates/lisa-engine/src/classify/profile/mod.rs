//! Agents as data: one TOML file per agent, compiled in or the user's own.
//!
//! A profile says how to read what one agent publishes: its title, its state file, its events, the structure of its
//! screen. No code knows an agent by name. Every pattern has examples that it must and must not match, checked when
//! the profile is loaded. So a bad edit is an error at the start, not a wrong verdict later.

mod catalog;
mod event;
pub mod launch;
mod pattern;
mod screen;

#[cfg(feature = "fuzz")]
pub(crate) use catalog::parse;
pub use catalog::{FALLBACK, ProfileError, Profiles};
pub use event::{Asks, Blocks, EventRule, Feed, FeedSource, Meaning, OpenFile, Show, Take, Want, lookup};
pub(crate) use event::{all_hold, number_at, text_at};
pub use pattern::{Pattern, Rx};
pub use screen::{
    Colour, DialogRule, Dialogs, EffectRule, Hint, InputShape, Names, OptionStyle, Region, Screen, Sign,
    SignSays, TodoShape,
};

use crate::api::words::ErrorKind;
use crate::classify::channel::Channel;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Everything that Lisa knows about one kind of agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its id, as in `spawn_session(agent = …)`.
    pub id: String,
    /// The agent's display name.
    pub title: String,
    /// The agent versions of the recordings that this profile is tested with.
    #[serde(default)]
    pub recorded_with: Vec<String>,
    /// How to start it.
    pub launch: Option<launch::Launch>,
    /// How to recognize its process.
    #[serde(default)]
    pub process: Process,
    /// The meaning of its terminal title.
    #[serde(default)]
    pub terminal_title: TerminalTitle,
    /// The meaning of its own state file.
    pub native: Option<Native>,
    /// Its feeds of events.
    #[serde(default, rename = "feed")]
    pub feeds: Vec<Feed>,
    /// The structure of its screen.
    #[serde(default)]
    pub screen: Screen,
    /// How to recognize and read its dialogs.
    #[serde(default)]
    pub dialog: Dialogs,
    /// Which words in an error message mean which kind of failure; the first match wins.
    #[serde(default)]
    pub errors: Vec<ErrorRule>,
    /// Which keys to press.
    #[serde(default)]
    pub keys: Keys,
}

impl Profile {
    /// The feed of a channel, if the agent has one.
    pub fn feed(&self, channel: Channel) -> Option<&Feed> {
        self.feeds.iter().find(|feed| feed.channel == channel)
    }

    /// Whether a launch attaches what publishes this line, so that a live session has it, too.
    pub fn attaches(&self, channel: Channel, line: &serde_json::Value) -> bool {
        let Some(feed) = self.feed(channel) else { return false };
        match (&feed.from, &feed.name) {
            (None, _) => false,
            (Some(FeedSource::Hook), Some(name)) => {
                let settings = self.launch.as_ref().and_then(|launch| launch.settings.as_ref());
                let name = text_at(line, Some(name)).unwrap_or_default();
                settings.is_none_or(|settings| settings.registers(&name))
            }
            _ => true,
        }
    }

    /// The paths of its own files that are known beforehand.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let native = self.native.as_ref().and_then(|native| native.file.as_deref());
        let feeds = self.feeds.iter().filter_map(|feed| match &feed.from {
            Some(FeedSource::File(path)) => Some(path.as_str()),
            _ => None,
        });
        native.into_iter().chain(feeds)
    }

    /// The kind of failure for an error message.
    pub fn error_kind(&self, words: &str) -> ErrorKind {
        self.errors.iter().find(|rule| rule.pattern.is_match(words)).map_or(ErrorKind::Api, |rule| rule.kind)
    }
}

/// How to recognize an agent's process.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Process {
    /// Names of its program. Arguments never count: `grep claude` isn't the agent.
    pub names: Vec<String>,
    /// Arguments of its exec mode.
    pub exec_args: Vec<String>,
}

/// The meaning of the terminal title. Patterns are anchored at the start, since the rest may be the model's own words.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TerminalTitle {
    /// The meaning of any other title, once it differs from the one before the agent set its own.
    #[serde(rename = "else")]
    pub otherwise: Option<TitleSays>,
    /// Titles and their meaning; the first match wins.
    pub on: Vec<TitleRule>,
    /// The prompts that it never misses. If it doesn't say `asking`, the agent asks none of these.
    pub tells: Vec<Asks>,
}

impl TerminalTitle {
    /// Whether this title would be another one while such a prompt is open.
    pub(crate) fn would_show(&self, title: &str, asks: Asks) -> bool {
        let rule = self.on.iter().find(|rule| rule.pattern.is_match(title));
        self.tells.contains(&asks) && !rule.is_some_and(|rule| rule.blind)
    }

    /// Whether this title shows a running turn.
    pub(crate) fn shows_turn(&self, title: &str) -> bool {
        let rule = self.on.iter().find(|rule| rule.pattern.is_match(title));
        rule.is_some_and(|rule| rule.says == TitleSays::Working)
    }
}

/// One kind of title.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TitleRule {
    /// What it means.
    pub says: TitleSays,
    /// Whether it only counts once a title has shown a running turn in this run. Under a terminal multiplexer, some
    /// agents never change their title.
    #[serde(default)]
    pub after_working: bool,
    /// Whether it stays the same while a prompt is open.
    #[serde(default)]
    pub blind: bool,
    /// How it starts.
    pub pattern: Pattern,
}

/// What a title can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSays {
    /// A turn is running.
    Working,
    /// No turn is running, or a dialog is open.
    Idle,
    /// A prompt is open.
    Asking,
    /// Nothing.
    Nothing,
}

/// The agent's own state file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Native {
    /// Its path. `{pid}` is the agent's process, `{session_id}` its conversation id and `{directory}` the session's
    /// directory. `{NAME:default}` is an environment variable of the agent, or the default if it is unset (`~` is its
    /// home). A `*` matches any one directory or file name.
    pub file: Option<String>,
    /// Where it has the conversation id (a JSON pointer).
    pub session: Option<String>,
    /// The meaning of its values; the first match wins.
    pub on: Vec<NativeRule>,
    /// The prompts that it never misses. If it doesn't say `asking`, the agent asks none of these.
    #[serde(default)]
    pub tells: Vec<Asks>,
}

/// One value of the state file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeRule {
    /// Fields (JSON pointers) with their required values.
    pub when: BTreeMap<String, Want>,
    /// The meaning.
    pub says: NativeSays,
    /// The kind of the open prompt, if `says` is `asking` and the file tells.
    pub asks: Option<Asks>,
}

/// What a state file can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeSays {
    /// A turn is running.
    Working,
    /// No turn is running.
    Idle,
    /// No turn is running, but background work is.
    Background,
    /// A prompt is open.
    Asking,
}

/// Words in an error message.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRule {
    /// The kind of failure that they mean.
    pub kind: ErrorKind,
    /// The words.
    pub pattern: Pattern,
}

/// Which keys to press.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// How to choose an option of a dialog.
    pub choose: OptionStyle,
    /// The key that interrupts a turn.
    pub interrupt: String,
    /// The key that closes a dialog without an answer.
    pub dismiss: String,
    /// The key that clears the input box.
    pub clear: String,
    /// A text with this ending turns the following Enter into a line break. Lisa appends a space to such a text.
    pub continues: Option<String>,
    /// A text with this start is run by the agent as a shell command, without permission. Lisa doesn't send such a
    /// text as a prompt.
    pub shell: Option<String>,
    /// Text that is a command of the agent itself and starts no turn.
    pub command: Option<Pattern>,
    /// How long to wait between pasted text and Enter, in milliseconds.
    pub enter_delay_ms: u64,
    /// How long an Enter may take to have an effect, in milliseconds.
    pub submit_timeout_ms: u64,
}

impl Keys {
    /// Whether text is a command of the agent, which starts no turn, and not a prompt that starts with a path.
    pub fn is_command(&self, text: &str) -> bool {
        let text = text.trim();
        !text.contains('\n') && self.command.as_ref().is_some_and(|command| command.is_match(text))
    }

    /// Whether text is a prompt, neither a command of the agent nor one for its shell.
    pub fn starts_turn(&self, text: &str) -> bool {
        !self.is_command(text) && !self.shell.as_deref().is_some_and(|mark| text.starts_with(mark))
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            choose: OptionStyle::Digit,
            interrupt: "Escape".to_owned(),
            dismiss: "Escape".to_owned(),
            clear: "C-u".to_owned(),
            continues: None,
            shell: None,
            command: None,
            enter_delay_ms: 100,
            submit_timeout_ms: 5_000,
        }
    }
}
