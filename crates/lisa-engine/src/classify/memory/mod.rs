//! What is carried from look to look: the classifier's only state, stored in the session's `state.json`.

mod ask;
mod fold;
mod turns;
mod usage;

pub use ask::{Ask, Call};
pub(crate) use fold::is_session_id;
pub use fold::{Fold, Phase};
pub use turns::Turns;
pub use usage::Usage;

use crate::classify::{
    channel::PerChannel,
    evidence::{ClaimKind, Evidence, Source},
    observation::At,
    prompt::Occurrence,
    resolve::Verdict,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hasher},
};

/// The schema version. A file with another version isn't read; the session is judged from scratch.
pub const SCHEMA: u32 = 3;

/// How long after an announcement the input box may still be visible because the dialog isn't drawn yet.
const ANSWERED_MS: u64 = 2_000;

/// What is carried from one look at a session to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The schema version.
    pub schema: u32,
    /// The time of the last look; an older look changes nothing.
    pub observed_at: Option<At>,
    /// The last verdict.
    pub verdict: Option<Verdict>,
    /// The title that the pane had before the agent set its own.
    pub first_title: Option<String>,
    /// The title at the last look, and when it changed.
    pub title: Output,
    /// A hash of the screen at the last look, and when it changed.
    pub output: Output,
    /// How often something was typed into the pane, and when that was last seen to increase.
    pub inputs: Inputs,
    /// The agent's process at the last look.
    pub agent: Agent,
    /// The open or last prompt.
    pub prompt: Occurrence,
    /// Whether the agent has ever asked something.
    pub asked: bool,
    /// Whether the agent has ever been seen working.
    pub worked: bool,
    /// Whether the agent has ever been seen taking input.
    pub up: bool,
    /// The run in which the title has shown a running turn.
    pub title_worked_in: Option<String>,
    /// When the input box was last visible.
    pub input_shown_at: Option<At>,
    /// Whether the agent's state file existed and is gone.
    pub native: NativeSeen,
    /// The claims at the last look, and since when each has been made without a break.
    pub standing: BTreeMap<String, At>,
    /// What the lines of each channel add up to.
    pub feeds: PerChannel<Fold>,
    /// The turns that lines of any channel have named.
    pub turns: Turns,
    /// How far each file has been read.
    pub offsets: BTreeMap<String, u64>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            observed_at: None,
            verdict: None,
            first_title: None,
            title: Output::default(),
            output: Output::default(),
            inputs: Inputs::default(),
            agent: Agent::default(),
            prompt: Occurrence::default(),
            asked: false,
            worked: false,
            up: false,
            title_worked_in: None,
            input_shown_at: None,
            native: NativeSeen::default(),
            standing: BTreeMap::new(),
            feeds: PerChannel::default(),
            turns: Turns::default(),
            offsets: BTreeMap::new(),
        }
    }
}

/// Something visible: the screen or the title.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Output {
    /// Its hash. Another build may compute another hash, which counts as one change.
    pub hash: Option<String>,
    /// When it changed.
    pub changed_at: At,
}

impl Output {
    /// Updates it; returns whether it has changed.
    pub(crate) fn note(&mut self, text: &str, at: At) -> bool {
        let mut hasher = DefaultHasher::new();
        hasher.write(text.as_bytes());
        let hash = format!("{:016x}", hasher.finish());
        let changed = self.hash.as_ref() != Some(&hash);
        if changed {
            *self = Self { hash: Some(hash), changed_at: at };
        }
        changed
    }
}

/// How often something was typed into the pane.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    /// The count at the last look.
    pub count: u64,
    /// When somebody other than Lisa was last seen typing.
    pub typed_at: At,
}

impl Inputs {
    pub(crate) fn note(&mut self, count: u64, at: At) {
        if self.count != count {
            *self = Self { count, typed_at: at };
        }
    }
}

/// The agent's process.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// Its process id when it was last seen.
    pub pid: Option<u32>,
    /// The CPU time it had used when its usage was last measured, in milliseconds.
    pub cpu_ms: u64,
    /// When that was.
    pub at: At,
    /// Its CPU usage over the last second or more, in tenths of a percent of one core.
    pub cpu_permille: Option<u64>,
    /// When it last used a significant share.
    pub busy_at: Option<At>,
}

/// The agent's own state file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NativeSeen {
    /// Whether it has ever existed.
    pub seen: bool,
    /// Whether the agent has removed it, which it does on an orderly exit.
    pub removed: bool,
}

impl Memory {
    /// Updates the memory after a later look that found no change.
    pub(crate) fn looked_again(&mut self, at: At) {
        if self.observed_at.is_none_or(|last| at <= last) {
            return;
        }
        if self.input_shown_at == self.observed_at {
            self.input_shown_at = Some(at);
        }
        if self.prompt.open && Some(self.prompt.seen_at) == self.observed_at {
            self.prompt.seen_at = at;
        }
        self.observed_at = Some(at);
    }

