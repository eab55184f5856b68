//! What the MCP server adds to a call, over its pipes as a client sees it: one look at a session and a list of all,
//! where the server itself is the observer and where another process is, beside a tool that does nothing, a call that is
//! refused at once, and one round trip to tmux, in the same run. And how it answers while hundreds of calls wait.

use super::{
    Options,
    client::{Server, unreachable},
    report::{Cell, Column, Report},
    stats::Samples,
    trial::{numbered, pause, sleepers},
    usage::{memory_mb, threads},
    watcher::{self, come_to_rest, until_observer},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    run,
    stage::{Programs, Stage},
    tools::{self, Release},
};
use lisa_engine::engine::Engine;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const COLUMNS: &[Column] = &[
    Column { name: "what", unit: "" },
    Column { name: "observer", unit: "" },
    Column { name: "sessions", unit: "" },
    Column { name: "calls", unit: "" },
    Column { name: "p50", unit: "ms" },
    Column { name: "p99", unit: "ms" },
    Column { name: "memory", unit: "MB" },
    Column { name: "threads", unit: "" },
];

/// The server as it would ship, and the agent that it starts.
pub(super) const PROGRAMS: Programs =
    Programs { packages: &["lisa-mcp", "demo-agent"], helper: &["lisa-mcp", "helper"], release: true };

const STARTS: usize = 30;
const CALLS: usize = 500;
/// A list of a hundred sessions is long.
const LISTS: usize = 100;
/// Enough calls to see whether memory grows.
const MANY: usize = 10_000;
/// How many calls wait at once, for how long, and how long the others are measured meanwhile.
const WAITS: usize = 600;
const WAIT_S: u64 = 30;
const MEANWHILE: Duration = Duration::from_secs(15);

/// Arguments that the server refuses before it does anything: what is left is the way there and back.
const REFUSED: (&str, &str) = ("wait_sessions", r#"{"timeout_s":-1}"#);

/// For how long nothing has told of a session before it is asked about, so that the observer's last look at it holds.
const AT_REST: Duration = Duration::from_secs(6);

/// Who is the observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Observer {
    Itself,
    Another,
}

impl Observer {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Itself => "itself",
            Self::Another => "another",
        }
    }
}

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let [program, idler] = build(context)?;
    let mut report = Report::new(COLUMNS);
    let stage = Stage::set(context, "mcp", &PROGRAMS)?;
    let mut starts = Samples::default();
    for _ in 0..STARTS {
        let began = Instant::now();
        let server = Server::start(&program, &stage.caller())?;
        starts.add(began.elapsed());
        drop(server);
    }
    row(&mut report, ("start to the first answer", None), 0, &starts, None);
    for &sessions in &options.sessions {
        let progress = Progress::start(context.terminal, format!("  starting {sessions} sessions"));
        let stage = Stage::set(context, &format!("mcp{sessions}"), &PROGRAMS)?;
        sleepers(context, &Engine::open(stage.caller())?, 1..sessions + 1)?;
        for observer in [Observer::Itself, Observer::Another] {
            progress.say(&format!("  calling with {sessions} sessions, observer: {}", observer.as_str()));
            let trial = Trial { context, stage: &stage, sessions, observer };
            trial.measure([&program, &idler], &mut report)?;
        }
    }
    waits(context, &program, &mut report)?;
    Ok(report)
}

/// One server, and who calls it.
struct Trial<'a> {
    context: &'a Context,
    stage: &'a Stage,
    sessions: usize,
    observer: Observer,
}

