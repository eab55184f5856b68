//! Distinguishes prompts: two equal ones in a row are two prompts.
//!
//! A fingerprint identifies the question. An id identifies one occurrence of it, so that an answer to the first of two
//! equal prompts never reaches the second. The agent's own announcements distinguish them, if it makes any. Otherwise
//! it is another prompt if somebody has typed since it opened and the text above it has changed, or if it was gone in
//! between.

use super::ESCAPE;
use crate::{
    api::words::Prompt,
    classify::channel::Channel,
    classify::{memory::Memory, observation::At},
};
use serde::{Deserialize, Serialize};

/// How long a prompt that nobody has answered may be invisible and still be the same one (a redraw).
const REDRAWN_MS: u64 = 1_000;

/// How long after a key the screen may still be half of the old prompt: the text above it has changed, and the dialog is
/// about to go.
const TORN_MS: u64 = 200;

/// How long an unannounced dialog may take to be drawn completely.
const DRAWING_MS: u64 = 500;

/// The open or last prompt.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Occurrence {
    /// How many prompts there were, including this one.
    pub number: u64,
    /// Its id.
    pub id: String,
    /// The fingerprint of its question.
    pub asks: String,
    /// Whether only its announcement was seen, and not its options yet.
    pub announced_only: bool,
    /// The announcement that it belongs to.
    pub request: Option<String>,
    /// When it was first seen.
    pub opened_at: At,
    /// The pane's input counter when it opened.
    pub inputs: u64,
    /// When it was first seen after somebody typed into it.
    pub touched_at: Option<At>,
    /// A fingerprint of the text above it at that time.
    pub above: Option<u64>,
    /// When it was last seen.
    pub seen_at: At,
    /// Whether it was open at the last look.
    pub open: bool,
}

/// What a look knows besides the prompt itself.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// The time of the look.
    pub at: At,
    /// The pane's input counter.
    pub inputs: u64,
    /// A fingerprint of the text above the dialog on the screen.
    pub above: Option<u64>,
}

/// Gives an open prompt the id of its occurrence. `None` if none is open.
pub fn identify(memory: &mut Memory, prompt: Option<&mut Prompt>, seen: Seen) {
    let Some(prompt) = prompt else {
        memory.prompt.open = false;
        return;
    };
    let request = request(memory, prompt);
    if seen.inputs != memory.prompt.inputs {
        memory.prompt.touched_at.get_or_insert(seen.at);
    }
    let known = &memory.prompt;
    let before = memory.verdict.as_ref().and_then(|verdict| verdict.state.prompt());
    let grown = before.is_some_and(|before| has_grown(before, prompt));
    if !known.is_same(prompt, request.as_deref(), grown, seen) {
        let number = known.number + 1;
        let id = format!("{}-{number}", prompt.id.get(..6).unwrap_or(&prompt.id));
        let Seen { at, inputs, above } = seen;
        memory.prompt = Occurrence { number, id, opened_at: at, inputs, above, ..Occurrence::default() };
    }
    let known = &mut memory.prompt;
    known.asks = std::mem::replace(&mut prompt.id, known.id.clone());
    let announced_only = super::shows_no_option(prompt);
    if known.announced_only && !announced_only {
        known.above = seen.above;
    }
    known.announced_only = announced_only;
    known.request = request.or(known.request.take());
    (known.seen_at, known.open) = (seen.at, true);
}

/// The agent's announcement of this prompt: its own id of the request, or the number of the announcement.
fn request(memory: &Memory, prompt: &Prompt) -> Option<String> {
    Channel::ALL.into_iter().find_map(|channel| {
        let mut open = memory.feeds[channel].open.iter().rev();
        let ask = open.find(|ask| ask.kind == prompt.kind && super::is_about(ask, prompt))?;
        Some(ask.id.clone().unwrap_or_else(|| format!("{} {}", channel.source(), ask.number)))
    })
}

