//! The decision table, read from top to bottom: the first row whose condition holds gives the state.
//!
//! To change the decision, change a row. A row's name is the public `reason`. A row that doesn't hold says briefly
//! why, for `explain`.

use crate::api::words::{Activity, Confidence, Exit, ExitKind, Mode, Reason, State, StateName};
use crate::classify::case::{Case, Decided, Ruling, SETTLED_MS};
use crate::classify::evidence::{Claim, ClaimKind, Evidence, Source};
use crate::classify::memory::Fold;
use crate::classify::profile::Asks;
use crate::classify::sensors::OUTPUT_STALE_MS;
use std::fmt;

/// How far two channels of the agent may be apart because one of them lags.
const LAG_MS: u64 = 4_000;
/// How long a live channel may take to show what an event says.
const LIVE_LAG_MS: u64 = 1_000;
/// How long a turn that only seems to be over still counts as running.
const SETTLING_MS: u64 = 250;
/// How long ago the last look may be so that a change since then counts as just happened.
const JUST_NOW_MS: u64 = 1_500;
/// How long an agent that takes input may need to take up the prompt that it was started with.
const TAKEN_UP_MS: u64 = 8_000;
/// How long plain text must be on the screen before it counts as a run that draws no screen of its own.
const PLAIN_MS: u64 = 1_500;

/// How long the input box must be gone before something counts as covering it (debounce).
const COVERED_MS: u64 = 500;

/// One row of the table.
pub struct Rule {
    /// The row's name, which is the verdict's `reason`.
    pub reason: Reason,
    /// Its description, in one sentence.
    pub doc: &'static str,
    /// The state that it gives.
    pub gives: Gives,
    /// The condition.
    pub(crate) when: fn(&Case<'_>) -> Ruling,
}

/// The state that a row gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// A fixed state.
    State(StateName),
    /// The state for the open prompt: `awaiting_permission`, `awaiting_question`, …
    Awaiting,
}

impl fmt::Display for Gives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => state.fmt(f),
            Self::Awaiting => f.write_str("awaiting_*"),
        }
    }
}

