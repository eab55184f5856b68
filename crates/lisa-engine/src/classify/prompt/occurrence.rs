//! Distinguishes prompts: two equal ones in a row are two prompts.
//!
//! A fingerprint identifies the question. An id identifies one occurrence of it, so that an answer to the first of two
//! equal prompts never reaches the second. The agent's own announcements distinguish them, if it makes any. Otherwise
//! it is another prompt if somebody has typed since it opened and the text above it has changed, or if it was gone in
//! between.

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
    if !known.is_same(prompt, request.as_deref(), seen) {
        let number = known.number + 1;
        let id = format!("{}-{number}", prompt.id.get(..6).unwrap_or(&prompt.id));
        memory.prompt =
            Occurrence { number, id, inputs: seen.inputs, above: seen.above, ..Occurrence::default() };
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

impl Occurrence {
    fn is_same(&self, prompt: &Prompt, request: Option<&str>, seen: Seen) -> bool {
        let touched = seen.inputs != self.inputs;
        let drawn_now = self.open && self.announced_only;
        let asks_the_same = self.asks == prompt.id || drawn_now;
        let requests = self.request.as_deref().zip(request);
        let another_request = requests.is_some_and(|(a, b)| a != b);
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
        api::words::{Effect, PromptOption},
        classify::{memory::Ask, profile::Asks},
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

    fn id(memory: &mut Memory, prompt: Option<Prompt>, at: i64, inputs: u64, above: u64) -> Option<String> {
        let mut prompt = prompt;
        identify(memory, prompt.as_mut(), Seen { at: At(at), inputs, above: Some(above) });
        prompt.map(|prompt| prompt.id)
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
    fn an_announcement_of_something_else_is_not_about_the_prompt_that_is_shown() {
        let mut memory = Memory::default();
        announce(&mut memory, "ls", 1);
        let first = id(&mut memory, Some(prompt("ls", true)), 0, 0, 1);
        announce(&mut memory, "rm", 2);
        assert_eq!(id(&mut memory, Some(prompt("ls", true)), 9, 0, 1), first);
    }
}
