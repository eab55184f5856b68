//! Lays out the screen as rows: pure functions of state and size.
//!
//! The upper part is the transcript, which only grows and scrolls away. The live region below is redrawn in place:
//! unfinished answer, status line, queued prompts, and the input box or a dialog.

use crate::dialog::Dialog;
use crate::draft::Draft;
use crate::text::{Row, Style, fit, hard_wrap, width, wrap};

/// Width and height in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub cols: usize,
    /// Rows.
    pub rows: usize,
}

/// An entry of the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A note from the agent.
    Note(String),
    /// A submitted prompt.
    Prompt {
        /// The first line, truncated.
        first: String,
        /// The number of further lines.
        more: usize,
    },
    /// One line of an answer.
    Answer {
        /// Whether it's the first line of its block.
        first: bool,
        /// The line.
        line: String,
    },
    /// A tool use.
    Tool(String),
    /// The output or outcome of a tool.
    Output(String),
    /// The turn succeeded.
    Done(String),
    /// The turn failed.
    Error(String),
}

impl Entry {
    /// The echo of a prompt, truncated to its first line.
    #[must_use]
    pub fn prompt(text: &str) -> Self {
        let first = text.split('\n').next().unwrap_or_default().chars().take(1000).collect();
        let more = text.trim_end_matches('\n').bytes().filter(|b| *b == b'\n').count();
        Self::Prompt { first, more }
    }

    /// The rows of the entry. An empty row separates blocks, except at the top of the screen.
    #[must_use]
    pub fn rows(&self, cols: usize, first_of_all: bool) -> Vec<Row> {
        let (block, mut rows) = match self {
            Entry::Note(text) => (false, hanging("", "", text, cols, Style::Dim)),
            Entry::Prompt { first, more } => (true, prompt_rows(first, *more, cols)),
            Entry::Answer { first: true, line } => (true, hanging("◆ ", "  ", line, cols, Style::Plain)),
            Entry::Answer { first: false, line } => (false, hanging("  ", "  ", line, cols, Style::Plain)),
            Entry::Tool(text) => (true, hanging("◇ ", "  ", text, cols, Style::Plain)),
            Entry::Output(text) => (false, hanging("  └ ", "    ", text, cols, Style::Dim)),
            Entry::Done(text) => (true, hanging("● ", "  ", text, cols, Style::Good)),
            Entry::Error(text) => (true, hanging("✗ ", "  ", text, cols, Style::Bad)),
        };
        if block && !first_of_all {
            rows.insert(0, Row::plain(""));
        }
        rows
    }
}

fn hanging(first: &str, rest: &str, text: &str, cols: usize, style: Style) -> Vec<Row> {
    let lines = wrap(text, cols.saturating_sub(width(first)));
    let row = |(index, line): (usize, String)| {
        let prefix = if index == 0 { first } else { rest };
        Row::new(fit_row(format!("{prefix}{line}"), cols), style)
    };
    lines.into_iter().enumerate().map(row).collect()
}

fn prompt_rows(first: &str, more: usize, cols: usize) -> Vec<Row> {
    let mut rows = vec![Row::plain(fit(&format!("> {first}"), cols))];
    if more > 0 {
        let noun = if more == 1 { "line" } else { "lines" };
        rows.push(Row::new(fit_row(format!("  … {more} more {noun}"), cols), Style::Dim));
    }
    rows
}

/// Truncates the row for terminals that are narrower than a prefix.
fn fit_row(text: String, cols: usize) -> String {
    if width(&text) <= cols { text } else { fit(&text, cols) }
}

/// The contents of the live region.
#[derive(Debug)]
pub struct View<'a> {
    /// A prompt without an answer so far.
    pub echo: Option<&'a Entry>,
    /// The unfinished line of a streaming answer.
    pub open: Option<Entry>,
    /// The status line while the agent is working.
    pub status: Option<String>,
    /// Queued prompts.
    pub queued: Vec<&'a str>,
    /// The lowest part.
    pub bottom: Bottom<'a>,
    /// The terminal's title.
    pub title: String,
}

