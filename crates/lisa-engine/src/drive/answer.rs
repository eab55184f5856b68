//! Answering what an agent asks: only the prompt that was read, only by its options, and proven to be gone.

use super::{Driver, choice};
use crate::{
    api::{AnswerRequest, AnswerResponse, EventKind},
    engine::{Engine, next_step, now},
    error::{Error, Kind, Result},
    judge::Note,
    session::find::Sighting,
    text::without_controls,
    words::{Effect, Prompt, PromptKind},
};
use std::{thread, time::Duration};

/// How long a dialog may take to go away after it was answered.
const GONE_LIMIT: Duration = Duration::from_secs(8);
/// How many pages a form may have.
const PAGES_MAX: usize = 20;

/// What was chosen on one page.
struct Chosen {
    words: Vec<String>,
    effect: Option<Effect>,
}

impl Engine {
    /// Answers the prompt that a session is blocked on.
    pub fn answer(&self, request: &AnswerRequest) -> Result<AnswerResponse> {
        let choices = check(request)?;
        let driver = Driver::take(self, &request.session)?;
        let (prompt, chosen) =
            driver.answer(&choices, request.text.as_deref(), request.prompt_id.as_deref())?;
        let (sighting, judged) = driver.look()?;
        let session = self.describe(&sighting, &judged, false);
        let cursor = self.cursor()?;
        Ok(AnswerResponse {
            next: next_step(&session, cursor),
            session: session.name,
            prompt_id: prompt.id,
            title: prompt.title,
            answered: chosen.words,
            effect: chosen.effect,
            status: session.status,
            state: session.state,
            cursor,
        })
    }
}

fn check(request: &AnswerRequest) -> Result<Vec<String>> {
    let given = usize::from(request.choice.is_some()) + usize::from(!request.choices.is_empty());
    match (given, &request.text) {
        (2, _) => Err(Error::invalid("both choice and choices were given", "give one of them")),
        (0, None) => Err(Error::invalid(
            "there is no answer",
            "give a choice (an option's key, label or effect), choices, or text",
        )),
        (0, Some(text)) if text.trim().is_empty() => {
            Err(Error::invalid("the text is empty", "give some, or a choice"))
        }
        (0, Some(text)) if text.len() > 64 << 10 => Err(Error::invalid(
            "the text is longer than 64 KiB",
            "answer briefly, and send the rest as a prompt",
        )),
        _ => Ok(request.choice.iter().cloned().chain(request.choices.iter().cloned()).collect()),
    }
}

