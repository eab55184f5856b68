//! Sending a prompt: gate, paste, Enter, proof.

use super::{
    BOX_ROWS, Driver, MOVED_MAX,
    gate::{self, Allows, Gate},
};
use crate::{
    api::{Delivery, EventKind, Receipt, Refusal, SendRequest, SendResponse, TurnOutcome},
    engine::{Engine, next_step, now},
    error::{Error, Result},
    judge::Judged,
    memory::Phase,
    observation::At,
    session::{find::Sighting, plan::PROMPT_MAX},
    text::without_controls,
    tmux::{Guard, Typed},
    watch::record::{Note, Turn, timestamp},
    words::{Exit, State},
};
use std::{thread, time::Duration};

/// How long a prompt waits for an agent that is still starting, unless its sender says otherwise.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long pasted text may take to show in the input box.
const SHOW_LIMIT: Duration = Duration::from_secs(5);
/// How often Enter is pressed at the most; again only while the text still stands in the box.
const ENTERS: usize = 3;

/// What to do about a text that nothing has proven to be taken.
const UNPROVEN: &str = "it was typed and nothing proves that the agent took it: look with read_session view=screen before sending again";

/// What was sent.
struct Sent {
    delivered: Delivery,
    began: At,
    queued: bool,
    bytes: usize,
    /// The turn before.
    before: Option<Turn>,
}

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
            Gate::NotYet if !self.engine.is_cancelled() => None,
            // What somebody types at this moment may not be drawn yet.
            Gate::Open | Gate::OpenQueued if self.is_typed_into(judged) && !self.engine.is_cancelled() => {
                None
            }
            gate => Some(gate),
        };
        let mut text = without_controls(text);
        if self.profile.keys.continues.as_deref().is_some_and(|sign| text.ends_with(sign)) {
            text.push(' ');
        }
        if let Some(sign) = self.profile.keys.shell.as_deref().filter(|sign| text.starts_with(sign)) {
            return Err(Error::invalid(
                format!(
                    "`{}` runs a text that begins with `{sign}` as a command of the shell",
                    self.profile.id
                ),
                "put a space in front of it to send it as a prompt; to run the command yourself, press its keys",
            ));
        }
        for _ in 0..MOVED_MAX {
            let (gate, sighting, judged) = self.watch(limit, decided)?;
            let queued = match gate {
                Some(Gate::Open) => false,
                Some(Gate::OpenQueued) => true,
                Some(Gate::Shut(refusal)) => return Ok(refused(refusal)),
                Some(Gate::NotYet) | None => return Ok(refused(Refusal::NotReady)),
            };
            if judged.outcome.signals.draft.is_some() {
                match self.clear_box()? {
                    true => continue,
                    false => return Ok(refused(Refusal::DraftPresent)),
                }
            }
            match self.paste((&sighting, &judged), &text)? {
                Typed::Done(_) => return self.submit(&sighting, &text, queued),
                Typed::Moved => {}
                Typed::Gone => return Ok(refused(Refusal::PaneDead)),
            }
        }
        Ok(refused(Refusal::NotReady))
    }

    /// Presses Enter on pasted text, once it shows where it should, and waits for the proof.
    fn submit(&self, sighting: &Sighting, text: &str, queued: bool) -> Result<Receipt> {
        thread::sleep(Duration::from_millis(self.profile.keys.enter_delay_ms));
        // A dialog that came up meanwhile must not get the Enter: only a box with the text in it does.
        let (shown, ..) = self.watch(SHOW_LIMIT, |sighting, judged| self.may_enter(sighting, judged))?;
        match shown {
            Some(Ok(())) => {}
            Some(Err(refusal)) => return self.not_submitted(refusal, text),
            None => return self.not_submitted(Refusal::NotReady, text),
        }
        let began = now();
        let (mut turn, mut before) = (None, None);
        self.update(sighting, |record| {
            if !queued && !is_command(text) {
                before.clone_from(&record.turn);
                turn = Some(record.begin_turn(&self.name, began));
            }
        })?;
        let limit = Duration::from_millis(self.profile.keys.submit_timeout_ms);
        let (mut evidence, mut ended) = (None, false);
        let mut trouble = None;
        for attempt in 0..ENTERS {
            if let Some(refusal) = self.enter()? {
                if attempt > 0 {
                    break;
                }
                self.update(sighting, |record| record.withdraw_turn(turn.as_deref(), before))?;
                return self.not_submitted(refusal, text);
            }
            // From here on the text may have been taken: whatever fails now is no reason to say that it was not.
            let watched = self.watch(limit, |sighting, judged| {
                let proof = self.proof(sighting, judged, began, queued).map(Ok);
                proof.or_else(|| ended_as(&judged.outcome.verdict.state).map(Err))
            });
            match watched.map_or_else(
                |error| {
                    trouble = Some(error);
                    None
                },
                |(seen, ..)| seen,
            ) {
                None if trouble.is_some() => {}
                // Again only if the first did nothing for certain: the agent has read it, and the text is still there.
                None if self.has_read_all(sighting) == Some(true) => continue,
                None => {}
                Some(Ok(proof)) => evidence = Some(proof),
                // A command such as the one to leave is taken when the agent has left; nothing proves that of a prompt.
                Some(Err(exit)) => {
                    ended = true;
                    evidence =
                        (is_command(text) && exit.code == Some(0)).then(|| "the agent has left".to_owned());
                }
            }
            break;
        }
        let delivered = match (&evidence, queued) {
            (None, _) => Delivery::Unconfirmed,
            (Some(_), true) => Delivery::Queued,
            (Some(_), false) => Delivery::Submitted,
        };
        let sent = Sent { delivered, began, queued, bytes: text.len(), before };
        let noted = self.note_sent(sighting, sent, &mut turn);
        let recorded = noted.is_ok();
        let hint = match (delivered, ended, trouble.or(noted.err())) {
            (Delivery::Unconfirmed, true, _) => Some(gate::hint(Refusal::PaneDead).to_owned()),
            (Delivery::Unconfirmed, false, _) => Some(UNPROVEN.to_owned()),
            (_, _, Some(error)) => Some(format!("it could not be written down: {error}")),
            (_, _, None) => None,
        };
        Ok(Receipt { turn, delivered, evidence, at: timestamp(began), refusal: None, hint, recorded })
    }

    /// Tells the journal what was sent, and which turn it began.
    fn note_sent(&self, sighting: &Sighting, sent: Sent, turn: &mut Option<String>) -> Result<()> {
        let (_, judged) = self.look()?;
        // A command that makes the agent work begins a turn of its own.
        let own = judged.record.turn.as_ref().filter(|turn| !sent.queued && turn.began >= sent.began);
        *turn = turn.take().or_else(|| own.map(|turn| turn.id.clone()));
        let mut note = Note::line(format!("{}, {} bytes", sent.delivered, sent.bytes));
        note.turn.clone_from(turn);
        let state = judged.outcome.verdict.state.clone();
        self.update(sighting, |record| {
            // A turn whose prompt was never seen to be taken ends when another takes its place.
            if let Some(lost) = sent.before.filter(|turn| turn.ended.is_none()) {
                let mut note = Note::line(TurnOutcome::Failed.as_str());
                note.turn = Some(lost.id);
                note.data.insert("why".to_owned(), "nothing proved that its prompt was taken".into());
                record.note(&self.name, EventKind::TurnEnded, &state, now(), note);
            }
            record.note(&self.name, EventKind::Send, &state, now(), note);
            self.own(record);
        })
    }

    /// What to say of a text that was pasted and must not be submitted. Where somebody types into the same box, it is
    /// taken out again, and what they typed is left there.
    fn not_submitted(&self, refusal: Refusal, text: &str) -> Result<Receipt> {
        if refusal != Refusal::DraftPresent || !self.take_out(text)? {
            return Ok(left_in_box(refusal));
        }
        let hint = "somebody was typing: nothing was submitted, and what they typed is left in the input box; send again \
                    when they have sent it, or with replace_draft";
        Ok(Receipt { hint: Some(hint.to_owned()), ..refused(refusal) })
    }

    /// Whether Enter may be pressed: `None` as long as the text does not show yet. Nobody may have typed anything since it
    /// was pasted: that would be submitted with it.
    fn may_enter(&self, sighting: &Sighting, judged: &Judged) -> Option<std::result::Result<(), Refusal>> {
        let signals = &judged.outcome.signals;
        if signals.prompt_waiting || judged.outcome.verdict.state.prompt().is_some() {
            return Some(Err(Refusal::PromptOpen));
        }
        if matches!(judged.outcome.verdict.state, State::Exited { .. }) {
            return Some(Err(Refusal::PaneDead));
        }
        if !self.is_alone(sighting) {
            return Some(Err(Refusal::DraftPresent));
        }
        (signals.draft.is_some() || !self.shows_drafts()).then_some(Ok(()))
    }

    /// Presses Enter on the box, from a look that shows the text in it; says why not, if it can not.
    fn enter(&self) -> Result<Option<Refusal>> {
        for _ in 0..MOVED_MAX {
            let (sighting, judged) = self.look()?;
            match self.may_enter(&sighting, &judged) {
                Some(Ok(())) => {}
                Some(Err(refusal)) => return Ok(Some(refusal)),
                // It was there a moment ago: the box is being drawn anew.
                None => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
            }
            match self.press((&sighting, &judged), BOX_ROWS, &["Enter"])? {
                Typed::Done(_) => return Ok(None),
                Typed::Moved => {}
                Typed::Gone => return Ok(Some(Refusal::PaneDead)),
            }
        }
        Ok(Some(Refusal::NotReady))
    }

    /// Whether the agent's input box can be read, so that text in it can be seen.
    fn shows_drafts(&self) -> bool {
        self.profile.screen.input.is_some()
    }

    /// What proves that a prompt was taken: the agent's own word, or the emptied box. The word of an agent that was at
    /// work before is about that work, so it proves nothing of a prompt that was queued.
    fn proof(&self, sighting: &Sighting, judged: &Judged, began: At, queued: bool) -> Option<String> {
        let memory = &judged.record.memory;
        let told = |fold: &crate::memory::Fold| {
            !queued && fold.tells_of_turn_since(began) && !matches!(fold.phase, Phase::Unknown | Phase::Up)
        };
        let signals = &judged.outcome.signals;
        let evidence = if told(&memory.hooks) {
            "hook"
        } else if told(&memory.transcript) {
            "transcript"
        } else if signals.input_shown && signals.draft.is_none() {
            "input box emptied"
        } else if !queued && judged.outcome.verdict.state.prompt().is_some() {
            "it asks something about it"
        } else if !self.shows_drafts() && self.has_read_all(sighting) == Some(true) {
            "read by its program"
        } else {
            return None;
        };
        Some(evidence.to_owned())
    }

    /// Presses named keys. A dialog gets them only by force: an answer belongs to `answer`.
    fn send_keys(&self, keys: &[String], force: bool) -> Result<Receipt> {
        if let Some(bad) = keys.iter().find(|key| !is_key(key)) {
            return Err(Error::invalid(
                format!("`{}` is no key", crate::error::printable(bad)),
                "name keys as tmux does: Enter, Escape, Up, C-c, M-x, F1, or a single character",
            ));
        }
        let words: Vec<&str> = keys.iter().map(String::as_str).collect();
        for _ in 0..MOVED_MAX {
            let (sighting, judged) = self.look()?;
            let Some(row) = sighting.pane.as_ref().filter(|row| !row.pane.dead) else { break };
            let state = judged.outcome.verdict.state.clone();
            let asked = state.prompt().is_some() || judged.outcome.signals.prompt_waiting;
            if asked && !force {
                return Ok(refused(Refusal::PromptOpen));
            }
            let note = Note::line(format!("keys {}", keys.join(" ")));
            self.intend(&sighting, EventKind::Send, note.clone())?;
            let typed = match force {
                true => {
                    self.typed(&judged, self.engine.tmux().press(&row.pane_id, &words, &Guard::alive()))?
                }
                false => self.press((&sighting, &judged), BOX_ROWS, &words)?,
            };
            match typed {
                Typed::Done(_) => {}
                Typed::Moved | Typed::Gone => {
                    self.give_up(&sighting);
                    continue;
                }
            }
            return Ok(Receipt {
                recorded: self.fulfil(&sighting, EventKind::Send, &state, note),
                turn: None,
                delivered: Delivery::Submitted,
                evidence: Some("keys pressed".to_owned()),
                at: timestamp(now()),
                refusal: None,
                hint: None,
            });
        }
        let (sighting, _) = self.look()?;
        let dead = sighting.pane.as_ref().is_none_or(|row| row.pane.dead);
        Ok(refused(if dead { Refusal::PaneDead } else { Refusal::NotReady }))
    }
}

