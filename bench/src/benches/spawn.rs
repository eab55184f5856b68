//! What starting and ending a session costs when N others are there: one caller, one session after the other. Beside it
//! the floor: a session that tmux starts without Lisa.

use super::{
    Options, PROGRAMS,
    report::{Column, Report},
    stats::Samples,
    trial::{command_session, sleepers},
    watcher::observing,
};
use crate::{
    context::Context,
    failure::Result,
    progress::Progress,
    stage::Stage,
    tools::{self, Release},
};
use lisa_engine::{
    api::{KillAllRequest, KillRequest, ListRequest},
    config::{Environment, Socket},
    engine::Engine,
    tmux::{Cmd, Tmux},
};
use std::time::{Duration, Instant};

const COLUMNS: &[Column] = &[
    Column { name: "sessions", unit: "" },
    Column { name: "what", unit: "" },
    Column { name: "times", unit: "" },
    Column { name: "p50", unit: "ms" },
    Column { name: "p99", unit: "ms" },
    Column { name: "a second", unit: "" },
];
const TIMES: usize = 100;

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "spawn", &PROGRAMS)?;
    let mut report = Report::new(COLUMNS);
    let progress = Progress::start(context.terminal, "  starting and ending sessions");
    let mut counts = options.sessions.clone();
    counts.sort_unstable();
    let (mut started, mut first) = (0, None);
    for count in counts {
        progress.say(&format!("  starting {} sessions that sleep", count.saturating_sub(started)));
        sleepers(context, &Engine::open(stage.caller())?, started..count)?;
        started = started.max(count);
        // Somebody watches, as in real life.
        let engine = observing(context, &stage.caller(), count)?;
        progress.say(&format!("  starting, listing and ending {TIMES} more beside {count}"));
        let [mut starts, mut lists, mut ends] = [const { Samples::new() }; 3];
        let floor = bare_starts(context, &stage)?;
        row(&mut report, count, "floor: tmux alone starts", &floor, None);
        let names: Vec<String> = (0..TIMES).map(|number| format!("one-more-{number:03}")).collect();
        let began = Instant::now();
        for name in &names {
            context.go_on()?;
            timed(&mut starts, || engine.spawn(&command_session(name, &["sleep", "86400"])).map(drop))?;
        }
        let starting = began.elapsed();
        for _ in 0..TIMES {
            timed(&mut lists, || engine.list(&ListRequest::default()).map(drop))?;
        }
        let began = Instant::now();
        for name in &names {
            let request = KillRequest { session: name.clone(), force: true };
            timed(&mut ends, || engine.kill(&request).map(drop))?;
        }
        row(&mut report, count, "start", &starts, Some(rate(starting)));
        row(&mut report, count, "list", &lists, None);
        row(&mut report, count, "end", &ends, Some(rate(began.elapsed())));
        let (few, before) = *first.get_or_insert((count, rate(starting)));
        if let (Some(start), Some(floor)) = (starts.p50(), floor.p50()) {
            report.ratio(format!("a start to tmux alone, beside {count}"), start, floor);
        }
        if few != count {
            report.ratio(format!("starts a second beside {count} to beside {few}"), rate(starting), before);
        }
    }
    progress.say(&format!("  ending {started} sessions at once"));
    let engine = Engine::open(stage.caller())?;
    let began = Instant::now();
    let ended = engine.kill_all(&KillAllRequest { force: true, ..KillAllRequest::default() })?.sessions.len();
    report.note(format!("{ended} sessions were ended at once in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(report)
}

/// Sessions that tmux starts and ends, over the same socket and in as few commands as there can be.
fn bare_starts(context: &Context, stage: &Stage) -> Result<Samples> {
    let tmux = Tmux::new(Socket::Path(stage.socket()), &Environment::of_this_process())?;
    let mut samples = Samples::new();
    for number in 0..TIMES {
        context.go_on()?;
        let name = format!("bare-{number:03}");
        let new = Cmd::new("new-session").args(["-d", "-P", "-s", &name, "sleep", "86400"]);
        timed(&mut samples, || tmux.call(&[new]).map(drop))?;
        tmux.call(&[Cmd::new("kill-session").args(["-t", &format!("={name}")])])?;
    }
    Ok(samples)
}

fn timed(samples: &mut Samples, work: impl FnOnce() -> lisa_engine::error::Result<()>) -> Result<()> {
    let began = Instant::now();
    work()?;
    samples.add(began.elapsed());
    Ok(())
}

fn rate(took: Duration) -> f64 {
    TIMES as f64 / took.as_secs_f64()
}

fn row(report: &mut Report, sessions: usize, what: &str, samples: &Samples, rate: Option<f64>) {
    report.row(vec![
        sessions.into(),
        what.into(),
        samples.len().into(),
        samples.p50().into(),
        samples.p99().into(),
        rate.into(),
    ]);
}
