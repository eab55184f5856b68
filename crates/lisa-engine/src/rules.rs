//! The decision, as one table that is read from top to bottom: the first row whose condition holds gives the state.
//!
//! Adding a row is how the decision changes. A row's name is the public `reason`; a row that does not hold says why, in
//! a few words, for `explain`.

use crate::case::{Case, Decided, Ruling, SETTLED_MS};
use crate::evidence::{Claim, Evidence, Source};
use crate::memory::Fold;
use crate::observation::Mode;
use crate::sensors::OUTPUT_STALE_MS;
use crate::words::{Activity, Exit, ExitKind, State};

/// How long two channels of the agent may differ because one of them lags.
const LAG_MS: u64 = 4_000;
/// How long a turn that only seems to be over is still believed to run.
const SETTLING_MS: u64 = 250;
/// How long ago the last look may be for what has changed since to count as just changed.
const JUST_NOW_MS: u64 = 1_500;
/// How long an agent that takes input may need to take up the prompt that it was started with.
const TAKEN_UP_MS: u64 = 8_000;
/// How long plain text must have stood before it is taken for a run without a screen of its own.
const PLAIN_MS: u64 = 1_500;

/// How long the input box must have been gone before something is taken to cover it.
const COVERED_MS: u64 = 500;

/// One row of the table.
pub struct Rule {
    /// The row's name: the public `reason`.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub doc: &'static str,
    /// The state it gives.
    pub gives: &'static str,
    /// The condition.
    pub(crate) when: fn(&Case<'_>) -> Ruling,
}

/// The table.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    Rule { name: "server_died", gives: "exited", when: server_died,
        doc: "The tmux server that the session was started in has died, and the session with it." },
    Rule { name: "pane_dead", gives: "exited", when: pane_dead,
        doc: "tmux says that the pane's process has ended, with its code or signal, or has lost the session." },
    Rule { name: "run_done", gives: "exited", when: run_done,
        doc: "The run's own done file, or the marker at the very end of its output, says that it is over." },
    Rule { name: "agent_gone", gives: "exited", when: agent_gone,
        doc: "The agent's process was there, is there no more, and a shell sits in its pane." },
    Rule { name: "agent_suspended", gives: "stalled", when: agent_suspended,
        doc: "The agent is stopped and a shell is in front of it: nothing moves until somebody brings it back." },
    Rule { name: "pane_unreadable", gives: "unknown", when: pane_unreadable,
        doc: "tmux could not be asked, and the agent has said nothing lately that would still hold." },
    Rule { name: "dialog_shown", gives: "awaiting_*", when: dialog_shown,
        doc: "A dialog stands on the screen in the place where dialogs stand." },
    Rule { name: "native_asking", gives: "awaiting_*", when: native_asking,
        doc: "The agent's state file says that it waits for an answer." },
    Rule { name: "title_asking", gives: "awaiting_*", when: title_asking,
        doc: "The agent's title says that it waits for an answer, and no input box is shown beside it." },
    Rule { name: "event_asking", gives: "awaiting_*", when: event_asking,
        doc: "The agent has announced a prompt, nothing has answered it since, and nothing shows that it is not there." },
    Rule { name: "finished_with_background", gives: "ready", when: finished_with_background,
        doc: "The turn is over, as agent and screen agree, though background work keeps the agent's lights on." },
    Rule { name: "frozen", gives: "stalled", when: frozen,
        doc: "Title, state file or screen show a running turn, but for more than a minute nothing about it has moved." },
    Rule { name: "title_working", gives: "working", when: title_working,
        doc: "The agent's title shows that a turn runs." },
    Rule { name: "native_working", gives: "working", when: native_working,
        doc: "The agent's state file says that a turn runs, and title and screen do not both know better." },
    Rule { name: "event_working", gives: "working", when: event_working,
        doc: "The agent's last event belongs to a turn that runs, and no live channel has said idle since." },
    Rule { name: "screen_working", gives: "working", when: screen_working,
        doc: "The screen shows a running turn in the place where it is shown, and no live channel has settled on idle." },
    Rule { name: "just_sent", gives: "working", when: just_sent,
        doc: "Lisa has just submitted a prompt, and nothing has shown yet what became of it." },
    Rule { name: "settling", gives: "working", when: settling,
        doc: "A turn ran at the last look, a moment ago, and only the title or the screen says, for less than that, that it is over." },
    Rule { name: "exec_running", gives: "working", when: exec_running,
        doc: "A run to completion is never waiting for input: while its process lives, it works." },
    Rule { name: "input_covered", gives: "awaiting_dialog", when: input_covered,
        doc: "No turn runs, and something that Lisa does not know stands where the input box was: a pager, an editor, a new dialog." },
    Rule { name: "turn_failed", gives: "error", when: turn_failed,
        doc: "The agent says that the turn failed for good, or its screen ends in an error and the agent does not say otherwise." },
    Rule { name: "turn_interrupted", gives: "interrupted", when: turn_interrupted,
        doc: "The agent says that somebody stopped the turn, or its screen says so and the agent does not say otherwise." },
    Rule { name: "turn_over", gives: "ready", when: turn_over,
        doc: "The agent has ended its turn and nothing says that another has begun." },
    Rule { name: "prompt_pending", gives: "starting", when: prompt_pending,
        doc: "The agent has only just come to take input, and has not yet taken up the prompt that it was started with." },
    Rule { name: "idle", gives: "ready", when: idle,
        doc: "The agent's live state is idle and it shows that it takes input." },
    Rule { name: "input_ready", gives: "ready", when: input_ready,
        doc: "The screen shows an input box and the signs of an agent that is up, and nothing shows a turn." },
    Rule { name: "plain_output", gives: "working", when: plain_output,
        doc: "The agent writes plain text instead of drawing its screen: it runs, and that is all that can be said." },
    Rule { name: "starting", gives: "starting", when: starting,
        doc: "The session is young and nothing has shown yet that the agent takes input." },
    Rule { name: "signals_failed", gives: "unknown", when: signals_failed,
        doc: "What could be read says nothing, and something could not be read." },
    Rule { name: "nothing_moves", gives: "stalled", when: nothing_moves,
        doc: "The agent lives, nothing is asked, and nothing has moved for longer than it should." },
    Rule { name: "agent_alive", gives: "working", when: agent_alive,
        doc: "The process lives and shows no structure that Lisa knows: all that can be said is that it runs." },
    Rule { name: "nothing_known", gives: "unknown", when: nothing_known,
        doc: "There is nothing to go by." },
];

