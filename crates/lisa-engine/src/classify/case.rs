//! The evidence of one look, and the queries that the rules make on it.

use crate::api::words::{Activity, Confidence, Prompt, PromptKind, SignalError, State};
use crate::classify::channel::Channel;
use crate::classify::evidence::{Claim, ClaimKind, Evidence, Source};
use crate::classify::memory::{Ask, Fold, Memory};
use crate::classify::observation::{At, Observation};
use crate::classify::profile::{Asks, Profile};
use crate::classify::prompt;
use crate::classify::screen::Layout;
use std::borrow::Cow;

/// Channels that are read again at every look, so they always show the present.
const LIVE: [Source; 2] = [Source::Title, Source::Native];

/// How long a channel must have said the same thing to rule out mere lag.
pub(crate) const SETTLED_MS: u64 = 2_000;

/// An event this soon after the start can only be from an earlier run of the same conversation.
const HISTORY_MS: u64 = 500;

/// The decision of a row of the table, or why it doesn't apply.
pub(crate) type Ruling = Result<Decided, Cow<'static, str>>;

/// A state and its evidence.
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

/// The evidence of one look.
pub(crate) struct Case<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) memory: &'a Memory,
    pub(crate) obs: &'a Observation,
    pub(crate) layout: Option<&'a Layout<'a>>,
    pub(crate) evidence: &'a [Evidence],
}

