//! Sending a prompt: gate, paste, Enter, proof.

use super::{
    Driver,
    gate::{self, Allows, Gate},
};
use crate::{
    api::{Delivery, EventKind, Receipt, Refusal, SendRequest, SendResponse},
    engine::{Engine, next_step, now},
    error::{Error, Result},
    judge::{Judged, Note, timestamp},
    memory::Phase,
    observation::At,
    session::{find::Sighting, plan::PROMPT_MAX},
    text::without_controls,
    words::{Exit, State},
};
use std::{thread, time::Duration};

/// How long a prompt waits for an agent that is still starting, unless its sender says otherwise.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long pasted text may take to show in the input box.
const SHOW_LIMIT: Duration = Duration::from_secs(5);
/// How often Enter is pressed at the most; again only while the text still stands in the box.
const ENTERS: usize = 3;

impl Engine {
    /// Sends text or keys to a session. A refusal is an answer, not an error.
    pub fn send(&self, request: &SendRequest) -> Result<SendResponse> {
        let limit = check(request)?;
        let driver = Driver::take(self, &request.session)?;
        let receipt = match &request.text {
            Some(text) => {
                let allows = Allows { queue: request.queue, replace_draft: request.replace_draft };
                driver.send_text(text, allows, limit)?
            }
            None => driver.send_keys(&request.keys, request.force)?,
        };
        let (sighting, judged) = driver.look()?;
        let session = self.describe(&sighting, &judged, false);
        let cursor = self.cursor()?;
        let next = match receipt.refusal {
            Some(refusal) => gate::hint(refusal).to_owned(),
            None => next_step(&session, cursor),
        };
        Ok(SendResponse {
            session: session.name,
            receipt,
            status: session.status,
            state: session.state,
            cursor,
            next,
        })
    }
}

fn check(request: &SendRequest) -> Result<Duration> {
    match (&request.text, request.keys.is_empty()) {
        (Some(_), false) => {
            return Err(Error::invalid(
                "both text and keys were given",
                "give one of them; text is submitted by itself",
            ));
        }
        (None, true) => return Err(Error::invalid("there is nothing to send", "give text or keys")),
        (Some(text), true) if text.trim().is_empty() => {
            return Err(Error::invalid("the text is empty", "to press Enter alone, give keys"));
        }
        (Some(text), true) if text.len() > PROMPT_MAX => {
            return Err(Error::invalid(
                format!("the text has {} bytes, and {PROMPT_MAX} are the limit", text.len()),
                "put it into a file in the working folder and name the file",
            ));
        }
        _ => {}
    }
    seconds(request.wait_s, START_LIMIT)
}

/// A number of seconds as a duration; what makes no sense is refused.
pub(crate) fn seconds(given: Option<f64>, default: Duration) -> Result<Duration> {
    match given {
        None => Ok(default),
        Some(given) => Duration::try_from_secs_f64(given)
            .ok()
            .filter(|limit| *limit <= Duration::from_secs(3600))
            .ok_or_else(|| Error::invalid(format!("{given} s is no time to wait"), "give 0 to 3600 seconds")),
    }
}

