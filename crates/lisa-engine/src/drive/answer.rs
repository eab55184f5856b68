//! Answers prompts: only the prompt that the caller read, only with its options, and with confirmation that it closed.

use super::{
    DIALOG_ROWS, Driver, GUARD_RETRIES,
    choice::{self, Way},
    guard,
};
use crate::{
    api::{
        AnswerRequest, AnswerResponse, EventKind, next_step,
        words::{Effect, Prompt, PromptKind, PromptOption},
    },
    classify::text::without_controls,
    error::{Error, Kind, Result},
    tmux::Typed,
    watch::{Cancel, Context, describe, judge::Judged, record::Note},
};
use std::time::Duration;

/// How long a dialog may take to close after it was answered.
const GONE_LIMIT: Duration = Duration::from_secs(8);
/// How long a key may take to show its effect, and how long a digit alone may take to act as the answer.
const EFFECT_TIMEOUT: Duration = Duration::from_millis(1500);
const DIGIT_TIMEOUT: Duration = Duration::from_millis(300);
/// How long text may take to show up in a dialog, and how many of its last letters and digits must.
const SHOW_LIMIT: Duration = Duration::from_secs(5);
const TAIL_CHARS: usize = 8;
/// Maximum number of pages of a form.
const PAGES_MAX: usize = 20;

/// The choices made on one page.
struct Chosen {
    words: Vec<String>,
    effect: Option<Effect>,
}

/// The result of an answer.
pub(super) struct Answered {
    /// The prompt that was answered.
    prompt: Prompt,
    chosen: Chosen,
    /// Whether it was recorded.
    recorded: bool,
}