    /// Shifts all times after the clock was set back. Otherwise they would be in the future, and every look would
    /// count as outdated until the clock has caught up.
    pub(crate) fn set_back(&mut self, by: u64) {
        let Self {
            observed_at, verdict, title, output, inputs, agent, prompt, input_shown_at, standing, ..
        } = &mut *self;
        let times = [observed_at, input_shown_at, &mut agent.busy_at].into_iter().flatten();
        let times = times.chain(verdict.as_mut().map(|verdict| &mut verdict.since));
        let times = times.chain([&mut title.changed_at, &mut output.changed_at, &mut inputs.typed_at]);
        times
            .chain([&mut agent.at, &mut prompt.opened_at, &mut prompt.seen_at])
            .chain(prompt.touched_at.as_mut())
            .chain(standing.values_mut())
            .for_each(|time| time.set_back(by));
        self.feeds.all_mut().into_iter().for_each(|fold| fold.set_back(by));
    }

    /// Whether only the time and the agent's CPU time differ from `before`, i.e. what
    /// [`looked_again`](Self::looked_again) updates.
    pub(crate) fn is_only_later_than(&self, before: &Self) -> bool {
        let Some(at) = self.observed_at else { return false };
        // Compares what differs most often first, which avoids a copy.
        if self.output != before.output || self.verdict != before.verdict {
            return false;
        }
        let mut expected = before.clone();
        expected.looked_again(at);
        if self.agent.pid == expected.agent.pid && self.agent.busy_at == expected.agent.busy_at {
            expected.agent.clone_from(&self.agent);
        }
        *self == expected
    }

    /// Since when this claim has been made without a break; `now` if it wasn't made at the last look.
    pub(crate) fn standing_since(&self, source: Source, kind: ClaimKind, now: At) -> At {
        self.standing.get(&standing_key(source, kind)).copied().unwrap_or(now)
    }

    /// Stores the claims of this look.
    pub(crate) fn note_standing(&mut self, evidence: &[Evidence]) {
        let keys = evidence.iter().map(|item| (standing_key(item.source, item.claim.kind()), item.since));
        self.standing = keys.collect();
    }

    /// Forgets the background work of the last turn, which ended with it.
    pub(super) fn forget_background(&mut self) {
        self.feeds.all_mut().into_iter().for_each(Fold::forget_background);
    }

    /// The conversation's own id, from whichever channel knows it.
    pub fn session_id(&self) -> Option<&str> {
        self.feeds.all().into_iter().find_map(|fold| fold.session_id.as_deref())
    }

    /// The prompts that a channel has announced and that nothing has closed since, oldest first.
    pub(super) fn announced(&self) -> &[Ask] {
        let open = self.feeds.all().into_iter().map(|fold| fold.open.as_slice());
        open.into_iter().find(|open| !open.is_empty()).unwrap_or_default()
    }

    /// Whether the input box was visible since this announcement, so that it has been answered.
    pub(super) fn was_answered(&self, ask: &Ask) -> bool {
        self.input_shown_at.is_some_and(|at| at.since(ask.at) > ANSWERED_MS)
    }

    /// Closes the announced prompts about calls that have returned, whichever channel says so.
    pub(super) fn close_answered(&mut self) {
        let returned: BTreeSet<String> =
            self.feeds.all().into_iter().flat_map(|fold| fold.returned.iter().cloned()).collect();
        let Self { feeds, turns, .. } = self;
        feeds.all_mut().into_iter().for_each(|fold| fold.close_answered(&returned, turns));
    }

    /// Whether the agent itself has reported the end of the turn that began at `began`.
    pub fn turn_over_since(&self, began: Option<At>) -> bool {
        let over = |fold: &&Fold| matches!(fold.phase, Phase::Over | Phase::Failed | Phase::Interrupted);
        self.feeds
            .all()
            .into_iter()
            .filter(over)
            .any(|fold| began.is_none_or(|began| fold.tells_of_turn_since(began)))
    }

    /// Tokens and model, from whichever channel reports them.
    pub fn usage(&self) -> Usage {
        // The transcript counts what was used; hooks only name the model.
        let PerChannel { hook, transcript, notify } = &self.feeds;
        let folds = [transcript, hook, notify];
        let pick = |field: fn(&Usage) -> Option<u64>| folds.into_iter().find_map(|fold| field(&fold.usage));
        Usage {
            model: folds.into_iter().find_map(|fold| fold.usage.model.clone()),
            input_tokens: pick(|usage| usage.input_tokens),
            output_tokens: pick(|usage| usage.output_tokens),
            context_window: pick(|usage| usage.context_window),
        }
    }

    /// The agent's last message, from the channel that spoke last.
    pub fn last_message(&self) -> Option<&str> {
        let mut folds = self.feeds.all();
        folds.sort_by_key(|fold| std::cmp::Reverse(fold.phase_at));
        folds.into_iter().find_map(|fold| fold.message.as_deref())
    }
}

fn standing_key(source: Source, kind: ClaimKind) -> String {
    format!("{source}:{kind}")
}