/// Whether a prompt is `before` with more of it drawn: the screen may have been captured in the middle of a dialog.
fn has_grown(before: &Prompt, now: &Prompt) -> bool {
    let continues = |before: &Option<String>, now: &Option<String>| {
        before.as_ref().is_none_or(|before| now.as_ref().is_some_and(|now| now.starts_with(before)))
    };
    let drawn = |prompt: &'_ Prompt| prompt.options.iter().filter(|option| option.key != ESCAPE).count();
    let options = drawn(before) <= drawn(now)
        && before.options[..drawn(before)]
            .iter()
            .zip(&now.options)
            .all(|(before, now)| before.key == now.key && now.label.starts_with(&before.label));
    let title = now.title.starts_with(&before.title) || now.body.contains(&before.title);
    options && title && continues(&before.command, &now.command) && continues(&before.file, &now.file)
}

impl Occurrence {
    /// Whether this is the prompt that was open before; `grown` if it has all of that one's parts.
    fn is_same(&self, prompt: &Prompt, request: Option<&str>, grown: bool, seen: Seen) -> bool {
        let touched = seen.inputs != self.inputs;
        let requests = self.request.as_deref().zip(request);
        let another_request = requests.is_some_and(|(a, b)| a != b);
        let young = seen.at.since(self.opened_at) < DRAWING_MS;
        let drawn_further = grown && !touched && (young || requests.is_some_and(|(a, b)| a == b));
        let drawn_now = self.open && (self.announced_only || drawn_further);
        let asks_the_same = self.asks == prompt.id || drawn_now;
        // Another prompt would have been announced, or is still there when the screen is whole.
        let torn = requests.is_some_and(|(a, b)| a == b)
            && self.touched_at.is_none_or(|touched| seen.at.since(touched) < TORN_MS);
        let moved_on = touched && !drawn_now && !torn && seen.above.is_some() && seen.above != self.above;
        let reopened = !self.open && (touched || seen.at.since(self.seen_at) > REDRAWN_MS);
        self.number > 0 && asks_the_same && !another_request && !moved_on && !reopened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::words::{Attention, Confidence, Effect, PromptOption, Reason, State},
        classify::{memory::Ask, profile::Asks, resolve::Verdict},
    };

    fn profile() -> std::sync::Arc<crate::classify::profile::Profile> {
        crate::classify::profile::Profiles::shipped().get("demo").expect("it ships")
    }

    /// A dialog that asks for a command, drawn with its options or only announced.
    fn prompt(command: &str, drawn: bool) -> Prompt {
        let option = PromptOption {
            key: "1".into(),
            label: "Yes".into(),
            selected: true,
            effect: Effect::AllowOnce,
            checked: None,
        };
        let mut prompt = super::super::from_ask(&profile(), &ask(command));
        prompt.options = if drawn { vec![option] } else { Vec::new() };
        prompt.id = super::super::fingerprint(&prompt, None, None);
        prompt
    }

    fn ask(command: &str) -> Ask {
        Ask { command: Some(command.into()), ..Ask::of(Asks::PERMISSION, None, At(0)) }
    }

    /// The agent's announcement number `number`, which is about this command.
    fn announce(memory: &mut Memory, command: &str, number: u64) {
        memory.feeds.hook.open = vec![Ask { number, ..ask(command) }];
    }

    fn verdict(prompt: Prompt) -> Verdict {
        Verdict {
            state: State::awaiting(prompt),
            reason: Reason::DialogShown,
            confidence: Confidence::Certain,
            source: None,
            since: At(0),
            attention: Attention::NeedsYou,
        }
    }

    fn id(memory: &mut Memory, prompt: Option<Prompt>, at: i64, inputs: u64, above: u64) -> Option<String> {
        let mut prompt = prompt;
        identify(memory, prompt.as_mut(), Seen { at: At(at), inputs, above: Some(above) });
        let id = prompt.as_ref().map(|prompt| prompt.id.clone());
        memory.verdict = prompt.map(verdict);
        id
    }

    #[test]
    fn the_same_prompt_keeps_its_id_from_look_to_look_and_another_has_another() {
        let mut memory = Memory::default();
        let first = id(&mut memory, Some(prompt("ls", true)), 0, 0, 1);
        assert_eq!(id(&mut memory, Some(prompt("ls", true)), 60_000, 0, 1), first);
        assert_eq!(
            id(&mut memory, Some(prompt("ls", true)), 60_000, 0, 2),
            first,
            "something was printed above it"
        );
        assert_eq!(id(&mut memory, Some(prompt("ls", true)), 60_000, 1, 1), first, "somebody moved its mark");
        assert_ne!(id(&mut memory, Some(prompt("rm", true)), 60_000, 1, 1), first);
    }