impl Driver<'_> {
    /// Sends a prompt and proves that it was taken.
    pub(crate) fn send_text(&self, text: &str, allows: Allows, limit: Duration) -> Result<Receipt> {
        let decided = |sighting: &Sighting, judged: &Judged| match gate::decide(
            sighting,
            judged,
            &self.profile,
            allows,
        ) {
            Gate::NotYet => None,
            gate => Some(gate),
        };
        let (gate, sighting, judged) = self.watch(limit, decided)?;
        let queued = match gate {
            Some(Gate::Open) => false,
            Some(Gate::OpenQueued) => true,
            Some(Gate::Shut(refusal)) => return Ok(refused(refusal)),
            Some(Gate::NotYet) | None => return Ok(refused(Refusal::NotReady)),
        };
        if judged.outcome.signals.draft.is_some() {
            self.press(&sighting, &[&self.profile.keys.clear])?;
        }
        let Some(row) = &sighting.pane else { return Ok(refused(Refusal::PaneDead)) };
        let text = without_controls(text);
        if !self.engine.tmux().paste(&row.pane_id, text.as_bytes(), sighting.folder.path())? {
            return Ok(refused(Refusal::PaneDead));
        }
        self.submit(&sighting, &text, queued)
    }

    /// Presses Enter on pasted text, once it shows where it should, and waits for the proof.
    fn submit(&self, sighting: &Sighting, text: &str, queued: bool) -> Result<Receipt> {
        thread::sleep(Duration::from_millis(self.profile.keys.enter_delay_ms));
        // A dialog that came up meanwhile must not get the Enter: only a box with the text in it does.
        let (shown, ..) = self.watch(SHOW_LIMIT, |_, judged| {
            let signals = &judged.outcome.signals;
            if signals.prompt_waiting || judged.outcome.verdict.state.prompt().is_some() {
                return Some(Err(Refusal::PromptOpen));
            }
            if matches!(judged.outcome.verdict.state, State::Exited { .. }) {
                return Some(Err(Refusal::PaneDead));
            }
            (signals.draft.is_some() || !self.shows_drafts()).then_some(Ok(()))
        })?;
        match shown {
            Some(Ok(())) => {}
            Some(Err(refusal)) => return Ok(refused(refusal)),
            None => return Ok(refused(Refusal::NotReady)),
        }
        let began = now();
        let command = text.trim_start().starts_with('/') && !text.trim().contains('\n');
        let mut turn = None;
        self.update(sighting, |record| {
            if !queued && !command {
                turn = Some(record.begin_turn(&self.name, began));
            }
        })?;
        let limit = Duration::from_millis(self.profile.keys.submit_timeout_ms);
        let (mut evidence, mut ended) = (None, false);
        for _ in 0..ENTERS {
            if !self.press(sighting, &["Enter"])? {
                return Ok(refused(Refusal::PaneDead));
            }
            let (seen, ..) = self.watch(limit, |_, judged| match self.proof(judged, began) {
                Some(proof) => Some(Ok(proof)),
                None => ended_as(&judged.outcome.verdict.state).map(Err),
            })?;
            match seen {
                None => continue,
                Some(Ok(proof)) => evidence = Some(proof),
                // A command such as the one to leave is taken when the agent has left; nothing proves that of a prompt.
                Some(Err(exit)) => {
                    ended = true;
                    evidence = (command && exit.code == Some(0)).then(|| "the agent has left".to_owned());
                }
            }
            break;
        }
        let delivered = match (&evidence, queued) {
            (None, _) => Delivery::Unconfirmed,
            (Some(_), true) => Delivery::Queued,
            (Some(_), false) => Delivery::Submitted,
        };
        let mut note = Note::line(format!("{delivered}, {} bytes", text.len()));
        note.turn.clone_from(&turn);
        let (_, judged) = self.look()?;
        let state = judged.outcome.verdict.state.clone();
        let journal = self.engine.journal()?;
        self.update(sighting, |record| {
            record.note(&self.name, EventKind::Send, &state, now(), note, &journal)
        })?;
        let hint = match (delivered, ended) {
            (Delivery::Unconfirmed, true) => Some(gate::hint(Refusal::PaneDead)),
            (Delivery::Unconfirmed, false) => Some(
                "the text stands in its input box: look with read_session view=screen before sending again",
            ),
            _ => None,
        };
        let hint = hint.map(str::to_owned);
        Ok(Receipt { turn, delivered, evidence, at: timestamp(began), refusal: None, hint })
    }

    /// Whether the agent's input box can be read, so that text in it can be seen.
    fn shows_drafts(&self) -> bool {
        self.profile.screen.input.is_some()
    }

    /// What proves that a prompt was taken: the agent's own word, or the emptied box.
    fn proof(&self, judged: &Judged, began: At) -> Option<String> {
        let memory = &judged.record.memory;
        let told = |fold: &crate::memory::Fold| {
            fold.phase_at >= began && !matches!(fold.phase, Phase::Unknown | Phase::Up)
        };
        if told(&memory.hooks) {
            return Some("hook".to_owned());
        }
        if told(&memory.transcript) {
            return Some("transcript".to_owned());
        }
        let signals = &judged.outcome.signals;
        let emptied = signals.input_shown && signals.draft.is_none();
        let asked = judged.outcome.verdict.state.prompt().is_some();
        if emptied || asked || !self.shows_drafts() {
            return Some("input box emptied".to_owned());
        }
        None
    }

    /// Presses named keys. A dialog gets them only by force: an answer belongs to `answer`.
    fn send_keys(&self, keys: &[String], force: bool) -> Result<Receipt> {
        let (sighting, judged) = self.look()?;
        if sighting.pane.as_ref().is_none_or(|row| row.pane.dead) {
            return Ok(refused(Refusal::PaneDead));
        }
        let asked = judged.outcome.verdict.state.prompt().is_some() || judged.outcome.signals.prompt_waiting;
        if asked && !force {
            return Ok(refused(Refusal::PromptOpen));
        }
        if let Some(bad) = keys.iter().find(|key| !is_key(key)) {
            return Err(Error::invalid(
                format!("`{}` is no key", crate::error::printable(bad)),
                "name keys as tmux does: Enter, Escape, Up, C-c, M-x, F1, or a single character",
            ));
        }
        let words: Vec<&str> = keys.iter().map(String::as_str).collect();
        if !self.press(&sighting, &words)? {
            return Ok(refused(Refusal::PaneDead));
        }
        let state = judged.outcome.verdict.state.clone();
        let journal = self.engine.journal()?;
        let note = Note::line(format!("keys {}", keys.join(" ")));
        self.update(&sighting, |record| {
            record.note(&self.name, EventKind::Send, &state, now(), note, &journal)
        })?;
        Ok(Receipt {
            turn: None,
            delivered: Delivery::Submitted,
            evidence: Some("keys pressed".to_owned()),
            at: timestamp(now()),
            refusal: None,
            hint: None,
        })
    }
}