/// The table.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    Rule { reason: Reason::ServerDied, gives: Gives::State(StateName::Exited), when: server_died,
        doc: "The tmux server that the session was started in died, and the session with it." },
    Rule { reason: Reason::PaneDead, gives: Gives::State(StateName::Exited), when: pane_dead,
        doc: "tmux says that the pane's process has ended (with its exit code or signal), or no longer has the session." },
    Rule { reason: Reason::RunDone, gives: Gives::State(StateName::Exited), when: run_done,
        doc: "The run's own done file, or the marker at the very end of its output, says that the run is over." },
    Rule { reason: Reason::AgentGone, gives: Gives::State(StateName::Exited), when: agent_gone,
        doc: "The agent's process was seen before and is gone now, and a shell runs in its pane." },
    Rule { reason: Reason::AgentSuspended, gives: Gives::State(StateName::Stalled), when: agent_suspended,
        doc: "The agent is suspended and a shell is in the foreground: nothing moves until somebody resumes it." },
    Rule { reason: Reason::PaneUnreadable, gives: Gives::State(StateName::Unknown), when: pane_unreadable,
        doc: "tmux could not be read, and the agent has said nothing recently that would still hold." },
    Rule { reason: Reason::DialogShown, gives: Gives::Awaiting, when: dialog_shown,
        doc: "The screen shows a dialog in the place where this agent shows dialogs." },
    Rule { reason: Reason::NativeAsking, gives: Gives::Awaiting, when: native_asking,
        doc: "The agent's state file says that it waits for an answer." },
    Rule { reason: Reason::TitleAsking, gives: Gives::Awaiting, when: title_asking,
        doc: "The agent's title says that it waits for an answer, and the screen shows no input box." },
    Rule { reason: Reason::EventAsking, gives: Gives::Awaiting, when: event_asking,
        doc: "The agent announced a prompt, nothing has answered it since, and nothing shows that it is closed." },
    Rule { reason: Reason::FinishedWithBackground, gives: Gives::State(StateName::Ready), when: finished_with_background,
        doc: "Agent and screen agree that the turn is over, although the agent still signals activity for background work." },
    Rule { reason: Reason::Frozen, gives: Gives::State(StateName::Stalled), when: frozen,
        doc: "Title, state file or screen show a running turn, but nothing has moved for more than a minute." },
    Rule { reason: Reason::TitleWorking, gives: Gives::State(StateName::Working), when: title_working,
        doc: "The agent's title shows a running turn." },
    Rule { reason: Reason::NativeWorking, gives: Gives::State(StateName::Working), when: native_working,
        doc: "The agent's state file says that a turn is running, and title and screen don't both contradict it." },
    Rule { reason: Reason::EventWorking, gives: Gives::State(StateName::Working), when: event_working,
        doc: "The agent's last event belongs to a running turn, and no live channel has said idle since." },
    Rule { reason: Reason::ScreenWorking, gives: Gives::State(StateName::Working), when: screen_working,
        doc: "The screen shows a running turn in the place where this agent shows it, and no live channel has settled on idle." },
    Rule { reason: Reason::JustSent, gives: Gives::State(StateName::Working), when: just_sent,
        doc: "Lisa just submitted a prompt, and nothing shows yet what the agent did with it." },
    Rule { reason: Reason::Settling, gives: Gives::State(StateName::Working), when: settling,
        doc: "A turn was running at the last look, a moment ago. Only the title or the screen says that it is over, and only since then." },
    Rule { reason: Reason::ExecRunning, gives: Gives::State(StateName::Working), when: exec_running,
        doc: "A run in exec mode never waits for input: it is working as long as its process lives." },
    Rule { reason: Reason::InputCovered, gives: Gives::State(StateName::AwaitingDialog), when: input_covered,
        doc: "No turn is running, and something unknown to Lisa is where the input box was: a pager, an editor, a new dialog." },
    Rule { reason: Reason::TurnFailed, gives: Gives::State(StateName::Error), when: turn_failed,
        doc: "The agent says that the turn failed for good, or its screen ends in an error and the agent doesn't contradict it." },
    Rule { reason: Reason::TurnInterrupted, gives: Gives::State(StateName::Interrupted), when: turn_interrupted,
        doc: "The agent says that somebody interrupted the turn, or its screen says so and the agent doesn't contradict it." },
    Rule { reason: Reason::TurnOver, gives: Gives::State(StateName::Ready), when: turn_over,
        doc: "The agent ended its turn and nothing says that another one has started." },
    Rule { reason: Reason::PromptPending, gives: Gives::State(StateName::Starting), when: prompt_pending,
        doc: "The agent takes input since a moment ago, and hasn't taken up the prompt that it was started with yet." },
    Rule { reason: Reason::Idle, gives: Gives::State(StateName::Ready), when: idle,
        doc: "The agent's live state is idle and it shows that it takes input." },
    Rule { reason: Reason::InputReady, gives: Gives::State(StateName::Ready), when: input_ready,
        doc: "The screen shows an input box and signs that the agent is up, and nothing shows a running turn." },
    Rule { reason: Reason::PlainOutput, gives: Gives::State(StateName::Working), when: plain_output,
        doc: "The agent writes plain text and draws no screen of its own: it is running, and nothing more can be said." },
    Rule { reason: Reason::Starting, gives: Gives::State(StateName::Starting), when: starting,
        doc: "The session is young and nothing shows yet that the agent takes input." },
    Rule { reason: Reason::SignalsFailed, gives: Gives::State(StateName::Unknown), when: signals_failed,
        doc: "Some signals could not be read, and the others say nothing." },
    Rule { reason: Reason::NothingMoves, gives: Gives::State(StateName::Stalled), when: nothing_moves,
        doc: "The agent is alive, no prompt is open, and nothing has moved for too long." },
    Rule { reason: Reason::AgentAlive, gives: Gives::State(StateName::Working), when: agent_alive,
        doc: "The process is alive but shows no structure that Lisa knows: it is running, and nothing more can be said." },
    Rule { reason: Reason::NothingKnown, gives: Gives::State(StateName::Unknown), when: nothing_known,
        doc: "There is no evidence at all." },
];

/// The table as Markdown, for the documentation.
pub fn as_markdown() -> String {
    let rows = RULES.iter().map(|rule| format!("| `{}` | {} | {} |\n", rule.reason, rule.gives, rule.doc));
    format!("| reason | state | when |\n|---|---|---|\n{}", rows.collect::<String>())
}

fn server_died(case: &Case<'_>) -> Ruling {
    let died = case.find(Source::Pane, ClaimKind::ServerDied).ok_or("its tmux server is alive or unknown")?;
    if case.of_claim(ClaimKind::RunDone).next().is_some() {
        return Err("the run was already over".into());
    }
    Ok(Decided::new(State::Exited { exit: exit(None, None) }, vec![died]))
}