/// Whether a text is a command of the agent's own (`/model`) rather than a prompt that begins with a path.
fn is_command(text: &str) -> bool {
    let text = text.trim();
    let word = text.split_whitespace().next().unwrap_or_default();
    let name = word.strip_prefix('/').unwrap_or_default();
    !text.contains('\n')
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

/// The text was pasted, but Enter was not pressed.
fn left_in_box(refusal: Refusal) -> Receipt {
    let hint = format!(
        "the text was pasted but not submitted, and may stand in the input box; {}",
        gate::hint(refusal)
    );
    Receipt { hint: Some(hint), ..refused(refusal) }
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
        recorded: true,
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
    fn a_path_at_the_beginning_is_no_command() {
        assert!(is_command("/model") && is_command(" /my-ns:fix it now"));
        assert!(!is_command("/etc/hosts is wrong") && !is_command("/") && !is_command("say /model"));
        assert!(!is_command("/model\nand more"));
    }

    #[test]
    fn a_time_that_makes_no_sense_is_refused() {
        assert!(seconds(Some(-1.0), START_LIMIT).is_err());
        assert!(seconds(Some(f64::NAN), START_LIMIT).is_err());
        assert_eq!(seconds(Some(1.5), START_LIMIT).unwrap(), Duration::from_millis(1500));
    }
}
