//! Text in terminal cells: wrapping, truncating, and sanitizing.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The style of a row. This agent needs only one per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// No style.
    Plain,
    /// Rules, footers, echoes.
    Dim,
    /// Titles.
    Bold,
    /// The selected option.
    Accent,
    /// Success.
    Good,
    /// Failure.
    Bad,
}

/// A row of the screen, never wider than the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its text, without escape sequences.
    pub text: String,
    /// Its style.
    pub style: Style,
}

impl Row {
    /// A row with this style.
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    /// A plain row.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::Plain)
    }
}

/// The width of text in cells.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Replaces characters that would move the cursor: tabs with spaces, other control characters with a middle dot.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            c if c.is_control() => out.push('·'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Truncates a line to `cells`, with `…` at the end.
#[must_use]
pub fn fit(text: &str, cells: usize) -> String {
    // StatusDisplay only at the beginning, so that a megabyte of text is as cheap as a line.
    let head: String = text.chars().take(cells * 4 + 1).collect();
    let head = clean(&head);
    if head.width() <= cells {
        return head.into_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in head.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > cells {
            break;
        }
        used += w;
        out.push(c);
    }
    if cells > 0 {
        out.push('…');
    }
    out
}

/// Wraps each line at spaces. A word longer than a row is broken.
///
/// Deliberately greedy: text that is appended later changes only the last row, so finished rows of a streaming answer
/// can scroll away.
#[must_use]
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrap_line(&clean(line), cells.max(1))).collect()
}

fn wrap_line(line: &str, cells: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let bare = word.trim_end_matches(' ');
        if used > 0 && used + bare.width() > cells {
            rows.push(std::mem::take(&mut row).trim_end().to_owned());
            used = 0;
        }
        for c in word.chars() {
            let w = c.width().unwrap_or(0);
            if used + w > cells {
                if c == ' ' {
                    continue;
                }
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push(c);
            used += w;
        }
    }
    rows.push(row.trim_end().to_owned());
    rows
}

/// Breaks at the last cell and keeps all spaces, because typed text must be shown unchanged.
#[must_use]
pub fn hard_wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        let mut used = 0;
        for c in clean(line).chars() {
            let w = c.width().unwrap_or(0);
            if used + w > cells {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push(c);
            used += w;
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_words_and_breaks_only_what_cannot_fit() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
    }

    #[test]
    fn appending_never_changes_finished_rows() {
        let text = "the quick brown fox jumpsoverthelazydogandmore and then sleeps";
        for cells in [1, 3, 7, 12, 40] {
            let mut before: Vec<String> = Vec::new();
            for (end, _) in text.char_indices() {
                let rows = wrap(&text[..end], cells);
                let finished = before.len().saturating_sub(1);
                assert_eq!(rows[..finished.min(rows.len())], before[..finished], "{cells} {end}");
                before = rows;
            }
        }
    }

    #[test]
    fn control_characters_cannot_reach_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\tc"), "a·[2Jb    c");
        assert_eq!(fit("a\x07b", 10), "a·b");
    }

    #[test]
    fn cut_lines_say_so() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("abcd", 4), "abcd");
        assert_eq!(fit("漢字漢字", 4), "漢…");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn typed_spaces_stay() {
        assert_eq!(hard_wrap("a  b ", 3), ["a  ", "b "]);
    }
}
