//! The question dialog: one or several questions, single or multiple choice, with or without free text.

use serde_json::Value;

use crate::dialog::{AnsweredBy, DialogKey, Reply, digit, footer, indented, option};
use crate::text::{Row, Style};

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The label in the tab line.
    pub header: String,
    /// The question.
    pub text: String,
    /// Options: label and description (may be empty).
    pub options: Vec<(String, String)>,
    /// Whether several options may be ticked.
    pub multi: bool,
    /// Whether a free text may be entered instead.
    pub free: bool,
}

impl Question {
    /// Parses a JSON list of questions, or an object with such a list in `questions`.
    ///
    /// # Errors
    /// A message about what is missing.
    pub fn list_from_json(text: &str) -> Result<Vec<Self>, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("not valid JSON: {e}"))?;
        let list = value.get("questions").unwrap_or(&value);
        let list = list.as_array().ok_or("expected a JSON list of questions")?;
        if list.is_empty() {
            return Err("no question in the list".to_owned());
        }
        list.iter().map(Self::from_json).collect()
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let word = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(false);
        let text = word("question").ok_or("a question needs `question`")?;
        let options: Vec<_> = value
            .get("options")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .map(|option| {
                let part = |key: &str| option.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                match option.as_str() {
                    Some(label) => (label.to_owned(), String::new()),
                    None => (part("label"), part("description")),
                }
            })
            .collect();
        let free = flag("free");
        if options.is_empty() && !free {
            return Err(format!("no options for `{text}`"));
        }
        let header = word("header").unwrap_or_else(|| "Question".to_owned());
        Ok(Self { header, text, options, multi: flag("multi"), free })
    }

    /// The JSON for hooks and transcript.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let options: Vec<_> = self
            .options
            .iter()
            .map(|(label, detail)| serde_json::json!({"label": label, "description": detail}))
            .collect();
        serde_json::json!({
            "header": self.header, "question": self.text, "options": options,
            "multi": self.multi, "free": self.free,
        })
    }

    fn other_row(&self) -> Option<usize> {
        self.free.then_some(self.options.len())
    }

    /// The number of numbered rows: options and the free-text entry.
    fn numbered(&self) -> usize {
        self.options.len() + usize::from(self.free)
    }

    /// The number of selectable rows.
    fn row_count(&self) -> usize {
        self.numbered() + usize::from(self.multi)
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The question's header.
    pub header: String,
    /// The question.
    pub question: String,
    /// Chosen labels or the free text.
    pub chosen: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct DraftAnswer {
    ticked: Vec<bool>,
    single: Option<usize>,
    other: Option<String>,
}

/// The dialog: all questions, and the current position.
#[derive(Debug, Clone)]
pub struct Questions {
    list: Vec<Question>,
    given: Vec<DraftAnswer>,
    /// The index of the current question. One past the last is the submit page.
    at: usize,
    selected: usize,
    typing: Option<String>,
}

impl Questions {
    /// Opens the dialog at the first question.
    #[must_use]
    pub fn new(list: Vec<Question>) -> Self {
        let given = list
            .iter()
            .map(|q| DraftAnswer { ticked: vec![false; q.options.len()], ..DraftAnswer::default() })
            .collect();
        Self { list, given, at: 0, selected: 0, typing: None }
    }

    /// The questions.
    #[must_use]
    pub fn list(&self) -> &[Question] {
        &self.list
    }

    fn several(&self) -> bool {
        self.list.len() > 1
    }

    fn is_multi(&self) -> bool {
        self.list.get(self.at).is_some_and(|question| question.multi)
    }

    /// Handles one key.
    pub fn press(&mut self, press: DialogKey) -> Reply {
        if self.typing.is_some() {
            return self.press_typing(press);
        }
        let count = self.list.get(self.at).map_or(2, Question::row_count);
        match press {
            DialogKey::Up => self.selected = (self.selected + count - 1) % count,
            DialogKey::Down => self.selected = (self.selected + 1) % count,
            DialogKey::Left if self.several() => self.go(self.at.saturating_sub(1)),
            DialogKey::Right if self.several() => self.go((self.at + 1).min(self.list.len())),
            DialogKey::Enter => return self.choose(self.selected, AnsweredBy::Enter),
            DialogKey::Char(' ') if self.selected < count - 1 && self.is_multi() => {
                return self.choose(self.selected, AnsweredBy::Enter);
            }
            DialogKey::Char(c) => {
                let numbered = self.list.get(self.at).map_or(2, Question::numbered);
                if let Some(index) = digit(c, numbered) {
                    self.selected = index;
                    return self.choose(index, AnsweredBy::Digit);
                }
            }
            DialogKey::Esc => return Reply::Cancelled,
            _ => {}
        }
        Reply::Open
    }

    fn press_typing(&mut self, press: DialogKey) -> Reply {
        let Some(text) = self.typing.as_mut() else { return Reply::Open };
        match press {
            DialogKey::Char(c) => text.push(c),
            DialogKey::Paste(pasted) => text.push_str(&pasted.replace('\n', " ")),
            DialogKey::Backspace => {
                text.pop();
            }
            DialogKey::Esc => self.typing = None,
            DialogKey::Enter if !text.is_empty() => {
                let text = std::mem::take(text);
                self.typing = None;
                if let Some(given) = self.given.get_mut(self.at) {
                    given.other = Some(text);
                    given.single = None;
                }
                if !self.is_multi() {
                    return self.done_with_question(AnsweredBy::Enter);
                }
            }
            _ => {}
        }
        Reply::Open
    }

    fn go(&mut self, at: usize) {
        self.at = at;
        self.selected = 0;
    }

    fn choose(&mut self, index: usize, by: AnsweredBy) -> Reply {
        let (Some(question), Some(given)) = (self.list.get(self.at), self.given.get_mut(self.at)) else {
            return if index == 0 { Reply::Answered(self.answers(), by) } else { Reply::Cancelled };
        };
        if question.other_row() == Some(index) {
            // Choosing a ticked free text again unticks it.
            if !(question.multi && given.other.take().is_some()) {
                self.typing = Some(String::new());
            }
            return Reply::Open;
        }
        if question.multi {
            match given.ticked.get_mut(index) {
                Some(tick) => *tick = !*tick,
                None => return self.done_with_question(by),
            }
            return Reply::Open;
        }
        given.single = Some(index);
        given.other = None;
        self.done_with_question(by)
    }

    fn done_with_question(&mut self, by: AnsweredBy) -> Reply {
        if !self.several() {
            return Reply::Answered(self.answers(), by);
        }
        self.go(self.at + 1);
        Reply::Open
    }

    fn answers(&self) -> Vec<Answer> {
        self.list.iter().zip(&self.given).map(|(question, given)| answer(question, given)).collect()
    }

    /// The rows between the rule and the footer, and the footer.
    #[must_use]
    pub fn rows(&self, cells: usize) -> (Vec<Row>, Row) {
        let mut rows = Vec::new();
        if self.several() {
            let tabs: Vec<_> = self.list.iter().map(|q| q.header.as_str()).chain(["Submit"]).collect();
            rows.extend(indented(&format!("← {} →", tabs.join(" · ")), " ", cells, Style::Dim));
        }
        let hint = match self.list.get(self.at) {
            Some(question) => {
                self.question_rows(question, &mut rows, cells);
                match (&self.typing, question.multi) {
                    (Some(_), _) => "enter to submit · esc to go back",
                    (None, true) => "space to toggle · enter to select · ↑/↓ to move · esc to cancel",
                    (None, false) => "enter to select · ↑/↓ to move · esc to cancel",
                }
            }
            None => {
                rows.extend(indented("Review your answers", " ", cells, Style::Bold));
                for a in self.answers() {
                    let line = format!("{}: {}", a.header, a.chosen.join(", "));
                    rows.extend(indented(&line, "   ", cells, Style::Plain));
                }
                rows.push(Row::plain(""));
                for (index, label) in ["1. Submit answers", "2. Cancel"].into_iter().enumerate() {
                    rows.extend(option(label, index == self.selected, cells));
                }
                "enter to select · ↑/↓ to move · esc to cancel"
            }
        };
        rows.push(Row::plain(""));
        (rows, footer(hint, cells))
    }

    fn question_rows(&self, question: &Question, rows: &mut Vec<Row>, cells: usize) {
        if self.several() {
            let place = format!("Question {}/{}", self.at + 1, self.list.len());
            rows.extend(indented(&place, " ", cells, Style::Dim));
        }
        rows.extend(indented(&format!("? {}", question.header), " ", cells, Style::Bold));
        rows.extend(indented(&question.text, " ", cells, Style::Plain));
        rows.push(Row::plain(""));
        let given = self.given.get(self.at);
        let tick = |on: bool| match (question.multi, on) {
            (false, _) => "",
            (true, false) => "[ ] ",
            (true, true) => "[x] ",
        };
        for (index, (label, detail)) in question.options.iter().enumerate() {
            let on = given.and_then(|g| g.ticked.get(index)).copied().unwrap_or(false);
            let line = format!("{}. {}{label}", index + 1, tick(on));
            rows.extend(option(&line, index == self.selected, cells));
            if !detail.is_empty() {
                rows.extend(indented(detail, "      ", cells, Style::Dim));
            }
        }
        if let Some(index) = question.other_row() {
            let other = given.and_then(|g| g.other.as_deref());
            let label = other.map_or("Other…".to_owned(), |text| format!("Other: {text}"));
            let line = format!("{}. {}{label}", index + 1, tick(other.is_some()));
            rows.extend(option(&line, index == self.selected, cells));
            if let Some(text) = &self.typing {
                rows.extend(indented(&format!("> {text}"), "      ", cells, Style::Accent));
            }
        }
        if question.multi {
            let label = if self.several() { "Next" } else { "Submit" };
            rows.extend(option(label, self.selected == question.numbered(), cells));
        }
    }
}

fn answer(question: &Question, given: &DraftAnswer) -> Answer {
    let ticked = given.ticked.iter().enumerate().filter(|(_, on)| **on).map(|(index, _)| index);
    let chosen = ticked
        .chain(given.single)
        .filter_map(|index| question.options.get(index))
        .map(|(label, _)| label.clone())
        .chain(given.other.clone())
        .collect();
    Answer { header: question.header.clone(), question: question.text.clone(), chosen }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(json: &str) -> Questions {
        Questions::new(Question::list_from_json(json).unwrap())
    }

    fn press(dialog: &mut Questions, keys: &[DialogKey]) -> Reply {
        keys.iter().map(|key| dialog.press(key.clone())).last().unwrap()
    }

    fn chosen(reply: &Reply) -> Vec<Vec<String>> {
        let Reply::Answered(answers, _) = reply else { panic!("{reply:?}") };
        answers.iter().map(|a| a.chosen.clone()).collect()
    }

    #[test]
    fn a_single_question_is_answered_by_digit_or_enter() {
        let json = r#"[{"header":"Db","question":"Which?","options":["A","B"]}]"#;
        assert_eq!(chosen(&dialog(json).press(DialogKey::Char('2'))), [["B"]]);
        assert_eq!(chosen(&dialog(json).press(DialogKey::Enter)), [["A"]]);
        assert_eq!(dialog(json).press(DialogKey::Esc), Reply::Cancelled);
    }

    #[test]
    fn several_may_be_ticked_and_only_submit_ends_it() {
        let mut d = dialog(r#"[{"question":"Which?","options":["A","B","C"],"multi":true}]"#);
        assert_eq!(
            press(&mut d, &[DialogKey::Enter, DialogKey::Char('3'), DialogKey::Char('1')]),
            Reply::Open
        );
        assert_eq!(press(&mut d, &[DialogKey::Down, DialogKey::Char(' ')]), Reply::Open);
        let reply = press(&mut d, &[DialogKey::Down, DialogKey::Down, DialogKey::Enter]);
        assert_eq!(chosen(&reply), [["B", "C"]]);
    }

    #[test]
    fn free_text_opens_a_line_and_escape_closes_only_that() {
        let mut d = dialog(r#"[{"question":"Which?","options":["A"],"free":true}]"#);
        assert_eq!(press(&mut d, &[DialogKey::Char('2'), DialogKey::Esc]), Reply::Open);
        let reply =
            press(&mut d, &[DialogKey::Char('2'), DialogKey::Paste("my\nown".into()), DialogKey::Enter]);
        assert_eq!(chosen(&reply), [["my own"]]);
    }

    #[test]
    fn several_questions_end_on_a_page_to_submit() {
        let mut d = dialog(r#"[{"question":"a?","options":["A"]},{"question":"b?","options":["B","C"]}]"#);
        assert_eq!(press(&mut d, &[DialogKey::Char('1'), DialogKey::Char('2')]), Reply::Open);
        assert_eq!(press(&mut d, &[DialogKey::Left, DialogKey::Char('1')]), Reply::Open);
        assert_eq!(chosen(&d.press(DialogKey::Enter)), [["A"], ["B"]]);
        assert_eq!(d.press(DialogKey::Char('2')), Reply::Cancelled);
    }

    #[test]
    fn a_list_without_options_is_an_error() {
        assert!(Question::list_from_json("[]").is_err());
        assert!(Question::list_from_json(r#"[{"question":"x?"}]"#).is_err());
        assert!(Question::list_from_json("{").unwrap_err().starts_with("not valid JSON"));
    }
}