/// The table as Markdown, for the documentation.
pub fn as_markdown() -> String {
    let rows = RULES.iter().map(|rule| format!("| `{}` | {} | {} |\n", rule.name, rule.gives, rule.doc));
    format!("| reason | state | when |\n|---|---|---|\n{}", rows.collect::<String>())
}

fn server_died(case: &Case<'_>) -> Ruling {
    let died = case.find(Source::Pane, "server_died").ok_or("its tmux server is there, or is not known")?;
    if case.of_claim("run_done").next().is_some() {
        return Err("the run was over before".into());
    }
    Ok(Decided::new(State::Exited { exit: exit(None, None) }, vec![died]))
}

fn pane_dead(case: &Case<'_>) -> Ruling {
    let dead = case.find(Source::Pane, "pane_dead").ok_or("the pane is alive")?;
    let (mut code, mut signal) = match dead.claim {
        Claim::PaneDead { code, signal } => (code, signal),
        _ => (None, None),
    };
    let mut by = vec![dead];
    // tmux leaves the status empty for seconds sometimes; the run's own word fills the gap.
    let unknown = code.is_none() && signal.is_none();
    if let Some(done) = case.of_claim("run_done").next().filter(|_| unknown)
        && let Claim::RunDone { code: known, signal: by_signal } = done.claim
    {
        (code, signal) = (known, by_signal);
        by.push(done);
    }
    Ok(Decided::new(State::Exited { exit: exit(code, signal) }, by))
}