fn pane_dead(case: &Case<'_>) -> Ruling {
    let dead = case.find(Source::Pane, ClaimKind::PaneDead).ok_or("the pane is alive")?;
    let (mut code, mut signal) = match dead.claim {
        Claim::PaneDead { code, signal } => (code, signal),
        _ => (None, None),
    };
    let mut by = vec![dead];
    // tmux leaves the exit status empty for seconds sometimes; the run's own done file fills the gap.
    let unknown = code.is_none() && signal.is_none();
    if let Some(done) = case.of_claim(ClaimKind::RunDone).next().filter(|_| unknown)
        && let Claim::RunDone { code: known, signal: by_signal } = done.claim
    {
        (code, signal) = (known, by_signal);
        by.push(done);
    }
    Ok(Decided::new(State::Exited { exit: exit(code, signal) }, by))
}

fn run_done(case: &Case<'_>) -> Ruling {
    let done = case.of_claim(ClaimKind::RunDone).next().ok_or("nothing says that the run is over")?;
    let (code, signal) = match done.claim {
        Claim::RunDone { code, signal } => (code, signal),
        _ => (None, None),
    };
    Ok(Decided::new(State::Exited { exit: exit(code, signal) }, vec![done]))
}

fn agent_gone(case: &Case<'_>) -> Ruling {
    let gone = case
        .find(Source::Process, ClaimKind::AgentGone)
        .ok_or("the agent's process is alive or was never seen")?;
    let clean = matches!(gone.claim, Claim::AgentGone { clean: true });
    let kind = if clean { ExitKind::UserInitiated } else { ExitKind::Unknown };
    Ok(Decided::new(State::Exited { exit: Exit { code: None, signal: None, kind } }, vec![gone]))
}

fn agent_suspended(case: &Case<'_>) -> Ruling {
    let stopped =
        case.find(Source::Process, ClaimKind::AgentSuspended).ok_or("the agent is not suspended")?;
    Ok(Decided::new(
        State::Stalled { expected: "the agent to be brought back to the foreground".to_owned() },
        vec![stopped],
    ))
}

fn pane_unreadable(case: &Case<'_>) -> Ruling {
    let failed = case.find(Source::Pane, ClaimKind::Unreadable).ok_or("tmux could be read")?;
    if let Some(event) = case.newest_event() {
        return Err(format!("the agent's last event ({}) still holds", event.claim.kind()).into());
    }
    Ok(Decided::new(State::Unknown { failed: case.failed_signals() }, vec![failed]))
}

fn dialog_shown(case: &Case<'_>) -> Ruling {
    let shown = case.find(Source::Screen, ClaimKind::Dialog).ok_or("the screen shows no dialog")?;
    let Claim::Dialog { prompt } = &shown.claim else { return Err("the screen shows no dialog".into()) };
    let mut prompt = case.named(prompt);
    prompt.disagrees |= case.is_denied(shown, &prompt);
    Ok(Decided::new(State::awaiting(prompt), vec![shown]))
}

fn native_asking(case: &Case<'_>) -> Ruling {
    let asking = case.find(Source::Native, ClaimKind::Asking).ok_or("the state file does not say so")?;
    if case.find(Source::Screen, ClaimKind::InputShown).is_some() && case.age(asking) > SETTLED_MS {
        return Err("the screen shows the input box".into());
    }
    case.awaiting(asking)
}

fn title_asking(case: &Case<'_>) -> Ruling {
    let asking = case.find(Source::Title, ClaimKind::Asking).ok_or("the title does not say so")?;
    if case.find(Source::Screen, ClaimKind::InputShown).is_some() {
        return Err("the screen shows the input box".into());
    }
    case.awaiting(asking)
}

