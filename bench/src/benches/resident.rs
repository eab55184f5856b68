//! What processes use that do nothing but watch N agents: idle ones, and ones whose spinner turns ten times a second.
//! First while one looks at everything for the first time, then at rest: one alone, and four together, of which one is
//! the observer. They are processes of their own here, so that their processor time and memory are their own, too.

use super::{
    Options, PROGRAMS,
    report::{Cell, Column, Report},
    trial::{LANES, lanes, pause, server_pid},
    usage::spent_ms,
    watcher::{Rest, Watcher, come_to_rest},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    stage::{self, Stage},
    tools::{self, Release},
};
use lisa_engine::{
    api::{KillRequest, SendRequest, WaitMode, WaitRequest},
    engine::Engine,
    watch::Cancel,
};
use std::time::{Duration, Instant};

const COLUMNS: &[Column] = &[
    Column { name: "agents", unit: "" },
    Column { name: "sessions", unit: "" },
    Column { name: "residents", unit: "" },
    Column { name: "what", unit: "" },
    Column { name: "wall", unit: "s" },
    Column { name: "residents", unit: "ms" },
    Column { name: "server", unit: "ms" },
    Column { name: "residents", unit: "ms/s" },
    Column { name: "server", unit: "ms/s" },
    Column { name: "server alone", unit: "ms/s" },
    Column { name: "memory", unit: "MB" },
];
/// How long rest is measured at least, and how often the observer must have asked for all panes in that time: it does so
/// every two seconds, and ten milliseconds later for each session.
const MEASURED: Duration = Duration::from_secs(10);
const ROUNDS: u32 = 2;
/// How long everything may come to rest before.
const REST: Duration = Duration::from_secs(4);
/// An idle agent tells once more after a minute that it waits: what is measured begins after that.
const STALE: Duration = Duration::from_secs(66);
/// More agents than this at work are more than the machine can draw.
const MOST_AT_WORK: usize = 300;
/// How long all agents may take to come up.
const UP_LIMIT_S: f64 = 900.0;
/// How many residents there are in the last measurement.
const TOGETHER: usize = 4;

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "resident", &PROGRAMS)?;
    let mut field = Field { context, stage: &stage, names: Vec::new() };
    let progress = Progress::start(context.terminal, "  watching");
    let mut report = Report::new(COLUMNS);
    let mut counts = options.sessions.clone();
    counts.sort_unstable();
    for count in &counts {
        progress.say(&format!("  starting {count} agents"));
        report.note(field.grow(*count)?);
        pause(context, STALE)?;
        progress.say(&format!("  watching {count} idle agents"));
        field.measure(Agents::Idle, &mut report)?;
    }
    counts.retain(|count| *count <= MOST_AT_WORK);
    if let Some(most) = counts.last() {
        progress.say(&format!("  setting {most} agents to work"));
        field.shrink(*most)?;
        field.set_to_work()?;
    }
    for count in counts.iter().rev() {
        progress.say(&format!("  watching {count} agents at work"));
        field.shrink(*count)?;
        field.measure(Agents::Spinning, &mut report)?;
    }
    Ok(report)
}

/// What the agents do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agents {
    Idle,
    Spinning,
}

impl Agents {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Spinning => "spinning",
        }
    }
}

/// What some residents used.
struct Used {
    /// Until they had come to rest, with what the server used meanwhile; none where they never do.
    first: Option<(Rest, Option<f64>)>,
    /// At rest: how long that was measured, and what they and the server used.
    wall: Duration,
    own: Option<f64>,
    server: Option<f64>,
    memory: Option<f64>,
}

/// Agents to be watched.
struct Field<'a> {
    context: &'a Context,
    stage: &'a Stage,
    names: Vec<String>,
}