/// The lowest part of the live region.
#[derive(Debug)]
pub enum Bottom<'a> {
    /// Not drawn yet.
    Nothing,
    /// The input box.
    Box {
        /// The draft.
        draft: &'a Draft,
        /// The footer.
        footer: String,
    },
    /// A dialog instead of the input box.
    Dialog(&'a Dialog),
}

/// The rows of the live region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// From top to bottom; never more than fit the terminal.
    pub rows: Vec<Row>,
    /// Row and column of the cursor; `None` hides it.
    pub cursor: Option<(usize, usize)>,
}

/// Lays out the live region, without the unfinished line of an answer (the transcript shows that).
#[must_use]
pub fn live(view: &View<'_>, size: Size) -> Live {
    let mut rows = Vec::new();
    if let Some(echo) = view.echo {
        rows.extend(echo.rows(size.cols, false));
    }
    if matches!(view.bottom, Bottom::Box { .. }) {
        rows.push(Row::plain(""));
    }
    if let Some(status) = &view.status {
        rows.push(Row::plain(fit(status, size.cols)));
    }
    for text in &view.queued {
        let line = text.split('\n').next().unwrap_or_default();
        rows.push(Row::new(fit(&format!("  queued: {line}"), size.cols), Style::Dim));
    }
    match &view.bottom {
        Bottom::Nothing => Live { rows: Vec::new(), cursor: Some((0, 0)) },
        Bottom::Box { draft, footer } => with_box(rows, draft, footer, size),
        Bottom::Dialog(dialog) => with_dialog(rows, dialog, size),
    }
}

fn rule(cols: usize) -> Row {
    Row::new("─".repeat(cols), Style::Dim)
}

fn with_box(mut rows: Vec<Row>, draft: &Draft, footer: &str, size: Size) -> Live {
    let mut lines = hard_wrap(&draft.shown(), size.cols.saturating_sub(2));
    let room = size.rows.saturating_sub(5).max(1);
    let hidden = lines.len().saturating_sub(room);
    lines.drain(..hidden);
    rows.push(rule(size.cols));
    let mut cursor = (0, 0);
    for (index, line) in lines.into_iter().enumerate() {
        // The mark is on the first visible row, so that the box can always be recognized.
        let prefix = if index == 0 { "▸ " } else { "  " };
        let text = fit_row(format!("{prefix}{line}"), size.cols);
        cursor = (rows.len(), width(&text).min(size.cols.saturating_sub(1)));
        rows.push(Row::plain(text));
    }
    rows.push(rule(size.cols));
    rows.push(Row::new(fit(footer, size.cols), Style::Dim));
    let cut = rows.len().saturating_sub(size.rows);
    rows.drain(..cut);
    Live { rows, cursor: Some((cursor.0.saturating_sub(cut), cursor.1)) }
}

