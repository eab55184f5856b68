//! Everything at once on one tmux server: two MCP servers, a process that watches, a stream in this process, and people
//! who attach, split, scroll and rename. Does the server live, and does everybody who follows the journal see all of it?

mod driver;
mod follower;
mod person;

use super::{
    Options,
    client::Server,
    mcp::PROGRAMS,
    report::{Cell, Column, Report},
    trial::{command_session, lanes, pause},
    watcher::Watcher,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    stage::Stage,
    tools::{self, Release},
};
use driver::Driver;
use follower::Tally;
use lisa_engine::{
    api::KillRequest,
    config::{Environment, Socket},
    engine::Engine,
    tmux::Tmux,
};
use person::Person;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const COLUMNS: &[Column] = &[
    Column { name: "what", unit: "" },
    Column { name: "count", unit: "" },
    Column { name: "missing", unit: "" },
    Column { name: "twice", unit: "" },
    Column { name: "out of order", unit: "" },
];
/// How many agents are driven at once, through one server, and how many people there are.
const DRIVERS: usize = 4;
const PEOPLE: usize = 2;
/// A session that stays, so that there is always one to wait for.
const ANCHOR: &str = "anchor";
/// How often the server is looked for.
const PULSE: Duration = Duration::from_millis(100);
/// How long the journal must stand still at the end, and how long followers may take for the rest of it.
const QUIET: Duration = Duration::from_secs(2);
const CATCH_UP: Duration = Duration::from_secs(10);
/// How many different failures are told.
const TOLD: usize = 12;

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "soak", &PROGRAMS)?;
    let progress = Progress::start(context.terminal, "  soaking");
    let program = context.target.join("release/lisa-mcp");
    let caller = stage.caller();
    // Everybody who follows is there before the first event.
    let said = stage.file("followed");
    let mut outside = Watcher::follow(&caller, &said)?;
    let engine = stage.engine()?;
    let driving = Server::start(&program, &caller)?.share();
    let waiting = Server::start(&program, &caller)?;
    engine.spawn(&command_session(ANCHOR, &["sleep", "86400"]))?;

    let log = Log::default();
    let (soaked, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let end = Instant::now() + Duration::from_secs_f64(options.minutes * 60.0);
    let (by_server, by_stream) = thread::scope(|scope| {
        let by_server = scope.spawn(|| follower::by_server(waiting, &over));
        let by_stream = scope.spawn(|| follower::by_stream(&engine, &over));
        let pulse = scope.spawn(|| pulse(&stage, &soaked, &log));
        let result = lanes(DRIVERS + PEOPLE, |at| match at.checked_sub(DRIVERS) {
            None => Driver { context, server: &driving, log: &log, lane: at }.run(end),
            Some(number) => Person::new(context, &stage, &log, number)?.run(end, ANCHOR),
        });
        soaked.store(true, Ordering::SeqCst);
        progress.say("  waiting until everybody has seen everything");
        let ended = result.and_then(|_| {
            engine.kill(&KillRequest { session: ANCHOR.to_owned(), force: true })?;
            until_quiet(context, &engine)
        });
        over.store(true, Ordering::SeqCst);
        let broke = |_| Failure::new("a follower broke down");
        let followed = (by_server.join().map_err(broke)?, by_stream.join().map_err(broke)?);
        pulse.join().map_err(broke)?;
        ended.map(|()| followed)
    })?;
    let events = follower::truth(&caller)?;
    let truth = follower::cursors(&events);
    let outside_saw = follower::from_file(context, &said, &truth, CATCH_UP)?;
    outside.check()?;
    let mut report = Report::new(COLUMNS);
    log.rows(&mut report);
    row(&mut report, "events in the journal", &Tally::gaps(&truth));
    let followers = [
        ("seen by a server that waits", by_server?),
        ("seen by another process", outside_saw),
        ("seen by a stream in this process", follower::cursors(&by_stream?)),
    ];
    for (what, seen) in &followers {
        row(&mut report, what, &Tally::of(seen, &truth));
        if let Some(missed) = follower::missed(seen, &events) {
            report.note(format!("not {what}: {missed}"));
        }
    }
    log.notes(&mut report);
    Ok(report)
}

fn row(report: &mut Report, what: &str, tally: &Tally) {
    let cells = [tally.seen, tally.missing, tally.twice, tally.disordered].map(Cell::from);
    report.row([vec![what.into()], cells.to_vec()].concat());
}

/// Looks again and again which process the server is: another one means that it died.
fn pulse(stage: &Stage, soaked: &AtomicBool, log: &Log) {
    let Ok(tmux) = Tmux::new(Socket::Path(stage.socket()), &Environment::of_this_process()) else { return };
    let pid = || tmux.server().map(|server| server.identity());
    let mut known = pid();
    while !soaked.load(Ordering::SeqCst) {
        thread::sleep(PULSE);
        let now = pid();
        if known.is_some() && now != known {
            log.count("tmux server deaths");
        }
        known = now;
    }
}

/// Waits until the journal has stood still for a while.
fn until_quiet(context: &Context, engine: &Engine) -> Result<()> {
    loop {
        let before = engine.cursor()?;
        pause(context, QUIET)?;
        if engine.cursor()? == before {
            return Ok(());
        }
    }
}

/// What was done, how often, and what went wrong.
struct Log {
    counts: Mutex<BTreeMap<&'static str, usize>>,
    failures: Mutex<BTreeMap<String, usize>>,
}

/// What is counted, in the order of the report.
const COUNTED: &[&str] = &[
    "tmux server deaths",
    "sessions spawned",
    "prompts sent",
    "prompts refused",
    "permissions answered",
    "turns over",
    "sessions killed",
    "calls that failed",
    "people attached",
    "people split a window",
    "people scrolled",
    "people renamed a window",
    "people detached",
];

impl Default for Log {
    fn default() -> Self {
        let counts = COUNTED.iter().map(|what| (*what, 0)).collect();
        Self { counts: Mutex::new(counts), failures: Mutex::default() }
    }
}

impl Log {
    fn count(&self, what: &'static str) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }

    /// Counts a call that failed, and keeps why.
    fn failed(&self, what: &str, why: &str) {
        self.count("calls that failed");
        self.tell(what, why);
    }

    /// Keeps what somebody should read. Names and numbers differ each time, the rest is the same.
    fn tell(&self, what: &str, why: &str) {
        let plain: String = why.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).take(300).collect();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        *failures.entry(format!("{what}: {plain}")).or_default() += 1;
    }

    fn rows(&self, report: &mut Report) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for what in COUNTED {
            let count = counts.get(what).copied().unwrap_or(0);
            let empty = || Cell::from("");
            report.row(vec![(*what).into(), count.into(), empty(), empty(), empty()]);
        }
    }

    fn notes(&self, report: &mut Report) {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        for (what, times) in failures.iter().take(TOLD) {
            report.note(format!("{times} times: {what}"));
        }
    }
}