impl Trial<'_> {
    fn measure(&self, [program, idler]: [&Path; 2], report: &mut Report) -> Result<()> {
        let caller = self.stage.caller();
        let another = match self.observer {
            Observer::Itself => None,
            Observer::Another => Some(watcher::observer(self.context, &caller)?),
        };
        let mut server = Server::start(program, &caller)?;
        let watches = another.as_ref().map_or(server.pid(), watcher::Watcher::pid);
        until_observer(self.context, &caller, watches)?;
        come_to_rest(self.context, &[server.pid()], Instant::now())?;
        pause(self.context, AT_REST)?;
        let status = self.calls(&mut server, idler, report)?;
        let list = self.lists(&mut server)?;
        let (sessions, who) = (self.sessions, Some(self.observer));
        let before = server.pid();
        let before = (memory_mb(before), threads(before));
        row(report, ("session_status", who), sessions, &status, None);
        row(report, ("list_sessions", who), sessions, &list, Some(before));
        if self.observer == Observer::Itself {
            let many = self.many(&mut server)?;
            let after = (memory_mb(server.pid()), threads(server.pid()));
            row(report, ("session_status, many", who), sessions, &many, Some(after));
            if let (Some(before), Some(after)) = (before.0, after.0) {
                let name = format!("memory after {MANY} more calls to before, {sessions} sessions");
                report.ratio(name, after, before);
            }
        }
        until_observer(self.context, &caller, watches)
    }

    /// Calls for one session's status, between calls that say how much of it is the way there and back.
    fn calls(&self, server: &mut Server, idler: &Path, report: &mut Report) -> Result<Samples> {
        let mut tmux = Control::attach(&self.stage.socket())?;
        let mut idle = Server::start(idler, &self.stage.caller())?;
        let [mut trips, mut nothing, mut refusals, mut status, mut looked] = [const { Samples::new() }; 5];
        let last = json!({ "session": numbered(self.sessions) });
        let refused: Value = serde_json::from_str(REFUSED.1).unwrap_or_default();
        for _ in 0..CALLS {
            self.context.go_on()?;
            // One after the other, so that whatever else the machine does falls on all alike.
            let began = Instant::now();
            tmux.round_trip()?;
            trips.add(began.elapsed());
            let began = Instant::now();
            idle.call("nothing", &json!({}))?;
            nothing.add(began.elapsed());
            let began = Instant::now();
            server.ask(REFUSED.0, &refused)?;
            refusals.add(began.elapsed());
            let began = Instant::now();
            server.call("session_status", &last)?;
            status.add(began.elapsed());
            let began = Instant::now();
            server.call("explain_session", &last)?;
            looked.add(began.elapsed());
        }
        let (sessions, who) = (self.sessions, Some(self.observer));
        row(report, ("one tmux round trip", who), sessions, &trips, None);
        row(report, ("a tool that does nothing", who), sessions, &nothing, None);
        row(report, ("a call that is refused", who), sessions, &refusals, None);
        row(report, ("explain_session, a look each", who), sessions, &looked, None);
        if let (Some(status), Some(nothing), Some(trip)) = (status.p50(), nothing.p50(), trips.p50()) {
            let name = format!(
                "session_status to doing nothing and a tmux round trip, {sessions} sessions, observer {}",
                self.observer.as_str()
            );
            report.ratio(name, status, nothing + trip);
        }
        Ok(status)
    }

    fn lists(&self, server: &mut Server) -> Result<Samples> {
        let mut list = Samples::default();
        for _ in 0..LISTS {
            self.context.go_on()?;
            let began = Instant::now();
            let answer = server.call("list_sessions", &json!({ "limit": 100 }))?;
            list.add(began.elapsed());
            if answer["total"] != self.sessions {
                let failure = format!("a list had {} of {} sessions", answer["total"], self.sessions);
                return Err(Failure::new(failure));
            }
        }
        Ok(list)
    }

    fn many(&self, server: &mut Server) -> Result<Samples> {
        let last = json!({ "session": numbered(self.sessions) });
        let mut many = Samples::default();
        for _ in 0..MANY {
            self.context.go_on()?;
            let began = Instant::now();
            server.call("session_status", &last)?;
            many.add(began.elapsed());
        }
        Ok(many)
    }
}

