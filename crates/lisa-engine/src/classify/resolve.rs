//! One look, one step: from evidence to verdict to session state. Event-driven looks and polling both go through here,
//! and nothing else decides a session's state.

use crate::{
    api::words::{Attention, Confidence, Reason, Signals, State, StateName, Status},
    classify::{
        case::Case,
        channel::Channel,
        evidence::{Evidence, Source},
        memory::{Memory, Usage},
        observation::{At, Observation, Reading},
        profile::Profile,
        prompt::{self, Seen},
        rules::RULES,
        sensors::{self, Look, process, todos},
    },
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How long a transient state is believed without any sign of life.
pub const TRANSIENT_EXPIRY_MS: u64 = 60_000;
/// CPU usage from which an agent counts as busy, in tenths of a percent of one core.
const BUSY_PERMILLE: u64 = 80;
/// The shortest time over which CPU usage is measured.
const CPU_WINDOW_MS: u64 = 1_000;

/// Lisa's verdict on a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What it is doing.
    #[serde(flatten)]
    pub state: State,
    /// The rule that decided.
    pub reason: Reason,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// The source of the deciding evidence.
    pub source: Option<Source>,
    /// When it entered this state.
    pub since: At,
    /// Whether somebody should look now.
    pub attention: Attention,
}

impl Verdict {
    /// The status of this state.
    pub fn status(&self) -> Status {
        self.state.status()
    }
}

/// The result of one step.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The memory for the next look.
    pub memory: Memory,
    /// All claims.
    pub evidence: Vec<Evidence>,
    /// The rows above the one that decided, and why they didn't apply.
    pub passed_over: Vec<(Reason, Cow<'static, str>)>,
    /// The deciding evidence.
    pub decided_by: Vec<Evidence>,
    /// Every signal with its value, age and error.
    pub signals: Signals,
    /// Tokens and model, as reported by the agent.
    pub usage: Usage,
    /// While the agent works: in how many seconds it may be worth looking again.
    pub wait_estimate_s: Option<u32>,
    /// Whether a later look was judged before this one: then the verdict is from that look, and only the signals are
    /// from this one.
    pub stale: bool,
}

impl Outcome {
    /// An unchanged verdict, without a look.
    pub(crate) fn again(verdict: Verdict, memory: Memory) -> Self {
        Self {
            usage: memory.usage(),
            verdict,
            memory,
            evidence: Vec::new(),
            passed_over: Vec::new(),
            decided_by: Vec::new(),
            signals: Signals::default(),
            wait_estimate_s: None,
            stale: true,
        }
    }
}

/// Judges one look at a session, given what is remembered of it.
///
/// A look that is older than the last one changes nothing: the verdict stays.
pub fn step(profile: &Profile, mut memory: Memory, obs: &Observation) -> Outcome {
    let stale = memory.observed_at.is_some_and(|last| obs.at < last);
    if let Some(verdict) = memory.verdict.clone().filter(|_| stale) {
        let look = Look::new(profile, &memory, obs);
        let signals = sensors::signals(&look);
        return Outcome { signals, ..Outcome::again(verdict, memory) };
    }
    take_in(profile, &mut memory, obs);
    let look = Look::new(profile, &memory, obs);
    let evidence = sensors::sense(&look);
    let signals = sensors::signals(&look);
    let case = Case { profile, memory: &memory, obs, layout: look.layout.as_ref(), evidence: &evidence };

    let mut passed_over = Vec::new();
    let mut decided = None;
    for rule in RULES {
        match (rule.when)(&case) {
            Ok(ruling) => {
                decided = Some((rule.reason, ruling));
                break;
            }
            Err(why) => passed_over.push((rule.reason, why)),
        }
    }
    let (reason, mut state, confidence, decided_by) = match decided {
        Some((name, ruling)) => (name, ruling.state, ruling.confidence, ruling.by),
        None => (
            Reason::NothingKnown,
            State::Unknown { failed: case.failed_signals() },
            Confidence::Guess,
            Vec::new(),
        ),
    };
    let source = decided_by.first().map(|item| item.source);
    let above = look.layout.as_ref().filter(|_| look.dialog.is_some());
    let above = above.and_then(|layout| prompt::above(profile, layout));
    let input_shown = look.layout.as_ref().is_some_and(|layout| layout.input().is_some());
    drop(look);
    let inputs = obs.pane.seen().map_or(memory.inputs.count, |pane| pane.inputs);
    prompt::identify(&mut memory, state.prompt_mut(), Seen { at: obs.at, inputs, above });
    let attention = attention(&state, &memory, obs);
    let since = since(&memory, &state, obs.at);
    let verdict = Verdict { state, reason, confidence, source, since, attention };

    if input_shown {
        memory.input_shown_at = Some(obs.at);
    }
    memory.note_standing(&evidence);
    memory.observed_at = Some(obs.at);
    memory.up |= shows_up(&verdict.state);
    memory.asked |= verdict.state.prompt().is_some();
    memory.worked |= matches!(verdict.state, State::Working { .. });
    if matches!(verdict.state, State::Interrupted | State::Error { .. } | State::Exited { .. }) {
        memory.forget_background();
    }
    memory.verdict = Some(verdict.clone());
    let usage = memory.usage();
    let wait_estimate_s = wait_estimate(&verdict.state, &signals);
    Outcome {
        verdict,
        memory,
        evidence,
        passed_over,
        decided_by,
        signals,
        usage,
        wait_estimate_s,
        stale: false,
    }
}