fn run_done(case: &Case<'_>) -> Ruling {
    let done = case.of_claim("run_done").next().ok_or("nothing says that the run is over")?;
    let (code, signal) = match done.claim {
        Claim::RunDone { code, signal } => (code, signal),
        _ => (None, None),
    };
    Ok(Decided::new(State::Exited { exit: exit(code, signal) }, vec![done]))
}

fn agent_gone(case: &Case<'_>) -> Ruling {
    let gone =
        case.find(Source::Process, "agent_gone").ok_or("the agent's process is there, or was never seen")?;
    let clean = matches!(gone.claim, Claim::AgentGone { clean: true });
    let kind = if clean { ExitKind::UserInitiated } else { ExitKind::Unknown };
    Ok(Decided::new(State::Exited { exit: Exit { code: None, signal: None, kind } }, vec![gone]))
}

fn agent_suspended(case: &Case<'_>) -> Ruling {
    let stopped = case.find(Source::Process, "agent_suspended").ok_or("the agent is not stopped")?;
    Ok(Decided::new(
        State::Stalled { expected: "the agent to be brought back to the foreground".to_owned() },
        vec![stopped],
    ))
}

fn pane_unreadable(case: &Case<'_>) -> Ruling {
    let failed = case.find(Source::Pane, "unreadable").ok_or("tmux was read")?;
    if let Some(event) = case.newest_event() {
        return Err(format!("the agent's own last word ({}) still holds", event.claim.word()).into());
    }
    Ok(Decided::new(State::Unknown { failed: case.failed_signals() }, vec![failed]))
}

fn dialog_shown(case: &Case<'_>) -> Ruling {
    let shown = case.find(Source::Screen, "dialog").ok_or("no dialog stands on the screen")?;
    let Claim::Dialog { prompt } = &shown.claim else { return Err("no dialog stands on the screen".into()) };
    Ok(Decided::new(State::awaiting(case.named(prompt)), vec![shown]))
}

fn native_asking(case: &Case<'_>) -> Ruling {
    let asking = case.find(Source::Native, "asking").ok_or("the state file does not say so")?;
    if case.find(Source::Screen, "input_shown").is_some() && case.age(asking) > SETTLED_MS {
        return Err("the screen shows the input box".into());
    }
    case.awaiting(asking)
}

fn title_asking(case: &Case<'_>) -> Ruling {
    let asking = case.find(Source::Title, "asking").ok_or("the title does not say so")?;
    if case.find(Source::Screen, "input_shown").is_some() {
        return Err("the screen shows the input box".into());
    }
    case.awaiting(asking)
}

fn event_asking(case: &Case<'_>) -> Ruling {
    let asking = case.event("asking").ok_or("no prompt was announced")?;
    if let Some(against) =
        case.find(Source::Screen, "input_shown").or_else(|| case.find(Source::Screen, "working"))
    {
        return Err(format!("the screen shows no dialog but {}", against.claim.word()).into());
    }
    // Without a screen nothing shows that it was answered: what was not open at the last look is not open because of an
    // event that this look had seen already.
    let known = case.memory.verdict.as_ref().filter(|_| case.find(Source::Pane, "unreadable").is_some());
    let old = case.memory.observed_at.is_some_and(|last| asking.since <= last);
    if old && known.is_some_and(|before| before.state.prompt().is_none()) {
        return Err("it was not open any more when the screen was last read".into());
    }
    let moved_on = ["turn_over", "working"].iter().find_map(|word| case.live(word));
    if moved_on.is_some_and(|live| live.since > asking.since && case.age(live) > SETTLED_MS) {
        return Err("a live channel has moved on since".into());
    }
    case.awaiting(asking)
}

fn finished_with_background(case: &Case<'_>) -> Ruling {
    let is_background = |item: &&Evidence| matches!(item.claim, Claim::TurnOver { background: true });
    let told = case.newest_event().filter(is_background);
    let shown = case.all(Source::Screen, "turn_over").find(is_background);
    let over = told.or(shown).ok_or("no background work runs after a turn")?;
    if case.find(Source::Screen, "working").is_some() {
        return Err("the screen shows a running turn".into());
    }
    let end = case.find(Source::Screen, "turn_over").ok_or("the screen does not end in a finished turn")?;
    if case.find(Source::Title, "working").is_some() && case.age(end) < SETTLED_MS {
        return Err("the title has had no time to follow".into());
    }
    Ok(Decided::new(case.ready(), vec![over, end]))
}

