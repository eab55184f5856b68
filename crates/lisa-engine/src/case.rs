//! One look's evidence, and the questions that the rules ask of it.

use crate::evidence::{Claim, Evidence, Source};
use crate::memory::{Ask, Fold, Memory};
use crate::observation::{At, Observation};
use crate::profile::{AskKind, Profile};
use crate::prompt;
use crate::screen::Layout;
use crate::words::{Activity, Confidence, Prompt, PromptKind, State};
use std::borrow::Cow;

/// The channels that are read anew at every look, and so always tell the present.
const LIVE: [Source; 2] = [Source::Title, Source::Native];
/// The channels that tell what happened, line by line.
const EVENTS: [Source; 3] = [Source::Hook, Source::Notify, Source::Transcript];

/// How long a channel must have stood for it to be no mere lag.
pub(crate) const SETTLED_MS: u64 = 2_000;

/// How soon after the start an event can only be one of an earlier run of the same conversation.
const HISTORY_MS: u64 = 500;

/// What a row of the table decides, or why it does not.
pub(crate) type Ruling = Result<Decided, Cow<'static, str>>;

/// A state and the evidence it rests on.
pub(crate) struct Decided {
    pub(crate) state: State,
    pub(crate) by: Vec<Evidence>,
    pub(crate) confidence: Confidence,
}

impl Decided {
    pub(crate) fn new(state: State, by: Vec<&Evidence>) -> Self {
        let confidence = by.first().map_or(Confidence::Guess, |first| first.source.confidence());
        Self { state, by: by.into_iter().cloned().collect(), confidence }
    }
}

/// One look's evidence.
pub(crate) struct Case<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) memory: &'a Memory,
    pub(crate) obs: &'a Observation,
    pub(crate) layout: Option<&'a Layout<'a>>,
    pub(crate) evidence: &'a [Evidence],
}

