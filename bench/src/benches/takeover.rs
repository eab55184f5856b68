//! How long nobody watches: the observer is killed or stopped again and again, at random moments, until another process
//! answers as the observer.

use super::{
    Options, PROGRAMS,
    report::{Column, Report},
    stats::Samples,
    trial::{Dice, pause, sleepers},
    watcher::Watcher,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    stage::Stage,
    tools::{self, Release},
};
use lisa_engine::{engine::Engine, watch::Caller};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    thread,
    time::{Duration, Instant},
};

const COLUMNS: &[Column] = &[
    Column { name: "sessions", unit: "" },
    Column { name: "the observer", unit: "" },
    Column { name: "times", unit: "" },
    Column { name: "p50", unit: "ms" },
    Column { name: "p99", unit: "ms" },
];
const TIMES: usize = 100;
const CANDIDATES: usize = 3;
/// How long nobody may watch before the measurement is given up.
const LIMIT: Duration = Duration::from_secs(20);
/// How often it is asked who watches.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// What befalls the observer.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Killed,
    Stopped,
}

impl Fault {
    const ALL: [Self; 2] = [Self::Killed, Self::Stopped];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Killed => "is killed",
            Self::Stopped => "hangs",
        }
    }

    const fn signal(self) -> Signal {
        match self {
            Self::Killed => Signal::KILL,
            Self::Stopped => Signal::STOP,
        }
    }
}

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "takeover", &PROGRAMS)?;
    let caller = stage.caller();
    let asking = Engine::open(caller.clone())?;
    let mut report = Report::new(COLUMNS);
    let progress = Progress::start(context.terminal, "  ending observers");
    let mut counts = options.sessions.clone();
    counts.sort_unstable();
    let mut started = 0;
    for count in counts {
        progress.say(&format!("  starting {} sessions that sleep", count.saturating_sub(started)));
        sleepers(context, &asking, started..count)?;
        started = started.max(count);
        for fault in Fault::ALL {
            progress.say(&format!("  the observer of {count} sessions {}, {TIMES} times", fault.as_str()));
            let samples = Candidates::start(&caller)?.suffer(context, &asking, fault)?;
            report.row(vec![
                count.into(),
                fault.as_str().into(),
                samples.len().into(),
                samples.p50().into(),
                samples.p99().into(),
            ]);
        }
    }
    Ok(report)
}

/// Processes one of which watches. The one that a fault hits is replaced.
struct Candidates<'a> {
    caller: &'a Caller,
    running: Vec<Watcher>,
}

impl<'a> Candidates<'a> {
    fn start(caller: &'a Caller) -> Result<Self> {
        let running = (0..CANDIDATES).map(|_| Watcher::start(caller)).collect::<Result<_>>()?;
        Ok(Self { caller, running })
    }

    fn suffer(mut self, context: &Context, asking: &Engine, fault: Fault) -> Result<Samples> {
        let mut samples = Samples::default();
        let mut dice = Dice::new(1);
        let mut observer = until_another(context, asking, None)?;
        for _ in 0..TIMES {
            pause(context, Duration::from_millis(dice.below(600)))?;
            let at = self.running.iter().position(|candidate| candidate.pid() == observer);
            let at = at.ok_or_else(|| Failure::new(format!("process {observer} watches, a stranger")))?;
            let began = Instant::now();
            signal(observer, fault.signal())?;
            observer = until_another(context, asking, Some(observer))?;
            samples.add(began.elapsed());
            // Dropping the one that was hit ends it, stopped or not.
            self.running[at] = Watcher::start(self.caller)?;
        }
        Ok(samples)
    }
}

/// The process that watches, once it is not this one.
fn until_another(context: &Context, asking: &Engine, before: Option<u32>) -> Result<u32> {
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        context.go_on()?;
        let now = asking.observer_health().map(|health| health.pid);
        if let Some(now) = now.filter(|now| Some(*now) != before) {
            return Ok(now);
        }
        thread::sleep(ASK_EVERY);
    }
    Err(Failure::new("nobody took over"))
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::new("the observer has no process id"))?;
    kill_process(pid, signal).map_err(|error| Failure::new(format!("the observer cannot be hit: {error}")))
}
