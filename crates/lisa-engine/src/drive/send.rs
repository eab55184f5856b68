//! Sends a prompt: gate, paste, Enter, confirmation.

use super::{
    BOX_ROWS, Driver, GUARD_RETRIES,
    gate::{self, Allows, Gate},
};
use crate::{
    api::{
        Delivery, EventKind, Next, Receipt, Refusal, SendRequest, SendResponse, TurnOutcome, next_step,
        seconds,
        words::{Exit, State},
    },
    classify::channel::Channel,
    classify::{memory::Phase, observation::At, text::without_controls},
    error::{Error, Result},
    observe::now,
    session::{find::SessionSnapshot, plan::PROMPT_MAX},
    tmux::{Guard, Typed},
    watch::{
        Cancel, Context, describe,
        judge::Judged,
        record::{Intent, Note, Turn, timestamp},
    },
};
use std::{thread, time::Duration};

/// How long a prompt waits for an agent that is still starting (the default).
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long pasted text may take to show up in the input box.
const SHOW_LIMIT: Duration = Duration::from_secs(5);
/// How often to press Enter at most; again only while the text is still in the box.
const ENTERS: usize = 3;

/// The hint for a text that nothing has confirmed.
const UNPROVEN: &str =
    "it was typed, but nothing confirms that the agent took it: read its screen before you send it again";

/// What to know about text that was pasted but not submitted.
const IN_BOX: &str = "the text was pasted but not submitted, and may still be in the input box";

/// A prompt that was sent.
struct Sent {
    delivered: Delivery,
    began: At,
    queued: bool,
    bytes: usize,
    /// The turn before it.
    before: Option<Turn>,
}

