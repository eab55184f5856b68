//! Answering what an agent asks: only the prompt that was read, only by its options, and proven to be gone.

use super::{
    DIALOG_ROWS, Driver, MOVED_MAX,
    choice::{self, Way},
    guard,
};
use crate::{
    api::{AnswerRequest, AnswerResponse, EventKind},
    engine::{Engine, next_step},
    error::{Error, Kind, Result},
    judge::Judged,
    text::without_controls,
    tmux::Typed,
    watch::record::Note,
    words::{Effect, Prompt, PromptKind, PromptOption},
};
use std::time::Duration;

/// How long a dialog may take to go away after it was answered.
const GONE_LIMIT: Duration = Duration::from_secs(8);
/// How long a key may take to show its effect, and how long a digit alone may take to be the answer.
const YIELD_LIMIT: Duration = Duration::from_millis(1500);
const SETTLE: Duration = Duration::from_millis(300);
/// How long text may take to show in a dialog, and how many of its last letters and digits must.
const SHOW_LIMIT: Duration = Duration::from_secs(5);
const TAIL_CHARS: usize = 8;
/// How many pages a form may have.
const PAGES_MAX: usize = 20;

/// What was chosen on one page.
struct Chosen {
    words: Vec<String>,
    effect: Option<Effect>,
}

/// What became of an answer.
struct Answered {
    /// The prompt that was answered.
    prompt: Prompt,
    chosen: Chosen,
    /// Whether it could be written down.
    recorded: bool,
}

