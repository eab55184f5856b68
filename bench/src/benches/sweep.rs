//! What one look at N sessions costs: is each alive, what runs in it, what does it show. One in ten of them prints a
//! line every second, the others stand still.
//!
//! A way to look is a [`Way`]; all of them look at the same sessions, and a way that sees less than there is of what it
//! looks at is an error, not a fast way. Two of them are floors: they fetch what tmux knows and judge nothing.

use super::{
    Options,
    herd::{Herd, has_text},
    report::{Column, Report},
    stats::Samples,
    usage::Meter,
    watcher::observing,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    run,
    tools::{self, Release},
};
use lisa_engine::{
    api::{ListRequest, words::StateName},
    engine::Engine,
    tmux::Tmux,
};
use std::{
    process::Command,
    time::{Duration, Instant},
};

/// What one look at all sessions saw; nothing is said of what a way does not look at.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// Sessions whose program runs.
    pub(super) alive: Option<usize>,
    /// Sessions whose screen shows text.
    pub(super) screens: Option<usize>,
}

/// One way to look at many sessions.
pub(super) trait Way {
    /// Looks once at every session.
    fn look(&mut self) -> Result<Seen>;
}

/// Prepares a way for a herd; what that costs is not measured.
type Prepare = for<'a> fn(&'a Context, &'a Herd) -> Result<Box<dyn Way + 'a>>;

const CLASSIC: &str = "classic";
const FIELDS: &str = "floor: fields";
const SCREENS: &str = "floor: screens";
const EVERY_SCREEN: &str = "engine, every screen";
const ENGINE: &str = "engine";

/// Every way, in the order in which they look: nobody watches before the last one does.
const WAYS: &[(&str, Prepare)] = &[
    (CLASSIC, |_, herd| Ok(Box::new(Classic { herd }))),
    (FIELDS, |_, herd| Ok(Box::new(Fields { tmux: herd.door()? }))),
    (SCREENS, |_, herd| Ok(Box::new(Screens::new(herd)?))),
    (EVERY_SCREEN, |_, herd| Ok(Box::new(Listing { engine: Engine::open(herd.caller())? }))),
    (ENGINE, |context, herd| {
        Ok(Box::new(Listing { engine: observing(context, &herd.caller(), herd.names.len())? }))
    }),
];

/// What is compared with what: the words for more processor time and for more time, and the two ways.
const RATIOS: &[(&str, &str, &str, &str)] = &[
    (
        "less cpu than classic, engine, every screen",
        "faster than classic, engine, every screen",
        CLASSIC,
        EVERY_SCREEN,
    ),
    ("less cpu than classic, engine", "faster than classic, engine", CLASSIC, ENGINE),
    (
        "cpu of engine, every screen, to floor: screens",
        "wall of engine, every screen, to floor: screens",
        EVERY_SCREEN,
        SCREENS,
    ),
    ("cpu of engine to floor: fields", "wall of engine to floor: fields", ENGINE, FIELDS),
];

const COLUMNS: &[Column] = &[
    Column { name: "way", unit: "" },
    Column { name: "sessions", unit: "" },
    Column { name: "looks", unit: "" },
    Column { name: "wall p50", unit: "ms" },
    Column { name: "wall p99", unit: "ms" },
    Column { name: "cpu", unit: "ms" },
    Column { name: "cpu per session", unit: "ms" },
];

/// Looks go on for this long, but there are never fewer than the least nor more than the most.
const LONG_ENOUGH: Duration = Duration::from_secs(3);
const LEAST: usize = 3;
const MOST: usize = 50_000;
/// What was measured of one way.
struct Figures {
    name: &'static str,
    wall: Samples,
    cpu: Option<f64>,
}

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let mut report = Report::new(COLUMNS);
    for &sessions in &options.sessions {
        let mut progress = Progress::start(context.terminal, format!("  starting {sessions} sessions"));
        let herd = Herd::start(context, sessions)?;
        let mut figures = Vec::new();
        for (name, prepare) in WAYS {
            progress.doing(&format!("looking the {name} way"));
            figures.push(measure(context, &herd, (name, prepare), &mut progress)?);
        }
        rows(&mut report, sessions, &figures);
    }
    report.note("\"engine\" answers from what its own process has observed; its cpu has the observer's own looks in it");
    Ok(report)
}

fn rows(report: &mut Report, sessions: usize, figures: &[Figures]) {
    for Figures { name, wall, cpu } in figures {
        report.row(vec![
            (*name).into(),
            sessions.into(),
            wall.len().into(),
            wall.p50().into(),
            wall.p99().into(),
            (*cpu).into(),
            cpu.map(|cpu| cpu / sessions as f64).into(),
        ]);
    }
    let find = |name: &str| figures.iter().find(|figures| figures.name == name);
    for (more_cpu, slower, more, less) in RATIOS {
        let (Some(more), Some(less)) = (find(more), find(less)) else { continue };
        if let (Some(more), Some(less)) = (more.cpu, less.cpu) {
            report.ratio(format!("{more_cpu}, {sessions} sessions"), more, less);
        }
        if let (Some(more), Some(less)) = (more.wall.p50(), less.wall.p50()) {
            report.ratio(format!("{slower}, {sessions} sessions"), more, less);
        }
    }
}

