//! The structure of an agent's screen, as its profile describes it.

use super::{Asks, Pattern, Rx};
use crate::api::words::{Activity, DialogKind, Effect, PromptKind};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The structure of a screen.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Screen {
    /// The input box.
    pub input: Option<InputShape>,
    /// The line that starts a block of the conversation (default: blocks are separated by blank lines).
    pub head: Option<Rx>,
    /// A horizontal line that separates dialogs from the conversation.
    pub rule: Option<Rx>,
    /// How the echo of a prompt starts, for agents that mark the end of every turn.
    pub prompt: Option<Rx>,
    /// How the echo of a command of the agent itself starts, which starts no turn.
    pub command: Option<Rx>,
    /// How the program's answer to it starts, in the lines below.
    pub reply: Option<Rx>,
    /// A line that ends a message and has no meaning by itself.
    pub end: Option<Rx>,
    /// How the first line of a note starts that is no part of a turn and may follow its end.
    pub note: Option<Rx>,
    /// A line of the banner above the first prompt. On a screen without any prompt and message, nothing has been asked yet.
    pub banner: Option<Pattern>,
    /// How a message of the agent starts; the rest of the line is its first words.
    pub message: Option<Rx>,
    /// What the structure means, by place.
    pub sign: Vec<Sign>,
    /// How a task list is drawn, if the agent shows one.
    pub todos: Option<TodoShape>,
}

/// How a task list is drawn, in the last block of the conversation; group 1 of `done` and `open` is the task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TodoShape {
    /// The first line of the block that it is in: the agent's own, not a message or the output of a tool.
    pub below: Pattern,
    /// A task that is done.
    pub done: Pattern,
    /// A task that is not.
    pub open: Pattern,
}

/// How to recognize the input box.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputShape {
    /// Its first line; group 1 is the draft.
    pub first: Pattern,
    /// The line right above it, if there always is one.
    pub above: Option<Rx>,
    /// The line that closes it, if there is one.
    pub below: Option<Rx>,
    /// Whether it only exists while the terminal's cursor is shown.
    #[serde(default)]
    pub cursor_shown: bool,
    /// Whether the terminal's cursor is inside it.
    #[serde(default)]
    pub cursor_inside: bool,
    /// Whether its first line is the one with the terminal's cursor.
    #[serde(default)]
    pub cursor_row: bool,
    /// Rows above the first line that belong to the box.
    pub body: Option<Rx>,
    /// How long it must have been there, at the start of a session, before it takes input; in milliseconds.
    #[serde(default)]
    pub settle_ms: u64,
    /// The placeholder text in an empty box.
    pub placeholder: Option<Rx>,
    /// How many columns a continued line of the draft is indented: what to cut off.
    #[serde(default)]
    pub indent: usize,
}

/// Something with a meaning on the screen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sign {
    /// What it means.
    pub says: SignSays,
    /// The activity, if it means `working`.
    pub activity: Option<Activity>,
    /// Where it must be.
    pub region: Region,
    /// The pattern of the line; group 1, if any, is the message.
    pub pattern: Pattern,
    /// What colour it must have, if the screen has colours.
    pub colour: Option<Colour>,
}

/// What a sign can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignSays {
    /// A turn is running.
    Working,
    /// The turn is over.
    TurnOver,
    /// The turn is over, and background work is running.
    Background,
    /// The turn failed.
    Failed,
    /// The turn was interrupted.
    Interrupted,
    /// The agent is up and takes a prompt.
    Ready,
    /// The same, and no turn is running. Doesn't count while there is text in the input box.
    Idle,
}

/// A place on the screen. There is no region "anywhere": a word in prose is no sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// The first line of the last block above the input box.
    LastHead,
    /// The lines of the last block above the input box.
    LastBlock,
    /// The last nonblank line above the input box.
    LastLine,
    /// The lines of the last block that isn't itself a sign of the turn's end.
    LastMessage,
    /// The same, if that block starts with the echo of a prompt: the program's own answer to it.
    BelowPrompt,
    /// Lines that start in column 0, in the rows just above the input box.
    AboveBox,
    /// The lines below the input box.
    Footer,
}

/// The required colour of a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Colour {
    /// The line starts in a warning colour: red, orange or yellow.
    Alarm,
    /// Its message has a warning colour. Never matches on a screen without colours.
    AlarmingMessage,
}