/// How the agent has ended, where it has.
fn ended_as(state: &State) -> Option<Exit> {
    match state {
        State::Exited { exit } => Some(exit.clone()),
        _ => None,
    }
}

/// Whether tmux knows a key by this name. A word that it does not know would be typed out letter by letter.
fn is_key(key: &str) -> bool {
    const NAMED: &[&str] = &[
        "Enter", "Escape", "Tab", "BTab", "Space", "BSpace", "Up", "Down", "Left", "Right", "Home", "End",
        "PageUp", "PageDown", "PgUp", "PgDn", "IC", "DC", "Insert", "Delete",
    ];
    let bare = key.trim_start_matches("C-").trim_start_matches("M-").trim_start_matches("S-");
    let function = |key: &str| {
        key.strip_prefix('F').and_then(|n| n.parse::<u8>().ok()).is_some_and(|n| (1..=12).contains(&n))
    };
    let single = |key: &str| key.chars().count() == 1 && !key.chars().any(char::is_control);
    NAMED.contains(&bare) || function(bare) || single(bare)
}

fn refused(refusal: Refusal) -> Receipt {
    Receipt {
        turn: None,
        delivered: Delivery::Refused,
        evidence: None,
        at: timestamp(now()),
        refusal: Some(refusal),
        hint: Some(gate::hint(refusal).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_key_is_not_typed_out() {
        for key in ["Enter", "C-c", "M-x", "F12", "a", "é", "C-M-a", "Up"] {
            assert!(is_key(key), "{key}");
        }
        for key in ["enter now", "rm", "", "\n", "F13", "C-"] {
            assert!(!is_key(key), "{key}");
        }
    }

    #[test]
    fn a_time_that_makes_no_sense_is_refused() {
        assert!(seconds(Some(-1.0), START_LIMIT).is_err());
        assert!(seconds(Some(f64::NAN), START_LIMIT).is_err());
        assert_eq!(seconds(Some(1.5), START_LIMIT).unwrap(), Duration::from_millis(1500));
    }
}