impl<'a> Case<'a> {
    /// The claim of this source with this word.
    pub(crate) fn find(&self, source: Source, word: &str) -> Option<&'a Evidence> {
        self.all(source, word).next()
    }

    /// All claims of this source with this word.
    pub(crate) fn all(&self, source: Source, word: &str) -> impl Iterator<Item = &'a Evidence> {
        self.evidence.iter().filter(move |item| item.source == source && item.claim.word() == word)
    }

    /// All claims with this word.
    pub(crate) fn of_claim(&self, word: &str) -> impl Iterator<Item = &'a Evidence> {
        self.evidence.iter().filter(move |item| item.claim.word() == word)
    }

    /// How long ago a claim was made, or since when it stands, in milliseconds.
    pub(crate) fn age(&self, item: &Evidence) -> u64 {
        self.obs.at.since(item.since)
    }

    /// What a live channel says, if one says this and none says the contrary by showing a turn.
    pub(crate) fn live(&self, word: &str) -> Option<&'a Evidence> {
        let contrary =
            LIVE.iter().any(|source| word == "turn_over" && self.find(*source, "working").is_some());
        if contrary {
            return None;
        }
        LIVE.iter().find_map(|source| self.find(*source, word))
    }

    /// The claim of an event channel with this word, the newest of them.
    pub(crate) fn event(&self, word: &str) -> Option<&'a Evidence> {
        EVENTS.iter().filter_map(|source| self.find(*source, word)).max_by_key(|item| item.since)
    }

    /// The newest statement about the turn that any event channel makes; within one moment hooks count most.
    pub(crate) fn newest_event(&self) -> Option<&'a Evidence> {
        let about_turn = |item: &&Evidence| {
            matches!(
                item.claim,
                Claim::Working { .. } | Claim::TurnOver { .. } | Claim::Failed { .. } | Claim::Interrupted
            )
        };
        // What was already written when the session started tells of an earlier run.
        let of_this_run = |item: &&Evidence| item.since.since(self.obs.spawned_at) >= HISTORY_MS;
        let told = self.evidence.iter().filter(|item| EVENTS.contains(&item.source)).filter(about_turn);
        let told = told.filter(of_this_run);
        let newest = told.clone().max_by_key(|item| (self.told_at(item), std::cmp::Reverse(item.source)))?;
        if !matches!(newest.claim, Claim::TurnOver { .. }) {
            return Some(newest);
        }
        // That a turn is over does not talk over how it ended, if another channel knows that.
        let folds = [&self.memory.hooks, &self.memory.notify, &self.memory.transcript];
        let began = folds.into_iter().map(|fold| fold.turn_at).max().unwrap_or_default();
        let how = |item: &&Evidence| matches!(item.claim, Claim::Failed { .. } | Claim::Interrupted);
        let of_this_turn = |item: &&Evidence| began.since(item.since) < SETTLED_MS;
        told.filter(how).filter(of_this_turn).max_by_key(|item| item.since).or(Some(newest))
    }

    /// When an event channel came to say what it says about the turn. A turn that runs was told of when it was opened:
    /// a late sign of life does not open again what another channel has closed since.
    fn told_at(&self, item: &Evidence) -> At {
        match self.fold(item.source) {
            Some(fold) if matches!(item.claim, Claim::Working { .. }) => fold.phase_at,
            _ => item.since,
        }
    }

    /// What the lines of an event channel amount to; other sources have none.
    pub(crate) fn fold(&self, source: Source) -> Option<&'a Fold> {
        match source {
            Source::Hook => Some(&self.memory.hooks),
            Source::Notify => Some(&self.memory.notify),
            Source::Transcript => Some(&self.memory.transcript),
            _ => None,
        }
    }

    /// Whether the conversation on the screen ends in a prompt that nothing has finished yet.
    pub(crate) fn turn_unfinished(&self) -> bool {
        let Some((layout, pattern)) = self.layout.zip(self.profile.screen.prompt.as_ref()) else {
            return false;
        };
        let rows = layout.rows();
        let asked = layout
            .blocks()
            .iter()
            .any(|block| rows.get(block.start).is_some_and(|row| pattern.is_match(row)));
        let ended = ["turn_over", "failed", "interrupted"]
            .iter()
            .any(|word| self.find(Source::Screen, word).is_some());
        asked && !ended
    }

    /// The evidence that the turn ended in this way.
    ///
    /// The agent's own word counts; the screen's counts where the agent has not said that the turn ended otherwise.
    pub(crate) fn ended_as(&self, word: &str) -> Result<&'a Evidence, Cow<'static, str>> {
        let told = self.newest_event();
        self.takes_input()?;
        if let Some(told) = told.filter(|told| told.claim.word() == word) {
            return Ok(told);
        }
        let shown = self.find(Source::Screen, word).ok_or("neither agent nor screen says so")?;
        match told {
            Some(told) if !matches!(told.claim, Claim::Working { .. }) => {
                Err(format!("the agent says {} instead", told.claim.word()).into())
            }
            _ => Ok(shown),
        }
    }

    /// What shows that the agent takes input, or why nothing does: until then a session is starting, whatever the
    /// transcript of an earlier one says.
    pub(crate) fn takes_input(&self) -> Result<Option<&'a Evidence>, Cow<'static, str>> {
        let shown = self.find(Source::Screen, "input_shown");
        if let Some(shown) = shown.filter(|_| self.memory.up) {
            return Ok(Some(shown));
        }
        match self.layout {
            None => Ok(None),
            Some(layout) if layout.is_blank() => Err("the screen is blank".into()),
            Some(_) if self.memory.up => Ok(None),
            Some(_) => {
                // An input box is drawn before anything reads what is typed into it: the agent's own word counts, or
                // that the box has stood for a while. Some show no box, for people who hear their screen.
                let up = EVENTS.iter().find_map(|source| self.find(*source, "up"));
                let native = self.find(Source::Native, "turn_over").filter(|_| shown.is_some());
                let settle_ms = self.profile.screen.input.as_ref().map_or(0, |input| input.settle_ms);
                let stands = shown.filter(|shown| self.memory.asked || self.age(shown) >= settle_ms);
                let idle = self.live("turn_over").filter(|idle| self.age(idle) >= SETTLED_MS);
                let sign = up.or(native).or(stands).or(idle);
                sign.map(Some).ok_or_else(|| "nothing shows yet that input is taken".into())
            }
        }
    }

    /// The names of the signals that could not be read.
    pub(crate) fn failed_signals(&self) -> Vec<String> {
        let failed = self.evidence.iter().filter_map(|item| match &item.claim {
            Claim::Unreadable { signal } => Some(signal.clone()),
            _ => None,
        });
        failed.collect()
    }

    /// The state of an agent that asks, where the screen does not show what.
    pub(crate) fn awaiting(&self, asking: &Evidence) -> Ruling {
        let own = match &asking.claim {
            Claim::Asking { prompt } => prompt.clone(),
            _ => None,
        };
        let announced = self.event("asking").and_then(|event| match &event.claim {
            Claim::Asking { prompt } => prompt.clone(),
            _ => None,
        });
        let prompt = match (announced, own) {
            // A menu is opened by a key, not by the tool whose prompt was announced before it.
            (Some(announced), Some(own)) if own.kind == PromptKind::Dialog && announced.kind != own.kind => {
                own
            }
            (Some(announced), _) => announced,
            (None, Some(own)) => own,
            (None, None) => self.prompt_of_pending_tool(),
        };
        Ok(Decided::new(State::awaiting(prompt), vec![asking]))
    }

    /// A dialog as the screen shows it; one whose words nobody knows is named by what the agent says that it asks.
    pub(crate) fn named(&self, shown: &Prompt) -> Prompt {
        if !prompt::is_nameless(shown) {
            return shown.clone();
        }
        let live = LIVE.iter().find_map(|source| self.find(*source, "asking"));
        let menu = live.is_some_and(|live| matches!(live.claim, Claim::Asking { prompt: Some(_) }));
        let folds = [&self.memory.hooks, &self.memory.notify];
        // An input box since then has shown that what was asked is answered.
        let answered = |ask: &Ask| self.memory.input_shown_at.is_some_and(|at| at.since(ask.at) > SETTLED_MS);
        let announced = folds.into_iter().find_map(|fold| fold.ask.clone()).filter(|ask| !answered(ask));
        let pending = || self.pending_tool().filter(|_| live.is_some()).map(|tool| self.ask_for(Some(tool)));
        match announced.or_else(pending).filter(|_| !menu) {
            Some(ask) => prompt::rename(self.profile, shown.clone(), &ask),
            None => shown.clone(),
        }
    }

    /// The prompt of a tool that was called and has not returned, where nothing else tells what is asked.
    fn prompt_of_pending_tool(&self) -> Prompt {
        let folds = [&self.memory.hooks, &self.memory.transcript, &self.memory.notify];
        let ask = folds.into_iter().find_map(|fold| fold.ask.clone());
        prompt::from_ask(&ask.unwrap_or_else(|| self.ask_for(self.pending_tool())))
    }

    /// The tool that was called last and has not returned.
    fn pending_tool(&self) -> Option<String> {
        let folds = [&self.memory.hooks, &self.memory.transcript, &self.memory.notify];
        folds.into_iter().find_map(|fold| fold.tools.values().next_back().cloned())
    }

    /// What is asked when nothing is known but the tool.
    fn ask_for(&self, tool: Option<String>) -> Ask {
        let asks = tool.as_ref().and_then(|tool| self.profile.dialog.tools.get(tool));
        let (kind, dialog) = asks.copied().unwrap_or(AskKind::Permission).prompt();
        Ask { kind, dialog, tool, command: None, file: None, text: None, id: None, at: self.obs.at }
    }

    /// The state of an agent at work, with what is known about what it does.
    pub(crate) fn working(&self, by: &Evidence) -> State {
        let told = EVENTS.iter().filter_map(|source| self.find(*source, "working"));
        let shown = self.all(Source::Screen, "working");
        let claims = told.chain(shown).chain(std::iter::once(by));
        let mut best = (Activity::Thinking, None);
        for item in claims {
            let Claim::Working { activity, tool } = &item.claim else { continue };
            if rank(*activity) > rank(best.0) {
                best = (*activity, tool.clone());
            }
        }
        State::Working { activity: best.0, tool: best.1 }
    }

    /// The state of an agent that has ended its turn.
    pub(crate) fn ready(&self) -> State {
        let told = self.memory.last_message().map(str::to_owned);
        let shown = || self.layout.and_then(|layout| layout.last_message(&self.profile.screen));
        let last_message = told.or_else(shown);
        let asks = last_message.as_deref().is_some_and(ends_in_question);
        State::Ready { last_message, asks }
    }
}

/// Which activity says more than another.
const fn rank(activity: Activity) -> u8 {
    match activity {
        Activity::Thinking => 0,
        Activity::Streaming => 1,
        Activity::Background => 2,
        Activity::Tool => 3,
        Activity::Subagent => 4,
        Activity::Retrying => 5,
        Activity::Compacting => 6,
    }
}

/// Whether a message ends by asking something.
pub(crate) fn ends_in_question(message: &str) -> bool {
    let closing =
        |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | ')' | ']' | '"' | '\'' | '”' | '»');
    message.trim_end_matches(closing).ends_with(['?', '？', '؟'])
}