/// How to recognize and read dialogs.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dialogs {
    /// Whether the terminal's cursor is hidden while a dialog is open.
    pub cursor_hidden: bool,
    /// One option: groups `mark` (only the selected one has it), `key`, `label`, and `box` in multi-select lists.
    pub option: Option<Rx>,
    /// The selected row of a list without numbers.
    pub marked: Option<Rx>,
    /// A row of a dialog that looks like the start of a block of the conversation.
    pub own_row: Option<Rx>,
    /// A row of options next to each other: group 1 is the row, split at two or more spaces.
    pub option_row: Option<Rx>,
    /// Hints in the last lines of a dialog.
    pub hint: Vec<Hint>,
    /// Dialogs that are recognized by their question; the first match wins.
    pub on: Vec<DialogRule>,
    /// The effect of an option, by its text; the first match wins.
    pub effect: Vec<EffectRule>,
    /// Whether one option is always selected in single-select lists.
    pub always_marked: bool,
    /// Whether there is a blank line above the hint of every dialog that is completely visible.
    pub hint_apart: bool,
    /// Where the dialog names its tool: group 1.
    pub tool: Option<Rx>,
    /// What the permission of a tool names, by tool; a tool that isn't listed names neither command nor file.
    pub names: BTreeMap<String, Names>,
    /// Where a permission shows the command: group 1.
    pub command: Option<Rx>,
    /// The line above and below the command, if it has such a frame; then it is all lines in between.
    pub framed: Option<Rx>,
    /// Where a permission shows the file: group 1.
    pub file: Option<Rx>,
    /// Where a form of several questions says which one is shown: groups 1 and 2.
    pub step: Option<Rx>,
    /// One tab of a form of several questions; those already answered have a group that matches.
    pub tab: Option<Rx>,
    /// The first line of a dialog, if neither a line nor the conversation separates it.
    pub top: Option<Rx>,
    /// Tools whose call is itself a prompt, for when only the call is known.
    pub tools: BTreeMap<String, Asks>,
    /// An option that takes free text.
    pub free_text: Option<Rx>,
    /// Whether typed text replaces the label of that option.
    pub typed_in_place: bool,
    /// The line that shows typed text, if it has one of its own.
    pub typed: Option<Rx>,
    /// A sign that a list continues beyond the screen.
    pub more: Option<Rx>,
    /// Decoration at the start of every line of a dialog, to be cut off.
    pub frame: Option<Rx>,
    /// The content of the `box` of an unchecked option.
    pub unticked: Option<Rx>,
    /// A word of a dialog that changes although the question stays the same: a spinner, the mark of the selected row.
    pub changing: Option<Rx>,
    /// The option that submits a form, on the page that only asks for that.
    pub review: Option<Pattern>,
}

/// A hint in the last lines of a dialog, for example the keys that close it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hint {
    /// Its pattern; group 1, if any, is the number of options.
    pub pattern: Pattern,
}

/// What a permission names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// The command.
    Command,
    /// The file.
    File,
}

/// A dialog that is recognized by its question.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialogRule {
    /// The kind of prompt.
    pub kind: PromptKind,
    /// Which dialog, if the kind is `dialog`.
    pub dialog: Option<DialogKind>,
    /// The line with the question.
    pub pattern: Pattern,
    /// Whether that line is only a heading, and the next one is the question.
    #[serde(default)]
    pub heading: bool,
    /// Whether that line only opens the dialog, and the options are below a line with the question. Until that line is
    /// shown, no list is one of options.
    #[serde(default)]
    pub opens: bool,
    /// Whether the dialog takes free text as its answer.
    #[serde(default)]
    pub free_text: bool,
    /// Whether it is only shown before the agent takes its first input.
    #[serde(default)]
    pub start: bool,
    /// An option of this dialog if it has no numbers: the group `label`, and `mark` if the cursor is on it.
    pub option: Option<Pattern>,
}

/// What an option does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectRule {
    /// What choosing it does.
    pub effect: Effect,
    /// Only in prompts of this kind (default: any).
    pub kind: Option<PromptKind>,
    /// The option's text.
    pub pattern: Pattern,
}

/// How to choose an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionStyle {
    /// Its digit, which answers at once.
    Digit,
    /// Its digit, then Enter.
    DigitEnter,
    /// Up or down arrows until it is selected, then Enter.
    Vertical,
    /// Left or right arrows until it is selected, then Enter.
    Horizontal,
}
