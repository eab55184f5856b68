//! Dialogs that replace the input box: a title, a body, and options.
//!
//! They deliberately have a hazard of real agents: letters are ignored, but Enter chooses the selected option and a digit
//! chooses that option at once. So a prompt that is typed blindly answers the dialog.

use crate::questions::{Answer, Questions};
use crate::step::ToolUse;
use crate::text::{Row, Style, wrap};

/// The kind of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Start-up: is this directory trusted.
    Trust,
    /// Start-up: log in.
    Login,
    /// Start-up: run without asking for permissions.
    Bypass,
    /// Permission to use a tool.
    Permission,
    /// Approval of a plan.
    Plan,
    /// The model picker.
    Model,
}

impl Kind {
    /// Its name in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Trust => "trust",
            Kind::Login => "login",
            Kind::Bypass => "bypass",
            Kind::Permission => "permission",
            Kind::Plan => "plan",
            Kind::Model => "model",
        }
    }
}

/// A key in a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialogKey {
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right or Tab.
    Right,
    /// Enter.
    Enter,
    /// Escape or Ctrl-C.
    Esc,
    /// Backspace.
    Backspace,
    /// One typed character.
    Char(char),
    /// A paste.
    Paste(String),
}

/// How an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredBy {
    /// A digit.
    Digit,
    /// Enter on the selected option.
    Enter,
    /// Escape.
    Esc,
    /// A hook decided.
    Hook,
}

impl AnsweredBy {
    /// Its name in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AnsweredBy::Digit => "digit",
            AnsweredBy::Enter => "enter",
            AnsweredBy::Esc => "esc",
            AnsweredBy::Hook => "hook",
        }
    }
}

/// The result of a key in a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It stays open.
    Open,
    /// An option was chosen (index from 0).
    Chosen(usize, AnsweredBy),
    /// Questions were answered.
    Answered(Vec<Answer>, AnsweredBy),
    /// It was cancelled with Escape.
    Cancelled,
}

/// A dialog.
#[derive(Debug, Clone)]
pub enum Dialog {
    /// One list of options.
    Menu(Menu),
    /// Questions of the agent.
    Questions(Questions),
}

impl Dialog {
    /// Its name in the log.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Dialog::Menu(menu) => menu.kind.name(),
            Dialog::Questions(_) => "question",
        }
    }

    /// Handles one key.
    pub fn press(&mut self, press: DialogKey) -> Reply {
        match self {
            Dialog::Menu(menu) => menu.press(&press),
            Dialog::Questions(questions) => questions.press(press),
        }
    }

    /// The rows between the rule and the footer, and the footer.
    #[must_use]
    pub fn rows(&self, cells: usize) -> (Vec<Row>, Row) {
        match self {
            Dialog::Menu(menu) => menu.rows(cells),
            Dialog::Questions(questions) => questions.rows(cells),
        }
    }
}

/// A dialog with one list of options.
#[derive(Debug, Clone)]
pub struct Menu {
    /// Which dialog it is.
    pub kind: Kind,
    /// First line.
    pub title: String,
    /// The body.
    pub body: String,
    /// The question above the options.
    pub ask: Option<&'static str>,
    /// The options.
    pub options: Vec<String>,
    /// The index of the selected option.
    pub selected: usize,
    footer: String,
}

impl Menu {
    fn new(kind: Kind, title: impl Into<String>, body: impl Into<String>, options: &[&str]) -> Self {
        let (verb, escape) = match kind {
            Kind::Trust | Kind::Login | Kind::Bypass => ("choose", "exit"),
            Kind::Permission => ("choose", "deny"),
            Kind::Plan => ("choose", "keep planning"),
            Kind::Model => ("select", "close"),
        };
        let footer = match kind {
            Kind::Model => format!("enter to {verb} · esc to {escape}"),
            _ => format!("enter to {verb} · 1-{} · esc to {escape}", options.len()),
        };
        Self {
            kind,
            title: title.into(),
            body: body.into(),
            ask: None,
            options: options.iter().map(|o| (*o).to_owned()).collect(),
            selected: 0,
            footer,
        }
    }

    /// Start-up: is this directory trusted.
    #[must_use]
    pub fn trust(dir: &str) -> Self {
        Self::new(Kind::Trust, "Do you trust this folder?", dir, &["Yes, trust it", "No, exit"])
    }

    /// Start-up: log in.
    #[must_use]
    pub fn login() -> Self {
        let body = "The demo agent needs no account; any choice but exit goes on.";
        Self::new(
            Kind::Login,
            "Log in to continue",
            body,
            &["Log in with a browser", "Use an API key", "Exit"],
        )
    }

    /// Start-up: run without asking for permissions. The safe option comes first, as in real agents.
    #[must_use]
    pub fn bypass() -> Self {
        let body = "Tools will run without asking for permission.";
        Self::new(Kind::Bypass, "Warning: permissions are off", body, &["No, exit", "Yes, I accept"])
    }