impl Engine {
    /// Answers the prompt that a session is blocked on.
    pub fn answer(&self, request: &AnswerRequest) -> Result<AnswerResponse> {
        let choices = check(request)?;
        let driver = Driver::take(self, &request.session)?;
        let Answered { prompt, chosen, recorded } =
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
            recorded,
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
    fn answer(&self, choices: &[String], text: Option<&str>, id: Option<&str>) -> Result<Answered> {
        let (sighting, judged) = self.look()?;
        let state = &judged.outcome.verdict.state;
        let first = state.prompt().filter(|prompt| id.is_none_or(|id| id == prompt.id));
        let prompt = first.cloned().ok_or_else(|| self.changed(id.unwrap_or_default(), &judged))?;
        let note = |words: &[String]| {
            let mut note = Note::line(format!("{}: {}", prompt.title, words.join(", ")));
            note.data.insert("prompt_id".to_owned(), prompt.id.clone().into());
            note
        };
        let wanted: Vec<String> = choices.iter().cloned().chain(text.map(str::to_owned)).collect();
        self.intend(&sighting, EventKind::Answer, note(&wanted))?;
        let mut chosen = Chosen { words: Vec::new(), effect: None };
        if let Err(error) = self.answer_pages(&prompt, choices, text, &mut chosen) {
            match self.has_typed() {
                // Something was pressed, so something may have been answered: that is told whatever came of it.
                true => {
                    let mut note = note(if chosen.words.is_empty() { &wanted } else { &chosen.words });
                    note.data.insert("unconfirmed".to_owned(), true.into());
                    self.fulfil(&sighting, EventKind::Answer, state, note);
                }
                false => self.give_up(&sighting),
            }
            return Err(error);
        }
        let recorded = self.fulfil(&sighting, EventKind::Answer, state, note(&chosen.words));
        Ok(Answered { prompt, chosen, recorded })
    }

    /// Answers a prompt page by page; what was chosen is in `all` even if a later page fails.
    fn answer_pages(
        &self,
        first: &Prompt,
        choices: &[String],
        text: Option<&str>,
        all: &mut Chosen,
    ) -> Result<()> {
        let mut rest = choices;
        let mut page = first.clone();
        for _ in 0..PAGES_MAX {
            let chosen = self.answer_page(&page, &mut rest, text)?;
            all.words.extend(chosen.words);
            all.effect = all.effect.or(chosen.effect);
            let Some(next) = self.next_page(&page)? else { break };
            match form_goes_on(&page, &next, rest) {
                true => page = next,
                false => break,
            }
        }
        Ok(())
    }

    /// Answers what is shown now, with as many of the choices as that takes.
    fn answer_page(&self, page: &Prompt, rest: &mut &[String], text: Option<&str>) -> Result<Chosen> {
        if let (Some(text), true) = (text, rest.is_empty()) {
            return self.answer_in_words(page, text);
        }
        if is_review(page) && rest.is_empty() {
            // Everything was answered; what is left is to send it off.
            let submit =
                page.options.iter().find(|option| option.effect != Effect::Deny).or(page.options.first());
            self.choose(page, submit.ok_or_else(|| choice_missing(page))?)?;
            return Ok(Chosen { words: Vec::new(), effect: None });
        }
        if page.multi {
            // A list to tick takes all the choices that it knows.
            let known: Vec<_> = rest.iter().map_while(|word| choice::find(page, word).ok()).collect();
            if known.is_empty() {
                return Err(choice_missing(page));
            }
            for option in &known {
                self.tick(page, option)?;
            }
            *rest = &rest[known.len()..];
            let words = known.iter().map(|option| option.label.clone()).collect();
            self.submit_list(page)?;
            return Ok(Chosen { words, effect: None });
        }
        let Some((word, after)) = rest.split_first() else { return Err(choice_missing(page)) };
        *rest = after;
        let option = match choice::find(page, word) {
            Ok(option) => option,
            // Where the option that denies is cut off, or there is none, the dialog can still be closed.
            Err(_) if choice::denies(page, word) => {
                self.press_in(page, |_| Some(self.profile.keys.dismiss.clone()))?;
                return Ok(Chosen { words: vec!["closed".to_owned()], effect: Some(Effect::Deny) });
            }
            Err(error) => return Err(error),
        };
        self.choose(page, option)?;
        Ok(Chosen { words: vec![option.label.clone()], effect: Some(option.effect) })
    }

    /// Chooses an option and, in a prompt that takes one, answers it.
    pub(super) fn choose(&self, page: &Prompt, option: &PromptOption) -> Result<()> {
        let way = choice::way(page, option, &self.profile.keys);
        match way {
            // One key is enough: an Enter after it could only hit the next prompt.
            Way::Key | Way::KeyEnter if is_marked(page, option) => self
                .press_in(page, |shown| is_marked(shown, option).then(|| "Enter".to_owned()))?
                .map(drop)
                .ok_or_else(|| self.unsteady(page)),
            Way::Key | Way::KeyEnter => {
                let limit = if way == Way::KeyEnter { SETTLE } else { YIELD_LIMIT };
                self.press_in(page, |shown| (!is_marked(shown, option)).then(|| option.key.clone()))?;
                // Some dialogs take the key as the answer, in others it only marks the option. The mark that moved to it
                // shows that this is the dialog that got the key: that one gets the Enter, too.
                let (gone, ..) =
                    self.watch(limit, |_, judged| shows(judged, page).is_none().then_some(()))?;
                let unmarked =
                    |shown: &Prompt| way == Way::KeyEnter && shown.options.iter().all(|o| !o.selected);
                if gone.is_none() {
                    self.press_in(page, |shown| {
                        (is_marked(shown, option) || unmarked(shown)).then(|| "Enter".to_owned())
                    })?;
                }
                Ok(())
            }
            Way::Arrows(back, on) => {
                self.mark(page, option, back, on)?;
                self.press_in(page, |shown| is_marked(shown, option).then(|| "Enter".to_owned()))?
                    .map(drop)
                    .ok_or_else(|| self.unsteady(page))
            }
        }
    }

    /// Moves the mark to an option, key by key, each from a fresh look.
    fn mark(&self, page: &Prompt, option: &PromptOption, back: &str, on: &str) -> Result<()> {
        for _ in 0..=2 * page.options.len() {
            let step = |shown: &Prompt| {
                let at = |wanted: &dyn Fn(&PromptOption) -> bool| shown.options.iter().position(wanted);
                let (marked, target) =
                    (at(&|other| other.selected), at(&|other: &PromptOption| other.key == option.key)?);
                match marked.map(|marked| target.cmp(&marked)) {
                    Some(std::cmp::Ordering::Equal) => None,
                    Some(std::cmp::Ordering::Less) => Some(back.to_owned()),
                    Some(std::cmp::Ordering::Greater) | None => Some(on.to_owned()),
                }
            };
            let Some(before) = self.press_in(page, step)? else { break };
            self.await_change(page, &before)?;
        }
        Ok(())
    }

    /// Ticks an option of a list, unless it is ticked.
    fn tick(&self, page: &Prompt, option: &PromptOption) -> Result<()> {
        let ticked = |shown: &Prompt| {
            shown.options.iter().any(|other| other.key == option.key && other.checked == Some(true))
        };
        if ticked(page) {
            return Ok(());
        }
        let key = match choice::is_digit(&option.key) {
            true => option.key.clone(),
            false => {
                self.mark(page, option, "Up", "Down")?;
                "Space".to_owned()
            }
        };
        self.press_in(page, |shown| (!ticked(shown)).then(|| key.clone()))?;
        let (done, ..) =
            self.watch(YIELD_LIMIT, |_, judged| shows(judged, page).is_none_or(ticked).then_some(()))?;
        done.ok_or_else(|| self.unsteady(page))
    }

    /// Sends a ticked list off: by the row behind its last option where it has one, else with Enter.
    fn submit_list(&self, page: &Prompt) -> Result<()> {
        for _ in 0..=page.options.len() {
            let (_, judged) = self.look()?;
            // A list that closes by itself once something is chosen needs nothing more.
            if judged.outcome.verdict.state.prompt().is_none() {
                return Ok(());
            }
            let shown = shows(&judged, page).ok_or_else(|| self.changed(&page.id, &judged))?;
            if !shown.options.iter().any(|option| option.selected) {
                break;
            }
            let Some(before) = self.press_in(page, |_| Some("Down".to_owned()))? else { break };
            self.await_change(page, &before)?;
        }
        self.press_in(page, |_| Some("Enter".to_owned())).map(drop)
    }

    /// Opens the option that takes free text, types, and sends it off once it shows.
    fn answer_in_words(&self, page: &Prompt, text: &str) -> Result<Chosen> {
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
            self.choose(page, option)?;
            // Typed into a list that is not open for text, a digit would choose something else.
            let (open, ..) = self.watch(YIELD_LIMIT, |_, judged| {
                shows(judged, page).is_some_and(|shown| is_marked(shown, option)).then_some(())
            })?;
            open.ok_or_else(|| self.unsteady(page))?;
        }
        let words = without_controls(text).replace('\n', " ");
        for chunk in words.chars().collect::<Vec<_>>().chunks(200) {
            let chunk: String = chunk.iter().collect();
            self.type_in(page, &chunk)?;
        }
        let tail = squeezed(&words);
        let tail = &tail[tail.char_indices().rev().nth(TAIL_CHARS - 1).map_or(0, |(at, _)| at)..];
        let (shown, ..) = self.watch(SHOW_LIMIT, |_, judged| {
            let screen = judged.observation.screen.seen()?;
            (shows(judged, page).is_some() && squeezed(screen).contains(tail)).then_some(())
        })?;
        shown.ok_or_else(|| self.unsteady(page))?;
        self.press_in(page, |_| Some("Enter".to_owned()))?;
        Ok(Chosen { words: vec![words], effect: None })
    }

