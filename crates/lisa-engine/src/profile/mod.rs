//! Agents as data: one TOML file for each, compiled in or the user's own.
//!
//! A profile says how one agent's own words are to be read: its title, its state file, its events, the structure of
//! its screen. No code knows an agent by name. Every pattern carries examples that must match and must not, checked
//! when the profile is loaded, so that a bad edit is an error at start and not a wrong verdict at night.

mod catalog;
mod event;
pub mod launch;
mod pattern;
mod screen;

#[cfg(feature = "fuzz")]
pub(crate) use catalog::parse;
pub use catalog::{FALLBACK, ProfileError, Profiles};
pub use event::{AskKind, EventRule, Meaning, Stream, Take, Want, lookup};
pub(crate) use event::{all_hold, number_at, text_at};
pub use pattern::{Pattern, Rx};
pub use screen::{
    Colour, DialogRule, Dialogs, EffectRule, Hint, InputShape, Names, OptionStyle, Region, Screen, Sign,
    SignSays,
};

use crate::words::{ErrorKind, PromptKind};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Everything Lisa knows about one kind of agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The word that names it: `spawn_session(agent = …)`.
    pub id: String,
    /// The agent's own name, for people.
    pub title: String,
    /// The versions whose recordings prove this profile.
    #[serde(default)]
    pub recorded_with: Vec<String>,
    /// How it is started; owned by the launcher.
    pub launch: Option<launch::Launch>,
    /// How its process is recognised.
    #[serde(default)]
    pub process: Process,
    /// What its terminal title says.
    #[serde(default)]
    pub terminal_title: TerminalTitle,
    /// The state file that it keeps itself.
    pub native: Option<Native>,
    /// Its hook events.
    #[serde(default)]
    pub hooks: Stream,
    /// Its notifications.
    #[serde(default)]
    pub notify: Stream,
    /// The lines of its transcript.
    #[serde(default)]
    pub transcript: Stream,
    /// The structure of its screen.
    #[serde(default)]
    pub screen: Screen,
    /// Its dialogs.
    #[serde(default)]
    pub dialog: Dialogs,
    /// Which words of an error message mean which kind of failure; the first that matches wins.
    #[serde(default)]
    pub errors: Vec<ErrorRule>,
    /// How it is typed to.
    #[serde(default)]
    pub keys: Keys,
}

impl Profile {
    /// The kind of failure that an agent's words describe.
    pub fn error_kind(&self, words: &str) -> ErrorKind {
        self.errors.iter().find(|rule| rule.pattern.is_match(words)).map_or(ErrorKind::Api, |rule| rule.kind)
    }
}

/// How an agent's process is recognised.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Process {
    /// Names of its program. Arguments never count: `grep claude` is no agent.
    pub names: Vec<String>,
    /// Arguments that make it run one prompt to completion.
    pub exec_args: Vec<String>,
}

/// What the terminal title says. Patterns are anchored at position 0: the rest may be the model's own words.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TerminalTitle {
    /// What any other title means, once it is no longer the one the terminal had before the agent set its own.
    #[serde(rename = "else")]
    pub otherwise: Option<TitleSays>,
    /// Titles and their meaning; the first that matches wins.
    pub on: Vec<TitleRule>,
}

/// One kind of title.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TitleRule {
    /// What it means.
    pub says: TitleSays,
    /// How it begins.
    pub pattern: Pattern,
}

/// What a title can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSays {
    /// A turn runs.
    Working,
    /// No turn runs, or a dialog is open.
    Idle,
    /// Something is asked.
    Asking,
    /// Nothing that counts.
    Nothing,
}

/// The state file that an agent keeps about itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Native {
    /// What its values mean; the first that matches wins.
    pub on: Vec<NativeRule>,
}

/// One value of the state file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeRule {
    /// Fields (JSON pointers) and the values they must have.
    pub when: BTreeMap<String, Want>,
    /// What that means.
    pub says: NativeSays,
    /// What kind of prompt is open, where `says` is `asking` and the file tells.
    pub asks: Option<AskKind>,
}

/// What a state file can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeSays {
    /// A turn runs.
    Working,
    /// No turn runs.
    Idle,
    /// No turn runs, but background work does.
    Background,
    /// Something is asked.
    Asking,
}

/// Words of an error message.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRule {
    /// The kind of failure they mean.
    pub kind: ErrorKind,
    /// The words.
    pub pattern: Pattern,
}

/// How an agent is typed to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// How an option of a dialog is chosen.
    pub choose: OptionStyle,
    /// How an option is chosen in dialogs of one kind, where that differs.
    pub choose_in: BTreeMap<PromptKind, OptionStyle>,
    /// The key that stops a turn.
    pub interrupt: String,
    /// The key that closes a dialog without an answer.
    pub dismiss: String,
    /// The key that empties the input box.
    pub clear: String,
    /// What at the end of a text makes a line break of the Enter behind it. Such a text gets a space at its end.
    pub continues: Option<String>,
    /// What begins a text that the agent would run as a command of the shell, without asking anybody. Such a text is
    /// not sent as a prompt.
    pub shell: Option<String>,
    /// How long to wait between pasted text and Enter, in milliseconds.
    pub enter_delay_ms: u64,
    /// How long an Enter may take to show its effect, in milliseconds.
    pub submit_timeout_ms: u64,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            choose: OptionStyle::Digit,
            choose_in: BTreeMap::new(),
            interrupt: "Escape".to_owned(),
            dismiss: "Escape".to_owned(),
            clear: "C-u".to_owned(),
            continues: None,
            shell: None,
            enter_delay_ms: 100,
            submit_timeout_ms: 5_000,
        }
    }
}