fn event_asking(case: &Case<'_>) -> Ruling {
    let asking = case.event(ClaimKind::Asking).ok_or("no prompt was announced")?;
    if let Some(against) = case
        .find(Source::Screen, ClaimKind::InputShown)
        .or_else(|| case.find(Source::Screen, ClaimKind::Working))
    {
        return Err(format!("the screen shows {} instead of a dialog", against.claim.kind()).into());
    }
    let Claim::Asking { prompt } = &asking.claim else { return Err("no prompt was announced".into()) };
    let asks = prompt.as_ref().map(|prompt| Asks { kind: prompt.kind, dialog: prompt.dialog });
    if let Some(denied) = asks.and_then(|asks| case.denied_by(asks)) {
        return Err(format!("the {} would show it and doesn't", denied.source.as_str()).into());
    }
    // Without a screen nothing shows that the prompt was answered. If it wasn't open at the last look, an event that
    // the last look already knew can't have opened it.
    let known =
        case.memory.verdict.as_ref().filter(|_| case.find(Source::Pane, ClaimKind::Unreadable).is_some());
    let old = case.memory.observed_at.is_some_and(|last| asking.since <= last);
    if old && known.is_some_and(|before| before.state.prompt().is_none()) {
        return Err("it was already closed when the screen was last read".into());
    }
    let moved_on = [ClaimKind::TurnOver, ClaimKind::Working].iter().find_map(|kind| case.live(*kind));
    if moved_on.is_some_and(|live| live.since > asking.since && case.age(live) > SETTLED_MS) {
        return Err("a live channel has moved on since".into());
    }
    case.awaiting(asking)
}

fn finished_with_background(case: &Case<'_>) -> Ruling {
    let is_background = |item: &&Evidence| matches!(item.claim, Claim::TurnOver { background: true });
    let told = case.newest_event().filter(is_background);
    let shown = case.all(Source::Screen, ClaimKind::TurnOver).find(is_background);
    let over = told.or(shown).ok_or("no background work is running after a turn")?;
    if case.find(Source::Screen, ClaimKind::Working).is_some() {
        return Err("the screen shows a running turn".into());
    }
    let end =
        case.find(Source::Screen, ClaimKind::TurnOver).ok_or("the screen does not end in a finished turn")?;
    if case.find(Source::Title, ClaimKind::Working).is_some() && case.age(end) < SETTLED_MS {
        return Err("the title may still lag behind".into());
    }
    Ok(Decided::new(case.ready(), vec![over, end]))
}

