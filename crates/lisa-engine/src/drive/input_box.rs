//! Clears the input box, and distinguishes what a person types from what Lisa types.
//!
//! tmux counts all input to a pane. A prompt is only pasted into a box that is empty and that nobody has typed into
//! for a while, and only submitted if nothing was typed since. So nothing but the prompt is submitted, although a key
//! press may take a while to be drawn.

use super::{BOX_ROWS, Driver, GUARD_RETRIES};
use crate::{error::Result, session::find::SessionSnapshot, tmux::Typed, watch::judge::Judged};
use std::{thread, time::Duration};

/// Maximum number of clears (some agents clear one line at a time), how long one key may take to show, and how many in
/// a row may have no effect: an empty line needs one, too.
const CLEARS: usize = 400;
const EFFECT_TIMEOUT: Duration = Duration::from_millis(400);
const IDLE_CLEARS: usize = 4;
/// How long a key press may take to be drawn. An agent redraws its screen every few dozen milliseconds at most.
const DRAWN: Duration = Duration::from_millis(150);

impl Driver<'_> {
    /// Whether somebody typed so shortly before a look that it may not be drawn yet.
    pub(super) fn is_typed_into(&self, judged: &Judged) -> bool {
        let typed_at = judged.record.memory.inputs.typed_at;
        !self.is_own(judged) && u128::from(judged.observation.at.since(typed_at)) < DRAWN.as_millis()
    }

    /// Whether all input that a look sees is from this driver.
    fn is_own(&self, judged: &Judged) -> bool {
        let seen = judged.observation.pane.seen().map(|pane| pane.inputs);
        self.typing.borrow().as_ref().is_some_and(|typing| Some(typing.count) == seen)
    }

    /// Whether nothing was typed into the pane since this driver typed last.
    pub(super) fn is_alone(&self, snapshot: &SessionSnapshot) -> bool {
        let inputs = snapshot.pane.as_ref().map(|row| row.pane.inputs);
        self.typing.borrow().as_ref().is_none_or(|typing| Some(typing.count) == inputs)
    }

    /// Clears the input box, line by line if necessary; returns whether it is empty. Text that can't be cleared stays.
    pub(super) fn clear_box(&self) -> Result<bool> {
        let mut idle = 0;
        for _ in 0..CLEARS {
            let (snapshot, judged) = self.look()?;
            let signals = &judged.outcome.signals;
            if signals.prompt_waiting || judged.outcome.verdict.state.prompt().is_some() {
                return Ok(false);
            }
            let Some(draft) = signals.draft.clone() else { return Ok(signals.input_shown) };
            match self.press((&snapshot, &judged), BOX_ROWS, &[&self.profile.keys.clear])? {
                Typed::Done(_) => {}
                Typed::Moved => continue,
                Typed::Gone => return Ok(false),
            }
            let (yielded, ..) = self.watch(EFFECT_TIMEOUT, |_, judged| {
                let signals = &judged.outcome.signals;
                (signals.input_shown && signals.draft.as_ref() != Some(&draft)).then_some(())
            })?;
            idle = if yielded.is_some() { 0 } else { idle + 1 };
            if idle == IDLE_CLEARS {
                break;
            }
        }
        Ok(false)
    }

    /// Removes a pasted text from a box that somebody else is typing into, and keeps what they typed; returns whether
    /// that worked. Presses nothing while they are typing.
    pub(super) fn take_out(&self, pasted: &str) -> Result<bool> {
        let mut theirs: Option<String> = None;
        // The text in the box when it was last cleared; what remains of it isn't new.
        let mut cleared = String::new();
        for _ in 0..GUARD_RETRIES {
            let (snapshot, judged) = self.quiet_look()?;
            let signals = &judged.outcome.signals;
            if !signals.input_shown
                || signals.prompt_waiting
                || judged.outcome.verdict.state.prompt().is_some()
            {
                return Ok(false);
            }
            let look = (&snapshot, &judged);
            if let (Some(text), Some(draft), false) = (&mut theirs, &signals.draft, self.is_alone(&snapshot))
            {
                // They kept typing while the box was being cleared.
                text.push_str(beyond(draft, &cleared));
                cleared.clone_from(draft);
            }
            match (&signals.draft, &theirs) {
                (None, None) => return Ok(true),
                (None, Some(text)) if text.is_empty() => return Ok(true),
                (None, Some(text)) => match self.paste(look, text)? {
                    Typed::Done(_) => return Ok(true),
                    Typed::Moved => {}
                    Typed::Gone => return Ok(false),
                },
                (Some(draft), None) => match without(draft, pasted) {
                    // The two texts can't be told apart, so both stay.
                    None => return Ok(false),
                    Some(rest) => {
                        theirs = Some(rest);
                        cleared.clone_from(draft);
                    }
                },
                (Some(_), Some(_)) => {}
            }
            if signals.draft.is_some()
                && self.press(look, BOX_ROWS, &[&self.profile.keys.clear])? == Typed::Gone
            {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Looks at a pane once nobody has typed into it for a while, so that all input is drawn.
    fn quiet_look(&self) -> Result<(SessionSnapshot, Judged)> {
        let mut before = self.look()?;
        for _ in 0..GUARD_RETRIES {
            thread::sleep(DRAWN);
            let after = self.look()?;
            let count = |look: &(SessionSnapshot, Judged)| look.0.pane.as_ref().map(|row| row.pane.inputs);
            if count(&before) == count(&after) {
                return Ok(after);
            }
            before = after;
        }
        Ok(before)
    }
}

/// What a text has after the prefix that it shares with another.
fn beyond<'a>(text: &'a str, known: &str) -> &'a str {
    let same = text.chars().zip(known.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    &text[same..]
}

/// The text in a box other than the text pasted into it; `None` if the pasted text can't be found.
fn without(draft: &str, pasted: &str) -> Option<String> {
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    let wanted = letters(pasted);
    // The position of each letter of the draft, so that wrapping and indentation don't matter.
    let places: Vec<(usize, char)> = draft.char_indices().filter(|(_, c)| !c.is_whitespace()).collect();
    let found =
        places.windows(wanted.len().max(1)).position(|part| part.iter().map(|(_, c)| c).eq(&wanted))?;
    let (first, _) = *places.get(found)?;
    let (last, c) = *places.get(found + wanted.len() - 1)?;
    let (before, after) = (&draft[..first], &draft[last + c.len_utf8()..]);
    Some(format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::{beyond, without};

    #[test]
    fn what_came_to_a_text_is_what_it_does_not_share_with_the_one_before() {
        assert_eq!((beyond("abc", "ab"), beyond("x", "ab"), beyond("é", "é")), ("c", "x", ""));
    }

    #[test]
    fn what_somebody_typed_is_told_from_what_was_pasted() {
        assert_eq!(without("abcfix the tests", "fix the tests").as_deref(), Some("abc"));
        assert_eq!(without("fix the testsxyz", "fix the tests").as_deref(), Some("xyz"));
        assert_eq!(without("a fix the\ntests b", "fix the tests").as_deref(), Some("a  b"));
        assert_eq!(without("fix the tests", "fix the tests").as_deref(), Some(""));
        assert_eq!(without("something else", "fix the tests"), None);
        assert_eq!(without("", "x"), None);
        assert_eq!(without("é", "é").as_deref(), Some(""));
    }
}
