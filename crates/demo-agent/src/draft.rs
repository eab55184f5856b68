//! The draft in the input box: text, and pastes that are shown as placeholders.

/// A paste with more bytes or more lines than this is shown as a placeholder.
const PLACEHOLDER_BYTES: usize = 800;
const PLACEHOLDER_LINES: usize = 4;

/// The contents of the input box.
#[derive(Debug, Default, Clone)]
pub struct Draft {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Typed(String),
    Pasted { text: String, breaks: usize },
}

impl Draft {
    /// Whether the box is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Appends typed text. A very long burst counts as a paste.
    pub fn type_text(&mut self, text: &str) {
        if text.len() > PLACEHOLDER_BYTES {
            if let Some(Part::Pasted { text: last, .. }) = self.parts.last_mut() {
                last.push_str(text);
            } else {
                self.parts.push(Part::Pasted { text: text.to_owned(), breaks: 0 });
            }
        } else if let Some(Part::Typed(last)) = self.parts.last_mut() {
            last.push_str(text);
        } else if !text.is_empty() {
            self.parts.push(Part::Typed(text.to_owned()));
        }
    }

    /// Appends a paste. A long one is shown as a placeholder.
    pub fn paste(&mut self, text: String) {
        let breaks = text.bytes().filter(|b| *b == b'\n').count();
        if text.len() > PLACEHOLDER_BYTES || line_count(&text, breaks) > PLACEHOLDER_LINES {
            self.parts.push(Part::Pasted { text, breaks });
        } else {
            self.type_text(&text);
        }
    }

    /// Handles Enter after a backslash: replaces the backslash with a line break. Returns whether it did.
    pub fn continue_after_backslash(&mut self) -> bool {
        let Some(Part::Typed(last)) = self.parts.last_mut() else { return false };
        let ends = last.ends_with('\\');
        if ends {
            last.pop();
            last.push('\n');
        }
        ends
    }

    /// Removes the last character, or a whole placeholder.
    pub fn backspace(&mut self) {
        match self.parts.last_mut() {
            Some(Part::Typed(text)) => {
                text.pop();
                if text.is_empty() {
                    self.parts.pop();
                }
            }
            Some(Part::Pasted { .. }) => {
                self.parts.pop();
            }
            None => {}
        }
    }

    /// Removes the last line, or the line break before it if the line is empty, like agents that can't clear the whole box
    /// at once. A placeholder is removed as a whole.
    pub fn clear_line(&mut self) {
        match self.parts.last_mut() {
            Some(Part::Typed(text)) => {
                match text.rfind('\n') {
                    Some(last) if last + 1 == text.len() => text.truncate(last),
                    Some(last) => text.truncate(last + 1),
                    None => text.clear(),
                }
                if text.is_empty() {
                    self.parts.pop();
                }
            }
            Some(Part::Pasted { .. }) => {
                self.parts.pop();
            }
            None => {}
        }
    }

    /// Empties the box.
    pub fn clear(&mut self) {
        self.parts.clear();
    }

    /// Takes the text and empties the box.
    pub fn take(&mut self) -> String {
        let mut parts = std::mem::take(&mut self.parts).into_iter().map(|part| match part {
            Part::Typed(text) | Part::Pasted { text, .. } => text,
        });
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            all.push_str(&part);
        }
        all
    }

    /// Inserts text before the current contents.
    pub fn restore(&mut self, text: String) {
        let rest = std::mem::take(&mut self.parts);
        self.paste(text);
        if !rest.is_empty() {
            self.type_text("\n");
            self.parts.extend(rest);
        }
    }

    /// The text to show, with placeholders.
    #[must_use]
    pub fn shown(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Typed(text) => out.push_str(text),
                Part::Pasted { text, breaks } => {
                    let lines = line_count(text, *breaks);
                    let noun = if lines == 1 { "line" } else { "lines" };
                    out.push_str(&format!("[pasted {} bytes, {lines} {noun}]", text.len()));
                }
            }
        }
        out
    }
}

/// Counts lines, including a last line without a line break.
fn line_count(text: &str, breaks: usize) -> usize {
    breaks + usize::from(!text.ends_with('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pastes_are_shown_short_and_taken_whole() {
        let mut draft = Draft::default();
        draft.type_text("see ");
        draft.paste("line\n".repeat(66));
        draft.type_text(" ok");
        assert_eq!(draft.shown(), "see [pasted 330 bytes, 66 lines] ok");
        assert_eq!(draft.take(), format!("see {} ok", "line\n".repeat(66)));
        assert!(draft.is_empty());
        draft.paste("a\nb".into());
        assert_eq!(draft.shown(), "a\nb");
    }

    #[test]
    fn a_draft_is_cleared_line_by_line() {
        let mut draft = Draft::default();
        draft.type_text("one\ntwo");
        let mut left = Vec::new();
        while !draft.is_empty() {
            draft.clear_line();
            left.push(draft.shown());
        }
        assert_eq!(left, ["one\n", "one", ""]);
    }

    #[test]
    fn backspace_backslash_and_restore() {
        let mut draft = Draft::default();
        draft.type_text("ab\\");
        assert!(draft.continue_after_backslash());
        assert!(!draft.continue_after_backslash());
        draft.type_text("c");
        draft.backspace();
        draft.restore("first".into());
        assert_eq!(draft.take(), "first\nab\n");
        draft.paste("x".repeat(900));
        draft.backspace();
        assert!(draft.is_empty());
    }
}