    #[test]
    fn two_equal_prompts_in_a_row_have_two_ids() {
        // Distinguished by the text above the second one, after somebody has answered the first.
        let mut memory = Memory::default();
        let first = id(&mut memory, Some(prompt("ls", true)), 0, 0, 1);
        let second = id(&mut memory, Some(prompt("ls", true)), 5, 1, 2);
        assert_ne!(second, first);
        // Distinguished by the agent's own announcements.
        announce(&mut memory, "ls", 1);
        assert_eq!(
            id(&mut memory, Some(prompt("ls", true)), 9, 1, 2),
            second,
            "it is announced after it was drawn"
        );
        announce(&mut memory, "ls", 2);
        assert_ne!(id(&mut memory, Some(prompt("ls", true)), 9, 1, 2), second);
        // Distinguished by a look that saw neither.
        let third = id(&mut memory, Some(prompt("ls", true)), 20, 1, 2);
        assert_eq!(id(&mut memory, None, 30, 2, 2), None);
        assert_ne!(id(&mut memory, Some(prompt("ls", true)), 40, 2, 2), third);
    }

    #[test]
    fn an_answered_prompt_whose_dialog_is_about_to_go_is_not_another_one() {
        let mut memory = Memory::default();
        announce(&mut memory, "ls", 1);
        let first = id(&mut memory, Some(prompt("ls", true)), 0, 0, 1);
        assert_eq!(
            id(&mut memory, Some(prompt("ls", true)), 5, 1, 2),
            first,
            "the answer is above it already"
        );
        let stays = id(&mut memory, Some(prompt("ls", true)), 5 + TORN_MS.cast_signed(), 1, 2);
        assert_ne!(stays, first, "one that stays is another, although nobody has announced it");
    }

    #[test]
    fn a_prompt_that_is_drawn_anew_or_announced_before_it_is_drawn_is_one() {
        let mut memory = Memory::default();
        let announced = id(&mut memory, Some(prompt("ls", false)), 0, 0, 1);
        assert_eq!(id(&mut memory, Some(prompt("ls", true)), 30, 0, 2), announced);
        id(&mut memory, None, 40, 0, 2);
        assert_eq!(id(&mut memory, Some(prompt("ls", true)), 50, 0, 2), announced);
        id(&mut memory, None, 60, 0, 2);
        assert_ne!(id(&mut memory, Some(prompt("ls", true)), 5_000, 0, 2), announced);
    }

    #[test]
    fn a_dialog_that_was_seen_half_drawn_keeps_its_id_and_one_that_replaces_it_does_not() {
        let half = prompt("make", true);
        let mut whole = half.clone();
        whole.options.push(PromptOption {
            key: "2".into(),
            label: "No".into(),
            selected: false,
            effect: Effect::Deny,
            checked: None,
        });
        whole.id = super::super::fingerprint(&whole, None, None);
        let after = |prompt: &Prompt, at: i64, inputs: u64| {
            let mut memory = Memory::default();
            let first = id(&mut memory, Some(half.clone()), 0, 0, 1);
            (first, id(&mut memory, Some(prompt.clone()), at, inputs, 1))
        };
        let (first, second) = after(&whole, 5, 0);
        assert_eq!(first, second);
        let (first, second) = after(&whole, 5, 1);
        assert_ne!(first, second, "somebody has typed");
        let (first, second) = after(&whole, DRAWING_MS.cast_signed(), 0);
        assert_ne!(first, second, "it was drawn long ago");
        let (first, second) = after(&prompt("ls", true), 5, 0);
        assert_ne!(first, second, "it asks for something else");
        let (first, second) = after(&half, 60_000, 0);
        assert_eq!(first, second);
    }

    #[test]
    fn an_announcement_of_something_else_is_not_about_the_prompt_that_is_shown() {
        let mut memory = Memory::default();
        announce(&mut memory, "ls", 1);
        let first = id(&mut memory, Some(prompt("ls", true)), 0, 0, 1);
        announce(&mut memory, "rm", 2);
        assert_eq!(id(&mut memory, Some(prompt("ls", true)), 9, 0, 1), first);
    }
}
