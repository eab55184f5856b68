//! The structure of an agent's screen, as its profile describes it.

use super::{AskKind, Pattern, Rx};
use crate::words::{Activity, DialogKind, Effect, PromptKind};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The structure of a screen.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Screen {
    /// The box that takes input.
    pub input: Option<InputShape>,
    /// The line that begins a block of the conversation. Without it, blocks are what blank lines separate.
    pub head: Option<Rx>,
    /// A horizontal line that sets dialogs apart from the conversation.
    pub rule: Option<Rx>,
    /// How the echo of a prompt begins, in agents that mark the end of every turn.
    pub prompt: Option<Rx>,
    /// A line that ends a message and says nothing by itself.
    pub end: Option<Rx>,
    /// How a message of the agent begins; the rest of the line is its first words.
    pub message: Option<Rx>,
    /// What the structure says, by place.
    pub sign: Vec<Sign>,
}

/// How the input box is recognised.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputShape {
    /// Its first line; group 1 is the draft.
    pub first: Pattern,
    /// The line right above it, where there is always one.
    pub above: Option<Rx>,
    /// The line that closes it, where there is one.
    pub below: Option<Rx>,
    /// Whether it is there only while the terminal's cursor is shown.
    #[serde(default)]
    pub cursor_shown: bool,
    /// Whether the terminal's cursor stands inside it.
    #[serde(default)]
    pub cursor_inside: bool,
    /// Whether its first line is the one that the terminal's cursor stands on.
    #[serde(default)]
    pub cursor_row: bool,
    /// Rows above the first line that belong to the box.
    pub body: Option<Rx>,
    /// How long it must have stood, at the start of a session, before it takes what is typed; in milliseconds.
    #[serde(default)]
    pub settle_ms: u64,
    /// Text that is shown in the empty box.
    pub placeholder: Option<Rx>,
    /// How a continued line of the draft begins: what to cut off.
    #[serde(default)]
    pub indent: usize,
}

/// Something that the structure of the screen says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sign {
    /// What it says.
    pub says: SignSays,
    /// What the agent is busy with, where it says `working`.
    pub activity: Option<Activity>,
    /// Where it stands.
    pub region: Region,
    /// How the line reads; group 1, where there is one, is the message.
    pub pattern: Pattern,
    /// What colour it must have, where the screen has colours.
    pub colour: Option<Colour>,
}

/// What a sign can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignSays {
    /// A turn runs.
    Working,
    /// The turn is over.
    TurnOver,
    /// The turn is over, and background work runs.
    Background,
    /// The turn failed.
    Failed,
    /// The turn was stopped.
    Interrupted,
    /// The agent is up and takes a prompt.
    Ready,
}

/// Where on the screen something stands. There is no region "anywhere": a word in prose is no sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// The first line of the last block above the input box.
    LastHead,
    /// The lines of the last block above the input box.
    LastBlock,
    /// The last line above the input box that is not blank.
    LastLine,
    /// The lines of the last block that is not itself a sign of the turn's end.
    LastMessage,
    /// The same, where that block begins with the echo of a prompt: what the program itself answers to it.
    BelowPrompt,
    /// Lines that begin in column 0, in the rows just above the input box.
    AboveBox,
    /// The lines below the input box.
    Footer,
    /// The last lines of a screen that has no input box.
    Bottom,
}

/// What colour a sign must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    /// The line begins in a warning colour: red, orange or yellow.
    Alarm,
    /// Its message is written in one. On a screen without colours nothing is.
    AlarmingMessage,
}

/// How dialogs are recognised and read.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dialogs {
    /// Whether the terminal's cursor is hidden while a dialog is open.
    pub cursor_hidden: bool,
    /// One option: groups `mark` (the selected one has it), `key`, `label`, and `box` in lists to tick.
    pub option: Option<Rx>,
    /// The marked row of a list without numbers.
    pub marked: Option<Rx>,
    /// A row of options beside each other: group 1 is the row, cut at two or more spaces.
    pub option_row: Option<Rx>,
    /// Hints in the last lines of a dialog.
    pub hint: Vec<Hint>,
    /// The dialogs that are known by what they ask; the first that matches wins.
    pub on: Vec<DialogRule>,
    /// What an option does, by how it reads; the first that matches wins.
    pub effect: Vec<EffectRule>,
    /// Whether one option is marked in every list of options that is not one to tick.
    pub always_marked: bool,
    /// Whether a blank line stands above the hint of every dialog that is shown whole.
    pub hint_apart: bool,
    /// Where the dialog names its tool: group 1.
    pub tool: Option<Rx>,
    /// What the permission of a tool names, by tool; one that is not listed names neither command nor file.
    pub names: BTreeMap<String, Names>,
    /// Where a permission shows the command: group 1.
    pub command: Option<Rx>,
    /// Where a permission shows the file: group 1.
    pub file: Option<Rx>,
    /// Where a form of several questions says which one is shown: groups 1 and 2.
    pub step: Option<Rx>,
    /// One tab of a form of several questions; those that are answered have a group that matches.
    pub tab: Option<Rx>,
    /// The first line of a dialog, where neither a line nor the conversation sets it apart.
    pub top: Option<Rx>,
    /// Tools whose call is itself a prompt, where only the call is known.
    pub tools: BTreeMap<String, AskKind>,
    /// An option that takes an answer in free text.
    pub free_text: Option<Rx>,
    /// Whether what is typed takes the place of that option's label.
    pub typed_in_place: bool,
    /// The line that shows what is typed, where it has one of its own.
    pub typed: Option<Rx>,
    /// A mark on a list that goes on beyond the screen.
    pub more: Option<Rx>,
    /// Decoration in front of every line of a dialog, to be cut off.
    pub frame: Option<Rx>,
}

/// A hint in the last lines of a dialog, such as the keys that close it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hint {
    /// How it reads; group 1, where there is one, is the number of options.
    pub pattern: Pattern,
}

/// What a permission names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// The command to run.
    Command,
    /// The file to touch.
    File,
}

/// A dialog that is known by what it asks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialogRule {
    /// The kind of prompt.
    pub kind: PromptKind,
    /// Which dialog, where the kind is `dialog`.
    pub dialog: Option<DialogKind>,
    /// The line that asks.
    pub pattern: Pattern,
    /// Whether that line is only a heading, and the next one asks.
    #[serde(default)]
    pub heading: bool,
    /// Whether that line only opens the dialog, and the options stand below one that asks: where that is not shown,
    /// no list is one of options.
    #[serde(default)]
    pub opens: bool,
    /// Whether the dialog takes free text as its answer.
    #[serde(default)]
    pub free_text: bool,
    /// An option of this dialog where it numbers none: the group `label`, and `mark` where the cursor is on it.
    pub option: Option<Pattern>,
}

/// What an option does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectRule {
    /// What choosing it does.
    pub effect: Effect,
    /// Only in prompts of this kind.
    pub kind: Option<PromptKind>,
    /// How the option reads.
    pub pattern: Pattern,
}

/// How an option is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionStyle {
    /// Its digit, which answers at once.
    Digit,
    /// Its digit, then Enter.
    DigitEnter,
    /// Arrows up or down to it, then Enter.
    Vertical,
    /// Arrows left or right to it, then Enter.
    Horizontal,
}