/// Answers the prompt that a session is blocked on.
pub(crate) fn answer(context: &Context, cancel: &Cancel, request: &AnswerRequest) -> Result<AnswerResponse> {
    let choices = check(request)?;
    let driver = Driver::acquire(context, cancel, &request.session)?;
    let Answered { prompt, chosen, recorded } =
        driver.answer(&choices, request.text.as_deref(), request.prompt_id.as_deref())?;
    let (snapshot, judged) = driver.look()?;
    let session = describe(&snapshot, &judged, false);
    let cursor = context.cursor()?;
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

fn check(request: &AnswerRequest) -> Result<Vec<String>> {
    let given = usize::from(request.choice.is_some()) + usize::from(!request.choices.is_empty());
    match (given, &request.text) {
        (2, _) => Err(Error::invalid("both choice and choices were given", "give one of them")),
        (0, None) => Err(Error::invalid(
            "no answer was given",
            "pass a choice (an option's key, label or effect), choices, or text",
        )),
        (0, Some(text)) if text.trim().is_empty() => {
            Err(Error::invalid("the text is empty", "pass some text, or a choice"))
        }
        (0, Some(text)) if text.len() > 64 << 10 => Err(Error::invalid(
            "the text is longer than 64 KiB",
            "answer briefly, and send the rest as a prompt",
        )),
        _ => Ok(request.choice.iter().cloned().chain(request.choices.iter().cloned()).collect()),
    }
}

impl Driver<'_> {
    pub(super) fn answer(
        &self,
        choices: &[String],
        text: Option<&str>,
        id: Option<&str>,
    ) -> Result<Answered> {
        self.begin();
        let (snapshot, judged) = self.look()?;
        let state = &judged.outcome.verdict.state;
        let first = state.prompt().filter(|prompt| id.is_none_or(|id| id == prompt.id));
        let prompt = first.cloned().ok_or_else(|| self.changed(id.unwrap_or_default(), &judged))?;
        let note = |words: &[String]| {
            let mut note = Note::line(format!("{}: {}", prompt.title, words.join(", ")));
            note.data.insert("prompt_id".to_owned(), prompt.id.clone().into());
            note
        };
        let wanted: Vec<String> = choices.iter().cloned().chain(text.map(str::to_owned)).collect();
        tracing::debug!(prompt = prompt.id, ?wanted, "answering");
        self.record_intent(&snapshot, EventKind::Answer, note(&wanted))?;
        let mut chosen = Chosen { words: Vec::new(), effect: None };
        if let Err(error) = self.answer_pages(&prompt, choices, text, &mut chosen) {
            tracing::debug!(prompt = prompt.id, %error, typed = self.has_typed(), "not answered");
            match self.has_typed() {
                // Keys were pressed, so something may have been answered: record it in any case.
                true => {
                    let mut note = note(if chosen.words.is_empty() { &wanted } else { &chosen.words });
                    note.data.insert("unconfirmed".to_owned(), true.into());
                    self.record_done(&snapshot, EventKind::Answer, state, note);
                }
                false => self.withdraw(&snapshot, |_| ()),
            }
            return Err(error);
        }
        let recorded = self.record_done(&snapshot, EventKind::Answer, state, note(&chosen.words));
        Ok(Answered { prompt, chosen, recorded })
    }

    /// Answers a prompt page by page; the choices are in `all` even if a later page fails.
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
            match self.form_goes_on(&page, &next, rest) {
                true => page = next,
                false => break,
            }
        }
        Ok(())
    }

    /// Whether the next prompt belongs to the same form.
    fn form_goes_on(&self, page: &Prompt, next: &Prompt, rest: &[String]) -> bool {
        let same_form = next.kind == PromptKind::Question && page.kind == PromptKind::Question;
        same_form
            && (self.is_review(next) || (!rest.is_empty() && (page.step.is_some() || next.step.is_some())))
    }

    /// Whether this is the last page of a form, which asks whether to submit it.
    fn is_review(&self, page: &Prompt) -> bool {
        let sends = |option: &PromptOption| {
            self.profile.dialog.review.as_ref().is_some_and(|review| review.is_match(&option.label))
        };
        page.kind == PromptKind::Question
            && page.options.len() <= 3
            && page.options.first().is_some_and(sends)
    }

    /// Answers the page shown now, with as many of the choices as it takes.
    fn answer_page(&self, page: &Prompt, rest: &mut &[String], text: Option<&str>) -> Result<Chosen> {
        if let (Some(text), true) = (text, rest.is_empty()) {
            return self.answer_in_words(page, text);
        }
        if self.is_review(page) && rest.is_empty() {
            // Everything has been answered; only the submit is left.
            let submit =
                page.options.iter().find(|option| option.effect != Effect::Deny).or(page.options.first());
            self.choose(page, submit.ok_or_else(|| choice_missing(page))?)?;
            return Ok(Chosen { words: Vec::new(), effect: None });
        }
        if page.multi {
            // A multi-select list takes all the choices that it knows.
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
            // If the option to deny is cut off or missing, the dialog can still be closed.
            Err(_) if choice::denies(page, word) => {
                self.press_in(page, |_| Some(self.profile.keys.dismiss.clone()))?;
                return Ok(Chosen { words: vec!["closed".to_owned()], effect: Some(Effect::Deny) });
            }
            Err(error) => return Err(error),
        };
        self.choose(page, option)?;
        Ok(Chosen { words: vec![option.label.clone()], effect: Some(option.effect) })
    }

    /// Chooses an option; in a single-choice prompt this answers it.
    pub(super) fn choose(&self, page: &Prompt, option: &PromptOption) -> Result<()> {
        let way = choice::way(option, &self.profile.keys);
        match way {
            // One key is enough: an Enter after it could only hit the next prompt.
            Way::Key | Way::KeyEnter if is_marked(page, option) => self
                .press_in(page, |shown| is_marked(shown, option).then(|| "Enter".to_owned()))?
                .map(drop)
                .ok_or_else(|| self.unsteady(page)),
            Way::Key | Way::KeyEnter => {
                let limit = if way == Way::KeyEnter { DIGIT_TIMEOUT } else { EFFECT_TIMEOUT };
                self.press_in(page, |shown| (!is_marked(shown, option)).then(|| option.key.clone()))?;
                // In some dialogs the key is the answer, in others it only selects the option. If the selection moves
                // to it, this dialog got the key, so it gets the Enter too.
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
            Way::Dismiss => self
                .press_in(page, |_| Some(self.profile.keys.dismiss.clone()))?
                .map(drop)
                .ok_or_else(|| self.unsteady(page)),
            Way::Arrows(back, on) => {
                self.mark(page, option, back, on)?;
                self.press_in(page, |shown| is_marked(shown, option).then(|| "Enter".to_owned()))?
                    .map(drop)
                    .ok_or_else(|| self.unsteady(page))
            }
        }
    }

    /// Moves the selection to an option, key by key, with a new look before each key.
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

    /// Checks an option of a list, unless it is already checked.
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
            self.watch(EFFECT_TIMEOUT, |_, judged| shows(judged, page).is_none_or(ticked).then_some(()))?;
        done.ok_or_else(|| self.unsteady(page))
    }

    /// Submits a multi-select list: with the row after its last option if it has one, else with Enter.
    fn submit_list(&self, page: &Prompt) -> Result<()> {
        for _ in 0..=page.options.len() {
            let (_, judged) = self.look()?;
            // A list that closes by itself after a choice needs nothing more.
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

    /// Opens the option for free text, types the text, and submits it once it shows.
    fn answer_in_words(&self, page: &Prompt, text: &str) -> Result<Chosen> {
        if !page.free_text {
            let options: Vec<&str> = page.options.iter().map(|option| option.label.as_str()).collect();
            return Err(Error::new(
                Kind::UnknownChoice,
                "this prompt does not accept free text",
                format!("choose one of {}", options.join(", ")),
            ));
        }
        let opens = |label: &str| self.profile.dialog.free_text.as_ref().is_some_and(|rx| rx.is_match(label));
        if let Some(option) = page.options.iter().find(|option| opens(&option.label)) {
            self.choose(page, option)?;
            // In a list that isn't open for text, a digit would choose something else.
            let (open, ..) = self.watch(EFFECT_TIMEOUT, |_, judged| {
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

    /// Presses one key in the dialog. A new look decides which one, and it is only pressed if that look saw the same
    /// prompt and the pane still shows it. Returns the prompt that the look saw; `None` if no key was needed.
    fn press_in(&self, page: &Prompt, key: impl Fn(&Prompt) -> Option<String>) -> Result<Option<Prompt>> {
        for _ in 0..GUARD_RETRIES {
            let (snapshot, judged) = self.look()?;
            let shown = shows(&judged, page).ok_or_else(|| self.changed(&page.id, &judged))?;
            let Some(key) = key(shown) else { return Ok(None) };
            match self.press((&snapshot, &judged), DIALOG_ROWS, &[&key])? {
                Typed::Done(_) => return Ok(Some(shown.clone())),
                Typed::Moved => {}
                Typed::Gone => return Err(self.changed(&page.id, &judged)),
            }
        }
        Err(self.unsteady(page))
    }

    /// Types into the dialog, under the same conditions as a key.
    fn type_in(&self, page: &Prompt, text: &str) -> Result<()> {
        for _ in 0..GUARD_RETRIES {
            let look = self.look()?;
            let (snapshot, judged) = (&look.0, &look.1);
            shows(judged, page).ok_or_else(|| self.changed(&page.id, judged))?;
            let (Some(row), Some(guard)) = (&snapshot.pane, guard((snapshot, judged), DIALOG_ROWS)) else {
                continue;
            };
            match self.typed(judged, self.context.tmux().type_text(&row.pane_id, text, &guard))? {
                Typed::Done(_) => return Ok(()),
                Typed::Moved => {}
                Typed::Gone => return Err(self.changed(&page.id, judged)),
            }
        }
        Err(self.unsteady(page))
    }

    /// Waits until a key has changed the dialog's selection or check marks.
    fn await_change(&self, page: &Prompt, before: &Prompt) -> Result<()> {
        self.watch(EFFECT_TIMEOUT, |_, judged| {
            shows(judged, page).is_none_or(|shown| shown.options != before.options).then_some(())
        })
        .map(drop)
    }

    /// The error when the prompt to answer is no longer open.
    fn changed(&self, id: &str, judged: &Judged) -> Error {
        match judged.outcome.verdict.state.prompt() {
            None => Error::new(
                Kind::NoPrompt,
                format!("`{}` has no open prompt; it is {}", self.name, judged.outcome.verdict.state.name()),
                "somebody may have answered it already: check its status",
            ),
            Some(other) => Error::new(
                Kind::PromptChanged,
                format!("the prompt `{id}` is no longer open; `{}` asks: {}", self.name, other.title),
                format!("read it (its id is {}) and answer that one", other.id),
            ),
        }
    }

    /// The error when the dialog doesn't react as expected; nothing more is pressed.
    fn unsteady(&self, page: &Prompt) -> Error {
        Error::new(
            Kind::AnswerUnconfirmed,
            format!("`{}` still asks: {}", self.name, page.title),
            "read its screen before you answer again",
        )
    }

    /// Waits until the page has closed; returns the next prompt, if there is one.
    fn next_page(&self, page: &Prompt) -> Result<Option<Prompt>> {
        let (next, ..) = self.watch(GONE_LIMIT, |_, judged| {
            let shown = judged.outcome.verdict.state.prompt();
            match shown {
                Some(shown) if shown.id == page.id => None,
                // The agent's own events lag behind its screen: what they still announce is the prompt just answered.
                Some(_) if !judged.outcome.signals.prompt_waiting => None,
                Some(shown) => Some(Some(shown.clone())),
                None if judged.outcome.signals.prompt_waiting => None,
                None => Some(None),
            }
        })?;
        next.ok_or_else(|| self.unsteady(page))
    }
}

/// The prompt of a look, if it is this one.
fn shows<'a>(judged: &'a Judged, page: &Prompt) -> Option<&'a Prompt> {
    judged.outcome.verdict.state.prompt().filter(|shown| shown.id == page.id)
}

fn is_marked(shown: &Prompt, option: &PromptOption) -> bool {
    shown.options.iter().any(|other| other.key == option.key && other.selected)
}

/// Only letters and digits, so that wrapping and frames don't matter.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn choice_missing(page: &Prompt) -> Error {
    let options: Vec<String> =
        page.options.iter().map(|option| format!("{} ({})", option.key, option.label)).collect();
    Error::new(
        Kind::UnknownChoice,
        format!("no answer was given for: {}", page.title),
        format!("choose one of {}", options.join(", ")),
    )
}