impl<'a> Case<'a> {
    /// The claim of this source and kind.
    pub(crate) fn find(&self, source: Source, kind: ClaimKind) -> Option<&'a Evidence> {
        self.all(source, kind).next()
    }

    /// All claims of this source and kind.
    pub(crate) fn all(&self, source: Source, kind: ClaimKind) -> impl Iterator<Item = &'a Evidence> {
        self.evidence.iter().filter(move |item| item.source == source && item.claim.kind() == kind)
    }

    /// All claims of this kind, from any source.
    pub(crate) fn of_claim(&self, kind: ClaimKind) -> impl Iterator<Item = &'a Evidence> {
        self.evidence.iter().filter(move |item| item.claim.kind() == kind)
    }

    /// How old a claim is, in milliseconds.
    pub(crate) fn age(&self, item: &Evidence) -> u64 {
        self.obs.at.since(item.since)
    }

    /// The claim of this kind from a live channel, unless another live channel contradicts it by showing a turn.
    pub(crate) fn live(&self, kind: ClaimKind) -> Option<&'a Evidence> {
        let contrary = LIVE
            .iter()
            .any(|source| kind == ClaimKind::TurnOver && self.find(*source, ClaimKind::Working).is_some());
        if contrary {
            return None;
        }
        LIVE.iter().find_map(|source| self.find(*source, kind))
    }

    /// The newest claim of this kind from an event channel.
    pub(crate) fn event(&self, kind: ClaimKind) -> Option<&'a Evidence> {
        Channel::ALL
            .into_iter()
            .filter_map(|channel| self.find(channel.source(), kind))
            .max_by_key(|item| item.since)
    }

    /// The newest statement of any event channel about the turn; at the same time, hooks take precedence.
    pub(crate) fn newest_event(&self) -> Option<&'a Evidence> {
        let about_turn = |item: &&Evidence| {
            matches!(
                item.claim,
                Claim::Working { .. } | Claim::TurnOver { .. } | Claim::Failed { .. } | Claim::Interrupted
            )
        };
        // Events from before the session's start are about an earlier run.
        let of_this_run = |item: &&Evidence| item.since.since(self.obs.spawned_at) >= HISTORY_MS;
        let told = self.evidence.iter().filter(|item| Channel::of(item.source).is_some()).filter(about_turn);
        let told = told.filter(of_this_run);
        let newest = told.clone().max_by_key(|item| (self.told_at(item), std::cmp::Reverse(item.source)))?;
        if !matches!(newest.claim, Claim::TurnOver { .. }) {
            return Some(newest);
        }
        // "The turn is over" doesn't override how it ended, if another channel knows that.
        let began = self.memory.feeds.all().into_iter().map(|fold| fold.turn_at).max().unwrap_or_default();
        let how = |item: &&Evidence| matches!(item.claim, Claim::Failed { .. } | Claim::Interrupted);
        let of_this_turn = |item: &&Evidence| began.since(item.since) < SETTLED_MS;
        told.filter(how).filter(of_this_turn).max_by_key(|item| item.since).or(Some(newest))
    }

    /// When an event channel made its statement about the turn. For a running turn, that is when it started: a late
    /// sign of life doesn't reopen a turn that another channel has closed since.
    fn told_at(&self, item: &Evidence) -> At {
        match self.fold(item.source) {
            Some(fold) if matches!(item.claim, Claim::Working { .. }) => fold.phase_at,
            _ => item.since,
        }
    }

    /// The fold of an event channel; other sources have none.
    pub(crate) fn fold(&self, source: Source) -> Option<&'a Fold> {
        Channel::of(source).map(|channel| &self.memory.feeds[channel])
    }

    /// Whether the conversation on the screen ends in an unfinished prompt.
    pub(crate) fn turn_unfinished(&self) -> bool {
        let ended = [ClaimKind::TurnOver, ClaimKind::Failed, ClaimKind::Interrupted, ClaimKind::Idle];
        let open = self.layout.is_some_and(|layout| layout.ends_in_open_turn(&self.profile.screen));
        open && !ended.iter().any(|kind| self.find(Source::Screen, *kind).is_some())
    }

    /// Whether the screen shows in its own words that no turn is running.
    pub(crate) fn screen_idle(&self) -> Option<&'a Evidence> {
        let shown = [ClaimKind::Idle, ClaimKind::TurnOver, ClaimKind::Interrupted, ClaimKind::Failed];
        let shown = shown.iter().find_map(|kind| self.find(Source::Screen, *kind));
        shown.filter(|_| self.find(Source::Screen, ClaimKind::Working).is_none())
    }

    /// The evidence that the turn ended this way.
    ///
    /// The agent's own statement counts. The screen counts if the agent hasn't said that the turn ended differently.
    pub(crate) fn ended_as(&self, kind: ClaimKind) -> Result<&'a Evidence, Cow<'static, str>> {
        let told = self.newest_event();
        self.takes_input()?;
        if let Some(told) = told.filter(|told| told.claim.kind() == kind) {
            return Ok(told);
        }
        let shown = self.find(Source::Screen, kind).ok_or("neither agent nor screen says so")?;
        match told {
            Some(told) if !matches!(told.claim, Claim::Working { .. }) => {
                Err(format!("the agent says {} instead", told.claim.kind()).into())
            }
            _ => Ok(shown),
        }
    }

    /// What shows that the agent takes input, or why nothing does. Until then a session is starting, whatever the
    /// transcript of an earlier one says.
    pub(crate) fn takes_input(&self) -> Result<Option<&'a Evidence>, Cow<'static, str>> {
        let shown = self.find(Source::Screen, ClaimKind::InputShown);
        if let Some(shown) = shown.filter(|_| self.memory.up) {
            return Ok(Some(shown));
        }
        match self.layout {
            None => Ok(None),
            Some(layout) if layout.is_blank() => Err("the screen is blank".into()),
            Some(_) if self.memory.up => Ok(None),
            Some(_) => {
                // An input box is drawn before anything reads its input, so the agent's own statement counts, or a box
                // that has been there for a while. In screen reader mode some agents show no box.
                let up =
                    Channel::ALL.into_iter().find_map(|channel| self.find(channel.source(), ClaimKind::Up));
                let native = self.find(Source::Native, ClaimKind::TurnOver).filter(|_| shown.is_some());
                let settle_ms = self.profile.screen.input.as_ref().map_or(0, |input| input.settle_ms);
                let stands = shown.filter(|shown| self.memory.asked || self.age(shown) >= settle_ms);
                let idle = self.live(ClaimKind::TurnOver).filter(|idle| self.age(idle) >= SETTLED_MS);
                let sign = up.or(native).or(stands).or(idle);
                sign.map(Some).ok_or_else(|| "nothing shows yet that the agent takes input".into())
            }
        }
    }

    /// The names of the signals that couldn't be read.
    pub(crate) fn failed_signals(&self) -> Vec<SignalError> {
        let failed = self.evidence.iter().filter_map(|item| match &item.claim {
            Claim::Unreadable { signal } => Some(*signal),
            _ => None,
        });
        failed.collect()
    }

    /// The state of an agent that asks something, when the screen doesn't show what.
    pub(crate) fn awaiting(&self, asking: &Evidence) -> Ruling {
        let own = match &asking.claim {
            Claim::Asking { prompt } => prompt.clone(),
            _ => None,
        };
        let announced = self.event(ClaimKind::Asking).and_then(|event| match &event.claim {
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

    /// A dialog from the screen. If its text is unknown, it is named after what the agent announced.
    pub(crate) fn named(&self, shown: &Prompt) -> Prompt {
        if !prompt::is_nameless(shown) {
            return shown.clone();
        }
        let live = LIVE.iter().find_map(|source| self.find(*source, ClaimKind::Asking));
        let menu = live.is_some_and(|live| matches!(live.claim, Claim::Asking { prompt: Some(_) }));
        let answered = |ask: &Ask| self.memory.was_answered(ask);
        let announced = self.memory.announced().iter().rev().find(|ask| !answered(ask)).cloned();
        let pending = || self.pending_tool().filter(|_| live.is_some()).map(|tool| self.ask_for(Some(tool)));
        match announced.or_else(pending).filter(|_| !menu) {
            Some(ask) => prompt::rename(self.profile, shown.clone(), &ask),
            None => shown.clone(),
        }
    }

    /// What a live channel says instead of asking, although it would show a prompt like this one.
    pub(crate) fn denied_by(&self, asks: Asks) -> Option<&'a Evidence> {
        let instead = |source: Source| {
            self.find(source, ClaimKind::Working).or_else(|| self.find(source, ClaimKind::TurnOver))
        };
        let native = self.profile.native.as_ref().filter(|native| native.tells.contains(&asks));
        let title = self.obs.pane.seen().map(|pane| pane.title.as_str());
        let title = title.filter(|title| self.profile.terminal_title.would_show(title, asks));
        native.and_then(|_| instead(Source::Native)).or_else(|| title.and_then(|_| instead(Source::Title)))
    }

    /// Whether the agent itself denies that it asks what the screen shows: it would have announced it, or a live channel
    /// would show it, and both have had the time to do so. Then something else has drawn the dialog.
    pub(crate) fn is_denied(&self, shown: &Evidence, prompt: &Prompt) -> bool {
        let announced = self.memory.announced().iter().any(|ask| ask.kind == prompt.kind);
        if announced || self.age(shown) < SETTLED_MS {
            return false;
        }
        let mut rules = self.profile.dialog.on.iter();
        let of_start =
            prompt.dialog.is_some() && rules.any(|rule| rule.start && rule.dialog == prompt.dialog);
        let denied = self.denied_by(Asks { kind: prompt.kind, dialog: prompt.dialog });
        (of_start && self.memory.up) || denied.is_some_and(|denied| self.age(denied) >= SETTLED_MS)
    }

    /// A prompt for a tool that was called and hasn't returned, when nothing else tells what is asked.
    fn prompt_of_pending_tool(&self) -> Prompt {
        let ask = self.memory.announced().last().cloned();
        prompt::from_ask(self.profile, &ask.unwrap_or_else(|| self.ask_for(self.pending_tool())))
    }

    /// The last tool that was called and hasn't returned.
    fn pending_tool(&self) -> Option<String> {
        self.memory.feeds.all().into_iter().find_map(Fold::last_tool).map(str::to_owned)
    }

    /// What is probably asked when only the tool is known.
    fn ask_for(&self, tool: Option<String>) -> Ask {
        let asks = tool.as_ref().and_then(|tool| self.profile.dialog.tools.get(tool));
        Ask::of(asks.copied().unwrap_or(Asks::PERMISSION), tool, self.obs.at)
    }

    /// The state of a working agent, with what is known about its activity.
    pub(crate) fn working(&self, by: &Evidence) -> State {
        let told =
            Channel::ALL.into_iter().filter_map(|channel| self.find(channel.source(), ClaimKind::Working));
        let shown = self.all(Source::Screen, ClaimKind::Working);
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

    /// The state of an agent that has finished its turn.
    pub(crate) fn ready(&self) -> State {
        let told = self.memory.last_message().map(str::to_owned);
        let shown = || self.layout.and_then(|layout| layout.last_message(&self.profile.screen));
        let last_message = told.or_else(shown);
        let asks = last_message.as_deref().is_some_and(ends_in_question);
        State::Ready { last_message, asks }
    }
}

/// Ranks activities by how informative they are.
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

/// Whether a message ends in a question.
pub(crate) fn ends_in_question(message: &str) -> bool {
    let closing =
        |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | ')' | ']' | '"' | '\'' | '”' | '»');
    message.trim_end_matches(closing).ends_with(['?', '？', '؟'])
}