fn frozen(case: &Case<'_>) -> Ruling {
    let still =
        case.find(Source::Timing, ClaimKind::Still).ok_or("something has moved within the last minute")?;
    if case.obs.mode == Mode::Exec || case.obs.screen.seen().is_none() {
        return Err("the session has no screen that could move".into());
    }
    if case.newest_event().is_some_and(|event| matches!(event.claim, Claim::Working { .. })) {
        return Err("the agent reported on its turn within the last minute".into());
    }
    let shown: [fn(&Case<'_>) -> Ruling; 3] = [title_working, native_working, screen_working];
    let shown = shown.into_iter().find_map(|rule| rule(case).ok()).ok_or("nothing shows a running turn")?;
    let by = std::iter::once(still.clone()).chain(shown.by).collect();
    let state = State::Stalled { expected: "progress of the turn that is shown".to_owned() };
    Ok(Decided { by, ..Decided::new(state, vec![still]) })
}

fn title_working(case: &Case<'_>) -> Ruling {
    let title = case.find(Source::Title, ClaimKind::Working).ok_or("the title shows no running turn")?;
    // A spinner moves. One that stands, while nothing else shows a turn, is left over.
    let stood = case.obs.at.since(case.memory.title.changed_at);
    let watched = case.memory.observed_at.is_some_and(|last| case.obs.at.since(last) <= JUST_NOW_MS);
    let idle = case.screen_idle().zip(case.find(Source::Native, ClaimKind::TurnOver));
    let settled = |(shown, told): (&Evidence, &Evidence)| case.age(shown).min(case.age(told)) > LAG_MS;
    if watched && stood > LAG_MS && idle.is_some_and(settled) {
        return Err("the title has stopped moving, and state file and screen show no turn".into());
    }
    Ok(Decided::new(case.working(title), vec![title]))
}

fn native_working(case: &Case<'_>) -> Ruling {
    let busy = case.find(Source::Native, ClaimKind::Working).ok_or("the state file does not say so")?;
    let title_idle = case.find(Source::Title, ClaimKind::TurnOver);
    let screen_idle = case.find(Source::Screen, ClaimKind::Working).is_none()
        && (case.find(Source::Screen, ClaimKind::TurnOver).is_some()
            || case.find(Source::Screen, ClaimKind::Up).is_some());
    if title_idle.is_some() && screen_idle && case.age(busy) > SETTLED_MS {
        return Err("title and screen agree that the turn is over".into());
    }
    Ok(Decided::new(case.working(busy), vec![busy]))
}

fn event_working(case: &Case<'_>) -> Ruling {
    let event = case.newest_event().filter(|event| matches!(event.claim, Claim::Working { .. }));
    let event = event.ok_or("the agent's last event does not say so")?;
    let background = matches!(event.claim, Claim::Working { activity: Activity::Background, .. });
    // An event tells of the past. Two live channels that have had the time to show the turn know better.
    let began = case.fold(event.source).map_or(event.since, |fold| fold.turn_at);
    if let Some((idle, shown)) = case.live(ClaimKind::TurnOver).zip(case.screen_idle())
        && [case.obs.at.since(began), case.age(idle), case.age(shown)].iter().all(|age| *age > LIVE_LAG_MS)
        && !background
    {
        return Err(
            format!("the {} and the screen show that no turn is running", idle.source.as_str()).into()
        );
    }
    let still = case.find(Source::Screen, ClaimKind::Idle).filter(|idle| case.age(idle) > LAG_MS);
    let still = still.filter(|_| case.screen_idle().is_some() && case.obs.at.since(began) > LAG_MS);
    if still.is_some_and(|_| !background) {
        return Err("the screen still shows that no turn is running, long after that event".into());
    }
    if let Some(idle) = case.live(ClaimKind::TurnOver).filter(|_| !background) {
        if idle.since > event.since {
            return Err(format!("the {} has turned idle since", idle.source.as_str()).into());
        }
        if case.age(event) > LAG_MS {
            return Err(format!("the {} still says idle, long after that event", idle.source.as_str()).into());
        }
    }
    let ended = [ClaimKind::TurnOver, ClaimKind::Interrupted, ClaimKind::Failed]
        .iter()
        .find_map(|kind| case.find(Source::Screen, *kind));
    let ended = ended.filter(|ended| ended.since > event.since && case.age(ended) > LAG_MS && !background);
    if let Some(ended) = ended.filter(|_| case.find(Source::Screen, ClaimKind::Working).is_none()) {
        return Err(format!("the screen has shown since that the turn is {}", ended.claim.kind()).into());
    }
    Ok(Decided::new(case.working(event), vec![event]))
}

fn screen_working(case: &Case<'_>) -> Ruling {
    let shown = case.find(Source::Screen, ClaimKind::Working).ok_or("the screen shows no running turn")?;
    if let Some(idle) = case.live(ClaimKind::TurnOver) {
        let settled = idle.since >= shown.since && case.age(idle) > SETTLED_MS;
        let outlasted = idle.since < shown.since && case.age(shown) > LAG_MS;
        if settled || outlasted {
            return Err(format!("the {} has settled on idle", idle.source.as_str()).into());
        }
    }
    let ended = case.newest_event().filter(|event| !matches!(event.claim, Claim::Working { .. }));
    if case.live(ClaimKind::TurnOver).is_some() && ended.is_some_and(|ended| ended.since > shown.since) {
        return Err("live channels and events agree that the turn has ended since".into());
    }
    Ok(Decided::new(case.working(shown), vec![shown]))
}

fn just_sent(case: &Case<'_>) -> Ruling {
    let sent = case.find(Source::Sent, ClaimKind::Sent).ok_or("nothing was sent just now")?;
    if !case.memory.up {
        return Err("the agent is not up yet".into());
    }
    let later = case.evidence.iter().find(|item| {
        let ends = matches!(item.claim, Claim::TurnOver { .. } | Claim::Failed { .. } | Claim::Interrupted);
        let about_it = |fold: &Fold| fold.tells_of_turn_since(sent.since);
        // A state file that has only just appeared says nothing about the prompt.
        ends && item.source != Source::Native
            && item.since > sent.since
            && case.fold(item.source).is_none_or(about_it)
    });
    if let Some(later) = later {
        return Err(format!("the {} has said {} since", later.source.as_str(), later.claim.kind()).into());
    }
    Ok(Decided::new(case.working(sent), vec![sent]))
}

fn settling(case: &Case<'_>) -> Ruling {
    let before = case.memory.verdict.as_ref().map(|verdict| &verdict.state);
    let Some(state @ State::Working { .. }) = before else {
        return Err("no turn ran at the last look".into());
    };
    // After a longer pause nobody knows how old a change is that this look finds.
    if case.memory.observed_at.is_none_or(|last| case.obs.at.since(last) > JUST_NOW_MS) {
        return Err("the last look was long ago".into());
    }
    let ended = case.newest_event().filter(|event| !matches!(event.claim, Claim::Working { .. }));
    if ended.is_some() || case.find(Source::Native, ClaimKind::TurnOver).is_some() {
        return Err("the agent itself says that the turn is over".into());
    }
    let shown = || {
        let kinds = [ClaimKind::TurnOver, ClaimKind::Up, ClaimKind::Interrupted, ClaimKind::Failed].iter();
        kinds.filter_map(|kind| case.find(Source::Screen, *kind)).max_by_key(|item| item.since)
    };
    let fresh = case
        .find(Source::Title, ClaimKind::TurnOver)
        .or_else(shown)
        .filter(|item| case.age(item) < SETTLING_MS);
    let fresh = fresh.ok_or("nothing has changed just now")?;
    Ok(Decided::new(state.clone(), vec![fresh]))
}

fn exec_running(case: &Case<'_>) -> Ruling {
    if case.obs.mode != Mode::Exec {
        return Err("the session is interactive".into());
    }
    let alive =
        case.find(Source::Process, ClaimKind::AgentAlive).ok_or("the agent's process is not visible")?;
    Ok(Decided::new(case.working(alive), vec![alive]))
}

fn input_covered(case: &Case<'_>) -> Ruling {
    let covered =
        case.find(Source::Screen, ClaimKind::Covered).ok_or("the input box is visible, or never was")?;
    let Claim::Covered { prompt } = &covered.claim else { return Err("nothing covers the input box".into()) };
    // A screen that is being redrawn has no box for a moment, and a screen that keeps changing shows work, not a
    // dialog. But a change that the first look after a pause finds counts as old, and what already covered the box may
    // change.
    let watched = case.memory.observed_at.is_some_and(|last| case.obs.at.since(last) <= JUST_NOW_MS);
    let known = case.memory.verdict.as_ref().is_some_and(|before| before.reason == Reason::InputCovered);
    let stood = case.age(covered).min(case.obs.at.since(case.memory.output.changed_at));
    if watched && !known && stood < COVERED_MS {
        return Err("the input box has only just disappeared".into());
    }
    Ok(Decided::new(State::awaiting(prompt.clone()), vec![covered]))
}

fn turn_failed(case: &Case<'_>) -> Ruling {
    let failed = case.ended_as(ClaimKind::Failed)?;
    let Claim::Failed { failure } = &failed.claim else { return Err("no failure".into()) };
    if failed.source == Source::Screen && case.find(Source::Screen, ClaimKind::Interrupted).is_some() {
        return Err("the screen ends in an interrupt, below that failure".into());
    }
    Ok(Decided::new(State::Error { failure: failure.clone() }, vec![failed]))
}

fn turn_interrupted(case: &Case<'_>) -> Ruling {
    let stopped = case.ended_as(ClaimKind::Interrupted)?;
    Ok(Decided::new(State::Interrupted, vec![stopped]))
}

fn turn_over(case: &Case<'_>) -> Ruling {
    let over = case.newest_event().filter(|event| matches!(event.claim, Claim::TurnOver { .. }));
    let over = over.ok_or("the agent's last event ends no turn")?;
    case.takes_input()?;
    Ok(Decided::new(case.ready(), vec![over]))
}

fn prompt_pending(case: &Case<'_>) -> Ruling {
    if case.obs.prompt_sent_at != Some(case.obs.spawned_at) {
        return Err("no prompt was given at the start, or another one was sent since".into());
    }
    if case.memory.worked
        || case.newest_event().is_some()
        || case.find(Source::Screen, ClaimKind::TurnOver).is_some()
    {
        return Err("the agent has already worked".into());
    }
    let waits = case.live(ClaimKind::TurnOver).or_else(|| case.find(Source::Screen, ClaimKind::InputShown));
    let waits = waits.ok_or("nothing shows that the agent takes input")?;
    if case.age(waits) >= TAKEN_UP_MS {
        return Err("the agent had enough time to take up the prompt".into());
    }
    Ok(Decided::new(State::Starting, vec![waits]))
}

fn idle(case: &Case<'_>) -> Ruling {
    let idle = case.live(ClaimKind::TurnOver).ok_or("no live channel says idle")?;
    let shown = case.takes_input()?;
    Ok(Decided::new(case.ready(), std::iter::once(idle).chain(shown).collect()))
}

fn input_ready(case: &Case<'_>) -> Ruling {
    let input = case.find(Source::Screen, ClaimKind::InputShown).ok_or("no input box is shown")?;
    let shown = |kind: ClaimKind| case.find(Source::Screen, kind);
    let up = case.of_claim(ClaimKind::Up).next();
    let up = up.or_else(|| shown(ClaimKind::TurnOver)).or_else(|| shown(ClaimKind::Idle));
    let up = up.ok_or("nothing shows that the agent is up")?;
    case.takes_input()?;
    if case.turn_unfinished() {
        return Err("the conversation ends in an unfinished prompt".into());
    }
    Ok(Decided::new(case.ready(), vec![up, input]))
}

fn plain_output(case: &Case<'_>) -> Ruling {
    let text =
        case.find(Source::Screen, ClaimKind::PlainText).ok_or("the screen is blank or has structure")?;
    let alive =
        case.find(Source::Process, ClaimKind::AgentAlive).ok_or("the agent's process is not visible")?;
    if case.age(text) < PLAIN_MS {
        return Err("the text has only just appeared".into());
    }
    if still_for_long(case).is_some() {
        return Err("nothing has moved for a long time".into());
    }
    let state = State::Working { activity: Activity::Thinking, tool: None };
    Ok(Decided { confidence: Confidence::Guess, ..Decided::new(state, vec![text, alive]) })
}

fn starting(case: &Case<'_>) -> Ruling {
    let young = case.find(Source::Timing, ClaimKind::Young).ok_or("the session is not young")?;
    if case.memory.up || case.memory.worked {
        return Err("the agent has already taken input".into());
    }
    Ok(Decided::new(State::Starting, vec![young]))
}

fn nothing_moves(case: &Case<'_>) -> Ruling {
    let still = still_for_long(case).ok_or("something has moved recently")?;
    Ok(Decided::new(State::Stalled { expected: "output, an event or a prompt".to_owned() }, vec![still]))
}

/// Evidence that nothing has moved for longer than the limit for output.
fn still_for_long<'a>(case: &Case<'a>) -> Option<&'a Evidence> {
    case.find(Source::Timing, ClaimKind::Still).filter(|still| case.age(still) >= OUTPUT_STALE_MS)
}

