//! Guarded typing into a pane: only while it still shows what the last snapshot showed.
//!
//! Between a snapshot and a key press a dialog may open, and an Enter would answer it (race). So keys are sent in the
//! same command list as a condition on what the pane shows, and nothing can happen between the two. Before tmux 3.4 a
//! paste into a dead pane crashes the server; the same condition prevents that.

use super::{Cmd, Tmux, exchange, pane::INPUTS};
use crate::{classify::observation::Pane, error::Result};

/// How many characters of a row to compare.
const ROW_CHARS: usize = 100;

/// What a pane must still show when something is typed into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    condition: String,
}

/// The result of guarded typing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// It was typed. The value is how often anything has been typed into the pane so far; 0 if that isn't counted.
    Done(u64),
    /// The pane now shows something else, is dead or is gone: nothing was typed.
    Moved,
    /// No server is running: nothing was typed.
    Gone,
}

impl Guard {
    /// Only requires that the pane's process hasn't ended.
    pub fn alive() -> Self {
        Self { condition: "#{==:#{pane_dead},0}".to_owned() }
    }

    /// Requires that the cursor hasn't moved, that the last rows with text are still there, and that nothing has been
    /// typed since.
    pub fn of(pane: &Pane, screen: &str, rows: usize) -> Self {
        let written: Vec<&str> = screen.lines().filter(|row| !row.trim().is_empty()).collect();
        let last = &written[written.len().saturating_sub(rows)..];
        let patterns: Vec<String> =
            last.iter().map(|row| pattern(row)).filter(|row| !row.is_empty()).collect();
        let number = |flag: bool| u8::from(flag);
        let now = format!(
            "#{{pane_dead}}/#{{cursor_x}}/#{{cursor_y}}/#{{cursor_flag}}/#{{alternate_on}}/#{{?{INPUTS},#{{{INPUTS}}},0}}/"
        );
        let then = format!(
            "0/{}/{}/{}/{}/{}/",
            pane.cursor.0,
            pane.cursor.1,
            number(pane.cursor_visible),
            number(pane.alternate),
            pane.inputs
        );
        let shown: String = patterns.iter().map(|row| format!("#{{?#{{C:{row}}},1,0}}")).collect();
        let all = "1".repeat(patterns.len());
        Self { condition: format!("#{{==:{now}{shown},{then}{all}}}") }
    }

    /// The command that runs `commands` if the condition holds and prints which branch ran.
    fn command(&self, pane: &str, commands: &[Cmd], otherwise: &[Cmd]) -> Cmd {
        let say = |words: &str| Cmd::new("display-message").args(["-p", "-t", pane]).arg(words);
        // The server flushes a buffered print together with the next one; otherwise it asks the client first.
        let then_say = |commands: &[Cmd], words: &str| [commands, &[say(words), say("")]].concat();
        Cmd::new("if-shell")
            .args(["-F", "-t", pane])
            .arg(&self.condition)
            .list(&then_say(commands, &format!("typed #{{{INPUTS}}}")))
            .list(&then_say(otherwise, "moved"))
    }
}

/// A row as a pattern for tmux's search. Letters and digits match themselves. Punctuation, which may be special in a
/// format or pattern, matches any one character. Characters of spinners and frames match anything.
fn pattern(row: &str) -> String {
    let mut out = String::new();
    for c in row.trim().chars().take(ROW_CHARS) {
        match c {
            c if c.is_alphanumeric() => out.push(c),
            c if c.is_ascii() => out.push('?'),
            _ if !out.ends_with('*') => out.push('*'),
            _ => {}
        }
    }
    // Rows of punctuation alone prove nothing.
    if out.chars().any(char::is_alphanumeric) { out } else { String::new() }
}

impl Tmux {
    /// Leaves copy mode and pastes text into a pane, bracketed if the program asked for that.
    ///
    /// The text is loaded before the condition is checked, so nothing comes between the condition and the paste.
    pub fn paste(&self, pane: &str, text: &[u8], guard: &Guard) -> Result<Typed> {
        let name = format!("lisa-{}", uuid::Uuid::new_v4().simple());
        let paste = [
            Cmd::new("copy-mode").args(["-q", "-t", pane]),
            Cmd::new("paste-buffer").args(["-d", "-p", "-r", "-b", &name, "-t", pane]),
        ];
        let forget = [Cmd::new("delete-buffer").arg("-b").arg(&name)];
        let load = Cmd::new("load-buffer").args(["-b", &name, "-"]);
        self.typed(&[load, guard.command(pane, &paste, &forget)], text)
    }

    /// Leaves copy mode and presses named keys in a pane.
    pub fn press(&self, pane: &str, keys: &[&str], guard: &Guard) -> Result<Typed> {
        let send = keys.iter().fold(Cmd::new("send-keys").args(["-t", pane]), |send, key| send.arg(*key));
        self.typed(&[guard.command(pane, &[Cmd::new("copy-mode").args(["-q", "-t", pane]), send], &[])], &[])
    }

    /// Types text into a pane as keys, for programs that take no paste.
    pub fn type_text(&self, pane: &str, text: &str, guard: &Guard) -> Result<Typed> {
        let send = Cmd::new("send-keys").args(["-l", "-t", pane, "--"]).arg(text);
        self.typed(&[guard.command(pane, &[Cmd::new("copy-mode").args(["-q", "-t", pane]), send], &[])], &[])
    }

    fn typed(&self, commands: &[Cmd], input: &[u8]) -> Result<Typed> {
        Ok(match exchange::call_atomic(self, commands, input)? {
            Some(Ok(printed)) => match String::from_utf8_lossy(&printed).trim().strip_prefix("typed") {
                Some(count) => Typed::Done(count.trim().parse().unwrap_or(0)),
                None => Typed::Moved,
            },
            // The pane disappeared between the condition and the key.
            Some(Err(_)) => Typed::Moved,
            None => Typed::Gone,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_pattern_in_which_no_sign_means_anything() {
        assert_eq!(pattern("❯ 1. Yes, it's #{x}: [ok]*"), "*?1??Yes??it?s???x????ok??");
        assert_eq!(pattern("  Ändern 中文?"), "Ändern?中文?");
        assert_eq!(pattern("╭──────╮"), "");
        assert_eq!(pattern("✻✻ Baking…"), "*?Baking*");
    }
}