/// Hundreds of calls that wait for one session, and others meanwhile.
fn waits(context: &Context, program: &Path, report: &mut Report) -> Result<()> {
    let _progress = Progress::start(context.terminal, format!("  {WAITS} waits at once"));
    let stage = Stage::set(context, "waits", &PROGRAMS)?;
    let caller = stage.caller();
    sleepers(context, &Engine::open(caller.clone())?, 1..2)?;
    let mut server = Server::start(program, &caller)?;
    until_observer(context, &caller, server.pid())?;
    come_to_rest(context, &[server.pid()], Instant::now())?;
    let one = json!({ "session": numbered(1) });
    let mut alone = Samples::default();
    for _ in 0..CALLS {
        let began = Instant::now();
        server.call("session_status", &one)?;
        alone.add(began.elapsed());
    }
    let used = |server: &Server| Some((memory_mb(server.pid()), threads(server.pid())));
    let who = Some(Observer::Itself);
    row(report, ("session_status, no waits", who), 1, &alone, used(&server));
    let wait = json!({ "sessions": [numbered(1)], "until": "exited", "timeout_s": WAIT_S });
    let began = Instant::now();
    for _ in 0..WAITS {
        server.begin("wait_sessions", &wait)?;
    }
    // The server reads one call after the other, so it has all waits by then.
    server.ask(REFUSED.0, &serde_json::from_str(REFUSED.1).unwrap_or_default())?;
    pause(context, Duration::from_secs(1))?;
    let (mut meanwhile, mut most, mut fewest) = (Samples::default(), 0, usize::MAX);
    let measured = Instant::now();
    while measured.elapsed() < MEANWHILE {
        context.go_on()?;
        let asked = Instant::now();
        server.call("session_status", &one)?;
        meanwhile.add(asked.elapsed());
        most = most.max(threads(server.pid()).unwrap_or(0));
        fewest = fewest.min(server.begun());
    }
    row(report, ("session_status, 600 waits", who), 1, &meanwhile, used(&server));
    let answers = server.finish()?;
    let in_time = answers.iter().filter(|answer| answer["structuredContent"]["timed_out"] == true).count();
    report.note(format!(
        "{WAITS} waits at once: at least {fewest} of them open while measured, at most {most} threads; {in_time} \
         ended by their time-out of {WAIT_S} s, the last after {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    if let (Some(meanwhile), Some(alone)) = (meanwhile.p50(), alone.p50()) {
        report.ratio(format!("session_status with {WAITS} waits to without"), meanwhile, alone);
    }
    Ok(())
}

/// Memory in MB and threads, where the system tells.
type Used = (Option<f64>, Option<usize>);

fn row(
    report: &mut Report,
    (what, observer): (&str, Option<Observer>),
    sessions: usize,
    samples: &Samples,
    used: Option<Used>,
) {
    let (memory, threads) = used.unwrap_or_default();
    report.row(vec![
        what.into(),
        observer.map_or("", Observer::as_str).into(),
        sessions.into(),
        samples.len().into(),
        samples.p50().into(),
        samples.p99().into(),
        memory.into(),
        threads.map_or(Cell::Unknown, Cell::from),
    ]);
}

/// Builds the server as it would ship, and the one that does nothing beside it.
fn build(context: &Context) -> Result<[PathBuf; 2]> {
    let mut cargo = context.cargo();
    cargo.args(["build", "--release", "--package", "lisa-mcp", "--bin", "lisa-mcp", "--example", "nothing"]);
    run::through(context, cargo, run::BUILD_LIMIT, "building the server, optimised")?;
    let release = context.target.join("release");
    Ok([release.join("lisa-mcp"), release.join("examples/nothing")])
}

/// A connection to tmux that stays: the shortest way there and back.
struct Control {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Control {
    fn attach(socket: &Path) -> Result<Self> {
        let mut command = Command::new("tmux");
        command.args(["-C", "-f", "/dev/null", "-S"]).arg(socket);
        command.args(["attach-session", "-f", "no-output,ignore-size"]).env_remove("TMUX");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            command.spawn().map_err(|error| Failure::new(format!("tmux does not start: {error}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("tmux has no pipes"));
        };
        let mut control = Self { child, input, output: BufReader::new(output) };
        control.until_end()?;
        control.round_trip()?;
        Ok(control)
    }

    /// One question and its answer.
    fn round_trip(&mut self) -> Result<()> {
        self.input.write_all(b"display-message -p x\n").map_err(|error| unreachable(&error))?;
        self.until_end()
    }

    fn until_end(&mut self) -> Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.output.read_until(b'\n', &mut line).map_err(|error| unreachable(&error))? == 0 {
                return Err(Failure::new("tmux is gone"));
            }
            if line.starts_with(b"%end") || line.starts_with(b"%error") {
                return Ok(());
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
