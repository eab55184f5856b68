//! Dialogs that replace the input box: a title, what it is about, and options to choose from.
//!
//! They keep a hazard of the real agents on purpose: letters typed into them are ignored, but Enter takes the
//! selected option and a digit takes that option at once. Whoever types a prompt without looking answers it.

use crate::questions::{Answer, Questions};
use crate::step::ToolUse;
use crate::text::{Row, Style, wrap};

/// Which dialog it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Start-up: is this folder trusted.
    Trust,
    /// Start-up: log in.
    Login,
    /// Start-up: run without asking for permissions.
    Bypass,
    /// May a tool be used.
    Permission,
    /// May a plan be carried out.
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

/// A key, as far as dialogs care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Press {
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

/// By what an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A digit.
    Digit,
    /// Enter on the selected option.
    Enter,
    /// Escape.
    Esc,
    /// A hook decided.
    Hook,
}

impl By {
    /// Its name in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            By::Digit => "digit",
            By::Enter => "enter",
            By::Esc => "esc",
            By::Hook => "hook",
        }
    }
}

/// What a key did to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It stays open.
    Open,
    /// An option was chosen (counted from 0).
    Chosen(usize, By),
    /// Questions were answered.
    Answered(Vec<Answer>, By),
    /// It was left with Escape.
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
    pub fn press(&mut self, press: Press) -> Reply {
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
    /// What it is about.
    pub body: String,
    /// The question above the options.
    pub ask: Option<&'static str>,
    /// The options.
    pub options: Vec<String>,
    /// The selected one.
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

    /// Start-up: is this folder trusted.
    #[must_use]
    pub fn trust(folder: &str) -> Self {
        Self::new(Kind::Trust, "Do you trust this folder?", folder, &["Yes, trust it", "No, exit"])
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

    /// Start-up: permissions will not be asked. The safe option comes first, as in the real agents.
    #[must_use]
    pub fn bypass() -> Self {
        let body = "Tools will run without asking for permission.";
        Self::new(Kind::Bypass, "Warning: permissions are off", body, &["No, exit", "Yes, I accept"])
    }

    /// May this tool be used.
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

    /// May this plan be carried out.
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

    fn press(&mut self, press: &Press) -> Reply {
        let count = self.options.len().max(1);
        match press {
            Press::Up => self.selected = (self.selected + count - 1) % count,
            Press::Down => self.selected = (self.selected + 1) % count,
            Press::Enter => return Reply::Chosen(self.selected, By::Enter),
            Press::Esc => return Reply::Cancelled,
            Press::Char(c) => {
                if let Some(index) = digit(*c, count) {
                    return Reply::Chosen(index, By::Digit);
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

/// The option a digit stands for.
#[must_use]
pub fn digit(c: char, count: usize) -> Option<usize> {
    let index = usize::try_from(c.to_digit(10)?).ok()?.checked_sub(1)?;
    (index < count).then_some(index)
}

/// One option, with the mark if it is the selected one.
#[must_use]
pub fn option(label: &str, selected: bool, cells: usize) -> Vec<Row> {
    let style = if selected { Style::Accent } else { Style::Plain };
    let mut rows = indented(label, "   ", cells, style);
    if selected && let Some(first) = rows.first_mut() {
        first.text.replace_range(..3, " ▸ ");
    }
    rows
}

/// Wrapped text with an indent.
#[must_use]
pub fn indented(text: &str, indent: &str, cells: usize, style: Style) -> Vec<Row> {
    let lines = wrap(text, cells.saturating_sub(indent.len()));
    lines.into_iter().map(|line| Row::new(format!("{indent}{line}"), style)).collect()
}

/// A footer: one row, cut if it must be.
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
            assert_eq!(dialog.press(Press::Char(c)), Reply::Open);
        }
        assert_eq!(dialog.press(Press::Paste("1\n".into())), Reply::Open);
        assert_eq!(dialog.press(Press::Enter), Reply::Chosen(0, By::Enter));
    }

    #[test]
    fn digits_arrows_and_escape() {
        assert_eq!(permission().press(Press::Char('3')), Reply::Chosen(2, By::Digit));
        assert_eq!(permission().press(Press::Char('4')), Reply::Open);
        assert_eq!(permission().press(Press::Char('0')), Reply::Open);
        assert_eq!(permission().press(Press::Esc), Reply::Cancelled);
        let mut dialog = permission();
        dialog.press(Press::Up);
        assert_eq!(dialog.press(Press::Enter), Reply::Chosen(2, By::Enter));
        dialog.press(Press::Down);
        assert_eq!(dialog.press(Press::Enter), Reply::Chosen(0, By::Enter));
    }

    #[test]
    fn the_dangerous_mode_defaults_to_leaving() {
        let menu = Menu::bypass();
        assert_eq!(menu.options[menu.selected], "No, exit");
    }
}