impl Driver<'_> {
    fn answer(&self, choices: &[String], text: Option<&str>, id: Option<&str>) -> Result<(Prompt, Chosen)> {
        let (sighting, judged) = self.look()?;
        let Some(first) = judged.outcome.verdict.state.prompt().cloned() else {
            return Err(Error::new(
                Kind::NoPrompt,
                format!("`{}` asks nothing; it is {}", self.name, judged.outcome.verdict.state.name()),
                "somebody may have answered already: look with session_status",
            ));
        };
        if let Some(id) = id.filter(|id| *id != first.id) {
            return Err(Error::new(
                Kind::PromptChanged,
                format!("the prompt `{id}` is not open any more; `{}` asks: {}", self.name, first.title),
                format!("read it (its id is {}) and answer that one", first.id),
            ));
        }
        let mut all = Chosen { words: Vec::new(), effect: None };
        let mut rest = choices;
        let mut page = first.clone();
        for _ in 0..PAGES_MAX {
            let chosen = self.answer_page(&sighting, &page, &mut rest, text)?;
            all.words.extend(chosen.words);
            all.effect = all.effect.or(chosen.effect);
            let Some(next) = self.next_page(&page)? else { break };
            match form_goes_on(&page, &next, rest) {
                true => page = next,
                false => break,
            }
        }
        let journal = self.engine.journal()?;
        let state = judged.outcome.verdict.state.clone();
        let mut note = Note::line(format!("{}: {}", first.title, all.words.join(", ")));
        note.data.insert("prompt_id".to_owned(), first.id.clone().into());
        self.update(&sighting, |record| {
            note.turn = record.turn.as_ref().map(|turn| turn.id.clone());
            record.note(&self.name, EventKind::Answer, &state, now(), note, &journal);
        })?;
        Ok((first, all))
    }

    /// Answers what is shown now, with as many of the choices as that takes.
    fn answer_page(
        &self,
        sighting: &Sighting,
        page: &Prompt,
        rest: &mut &[String],
        text: Option<&str>,
    ) -> Result<Chosen> {
        if let (Some(text), true) = (text, rest.is_empty()) {
            return self.answer_in_words(sighting, page, text);
        }
        if is_review(page) && rest.is_empty() {
            // Everything was answered; what is left is to send it off.
            let submit =
                page.options.iter().find(|option| option.effect != Effect::Deny).or(page.options.first());
            let submit = submit.ok_or_else(|| choice_missing(page))?;
            self.press_all(sighting, &choice::keys(page, submit, &self.profile.keys))?;
            return Ok(Chosen { words: Vec::new(), effect: None });
        }
        if page.multi {
            // A list to tick takes all the choices that it knows.
            let known: Vec<_> = rest.iter().map_while(|word| choice::find(page, word).ok()).collect();
            if known.is_empty() {
                return Err(choice_missing(page));
            }
            for option in &known {
                self.press_all(sighting, &choice::tick(page, option))?;
            }
            *rest = &rest[known.len()..];
            let words = known.iter().map(|option| option.label.clone()).collect();
            self.submit_list(sighting, page)?;
            return Ok(Chosen { words, effect: None });
        }
        let Some((word, after)) = rest.split_first() else { return Err(choice_missing(page)) };
        let option = choice::find(page, word)?.clone();
        *rest = after;
        self.press_all(sighting, &choice::keys(page, &option, &self.profile.keys))?;
        Ok(Chosen { words: vec![option.label.clone()], effect: Some(option.effect) })
    }

    /// Opens the option that takes free text, types, and sends it off.
    fn answer_in_words(&self, sighting: &Sighting, page: &Prompt, text: &str) -> Result<Chosen> {
        if !page.free_text {
            let options: Vec<&str> = page.options.iter().map(|option| option.label.as_str()).collect();
            return Err(Error::new(
                Kind::UnknownChoice,
                "this prompt takes no free text",
                format!("choose one of {}", options.join(", ")),
            ));
        }
        let opens = |label: &str| self.profile.dialog.free_text.as_ref().is_some_and(|rx| rx.is_match(label));
        if let Some(option) = page.options.iter().find(|option| opens(&option.label)) {
            self.press_all(sighting, &choice::keys(page, option, &self.profile.keys))?;
            thread::sleep(Duration::from_millis(150));
        }
        let words = without_controls(text).replace('\n', " ");
        for chunk in words.chars().collect::<Vec<_>>().chunks(200) {
            let chunk: String = chunk.iter().collect();
            self.type_out(sighting, &chunk)?;
        }
        thread::sleep(Duration::from_millis(150));
        self.press(sighting, &["Enter"])?;
        Ok(Chosen { words: vec![words], effect: None })
    }

    fn type_out(&self, sighting: &Sighting, text: &str) -> Result<()> {
        if let Some(row) = &sighting.pane {
            self.engine.tmux().type_text(&row.pane_id, text)?;
        }
        Ok(())
    }

    fn press_all(&self, sighting: &Sighting, keys: &[String]) -> Result<()> {
        for key in keys {
            if !self.press(sighting, &[key])? {
                return Err(Error::new(
                    Kind::NoPrompt,
                    format!("`{}` has ended", self.name),
                    "look with session_status",
                ));
            }
            thread::sleep(Duration::from_millis(30));
        }
        Ok(())
    }

    /// Sends a ticked list off: by its own row where it has one, else with Enter.
    fn submit_list(&self, sighting: &Sighting, page: &Prompt) -> Result<()> {
        let (_, _, judged) = self.watch(Duration::from_millis(300), |_, judged| {
            let shown = judged.outcome.verdict.state.prompt()?;
            (shown.options != page.options).then_some(())
        })?;
        let keys = match judged.outcome.verdict.state.prompt() {
            Some(shown) if shown.kind == page.kind => {
                let at = shown.options.iter().position(|option| option.selected).unwrap_or(0);
                let mut keys = vec!["Down".to_owned(); shown.options.len().saturating_sub(at)];
                keys.push("Enter".to_owned());
                keys
            }
            _ => return Ok(()),
        };
        self.press_all(sighting, &keys)
    }

    /// Waits until the page is gone; returns what is asked next, if anything is.
    fn next_page(&self, page: &Prompt) -> Result<Option<Prompt>> {
        let (next, ..) = self.watch(GONE_LIMIT, |_, judged| {
            let shown = judged.outcome.verdict.state.prompt();
            match shown {
                Some(shown) if shown.id == page.id => None,
                // The agent's own word lags behind its screen: what it still announces is what was just answered.
                Some(_) if !judged.outcome.signals.prompt_waiting => None,
                Some(shown) => Some(Some(shown.clone())),
                None if judged.outcome.signals.prompt_waiting => None,
                None => Some(None),
            }
        })?;
        next.ok_or_else(|| {
            Error::new(
                Kind::AnswerUnconfirmed,
                format!("`{}` still asks: {}", self.name, page.title),
                "look with read_session view=screen before answering again",
            )
        })
    }
}

/// Whether what is asked next belongs to the same form.
fn form_goes_on(page: &Prompt, next: &Prompt, rest: &[String]) -> bool {
    let same_form = next.kind == PromptKind::Question && page.kind == PromptKind::Question;
    same_form && (is_review(next) || (!rest.is_empty() && (page.step.is_some() || next.step.is_some())))
}

/// The last page of a form, which asks whether to send it off.
fn is_review(page: &Prompt) -> bool {
    page.kind == PromptKind::Question
        && page.options.len() <= 3
        && page.options.first().is_some_and(|option| option.label.to_lowercase().starts_with("submit"))
}

fn choice_missing(page: &Prompt) -> Error {
    let options: Vec<String> =
        page.options.iter().map(|option| format!("{} ({})", option.key, option.label)).collect();
    Error::new(
        Kind::UnknownChoice,
        format!("there is no answer for: {}", page.title),
        format!("choose one of {}", options.join(", ")),
    )
}