fn signals_failed(case: &Case<'_>) -> Ruling {
    // A malformed line doesn't make a signal unavailable; a pane, process list, screen or done file that can't be read
    // does.
    let looks = [Source::Pane, Source::Process, Source::Screen, Source::DoneFile];
    let failed = looks
        .iter()
        .find_map(|source| case.find(*source, ClaimKind::Unreadable))
        .ok_or("everything could be read")?;
    let alive = case.find(Source::Process, ClaimKind::AgentAlive).filter(|_| failed.source != Source::Screen);
    if let Some(alive) = alive.filter(|_| case.find(Source::Timing, ClaimKind::Moving).is_some()) {
        return Err(format!("{} is alive and active", alive.quote).into());
    }
    Ok(Decided::new(State::Unknown { failed: case.failed_signals() }, vec![failed]))
}

fn agent_alive(case: &Case<'_>) -> Ruling {
    let alive = case
        .find(Source::Process, ClaimKind::AgentAlive)
        .or_else(|| case.find(Source::Timing, ClaimKind::Moving));
    let alive = alive.ok_or("the agent's process is not visible, and nothing moves")?;
    let state = State::Working { activity: Activity::Thinking, tool: None };
    Ok(Decided { confidence: Confidence::Guess, ..Decided::new(state, vec![alive]) })
}

fn nothing_known(case: &Case<'_>) -> Ruling {
    Ok(Decided {
        confidence: Confidence::Guess,
        ..Decided::new(State::Unknown { failed: case.failed_signals() }, Vec::new())
    })
}

/// How a process ended, from its exit code or signal.
pub(crate) fn exit(code: Option<i32>, signal: Option<i32>) -> Exit {
    let kind = match (code, signal) {
        (_, Some(2)) | (Some(0 | 130), None) => ExitKind::UserInitiated,
        (_, Some(9 | 15 | 1)) | (Some(137 | 143 | 129), None) => ExitKind::Killed,
        (Some(124), None) => ExitKind::Timeout,
        (None, None) => ExitKind::Unknown,
        _ => ExitKind::Crash,
    };
    Exit { code, signal, kind }
}

#[cfg(test)]
mod tests;