    /// Presses one key in the dialog. Which one follows from a fresh look at it, and it is pressed only if that look
    /// saw the same prompt and the pane still shows it. Returns what that look saw; `None` if no key was wanted.
    fn press_in(&self, page: &Prompt, key: impl Fn(&Prompt) -> Option<String>) -> Result<Option<Prompt>> {
        for _ in 0..MOVED_MAX {
            let (sighting, judged) = self.look()?;
            let shown = shows(&judged, page).ok_or_else(|| self.changed(&page.id, &judged))?;
            let Some(key) = key(shown) else { return Ok(None) };
            match self.press((&sighting, &judged), DIALOG_ROWS, &[&key])? {
                Typed::Done(_) => return Ok(Some(shown.clone())),
                Typed::Moved => {}
                Typed::Gone => return Err(self.changed(&page.id, &judged)),
            }
        }
        Err(self.unsteady(page))
    }

    /// Types into the dialog, under the same conditions as a key.
    fn type_in(&self, page: &Prompt, text: &str) -> Result<()> {
        for _ in 0..MOVED_MAX {
            let look = self.look()?;
            let (sighting, judged) = (&look.0, &look.1);
            shows(judged, page).ok_or_else(|| self.changed(&page.id, judged))?;
            let (Some(row), Some(guard)) = (&sighting.pane, guard((sighting, judged), DIALOG_ROWS)) else {
                continue;
            };
            match self.typed(judged, self.engine.tmux().type_text(&row.pane_id, text, &guard))? {
                Typed::Done(_) => return Ok(()),
                Typed::Moved => {}
                Typed::Gone => return Err(self.changed(&page.id, judged)),
            }
        }
        Err(self.unsteady(page))
    }

    /// Waits until a key has had its effect on the dialog's marks.
    fn await_change(&self, page: &Prompt, before: &Prompt) -> Result<()> {
        self.watch(YIELD_LIMIT, |_, judged| {
            shows(judged, page).is_none_or(|shown| shown.options != before.options).then_some(())
        })
        .map(drop)
    }

    /// What the caller wants to answer is not asked any more.
    fn changed(&self, id: &str, judged: &Judged) -> Error {
        match judged.outcome.verdict.state.prompt() {
            None => Error::new(
                Kind::NoPrompt,
                format!("`{}` asks nothing; it is {}", self.name, judged.outcome.verdict.state.name()),
                "somebody may have answered already: look with session_status",
            ),
            Some(other) => Error::new(
                Kind::PromptChanged,
                format!("the prompt `{id}` is not open any more; `{}` asks: {}", self.name, other.title),
                format!("read it (its id is {}) and answer that one", other.id),
            ),
        }
    }

    /// The dialog does not do what it should; nothing more is pressed.
    fn unsteady(&self, page: &Prompt) -> Error {
        Error::new(
            Kind::AnswerUnconfirmed,
            format!("`{}` still asks: {}", self.name, page.title),
            "look with read_session view=screen before answering again",
        )
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
        next.ok_or_else(|| self.unsteady(page))
    }
}

/// The prompt that a look shows, if it is this one.
fn shows<'a>(judged: &'a Judged, page: &Prompt) -> Option<&'a Prompt> {
    judged.outcome.verdict.state.prompt().filter(|shown| shown.id == page.id)
}

fn is_marked(shown: &Prompt, option: &PromptOption) -> bool {
    shown.options.iter().any(|other| other.key == option.key && other.selected)
}

/// Letters and digits alone: how a text is wrapped and framed does not matter.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
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