fn measure(
    context: &Context,
    herd: &Herd,
    (name, prepare): (&'static str, &Prepare),
    progress: &mut Progress,
) -> Result<Figures> {
    let mut way = prepare(context, herd)?;
    // The first look warms caches; it also proves that the way sees what there is.
    check(name, herd, &way.look()?)?;
    let meter = Meter::start(&[herd.server]);
    let started = Instant::now();
    let mut wall = Samples::default();
    while wall.len() < LEAST || (started.elapsed() < LONG_ENOUGH && wall.len() < MOST) {
        context.go_on()?;
        let began = Instant::now();
        let seen = way.look()?;
        wall.add(began.elapsed());
        check(name, herd, &seen)?;
        progress.tick();
    }
    let cpu = meter.ms().map(|ms| ms / wall.len() as f64);
    Ok(Figures { name, wall, cpu })
}

fn check(name: &str, herd: &Herd, seen: &Seen) -> Result<()> {
    let all = herd.names.len();
    let whole = |part: Option<usize>| part.is_none_or(|part| part == all);
    if whole(seen.alive) && whole(seen.screens) {
        return Ok(());
    }
    Err(Failure::new(format!("{name}: a look saw {seen:?} of {all} sessions")))
}

/// The way of scripts: for each session four questions to tmux, one capture and a list of all processes, each of them
/// a program that is started and ends.
struct Classic<'a> {
    herd: &'a Herd,
}

impl Way for Classic<'_> {
    fn look(&mut self) -> Result<Seen> {
        let (mut alive, mut screens) = (0, 0);
        for name in &self.herd.names {
            let target = format!("={name}:");
            let ask = |field: &str| self.herd.tmux(&["display-message", "-p", "-t", &target, field]);
            let dead = ask("#{pane_dead}")?;
            let _status = ask("#{pane_dead_status}")?;
            let _command = ask("#{pane_current_command}")?;
            let pid = ask("#{pane_pid}")?;
            let screen = self.herd.tmux(&["capture-pane", "-p", "-t", &target])?;
            let processes = run::output(Command::new("ps").args(["-axo", "pid,ppid,pcpu,comm"]))?;
            let runs = has_process(&String::from_utf8_lossy(&processes.stdout), pid.trim());
            alive += usize::from(dead.trim() == "0" && runs);
            screens += usize::from(!screen.trim().is_empty());
        }
        Ok(Seen { alive: Some(alive), screens: Some(screens) })
    }
}

/// Whether a list of processes has this id in its first column.
fn has_process(list: &str, pid: &str) -> bool {
    list.lines().any(|line| line.split_whitespace().next() == Some(pid))
}

/// All fields of all panes, and nothing else.
struct Fields {
    tmux: Tmux,
}

impl Way for Fields {
    fn look(&mut self) -> Result<Seen> {
        let alive = self.tmux.panes(false)?.iter().filter(|row| !row.pane.dead).count();
        Ok(Seen { alive: Some(alive), screens: None })
    }
}

/// All screens with their colours, and nothing else.
struct Screens {
    tmux: Tmux,
    panes: Vec<String>,
}

impl Screens {
    fn new(herd: &Herd) -> Result<Self> {
        let tmux = herd.door()?;
        let panes = tmux.panes(false)?.into_iter().map(|row| row.pane_id).collect();
        Ok(Self { tmux, panes })
    }
}

impl Way for Screens {
    fn look(&mut self) -> Result<Seen> {
        let panes: Vec<&str> = self.panes.iter().map(String::as_str).collect();
        let screens = self.tmux.screens(&panes, true)?;
        Ok(Seen { alive: None, screens: Some(screens.iter().filter(|screen| has_text(screen)).count()) })
    }
}

/// The way of the engine: a list of all sessions. Where nobody watches it looks at each of them.
struct Listing {
    engine: Engine,
}

impl Way for Listing {
    fn look(&mut self) -> Result<Seen> {
        let rows = self.engine.list(&ListRequest::default())?.sessions;
        let alive = rows.iter().filter(|row| row.state != StateName::Exited && row.pid.is_some()).count();
        Ok(Seen { alive: Some(alive), screens: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_own_id_not_its_parent_s() {
        let list = "    PID    PPID %CPU COMMAND\n     12       1  0.0 sh\n    345      12  0.1 sleep\n";
        assert!(has_process(list, "345"));
        assert!(!has_process(list, "1"));
        assert!(!has_process(list, "34"));
    }
}