fn frozen(case: &Case<'_>) -> Ruling {
    let still = case.find(Source::Timing, "still").ok_or("something has moved within the last minute")?;
    if case.obs.mode == Mode::Exec || case.obs.screen.seen().is_none() {
        return Err("the session has no screen that would move".into());
    }
    if case.newest_event().is_some_and(|event| matches!(event.claim, Claim::Working { .. })) {
        return Err("the agent has told of its turn within the last minute".into());
    }
    let shown: [fn(&Case<'_>) -> Ruling; 3] = [title_working, native_working, screen_working];
    let shown = shown.into_iter().find_map(|rule| rule(case).ok()).ok_or("nothing shows a running turn")?;
    let by = std::iter::once(still.clone()).chain(shown.by).collect();
    let state = State::Stalled { expected: "the turn that is shown to go on".to_owned() };
    Ok(Decided { by, ..Decided::new(state, vec![still]) })
}

fn title_working(case: &Case<'_>) -> Ruling {
    let title = case.find(Source::Title, "working").ok_or("the title shows no running turn")?;
    Ok(Decided::new(case.working(title), vec![title]))
}

fn native_working(case: &Case<'_>) -> Ruling {
    let busy = case.find(Source::Native, "working").ok_or("the state file does not say so")?;
    let title_idle = case.find(Source::Title, "turn_over");
    let screen_idle = case.find(Source::Screen, "working").is_none()
        && (case.find(Source::Screen, "turn_over").is_some() || case.find(Source::Screen, "up").is_some());
    if title_idle.is_some() && screen_idle && case.age(busy) > SETTLED_MS {
        return Err("title and screen agree that the turn is over".into());
    }
    Ok(Decided::new(case.working(busy), vec![busy]))
}

fn event_working(case: &Case<'_>) -> Ruling {
    let event = case.newest_event().filter(|event| matches!(event.claim, Claim::Working { .. }));
    let event = event.ok_or("no event of the agent says so")?;
    if let Some(idle) = case.live("turn_over") {
        if idle.since > event.since {
            return Err(format!("the {} has turned idle since", idle.source.as_str()).into());
        }
        if case.age(event) > LAG_MS {
            return Err(format!("the {} still says idle, long after that event", idle.source.as_str()).into());
        }
    }
    let ended =
        ["turn_over", "interrupted", "failed"].iter().find_map(|word| case.find(Source::Screen, word));
    let ended = ended.filter(|ended| ended.since > event.since && case.age(ended) > LAG_MS);
    if let Some(ended) = ended.filter(|_| case.find(Source::Screen, "working").is_none()) {
        return Err(format!("the screen has shown since that the turn is {}", ended.claim.word()).into());
    }
    Ok(Decided::new(case.working(event), vec![event]))
}

fn screen_working(case: &Case<'_>) -> Ruling {
    let shown = case.find(Source::Screen, "working").ok_or("the screen shows no running turn")?;
    if let Some(idle) = case.live("turn_over") {
        let settled = idle.since >= shown.since && case.age(idle) > SETTLED_MS;
        let outlasted = idle.since < shown.since && case.age(shown) > LAG_MS;
        if settled || outlasted {
            return Err(format!("the {} has settled on idle", idle.source.as_str()).into());
        }
    }
    let ended = case.newest_event().filter(|event| !matches!(event.claim, Claim::Working { .. }));
    if case.live("turn_over").is_some() && ended.is_some_and(|ended| ended.since > shown.since) {
        return Err("live channels and events agree that the turn has ended since".into());
    }
    Ok(Decided::new(case.working(shown), vec![shown]))
}

fn just_sent(case: &Case<'_>) -> Ruling {
    let sent = case.find(Source::Sent, "sent").ok_or("nothing was sent just now")?;
    if !case.memory.up {
        return Err("the agent has not come up yet".into());
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
        return Err(format!("the {} has said {} since", later.source.as_str(), later.claim.word()).into());
    }
    Ok(Decided::new(case.working(sent), vec![sent]))
}

fn settling(case: &Case<'_>) -> Ruling {
    let before = case.memory.verdict.as_ref().map(|verdict| &verdict.state);
    let Some(state @ State::Working { .. }) = before else {
        return Err("no turn ran at the last look".into());
    };
    // Nobody knows how long a change has stood that the first look after a while has found.
    if case.memory.observed_at.is_none_or(|last| case.obs.at.since(last) > JUST_NOW_MS) {
        return Err("the last look was long ago".into());
    }
    let ended = case.newest_event().filter(|event| !matches!(event.claim, Claim::Working { .. }));
    if ended.is_some() || case.find(Source::Native, "turn_over").is_some() {
        return Err("the agent itself says that the turn is over".into());
    }
    let shown = || {
        let words = ["turn_over", "up", "interrupted", "failed"].iter();
        words.filter_map(|word| case.find(Source::Screen, word)).max_by_key(|item| item.since)
    };
    let fresh =
        case.find(Source::Title, "turn_over").or_else(shown).filter(|item| case.age(item) < SETTLING_MS);
    let fresh = fresh.ok_or("nothing has changed just now")?;
    Ok(Decided::new(state.clone(), vec![fresh]))
}

fn exec_running(case: &Case<'_>) -> Ruling {
    if case.obs.mode != Mode::Exec {
        return Err("the session is interactive".into());
    }
    let alive = case.find(Source::Process, "agent_alive").ok_or("no process of the agent is seen")?;
    Ok(Decided::new(case.working(alive), vec![alive]))
}

fn input_covered(case: &Case<'_>) -> Ruling {
    let covered = case.find(Source::Screen, "covered").ok_or("the input box is there, or never was")?;
    let Claim::Covered { prompt } = &covered.claim else { return Err("nothing covers the input box".into()) };
    // A screen that is drawn anew has no box for a moment, and one that keeps changing shows work, not a dialog; but
    // what the first look after a while finds has stood, and what stood before may change.
    let watched = case.memory.observed_at.is_some_and(|last| case.obs.at.since(last) <= JUST_NOW_MS);
    let known = case.memory.verdict.as_ref().is_some_and(|before| before.reason == "input_covered");
    let stood = case.age(covered).min(case.obs.at.since(case.memory.output.changed_at));
    if watched && !known && stood < COVERED_MS {
        return Err("the input box has only just gone".into());
    }
    Ok(Decided::new(State::awaiting(prompt.clone()), vec![covered]))
}

fn turn_failed(case: &Case<'_>) -> Ruling {
    let failed = case.ended_as("failed")?;
    let Claim::Failed { failure } = &failed.claim else { return Err("no failure".into()) };
    Ok(Decided::new(State::Error { failure: failure.clone() }, vec![failed]))
}

fn turn_interrupted(case: &Case<'_>) -> Ruling {
    let stopped = case.ended_as("interrupted")?;
    Ok(Decided::new(State::Interrupted, vec![stopped]))
}

fn turn_over(case: &Case<'_>) -> Ruling {
    let over = case.newest_event().filter(|event| matches!(event.claim, Claim::TurnOver { .. }));
    let over = over.ok_or("no event of the agent ends a turn")?;
    case.takes_input()?;
    Ok(Decided::new(case.ready(), vec![over]))
}

fn prompt_pending(case: &Case<'_>) -> Ruling {
    if case.obs.prompt_sent_at != Some(case.obs.spawned_at) {
        return Err("no prompt was given at the start, or another one since".into());
    }
    if case.memory.worked || case.newest_event().is_some() || case.find(Source::Screen, "turn_over").is_some()
    {
        return Err("the agent has been at work".into());
    }
    let waits = case.live("turn_over").or_else(|| case.find(Source::Screen, "input_shown"));
    let waits = waits.ok_or("nothing shows that input is taken")?;
    if case.age(waits) >= TAKEN_UP_MS {
        return Err("the agent has had its time to take the prompt up".into());
    }
    Ok(Decided::new(State::Starting, vec![waits]))
}

fn idle(case: &Case<'_>) -> Ruling {
    let idle = case.live("turn_over").ok_or("no live channel says idle")?;
    let shown = case.takes_input()?;
    Ok(Decided::new(case.ready(), std::iter::once(idle).chain(shown).collect()))
}

fn input_ready(case: &Case<'_>) -> Ruling {
    let shown = case.find(Source::Screen, "input_shown").ok_or("no input box is shown")?;
    let up = case.of_claim("up").next().or_else(|| case.find(Source::Screen, "turn_over"));
    let up = up.ok_or("nothing shows that the agent is up")?;
    case.takes_input()?;
    if case.turn_unfinished() {
        return Err("the conversation ends in a prompt that nothing has finished".into());
    }
    Ok(Decided::new(case.ready(), vec![up, shown]))
}

fn plain_output(case: &Case<'_>) -> Ruling {
    let text = case.find(Source::Screen, "plain_text").ok_or("the screen is blank or has structure")?;
    let alive = case.find(Source::Process, "agent_alive").ok_or("no process of the agent is seen")?;
    if case.age(text) < PLAIN_MS {
        return Err("the text has only just appeared".into());
    }
    if still_for_long(case).is_some() {
        return Err("nothing has moved for long".into());
    }
    let state = State::Working { activity: Activity::Thinking, tool: None };
    Ok(Decided { confidence: crate::words::Confidence::Guess, ..Decided::new(state, vec![text, alive]) })
}

fn starting(case: &Case<'_>) -> Ruling {
    let young = case.find(Source::Timing, "young").ok_or("the session is not young")?;
    if case.memory.up {
        return Err("the agent has taken input before".into());
    }
    Ok(Decided::new(State::Starting, vec![young]))
}

fn nothing_moves(case: &Case<'_>) -> Ruling {
    let still = still_for_long(case).ok_or("something has moved of late")?;
    Ok(Decided::new(State::Stalled { expected: "output, an event or a prompt".to_owned() }, vec![still]))
}

/// What says that nothing has moved for longer than output may stand still.
fn still_for_long<'a>(case: &Case<'a>) -> Option<&'a Evidence> {
    case.find(Source::Timing, "still").filter(|still| case.age(still) >= OUTPUT_STALE_MS)
}