/// The estimated seconds until it is worth looking again at a session in this state.
fn wait_estimate(state: &State, signals: &Signals) -> Option<u32> {
    let State::Working { tool, .. } = state else { return None };
    let todos = signals.todos.as_ref();
    let task = todos.and_then(|todos| todos.active.as_deref()).or(tool.as_deref());
    Some(todos::wait_estimate(task, todos))
}

/// Whether a claim for this state has gone without a sign of life for too long.
///
/// Blocking and final states never expire; only transient ones do.
pub const fn is_expired(state: StateName, silent_ms: u64) -> bool {
    match state {
        StateName::Starting | StateName::Working => silent_ms > TRANSIENT_EXPIRY_MS,
        _ => false,
    }
}

/// Updates memory with the lines and measurements of this look.
fn take_in(profile: &Profile, memory: &mut Memory, obs: &Observation) {
    let mut known = None;
    for feed in Channel::ALL.into_iter().filter_map(|channel| profile.feed(channel)) {
        let fold = &mut memory.feeds[feed.channel];
        fold.take(profile, feed, &obs.feeds[feed.channel].lines, known.as_deref(), &mut memory.turns);
        known = known.or_else(|| fold.session_id.clone());
    }
    memory.close_answered();

    match &obs.native {
        Reading::Seen(_) => (memory.native.seen, memory.native.removed) = (true, false),
        Reading::Absent => memory.native.removed = memory.native.seen,
        Reading::Unavailable { .. } => {}
    }
    if let Some(pane) = obs.pane.seen() {
        memory.first_title.get_or_insert_with(|| pane.title.clone());
        memory.title.note(&pane.title, obs.at);
        if profile.terminal_title.shows_turn(&pane.title) {
            memory.title_worked_in = Some(obs.run_id.clone());
        }
        memory.inputs.note(pane.inputs, obs.at);
    }
    measure_cpu(profile, memory, obs);
    if let Some(screen) = obs.screen.seen() {
        memory.output.note(screen, obs.at);
    }
}

/// The agent's CPU usage over the last second or more, however often somebody looks: over a shorter time, one tick of
/// the clock would count as a busy process. An average over its lifetime would tell nothing.
fn measure_cpu(profile: &Profile, memory: &mut Memory, obs: &Observation) {
    let (Some(pane), Some(procs)) = (obs.pane.seen(), obs.procs.seen()) else { return };
    let Some(agent) = process::find_agent(profile, pane.pid, procs) else { return };
    let before = &memory.agent;
    let elapsed = obs.at.since(before.at);
    let known = before.pid == Some(agent.pid);
    if known && elapsed < CPU_WINDOW_MS {
        return;
    }
    let permille = known.then(|| agent.cpu_ms.saturating_sub(before.cpu_ms).saturating_mul(1_000) / elapsed);
    let busy_at =
        if permille.is_some_and(|share| share >= BUSY_PERMILLE) { Some(obs.at) } else { before.busy_at };
    memory.agent = crate::classify::memory::Agent {
        pid: Some(agent.pid),
        cpu_ms: agent.cpu_ms,
        at: obs.at,
        cpu_permille: permille,
        busy_at,
    };
}

/// When the session entered this state: a new prompt is a new state, a new activity isn't.
fn since(memory: &Memory, state: &State, now: At) -> At {
    let same = memory.verdict.as_ref().filter(|before| {
        before.state.name() == state.name()
            && before.state.prompt().map(|prompt| &prompt.id) == state.prompt().map(|prompt| &prompt.id)
    });
    same.map_or(now, |before| before.since)
}

/// Whether an agent in this state is up far enough to take input.
const fn shows_up(state: &State) -> bool {
    matches!(state, State::Ready { .. } | State::Interrupted | State::Error { .. })
}

/// Whether somebody should look at a session in this state.
fn attention(state: &State, memory: &Memory, obs: &Observation) -> Attention {
    match state {
        State::Starting | State::Working { .. } => Attention::Autonomous,
        State::Ready { asks: true, .. } => Attention::NeedsYou,
        State::Ready { .. } => {
            let folds = memory.feeds.all();
            let delivered =
                folds.iter().any(|fold| fold.pull_request) || obs.commits_since_turn.unwrap_or(0) > 0;
            let had_turn = folds.iter().any(|fold| fold.message.is_some());
            if delivered || had_turn || memory.worked { Attention::Delivered } else { Attention::NeedsYou }
        }
        State::Exited { exit } if exit.status() == Status::Completed => Attention::Delivered,
        _ => Attention::NeedsYou,
    }
}
