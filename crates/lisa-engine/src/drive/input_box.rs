//! The input box: emptying it, and telling what a person types into it from what Lisa does.
//!
//! tmux counts what is typed into a pane, by whomever. A prompt is pasted into a box that was empty and that nobody had
//! typed into for a while, and submitted only if nothing was typed since. So what is submitted is the prompt and nothing
//! else, although a key that was typed may take some time to be drawn.

use super::{BOX_ROWS, Driver, MOVED_MAX};
use crate::{error::Result, judge::Judged, session::find::Sighting, tmux::Typed};
use std::{thread, time::Duration};

/// How often the box is cleared at the most (some agents clear a line at a time), how long one key may take to show,
/// and how many in a row may show nothing: a line that is empty already takes one, too.
const CLEARS: usize = 400;
const YIELD_LIMIT: Duration = Duration::from_millis(400);
const IDLE_CLEARS: usize = 4;
/// How long a key may take until it is drawn. An agent draws its screen at most every few dozen milliseconds.
const DRAWN: Duration = Duration::from_millis(150);

impl Driver<'_> {
    /// Whether somebody has typed so shortly before a look that it may not be drawn yet.
    pub(super) fn is_typed_into(&self, judged: &Judged) -> bool {
        let typed_at = judged.record.memory.inputs.typed_at;
        !self.is_own(judged) && u128::from(judged.observation.at.since(typed_at)) < DRAWN.as_millis()
    }

    /// Whether a look sees nothing typed but what this driver typed itself.
    fn is_own(&self, judged: &Judged) -> bool {
        let seen = judged.observation.pane.seen().map(|pane| pane.inputs);
        self.typing.borrow().as_ref().is_some_and(|typing| Some(typing.count) == seen)
    }

    /// Whether nothing was typed into the pane since this driver typed last.
    pub(super) fn is_alone(&self, sighting: &Sighting) -> bool {
        let inputs = sighting.pane.as_ref().map(|row| row.pane.inputs);
        self.typing.borrow().as_ref().is_none_or(|typing| Some(typing.count) == inputs)
    }

    /// Empties the input box, line by line if need be; says whether it is empty. What does not yield is left as it is.
    pub(super) fn clear_box(&self) -> Result<bool> {
        let mut idle = 0;
        for _ in 0..CLEARS {
            let (sighting, judged) = self.look()?;
            let signals = &judged.outcome.signals;
            if signals.prompt_waiting || judged.outcome.verdict.state.prompt().is_some() {
                return Ok(false);
            }
            let Some(draft) = signals.draft.clone() else { return Ok(signals.input_shown) };
            match self.press((&sighting, &judged), BOX_ROWS, &[&self.profile.keys.clear])? {
                Typed::Done(_) => {}
                Typed::Moved => continue,
                Typed::Gone => return Ok(false),
            }
            let (yielded, ..) = self.watch(YIELD_LIMIT, |_, judged| {
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

    /// Takes a pasted text out of the box that somebody else types into, and leaves what they typed; says whether that
    /// worked. Nothing is pressed while they type.
    pub(super) fn take_out(&self, pasted: &str) -> Result<bool> {
        let mut theirs: Option<String> = None;
        // What stood in the box when it was last cleared: what is left of that is nobody's news.
        let mut cleared = String::new();
        for _ in 0..MOVED_MAX {
            let (sighting, judged) = self.quiet_look()?;
            let signals = &judged.outcome.signals;
            if !signals.input_shown
                || signals.prompt_waiting
                || judged.outcome.verdict.state.prompt().is_some()
            {
                return Ok(false);
            }
            let look = (&sighting, &judged);
            if let (Some(text), Some(draft), false) = (&mut theirs, &signals.draft, self.is_alone(&sighting))
            {
                // They went on typing while the box was being cleared.
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
                    // Not to be told apart: both are left as they are.
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

    /// A look at a pane that nobody has typed into for a while, so that everything that was typed is drawn.
    fn quiet_look(&self) -> Result<(Sighting, Judged)> {
        let mut before = self.look()?;
        for _ in 0..MOVED_MAX {
            thread::sleep(DRAWN);
            let after = self.look()?;
            let count = |look: &(Sighting, Judged)| look.0.pane.as_ref().map(|row| row.pane.inputs);
            if count(&before) == count(&after) {
                return Ok(after);
            }
            before = after;
        }
        Ok(before)
    }
}

/// What a text has beyond the beginning that it shares with another.
fn beyond<'a>(text: &'a str, known: &str) -> &'a str {
    let same = text.chars().zip(known.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    &text[same..]
}

/// What else stands in a box than a text that was pasted into it; `None` where that cannot be found in it.
fn without(draft: &str, pasted: &str) -> Option<String> {
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    let wanted = letters(pasted);
    // Where each letter of the draft stands: how the box wraps and indents its lines does not matter.
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