/// Sends text or keys to a session. A refusal is a normal result, not an error.
pub(crate) fn send(context: &Context, cancel: &Cancel, request: &SendRequest) -> Result<SendResponse> {
    let limit = check(request)?;
    let driver = Driver::acquire(context, cancel, &request.session)?;
    let receipt = match &request.text {
        Some(text) => {
            let allows = Allows { queue: request.queue, replace_draft: request.replace_draft };
            driver.send_text(text, allows, limit)?
        }
        None => driver.send_keys(&request.keys, request.force)?,
    };
    let (snapshot, judged) = driver.look()?;
    let session = describe(&snapshot, &judged, false);
    let cursor = context.cursor()?;
    let next = match receipt.refusal {
        Some(refusal) => Next::Overcome { refusal },
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

fn check(request: &SendRequest) -> Result<Duration> {
    match (&request.text, request.keys.is_empty()) {
        (Some(_), false) => {
            return Err(Error::invalid(
                "both text and keys were given",
                "pass only one of them; text is submitted automatically",
            ));
        }
        (None, true) => return Err(Error::invalid("there is nothing to send", "pass text or keys")),
        (Some(text), true) if text.trim().is_empty() => {
            return Err(Error::invalid("the text is empty", "to press only Enter, pass keys"));
        }
        (Some(text), true) if text.len() > PROMPT_MAX => {
            return Err(Error::invalid(
                format!("the text has {} bytes, and the limit is {PROMPT_MAX}", text.len()),
                "put it into a file in the working directory and refer to that file",
            ));
        }
        _ => {}
    }
    seconds(request.wait_s, START_LIMIT)
}

impl Driver<'_> {
    /// Sends a prompt and confirms that the agent took it.
    pub(crate) fn send_text(&self, text: &str, allows: Allows, limit: Duration) -> Result<Receipt> {
        self.begin();
        let decided = |snapshot: &SessionSnapshot, judged: &Judged| match gate::decide(
            snapshot,
            judged,
            &self.profile,
            allows,
        ) {
            Gate::NotYet if !self.cancel.is_cancelled() => None,
            // What somebody is typing right now may not be drawn yet.
            Gate::Open | Gate::OpenQueued if self.is_typed_into(judged) && !self.cancel.is_cancelled() => {
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
                format!("`{}` runs text that starts with `{sign}` as a shell command", self.profile.id),
                "put a space in front of it to send it as a prompt; to run the command, send it as keys",
            ));
        }
        for _ in 0..GUARD_RETRIES {
            let (gate, snapshot, judged) = self.watch(limit, decided)?;
            tracing::debug!(?gate, state = %judged.outcome.verdict.state.name(), "the gate before a prompt");
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
            match self.paste((&snapshot, &judged), &text)? {
                Typed::Done(_) => return self.submit(&snapshot, &text, queued),
                Typed::Moved => tracing::debug!("the pane has changed since the look; nothing was pasted"),
                Typed::Gone => return Ok(refused(Refusal::PaneDead)),
            }
        }
        Ok(refused(Refusal::NotReady))
    }

    /// Presses Enter on pasted text, once it shows up in the box, and waits for the confirmation.
    fn submit(&self, snapshot: &SessionSnapshot, text: &str, queued: bool) -> Result<Receipt> {
        thread::sleep(Duration::from_millis(self.profile.keys.enter_delay_ms));
        // A dialog that opened meanwhile must not get the Enter: only a box with the text in it does.
        let (shown, ..) = self.watch(SHOW_LIMIT, |snapshot, judged| self.may_enter(snapshot, judged))?;
        match shown {
            Some(Ok(())) => {}
            Some(Err(refusal)) => return self.not_submitted(refusal, text),
            None => return self.not_submitted(Refusal::NotReady, text),
        }
        let began = now();
        let (mut turn, mut before) = (None, None);
        let intended = self.update(snapshot, |record| {
            if !queued && !self.profile.keys.is_command(text) {
                before.clone_from(&record.turn);
                turn = Some(record.begin_turn(&self.name, began));
            }
            let note = Note { turn: turn.clone(), ..Note::line(format!("{} bytes", text.len())) };
            record.intent = Some(Intent::new(EventKind::Send, began, note));
        });
        if let Err(error) = intended {
            return match self.take_out(text)? {
                true => Err(error),
                false => Err(error.and_hint(IN_BOX)),
            };
        }
        let limit = Duration::from_millis(self.profile.keys.submit_timeout_ms);
        let (mut evidence, mut ended) = (None, false);
        let mut trouble = None;
        for attempt in 0..ENTERS {
            match self.enter() {
                Ok(None) => {}
                Ok(Some(_)) if attempt > 0 => break,
                Ok(Some(refusal)) => {
                    self.withdraw(snapshot, |record| record.withdraw_turn(turn.as_deref(), before));
                    return self.not_submitted(refusal, text);
                }
                // tmux may have pressed it all the same.
                Err(error) => {
                    trouble = Some(error);
                    break;
                }
            }
            // From here on the agent may have taken the text, so no failure may claim that it didn't.
            let watched = self.watch(limit, |snapshot, judged| {
                let proof = self.proof(snapshot, judged, began, queued).map(Ok);
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
                // Only press again if the first Enter certainly had no effect: the agent has read it, and the text is
                // still there.
                None if self.has_read_all(snapshot) == Some(true) => continue,
                None => {}
                Some(Ok(proof)) => evidence = Some(proof),
                // An exit command counts as taken when the agent has exited; for a prompt, that confirms nothing.
                Some(Err(exit)) => {
                    ended = true;
                    evidence = (self.profile.keys.is_command(text) && exit.code == Some(0))
                        .then(|| "the agent has exited".to_owned());
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
        tracing::debug!(%delivered, evidence, turn, "sent a prompt");
        let noted = self.note_sent(snapshot, sent, &mut turn);
        let recorded = noted.is_ok();
        let hint = match (delivered, ended, trouble.or(noted.err())) {
            (Delivery::Unconfirmed, true, _) => Some(gate::hint(Refusal::PaneDead).to_owned()),
            (Delivery::Unconfirmed, false, _) => Some(UNPROVEN.to_owned()),
            (_, _, Some(error)) => Some(format!("it could not be recorded: {error}")),
            (_, _, None) => None,
        };
        Ok(Receipt { turn, delivered, evidence, at: timestamp(began), refusal: None, hint, recorded })
    }

    /// Records what was sent and which turn it started.
    fn note_sent(&self, snapshot: &SessionSnapshot, sent: Sent, turn: &mut Option<String>) -> Result<()> {
        let (_, judged) = self.look()?;
        // A command that makes the agent work starts a turn of its own.
        let own = judged.record.turn.as_ref().filter(|turn| !sent.queued && turn.began >= sent.began);
        *turn = turn.take().or_else(|| own.map(|turn| turn.id.clone()));
        let mut note = Note::line(format!("{}, {} bytes", sent.delivered, sent.bytes));
        note.turn.clone_from(turn);
        let state = judged.outcome.verdict.state.clone();
        self.update(snapshot, |record| {
            // A turn whose prompt was never confirmed ends when another one replaces it.
            if let Some(lost) = sent.before.filter(|turn| turn.ended.is_none()) {
                let mut note = Note::line(TurnOutcome::Failed.as_str());
                note.turn = Some(lost.id);
                note.data.insert("why".to_owned(), "nothing confirmed that its prompt was taken".into());
                record.note(&self.name, EventKind::TurnEnded, &state, now(), note);
            }
            record.intent = None;
            record.note(&self.name, EventKind::Send, &state, now(), note);
            self.own(record);
        })
    }

    /// The receipt for text that was pasted and must not be submitted. If somebody is typing into the same box, the
    /// text is removed again and what they typed stays.
    fn not_submitted(&self, refusal: Refusal, text: &str) -> Result<Receipt> {
        tracing::debug!(%refusal, "pasted, but not submitted");
        if refusal != Refusal::DraftPresent || !self.take_out(text)? {
            return Ok(left_in_box(refusal));
        }
        let hint = "somebody was typing: nothing was submitted, and what they typed is left in the input box; send again \
                    when they have sent it, or with replace_draft";
        Ok(Receipt { hint: Some(hint.to_owned()), ..refused(refusal) })
    }

    /// Whether Enter may be pressed; `None` while the text doesn't show yet. If anybody has typed something since the
    /// paste, it would be submitted too, so the answer is no.
    fn may_enter(
        &self,
        snapshot: &SessionSnapshot,
        judged: &Judged,
    ) -> Option<std::result::Result<(), Refusal>> {
        let signals = &judged.outcome.signals;
        if signals.prompt_waiting || judged.outcome.verdict.state.prompt().is_some() {
            return Some(Err(Refusal::PromptOpen));
        }
        if matches!(judged.outcome.verdict.state, State::Exited { .. }) {
            return Some(Err(Refusal::PaneDead));
        }
        if !self.is_alone(snapshot) {
            return Some(Err(Refusal::DraftPresent));
        }
        (signals.draft.is_some() || !self.shows_drafts()).then_some(Ok(()))
    }

    /// Presses Enter on the box, from a look that shows the text in it; returns a refusal if that isn't possible.
    fn enter(&self) -> Result<Option<Refusal>> {
        for _ in 0..GUARD_RETRIES {
            let (snapshot, judged) = self.look()?;
            match self.may_enter(&snapshot, &judged) {
                Some(Ok(())) => {}
                Some(Err(refusal)) => return Ok(Some(refusal)),
                // It was there a moment ago: the box is being redrawn.
                None => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
            }
            match self.press((&snapshot, &judged), BOX_ROWS, &["Enter"])? {
                Typed::Done(_) => return Ok(None),
                Typed::Moved => {}
                Typed::Gone => return Ok(Some(Refusal::PaneDead)),
            }
        }
        Ok(Some(Refusal::NotReady))
    }

    /// Whether Lisa can read the agent's input box, so that it sees text in it.
    fn shows_drafts(&self) -> bool {
        self.profile.screen.input.is_some()
    }

    /// What confirms that a prompt was taken: the agent's own events, or the emptied box. If the agent was already
    /// working, its events are about that work, so they confirm nothing for a queued prompt.
    fn proof(&self, snapshot: &SessionSnapshot, judged: &Judged, began: At, queued: bool) -> Option<String> {
        let memory = &judged.record.memory;
        let told = |fold: &crate::classify::memory::Fold| {
            !queued && fold.tells_of_turn_since(began) && !matches!(fold.phase, Phase::Unknown | Phase::Up)
        };
        let signals = &judged.outcome.signals;
        let proven = Channel::ALL.into_iter().find(|channel| told(&memory.feeds[*channel]));
        let evidence = if let Some(channel) = proven {
            channel.source().as_str()
        } else if signals.input_shown && signals.draft.is_none() {
            "input box emptied"
        } else if !queued && judged.outcome.verdict.state.prompt().is_some() {
            "it asks something about it"
        } else if !self.shows_drafts() && self.has_read_all(snapshot) == Some(true) {
            "read by its program"
        } else {
            return None;
        };
        Some(evidence.to_owned())
    }

    /// Presses named keys. A dialog gets them only with `force`; answers belong to `answer`.
    fn send_keys(&self, keys: &[String], force: bool) -> Result<Receipt> {
        if let Some(bad) = keys.iter().find(|key| !is_key(key)) {
            return Err(Error::invalid(
                format!("`{}` is not a key", crate::error::printable(bad)),
                "use tmux's key names: Enter, Escape, Up, C-c, M-x, F1, or a single character",
            )
            .about(bad));
        }
        let words: Vec<&str> = keys.iter().map(String::as_str).collect();
        for _ in 0..GUARD_RETRIES {
            let (snapshot, judged) = self.look()?;
            let Some(row) = snapshot.pane.as_ref().filter(|row| !row.pane.dead) else { break };
            let state = judged.outcome.verdict.state.clone();
            let asked = state.prompt().is_some() || judged.outcome.signals.prompt_waiting;
            if asked && !force {
                return Ok(refused(Refusal::PromptOpen));
            }
            let note = Note::line(format!("keys {}", keys.join(" ")));
            self.record_intent(&snapshot, EventKind::Send, note.clone())?;
            let typed = match force {
                true => {
                    self.typed(&judged, self.context.tmux().press(&row.pane_id, &words, &Guard::alive()))?
                }
                false => self.press((&snapshot, &judged), BOX_ROWS, &words)?,
            };
            match typed {
                Typed::Done(_) => {}
                Typed::Moved | Typed::Gone => {
                    self.withdraw(&snapshot, |_| ());
                    continue;
                }
            }
            return Ok(Receipt {
                recorded: self.record_done(&snapshot, EventKind::Send, &state, note),
                turn: None,
                delivered: Delivery::Submitted,
                evidence: Some("keys pressed".to_owned()),
                at: timestamp(now()),
                refusal: None,
                hint: None,
            });
        }
        let (snapshot, _) = self.look()?;
        let dead = snapshot.pane.as_ref().is_none_or(|row| row.pane.dead);
        Ok(refused(if dead { Refusal::PaneDead } else { Refusal::NotReady }))
    }
}

/// The receipt for text that was pasted but not submitted.
fn left_in_box(refusal: Refusal) -> Receipt {
    let hint = format!("{IN_BOX}; {}", gate::hint(refusal));
    Receipt { hint: Some(hint), ..refused(refusal) }
}

/// How the agent exited, if it did.
fn ended_as(state: &State) -> Option<Exit> {
    match state {
        State::Exited { exit } => Some(exit.clone()),
        _ => None,
    }
}

/// Whether tmux has a key with this name. tmux would type any other word letter by letter.
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
    fn a_time_that_makes_no_sense_is_refused() {
        assert!(seconds(Some(-1.0), START_LIMIT).is_err());
        assert!(seconds(Some(f64::NAN), START_LIMIT).is_err());
        assert_eq!(seconds(Some(1.5), START_LIMIT).unwrap(), Duration::from_millis(1500));
    }
}