fn signals_failed(case: &Case<'_>) -> Ruling {
    // One line that does not read is no blindness; a pane, a process list, a screen or a done file is.
    let looks = [Source::Pane, Source::Process, Source::Screen, Source::DoneFile];
    let failed =
        looks.iter().find_map(|source| case.find(*source, "unreadable")).ok_or("everything was read")?;
    let alive = case.find(Source::Process, "agent_alive").filter(|_| failed.source != Source::Screen);
    if let Some(alive) = alive.filter(|_| case.find(Source::Timing, "moving").is_some()) {
        return Err(format!("{} is there and moves", alive.quote).into());
    }
    Ok(Decided::new(State::Unknown { failed: case.failed_signals() }, vec![failed]))
}

fn agent_alive(case: &Case<'_>) -> Ruling {
    let alive = case.find(Source::Process, "agent_alive").or_else(|| case.find(Source::Timing, "moving"));
    let alive = alive.ok_or("no process of the agent is seen, and nothing moves")?;
    let state = State::Working { activity: Activity::Thinking, tool: None };
    Ok(Decided { confidence: crate::words::Confidence::Guess, ..Decided::new(state, vec![alive]) })
}

fn nothing_known(case: &Case<'_>) -> Ruling {
    Ok(Decided {
        confidence: crate::words::Confidence::Guess,
        ..Decided::new(State::Unknown { failed: case.failed_signals() }, Vec::new())
    })
}

/// How a process came to its end, from its code or signal.
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