/// Rows that don't fit are cut off at the bottom, as in a real terminal; only the footer stays.
fn with_dialog(mut above: Vec<Row>, dialog: &Dialog, size: Size) -> Live {
    let (body, footer) = dialog.rows(size.cols);
    let mut rows = vec![rule(size.cols)];
    rows.extend(body);
    rows.truncate(size.rows.saturating_sub(1));
    rows.push(footer);
    let room = size.rows.saturating_sub(rows.len());
    above.drain(..above.len().saturating_sub(room));
    above.extend(rows);
    for row in &mut above {
        row.text = fit_row(std::mem::take(&mut row.text), size.cols);
    }
    Live { rows: above, cursor: None }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::dialog::Menu;
    use crate::questions::{Question, Questions};
    use crate::step::ToolUse;

    fn check(view: &View<'_>, cols: usize, rows: usize, expect: Expect) {
        let live = live(view, Size { cols, rows });
        assert!(live.rows.len() <= rows);
        assert!(live.rows.iter().all(|row| width(&row.text) <= cols), "{live:?}");
        let mut text: String = live.rows.iter().map(|row| format!("{}\n", row.text.trim_end())).collect();
        match live.cursor {
            Some((row, col)) => text.push_str(&format!("cursor {row},{col}\n")),
            None => text.push_str("cursor hidden\n"),
        }
        expect.assert_eq(&text);
    }

    fn with_box<'a>(draft: &'a Draft, footer: &str) -> View<'a> {
        let bottom = Bottom::Box { draft, footer: footer.to_owned() };
        View { echo: None, open: None, status: None, queued: vec![], bottom, title: String::new() }
    }

    fn with_dialog(dialog: &Dialog) -> View<'_> {
        let bottom = Bottom::Dialog(dialog);
        View { echo: None, open: None, status: None, queued: vec![], bottom, title: String::new() }
    }

    fn permission() -> Dialog {
        Dialog::Menu(Menu::permission(&ToolUse { name: "Bash".into(), arg: "rm -rf build".into() }))
    }

    #[test]
    fn idle_box() {
        check(
            &with_box(&Draft::default(), "  demo · ready"),
            24,
            10,
            expect![[r#"

            ────────────────────────
            ▸
            ────────────────────────
              demo · ready
            cursor 2,2
        "#]],
        );
    }

    #[test]
    fn working_box_with_draft_and_queue() {
        let mut draft = Draft::default();
        draft.type_text("first\nsecond line that is longer");
        let mut view = with_box(&draft, "  demo · esc to interrupt");
        view.status = Some("⣾ Thinking… (3s)".into());
        view.queued = vec!["next\nthing"];
        let echo = Entry::prompt("do it\nnow\nplease\n");
        view.echo = Some(&echo);
        check(
            &view,
            26,
            20,
            expect![[r#"

            > do it
              … 2 more lines

            ⣾ Thinking… (3s)
              queued: next
            ──────────────────────────
            ▸ first
              second line that is long
              er
            ──────────────────────────
              demo · esc to interrupt
            cursor 9,4
        "#]],
        );
    }

    #[test]
    fn a_tiny_terminal_keeps_the_lowest_rows() {
        let mut draft = Draft::default();
        draft.type_text("a\nb\nc\nd\ne");
        let mut view = with_box(&draft, "  demo · esc to interrupt");
        view.status = Some("⣾ Thinking… (3s)".into());
        check(
            &view,
            12,
            6,
            expect![[r#"

            ⣾ Thinking……
            ────────────
            ▸ e
            ────────────
              demo · es…
            cursor 3,3
        "#]],
        );
        for cols in 0..12 {
            for rows in 0..8 {
                let live = live(&view, Size { cols, rows });
                assert!(live.rows.len() <= rows);
                let _ = super::live(&super::tests::with_dialog(&permission()), Size { cols, rows });
            }
        }
    }

    #[test]
    fn permission_dialog() {
        check(
            &with_dialog(&permission()),
            44,
            24,
            expect![[r#"
            ────────────────────────────────────────────
             Permission required: Bash
               rm -rf build

             Allow this command?
             ▸ 1. Allow once
               2. Always allow Bash(rm:*)
               3. Deny

             enter to choose · 1-3 · esc to deny
            cursor hidden
        "#]],
        );
    }

    #[test]
    fn a_dialog_is_cut_below_but_keeps_its_footer() {
        check(
            &with_dialog(&permission()),
            44,
            7,
            expect![[r#"
            ────────────────────────────────────────────
             Permission required: Bash
               rm -rf build

             Allow this command?
             ▸ 1. Allow once
             enter to choose · 1-3 · esc to deny
            cursor hidden
        "#]],
        );
    }

    #[test]
    fn question_dialogs() {
        let json = r#"[
            {"header":"Db","question":"Which database?","free":true,
             "options":[{"label":"SQLite","description":"one file"},"Postgres"]},
            {"header":"Auth","question":"Which logins?","options":["OAuth","Keys"],"multi":true}]"#;
        let mut dialog = Dialog::Questions(Questions::new(Question::list_from_json(json).unwrap()));
        check(
            &with_dialog(&dialog),
            60,
            24,
            expect![[r#"
            ────────────────────────────────────────────────────────────
             ← Db · Auth · Submit →
             Question 1/2
             ? Db
             Which database?

             ▸ 1. SQLite
                  one file
               2. Postgres
               3. Other…

             enter to select · ↑/↓ to move · esc to cancel
            cursor hidden
        "#]],
        );
        dialog.press(crate::dialog::DialogKey::Char('2'));
        dialog.press(crate::dialog::DialogKey::Char('1'));
        check(
            &with_dialog(&dialog),
            70,
            24,
            expect![[r#"
            ──────────────────────────────────────────────────────────────────────
             ← Db · Auth · Submit →
             Question 2/2
             ? Auth
             Which logins?

             ▸ 1. [x] OAuth
               2. [ ] Keys
               Next

             space to toggle · enter to select · ↑/↓ to move · esc to cancel
            cursor hidden
        "#]],
        );
        dialog.press(crate::dialog::DialogKey::Right);
        check(
            &with_dialog(&dialog),
            60,
            24,
            expect![[r#"
            ────────────────────────────────────────────────────────────
             ← Db · Auth · Submit →
             Review your answers
               Db: Postgres
               Auth: OAuth

             ▸ 1. Submit answers
               2. Cancel

             enter to select · ↑/↓ to move · esc to cancel
            cursor hidden
        "#]],
        );
    }

    #[test]
    fn start_up_and_plan_dialogs() {
        for (menu, expect) in [
            (
                Menu::trust("/home/me/project"),
                expect![[r#"
                ────────────────────────────────────────────────
                 Do you trust this folder?
                   /home/me/project

                 ▸ 1. Yes, trust it
                   2. No, exit

                 enter to choose · 1-2 · esc to exit
                cursor hidden
            "#]],
            ),
            (
                Menu::bypass(),
                expect![[r#"
                ────────────────────────────────────────────────
                 Warning: permissions are off
                   Tools will run without asking for permission.

                 ▸ 1. No, exit
                   2. Yes, I accept

                 enter to choose · 1-2 · esc to exit
                cursor hidden
            "#]],
            ),
            (
                Menu::plan("1. read\n2. write"),
                expect![[r#"
                ────────────────────────────────────────────────
                 Plan
                   1. read
                   2. write

                 Proceed with this plan?
                 ▸ 1. Yes
                   2. No, keep planning

                 enter to choose · 1-2 · esc to keep planning
                cursor hidden
            "#]],
            ),
        ] {
            check(&with_dialog(&Dialog::Menu(menu)), 48, 24, expect);
        }
    }

    #[test]
    fn transcript_entries() {
        let entries = [
            Entry::Note("demo agent".into()),
            Entry::prompt("hello\nthere"),
            Entry::Answer { first: true, line: "You said something rather long".into() },
            Entry::Answer { first: false, line: "and more".into() },
            Entry::Tool("Bash(cargo test)".into()),
            Entry::Output("3 passed\n0 failed".into()),
            Entry::Error("API error: rate_limit: slow down".into()),
            Entry::Done("Done in 1.2s".into()),
        ];
        let mut text = String::new();
        for (index, entry) in entries.iter().enumerate() {
            for row in entry.rows(24, index == 0) {
                text.push_str(&format!("{}\n", row.text));
            }
        }
        expect![[r#"
            demo agent

            > hello
              … 1 more line

            ◆ You said something
              rather long
              and more

            ◇ Bash(cargo test)
              └ 3 passed
                0 failed

            ✗ API error: rate_limit:
              slow down

            ● Done in 1.2s
        "#]]
        .assert_eq(&text);
    }
}
