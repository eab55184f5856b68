//! What one look at N sessions costs: is each alive, what runs in it, what does it show. One in ten of them prints a
//! line every second, the others stand still.
//!
//! A way to look is a [`Way`]; all of them look at the same sessions, and a way that sees less than the others is an
//! error, not a fast way.

use super::{
    Options,
    cpu::Meter,
    herd::Herd,
    report::{Column, Report},
    stats::Samples,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    run,
    tools::{self, Release},
};
use lisa_engine::{
    config::Environment,
    process,
    tmux::{Capture, Tmux, pane::PaneRow},
};
use std::{
    collections::HashMap,
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// What one look at all sessions saw.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// Sessions whose program runs.
    pub(super) alive: usize,
    /// Sessions whose screen shows text.
    pub(super) screens: usize,
}

/// One way to look at many sessions.
pub(super) trait Way {
    /// Looks once at every session.
    fn look(&mut self) -> Result<Seen>;
}

/// Prepares a way for a herd; what that costs is not measured.
type Prepare = for<'a> fn(&'a Herd) -> Result<Box<dyn Way + 'a>>;

/// Every way, the one that the others are compared with first.
const WAYS: &[(&str, Prepare)] = &[
    ("classic", |herd| Ok(Box::new(Classic { herd }))),
    ("engine, every screen", |herd| Ok(Box::new(Resident::new(herd, Screens::All)?))),
    ("engine", |herd| Ok(Box::new(Resident::new(herd, Screens::Changed)?))),
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
const MOST: usize = 300;

/// What was measured of one way.
struct Figures {
    wall: Samples,
    cpu: Option<f64>,
}

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let mut report = Report::new(COLUMNS);
    for &sessions in &options.sessions {
        let mut progress = Progress::start(context.terminal, format!("  starting {sessions} sessions"));
        let herd = Herd::start(context, sessions)?;
        let mut base: Option<(f64, f64)> = None;
        for (name, prepare) in WAYS {
            progress.doing(&format!("looking the {name} way"));
            let Figures { wall, cpu } = measure(context, &herd, prepare, &mut progress)?;
            let each = cpu.map(|cpu| cpu / sessions as f64);
            report.row(vec![
                (*name).into(),
                sessions.into(),
                wall.len().into(),
                wall.p50().into(),
                wall.p99().into(),
                cpu.into(),
                each.into(),
            ]);
            match (base, wall.p50(), cpu) {
                (None, Some(wall), Some(cpu)) => base = Some((wall, cpu)),
                (Some((base_wall, base_cpu)), Some(wall), Some(cpu)) => {
                    report.ratio(
                        format!("less cpu than classic, {name}, {sessions} sessions"),
                        base_cpu,
                        cpu,
                    );
                    report.ratio(
                        format!("faster than classic, {name}, {sessions} sessions"),
                        base_wall,
                        wall,
                    );
                }
                _ => {}
            }
        }
    }
    Ok(report)
}

fn measure(context: &Context, herd: &Herd, prepare: &Prepare, progress: &mut Progress) -> Result<Figures> {
    let mut way = prepare(herd)?;
    // The first look warms caches and connections; it also proves that the way sees what there is.
    check(herd, &way.look()?)?;
    // A connection that is kept works for us, too.
    let mut workers = vec![herd.server];
    let own = std::process::id();
    workers
        .extend(process::tree(own).unwrap_or_default().iter().map(|proc| proc.pid).filter(|pid| *pid != own));
    let meter = Meter::start(&workers);
    let started = Instant::now();
    let mut wall = Samples::default();
    while wall.len() < LEAST || (started.elapsed() < LONG_ENOUGH && wall.len() < MOST) {
        context.go_on()?;
        let began = Instant::now();
        let seen = way.look()?;
        wall.add(began.elapsed());
        check(herd, &seen)?;
        progress.tick();
    }
    let cpu = meter.ms().map(|ms| ms / wall.len() as f64);
    Ok(Figures { wall, cpu })
}

fn check(herd: &Herd, seen: &Seen) -> Result<()> {
    let all = Seen { alive: herd.names.len(), screens: herd.names.len() };
    if *seen == all { Ok(()) } else { Err(Failure::new(format!("a look saw {seen:?} of {all:?}"))) }
}

/// The way of scripts: for each session four questions to tmux, one capture and a list of all processes, each of them
/// a program that is started and ends.
struct Classic<'a> {
    herd: &'a Herd,
}

impl Way for Classic<'_> {
    fn look(&mut self) -> Result<Seen> {
        let mut seen = Seen::default();
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
            seen.alive += usize::from(dead.trim() == "0" && runs);
            seen.screens += usize::from(!screen.trim().is_empty());
        }
        Ok(seen)
    }
}

/// Whether a list of processes has this id in its first column.
fn has_process(list: &str, pid: &str) -> bool {
    list.lines().any(|line| line.split_whitespace().next() == Some(pid))
}

/// Which screens a look takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Screens {
    All,
    /// Those that may show something else than the last time.
    Changed,
}

/// The way of the engine's resident: one connection to tmux, all panes in one exchange, the screens of those that
/// changed in another (plain and with colours, as the classifier wants them), and every process tree from `/proc`.
struct Resident {
    tmux: Tmux,
    which: Screens,
    /// For each pane, the second of its last capture and whether it showed text.
    known: HashMap<String, (i64, bool)>,
}

impl Resident {
    fn new(herd: &Herd, which: Screens) -> Result<Self> {
        let tmux = Tmux::new(herd.engine_socket(), &Environment::of_this_process())?;
        Ok(Self { tmux, which, known: HashMap::new() })
    }

    /// tmux tells the second of the last output: what came in the second of the last capture may have come after it.
    fn changed(&self, row: &PaneRow) -> bool {
        let known = self.known.get(&row.pane_id);
        self.which == Screens::All || known.is_none_or(|(second, _)| row.pane.activity.0 / 1000 >= *second)
    }
}

impl Way for Resident {
    fn look(&mut self) -> Result<Seen> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = i64::try_from(now.as_secs()).unwrap_or(0);
        let rows = self.tmux.panes(false)?;
        let panes: Vec<&str> =
            rows.iter().filter(|row| self.changed(row)).map(|row| row.pane_id.as_str()).collect();
        let both = |pane| [false, true].map(|ansi| Capture { pane, ansi, history: 0 });
        let captures: Vec<Capture<'_>> = panes.iter().copied().flat_map(both).collect();
        let screens = self.tmux.captures(&captures)?;
        for (pane, screen) in panes.iter().zip(screens.chunks(2)) {
            let text =
                screen.iter().all(|reply| reply.as_ref().is_ok_and(|bytes| !bytes.trim_ascii().is_empty()));
            self.known.insert((*pane).to_owned(), (second, text));
        }
        let runs =
            |row: &&PaneRow| !row.pane.dead && process::tree(row.pane.pid).is_ok_and(|tree| !tree.is_empty());
        Ok(Seen {
            alive: rows.iter().filter(runs).count(),
            screens: rows
                .iter()
                .filter(|row| self.known.get(&row.pane_id).is_some_and(|(_, text)| *text))
                .count(),
        })
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