impl Field<'_> {
    /// Starts agents until there are this many, waits until all are up, and says how fast that went.
    fn grow(&mut self, count: usize) -> Result<String> {
        // Only while they start: whoever started them must not watch them as well.
        let engine = self.stage.engine()?;
        let new: Vec<String> = (self.names.len()..count).map(|number| format!("agent{number}")).collect();
        let began = Instant::now();
        let started = lanes(LANES, |lane| {
            let mut started = Vec::new();
            for name in new.iter().skip(lane).step_by(LANES) {
                self.context.go_on()?;
                let mut request = stage::demo_agent(name);
                request.wait_ready_s = None;
                engine.spawn(&request)?;
                started.push(Instant::now());
            }
            Ok(started)
        })?;
        self.names.extend(new);
        let request = WaitRequest {
            sessions: self.names.clone(),
            mode: WaitMode::All,
            until: Some("ready".to_owned()),
            timeout_s: Some(UP_LIMIT_S),
            ..WaitRequest::default()
        };
        let up = engine.wait(&request, &Cancel::default(), &mut |_| {})?;
        if up.timed_out {
            return Err(Failure::new(format!("not all of {count} agents came up")));
        }
        let mut started = started.concat();
        started.sort_unstable();
        Ok(speed(count, began, &started))
    }

    /// Gives every agent something to think about for longer than this takes.
    fn set_to_work(&self) -> Result<()> {
        let engine = Engine::open(self.stage.caller())?;
        lanes(LANES, |lane| {
            for name in self.names.iter().skip(lane).step_by(LANES) {
                self.context.go_on()?;
                let request = SendRequest {
                    session: name.clone(),
                    text: Some("!think 3000s".to_owned()),
                    ..SendRequest::default()
                };
                let receipt = engine.send(&request)?.receipt;
                if receipt.turn.is_none() {
                    return Err(Failure::new(format!("`{name}` took no prompt: {:?}", receipt.refusal)));
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Ends agents until this many are left.
    fn shrink(&mut self, count: usize) -> Result<()> {
        let engine = Engine::open(self.stage.caller())?;
        let ended: Vec<String> = self.names.drain(count.min(self.names.len())..).collect();
        lanes(LANES, |lane| {
            for name in ended.iter().skip(lane).step_by(LANES) {
                self.context.go_on()?;
                engine.kill(&KillRequest { session: name.clone(), force: true })?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn measure(&self, agents: Agents, report: &mut Report) -> Result<()> {
        let server = server_pid(&self.stage.socket())?;
        pause(self.context, REST)?;
        let (wall, [alone]) = self.used([&[server]])?;
        let alone = alone.map(|ms| ms / wall.as_secs_f64());
        let one = self.watched(agents, 1, server)?;
        self.rows(agents, 1, &one, alone, report);
        let four = self.watched(agents, TOGETHER, server)?;
        self.rows(agents, TOGETHER, &four, alone, report);
        let added = |used: &Used| {
            let seconds = used.wall.as_secs_f64();
            let grown = (used.server? / seconds - alone?).max(0.0);
            Some(used.own? / seconds + grown)
        };
        let (count, agents) = (self.names.len(), agents.as_str());
        if let (Some(one), Some(four)) = (added(&one), added(&four)) {
            report.ratio(format!("{TOGETHER} residents together to one alone, {count} {agents}"), four, one);
            // An idle server uses nothing that anything could be compared with.
            let share = alone.filter(|alone| *alone >= 1.0).map(|alone| one * 100.0 / alone);
            let share =
                share.map_or(String::new(), |share| format!(", {share:.0} % of what the server uses"));
            report.note(format!(
                "watching {count} {agents}: one resident adds {:.3} % of one core{share}",
                one / 10.0
            ));
        }
        Ok(())
    }

    /// Has so many residents watch, and counts what they use.
    fn watched(&self, agents: Agents, residents: usize, server: u32) -> Result<Used> {
        let before = spent_ms(&[server]);
        let began = Instant::now();
        let caller = self.stage.caller();
        let mut watchers =
            (0..residents).map(|_| Watcher::start(&caller)).collect::<Result<Vec<Watcher>>>()?;
        let pids: Vec<u32> = watchers.iter().map(Watcher::pid).collect();
        // Who watches agents at work never rests.
        let rest = match agents {
            Agents::Idle => come_to_rest(self.context, &pids, began)?,
            Agents::Spinning => {
                pause(self.context, REST)?;
                None
            }
        };
        let looked = before.zip(spent_ms(&[server])).map(|(before, now)| (now - before).max(0.0));
        let (wall, [own, served]) = self.used([&pids, &[server]])?;
        watchers.iter_mut().try_for_each(Watcher::check)?;
        let memory = watchers.iter().map(Watcher::memory_mb).sum();
        Ok(Used { first: rest.map(|rest| (rest, looked)), wall, own, server: served, memory })
    }

    fn rows(&self, agents: Agents, residents: usize, used: &Used, alone: Option<f64>, report: &mut Report) {
        let mut row = |what: &str, wall: Duration, own: Option<f64>, server: Option<f64>| {
            let seconds = wall.as_secs_f64();
            let rate = |ms: Option<f64>| Cell::from(ms.map(|ms| ms / seconds.max(0.001)));
            report.row(vec![
                agents.as_str().into(),
                self.names.len().into(),
                residents.into(),
                what.into(),
                Some(seconds).into(),
                own.into(),
                server.into(),
                rate(own),
                rate(server),
                alone.into(),
                used.memory.into(),
            ]);
        };
        match &used.first {
            Some((rest, server)) => row("first look", rest.took, Some(rest.spent_ms), *server),
            None if agents == Agents::Idle => row("never at rest", used.wall, None, None),
            None => {}
        }
        row("settled", used.wall, used.own, used.server);
    }

    /// What each group of processes uses while nothing happens, in milliseconds of processor time.
    fn used<const N: usize>(&self, groups: [&[u32]; N]) -> Result<(Duration, [Option<f64>; N])> {
        let sessions = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let round = Duration::from_secs(2) + Duration::from_millis(10).saturating_mul(sessions);
        let began = Instant::now();
        let before = groups.map(spent_ms);
        pause(self.context, MEASURED.max(round * ROUNDS))?;
        let wall = began.elapsed();
        let after = groups.map(spent_ms);
        let mut used = [None; N];
        for (used, (before, after)) in used.iter_mut().zip(before.iter().zip(after)) {
            *used = before.zip(after).map(|(before, after)| (after - before).max(0.0));
        }
        Ok((wall, used))
    }
}

/// How fast sessions were started: the first ten, the last fifty, and all.
fn speed(count: usize, began: Instant, started: &[Instant]) -> String {
    let rate = |from: Option<Instant>, to: Option<&Instant>, many: usize| {
        let seconds = to.zip(from).map(|(to, from)| to.saturating_duration_since(from).as_secs_f64());
        seconds.filter(|seconds| *seconds > 0.0).map_or("-".to_owned(), |s| format!("{:.1}", many as f64 / s))
    };
    let first = started.len().min(10);
    let last = started.len().min(50);
    let before_last = match started.len().saturating_sub(last) {
        0 => Some(began),
        at => started.get(at - 1).copied(),
    };
    format!(
        "growing to {count} sessions, in {LANES} lanes: {} per second for the first {first}, {} for the last \
         {last}, {} for all {}",
        rate(Some(began), first.checked_sub(1).and_then(|at| started.get(at)), first),
        rate(before_last, started.last(), last),
        rate(Some(began), started.last(), started.len()),
        started.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_that_of_the_first_and_of_the_last() {
        let began = Instant::now();
        let quick = (1..=50).map(|n| began + Duration::from_millis(10 * n));
        let slow = (1..=50).map(|n| began + Duration::from_millis(500 + 100 * n));
        let told = speed(100, began, &quick.chain(slow).collect::<Vec<_>>());
        assert!(told.contains("100.0 per second for the first 10, 10.0 for the last 50"), "{told}");
        assert!(told.ends_with("18.2 for all 100"), "{told}");
        let few = speed(3, began, &[began + Duration::from_millis(100)]);
        assert!(few.contains("10.0 per second for the first 1, 10.0 for the last 1"), "{few}");
    }
}
