//! What is carried from look to look: the only state of the classifier, stored in the session's `state.json`.

mod fold;

pub(crate) use fold::is_session_id;
pub use fold::{Ask, Fold, Phase, Usage};

use crate::evidence::{Evidence, Source};
use crate::observation::At;
use crate::prompt::Occurrence;
use crate::resolve::Verdict;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
};

/// The version of the stored form. A file with another one is not read: a session is judged anew.
pub const SCHEMA: u32 = 1;

/// What is carried from one look at a session to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The version of this form.
    pub schema: u32,
    /// When the last look was taken; an older one changes nothing.
    pub observed_at: Option<At>,
    /// The last verdict.
    pub verdict: Option<Verdict>,
    /// The title the pane had before the agent set its own.
    pub first_title: Option<String>,
    /// The title at the last look, and when it changed.
    pub title: Output,
    /// What the screen last showed, and when that changed.
    pub output: Output,
    /// How often something was typed into the pane, and when that was last seen to grow.
    pub inputs: Inputs,
    /// The agent's process at the last look.
    pub agent: Agent,
    /// The prompt that is open, or was open last.
    pub prompt: Occurrence,
    /// Whether the agent has ever asked something.
    pub asked: bool,
    /// Whether the agent has ever been seen at work.
    pub worked: bool,
    /// Whether the agent has ever been seen to take input.
    pub up: bool,
    /// When the input box was last on the screen.
    pub input_shown_at: Option<At>,
    /// Whether the agent's state file was there and has gone.
    pub native: NativeSeen,
    /// The claims that stood at the last look, and since when.
    pub standing: BTreeMap<String, At>,
    /// The fold of hook events.
    pub hooks: Fold,
    /// The fold of notifications.
    pub notify: Fold,
    /// The fold of transcript lines.
    pub transcript: Fold,
    /// How far the observer has read each file.
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
            input_shown_at: None,
            native: NativeSeen::default(),
            standing: BTreeMap::new(),
            hooks: Fold::default(),
            notify: Fold::default(),
            transcript: Fold::default(),
            offsets: BTreeMap::new(),
        }
    }
}

/// Something that is shown: the screen, the title.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Output {
    /// A hash of it. Another build may hash otherwise: then it counts as changed once.
    pub hash: Option<String>,
    /// When it changed.
    pub changed_at: At,
}

impl Output {
    /// Notes what is shown now; says whether that is something else than before.
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
    /// When somebody other than Lisa was last seen to have typed.
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
    /// Its id, when it was last seen.
    pub pid: Option<u32>,
    /// The CPU time it had used, in milliseconds.
    pub cpu_ms: u64,
    /// When that was.
    pub at: At,
    /// The share of one core it used between the last two looks, in tenths of a percent.
    pub cpu_permille: Option<u64>,
    /// When it last used a share worth the name.
    pub busy_at: Option<At>,
}

/// The state file that the agent keeps.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NativeSeen {
    /// Whether it has ever been there.
    pub seen: bool,
    /// Whether the agent has removed it, which it does when it leaves in order.
    pub removed: bool,
}

impl Memory {
    /// Takes in that a later look found everything as it was.
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

    /// Keeps everything in its order when the clock was set back: what is remembered would otherwise be of the future, and
    /// outdate every look until the clock has caught up.
    pub(crate) fn set_back(&mut self, by: u64) {
        let Self {
            observed_at, verdict, title, output, inputs, agent, prompt, input_shown_at, standing, ..
        } = &mut *self;
        let times = [observed_at, input_shown_at, &mut agent.busy_at].into_iter().flatten();
        let times = times.chain(verdict.as_mut().map(|verdict| &mut verdict.since));
        let times = times.chain([&mut title.changed_at, &mut output.changed_at, &mut inputs.typed_at]);
        times
            .chain([&mut agent.at, &mut prompt.seen_at])
            .chain(standing.values_mut())
            .for_each(|time| time.set_back(by));
        [&mut self.hooks, &mut self.notify, &mut self.transcript]
            .into_iter()
            .for_each(|fold| fold.set_back(by));
    }

    /// Whether nothing differs from before but how late it is, and how much the agent's process has run: what
    /// [`looked_again`](Self::looked_again) makes up for.
    pub(crate) fn is_only_later_than(&self, before: &Self) -> bool {
        let Some(at) = self.observed_at else { return false };
        // What most often differs: nothing need be copied to see that.
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

    /// Since when this claim has been made without a break; since now, if it was not made at the last look.
    pub(crate) fn standing_since(&self, source: Source, word: &str, now: At) -> At {
        self.standing.get(&standing_key(source, word)).copied().unwrap_or(now)
    }

    /// Notes which claims stand after this look.
    pub(crate) fn note_standing(&mut self, evidence: &[Evidence]) {
        let keys = evidence.iter().map(|item| (standing_key(item.source, item.claim.word()), item.since));
        self.standing = keys.collect();
    }

    /// The conversation's own id, from whichever channel knows it.
    pub fn session_id(&self) -> Option<&str> {
        let folds = [&self.hooks, &self.transcript, &self.notify];
        folds.into_iter().find_map(|fold| fold.session_id.as_deref())
    }

    /// Whether the agent itself has said that the turn which began then is over.
    pub fn turn_over_since(&self, began: Option<At>) -> bool {
        let over = |fold: &&Fold| matches!(fold.phase, Phase::Over | Phase::Failed | Phase::Interrupted);
        let folds = [&self.hooks, &self.transcript];
        folds.into_iter().filter(over).any(|fold| began.is_none_or(|began| fold.tells_of_turn_since(began)))
    }

    /// Tokens and model, from whichever channel reports them.
    pub fn usage(&self) -> Usage {
        let folds = [&self.transcript, &self.hooks, &self.notify];
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
        let mut folds = [&self.hooks, &self.notify, &self.transcript];
        folds.sort_by_key(|fold| std::cmp::Reverse(fold.phase_at));
        folds.into_iter().find_map(|fold| fold.message.as_deref())
    }
}

fn standing_key(source: Source, word: &str) -> String {
    format!("{}:{word}", source.as_str())
}
