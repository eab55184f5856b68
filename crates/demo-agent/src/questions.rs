//! Questions the agent asks: one or several, single or multiple choice, with or without free text.

use serde_json::Value;

use crate::dialog::{By, Press, Reply, digit, footer, indented, option};
use crate::text::{Row, Style};

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// A word for the tab line.
    pub header: String,
    /// The question.
    pub text: String,
    /// Options: label and description (may be empty).
    pub options: Vec<(String, String)>,
    /// Several may be ticked.
    pub multi: bool,
    /// A free text may be given instead.
    pub free: bool,
}

impl Question {
    /// Reads a JSON list of questions, or an object with such a list in `questions`.
    ///
    /// # Errors
    /// What is missing.
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

    /// As hooks and transcript show it.
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

    /// The numbered rows: options and the free-text entry.
    fn numbered(&self) -> usize {
        self.options.len() + usize::from(self.free)
    }

    /// All rows that can be selected.
    fn row_count(&self) -> usize {
        self.numbered() + usize::from(self.multi)
    }
}

/// What was answered to one question.
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
struct Given {
    ticked: Vec<bool>,
    single: Option<usize>,
    other: Option<String>,
}

/// The dialog: all questions, and where one is.
#[derive(Debug, Clone)]
pub struct Questions {
    list: Vec<Question>,
    given: Vec<Given>,
    /// The question shown; one past the last is the page where all answers are submitted.
    at: usize,
    selected: usize,
    typing: Option<String>,
}

impl Questions {
    /// Opens the dialog at the first question.
    #[must_use]
    pub fn new(list: Vec<Question>) -> Self {
        let given =
            list.iter().map(|q| Given { ticked: vec![false; q.options.len()], ..Given::default() }).collect();
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
    pub fn press(&mut self, press: Press) -> Reply {
        if self.typing.is_some() {
            return self.press_typing(press);
        }
        let count = self.list.get(self.at).map_or(2, Question::row_count);
        match press {
            Press::Up => self.selected = (self.selected + count - 1) % count,
            Press::Down => self.selected = (self.selected + 1) % count,
            Press::Left if self.several() => self.go(self.at.saturating_sub(1)),
            Press::Right if self.several() => self.go((self.at + 1).min(self.list.len())),
            Press::Enter => return self.choose(self.selected, By::Enter),
            Press::Char(' ') if self.selected < count - 1 && self.is_multi() => {
                return self.choose(self.selected, By::Enter);
            }
            Press::Char(c) => {
                let numbered = self.list.get(self.at).map_or(2, Question::numbered);
                if let Some(index) = digit(c, numbered) {
                    self.selected = index;
                    return self.choose(index, By::Digit);
                }
            }
            Press::Esc => return Reply::Cancelled,
            _ => {}
        }
        Reply::Open
    }

    fn press_typing(&mut self, press: Press) -> Reply {
        let Some(text) = self.typing.as_mut() else { return Reply::Open };
        match press {
            Press::Char(c) => text.push(c),
            Press::Paste(pasted) => text.push_str(&pasted.replace('\n', " ")),
            Press::Backspace => {
                text.pop();
            }
            Press::Esc => self.typing = None,
            Press::Enter if !text.is_empty() => {
                let text = std::mem::take(text);
                self.typing = None;
                if let Some(given) = self.given.get_mut(self.at) {
                    given.other = Some(text);
                    given.single = None;
                }
                if !self.is_multi() {
                    return self.done_with_question(By::Enter);
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

    fn choose(&mut self, index: usize, by: By) -> Reply {
        let (Some(question), Some(given)) = (self.list.get(self.at), self.given.get_mut(self.at)) else {
            return if index == 0 { Reply::Answered(self.answers(), by) } else { Reply::Cancelled };
        };
        if question.other_row() == Some(index) {
            // A second choice of a ticked free text takes it away again.
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

    fn done_with_question(&mut self, by: By) -> Reply {
        if !self.several() {
            return Reply::Answered(self.answers(), by);
        }
        self.go(self.at + 1);
        Reply::Open
    }

    fn answers(&self) -> Vec<Answer> {
        self.list.iter().zip(&self.given).map(|(question, given)| answer(question, given)).collect()
    }

    /// The rows between rule and footer, and the footer.
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

fn answer(question: &Question, given: &Given) -> Answer {
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

    fn press(dialog: &mut Questions, keys: &[Press]) -> Reply {
        keys.iter().map(|key| dialog.press(key.clone())).last().unwrap()
    }

    fn chosen(reply: &Reply) -> Vec<Vec<String>> {
        let Reply::Answered(answers, _) = reply else { panic!("{reply:?}") };
        answers.iter().map(|a| a.chosen.clone()).collect()
    }

    #[test]
    fn a_single_question_is_answered_by_digit_or_enter() {
        let json = r#"[{"header":"Db","question":"Which?","options":["A","B"]}]"#;
        assert_eq!(chosen(&dialog(json).press(Press::Char('2'))), [["B"]]);
        assert_eq!(chosen(&dialog(json).press(Press::Enter)), [["A"]]);
        assert_eq!(dialog(json).press(Press::Esc), Reply::Cancelled);
    }

    #[test]
    fn several_may_be_ticked_and_only_submit_ends_it() {
        let mut d = dialog(r#"[{"question":"Which?","options":["A","B","C"],"multi":true}]"#);
        assert_eq!(press(&mut d, &[Press::Enter, Press::Char('3'), Press::Char('1')]), Reply::Open);
        assert_eq!(press(&mut d, &[Press::Down, Press::Char(' ')]), Reply::Open);
        let reply = press(&mut d, &[Press::Down, Press::Down, Press::Enter]);
        assert_eq!(chosen(&reply), [["B", "C"]]);
    }

    #[test]
    fn free_text_opens_a_line_and_escape_closes_only_that() {
        let mut d = dialog(r#"[{"question":"Which?","options":["A"],"free":true}]"#);
        assert_eq!(press(&mut d, &[Press::Char('2'), Press::Esc]), Reply::Open);
        let reply = press(&mut d, &[Press::Char('2'), Press::Paste("my\nown".into()), Press::Enter]);
        assert_eq!(chosen(&reply), [["my own"]]);
    }

    #[test]
    fn several_questions_end_on_a_page_to_submit() {
        let mut d = dialog(r#"[{"question":"a?","options":["A"]},{"question":"b?","options":["B","C"]}]"#);
        assert_eq!(press(&mut d, &[Press::Char('1'), Press::Char('2')]), Reply::Open);
        assert_eq!(press(&mut d, &[Press::Left, Press::Char('1')]), Reply::Open);
        assert_eq!(chosen(&d.press(Press::Enter)), [["A"], ["B"]]);
        assert_eq!(d.press(Press::Char('2')), Reply::Cancelled);
    }

    #[test]
    fn a_list_without_options_is_an_error() {
        assert!(Question::list_from_json("[]").is_err());
        assert!(Question::list_from_json(r#"[{"question":"x?"}]"#).is_err());
        assert!(Question::list_from_json("{").unwrap_err().starts_with("not valid JSON"));
    }
}