    /// Permission to use this tool.
    #[must_use]
    pub fn permission(tool: &ToolUse) -> Self {
        let always = format!("Always allow {}", tool.rule());
        let title = format!("Permission required: {}", tool.name);
        let mut menu =
            Self::new(Kind::Permission, title, tool.arg.as_str(), &["Allow once", &always, "Deny"]);
        menu.ask = Some(match tool.name.as_str() {
            "Bash" => "Allow this command?",
            "Write" | "Edit" => "Allow this edit?",
            _ => "Allow this tool?",
        });
        menu
    }

    /// Approval of this plan.
    #[must_use]
    pub fn plan(text: &str) -> Self {
        let mut menu = Self::new(Kind::Plan, "Plan", text, &["Yes", "No, keep planning"]);
        menu.ask = Some("Proceed with this plan?");
        menu
    }

    /// The model picker.
    #[must_use]
    pub fn model(models: &[String], current: &str) -> Self {
        let mut menu = Self::new(Kind::Model, "Select model", "", &[]);
        menu.selected = models.iter().position(|m| m == current).unwrap_or(0);
        menu.options = models.to_vec();
        menu
    }

    fn press(&mut self, press: &DialogKey) -> Reply {
        let count = self.options.len().max(1);
        match press {
            DialogKey::Up => self.selected = (self.selected + count - 1) % count,
            DialogKey::Down => self.selected = (self.selected + 1) % count,
            DialogKey::Enter => return Reply::Chosen(self.selected, AnsweredBy::Enter),
            DialogKey::Esc => return Reply::Cancelled,
            DialogKey::Char(c) => {
                if let Some(index) = digit(*c, count) {
                    return Reply::Chosen(index, AnsweredBy::Digit);
                }
            }
            _ => {}
        }
        Reply::Open
    }

    fn rows(&self, cells: usize) -> (Vec<Row>, Row) {
        let mut rows = indented(&self.title, " ", cells, Style::Bold);
        if !self.body.is_empty() {
            rows.extend(indented(&self.body, "   ", cells, Style::Plain));
        }
        if self.kind != Kind::Model {
            rows.push(Row::plain(""));
        }
        if let Some(ask) = self.ask {
            rows.extend(indented(ask, " ", cells, Style::Plain));
        }
        for (index, label) in self.options.iter().enumerate() {
            rows.extend(option(&format!("{}. {label}", index + 1), index == self.selected, cells));
        }
        rows.push(Row::plain(""));
        (rows, footer(&self.footer, cells))
    }
}

/// The option that a digit chooses.
#[must_use]
pub fn digit(c: char, count: usize) -> Option<usize> {
    let index = usize::try_from(c.to_digit(10)?).ok()?.checked_sub(1)?;
    (index < count).then_some(index)
}

/// The rows of an option, with a mark if it's selected.
#[must_use]
pub fn option(label: &str, selected: bool, cells: usize) -> Vec<Row> {
    let style = if selected { Style::Accent } else { Style::Plain };
    let mut rows = indented(label, "   ", cells, style);
    if selected && let Some(first) = rows.first_mut() {
        first.text.replace_range(..3, " ▸ ");
    }
    rows
}

/// Wraps text with an indent.
#[must_use]
pub fn indented(text: &str, indent: &str, cells: usize, style: Style) -> Vec<Row> {
    let lines = wrap(text, cells.saturating_sub(indent.len()));
    lines.into_iter().map(|line| Row::new(format!("{indent}{line}"), style)).collect()
}

/// A footer: one row, truncated if necessary.
#[must_use]
pub fn footer(text: &str, cells: usize) -> Row {
    Row::new(format!(" {}", crate::text::fit(text, cells.saturating_sub(1))), Style::Dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission() -> Dialog {
        Dialog::Menu(Menu::permission(&ToolUse { name: "Bash".into(), arg: "rm -rf build".into() }))
    }

    #[test]
    fn letters_are_ignored_but_enter_takes_the_selected_option() {
        let mut dialog = permission();
        for c in "please do not".chars() {
            assert_eq!(dialog.press(DialogKey::Char(c)), Reply::Open);
        }
        assert_eq!(dialog.press(DialogKey::Paste("1\n".into())), Reply::Open);
        assert_eq!(dialog.press(DialogKey::Enter), Reply::Chosen(0, AnsweredBy::Enter));
    }

    #[test]
    fn digits_arrows_and_escape() {
        assert_eq!(permission().press(DialogKey::Char('3')), Reply::Chosen(2, AnsweredBy::Digit));
        assert_eq!(permission().press(DialogKey::Char('4')), Reply::Open);
        assert_eq!(permission().press(DialogKey::Char('0')), Reply::Open);
        assert_eq!(permission().press(DialogKey::Esc), Reply::Cancelled);
        let mut dialog = permission();
        dialog.press(DialogKey::Up);
        assert_eq!(dialog.press(DialogKey::Enter), Reply::Chosen(2, AnsweredBy::Enter));
        dialog.press(DialogKey::Down);
        assert_eq!(dialog.press(DialogKey::Enter), Reply::Chosen(0, AnsweredBy::Enter));
    }

    #[test]
    fn the_dangerous_mode_defaults_to_leaving() {
        let menu = Menu::bypass();
        assert_eq!(menu.options[menu.selected], "No, exit");
    }
}
