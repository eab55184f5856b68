//! What the MCP server adds to a call, over its pipes as a client sees it: one look at a session and a list of all,
//! beside a tool that does nothing, a call that is refused at once, and one round trip to tmux, in the same run.

use super::{
    Options,
    report::{Cell, Column, Report},
    stats::Samples,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    run,
    scratch::Scratch,
    tools::{self, Release},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

const COLUMNS: &[Column] = &[
    Column { name: "what", unit: "" },
    Column { name: "sessions", unit: "" },
    Column { name: "calls", unit: "" },
    Column { name: "p50", unit: "ms" },
    Column { name: "p99", unit: "ms" },
    Column { name: "memory", unit: "MB" },
];

const STARTS: usize = 30;
const CALLS: usize = 500;
/// A list of a hundred sessions reads and judges each of them.
const LISTS: usize = 100;
/// Enough calls to see whether memory grows.
const MANY: usize = 10_000;

/// Arguments that the server refuses before it does anything: what is left is the way there and back.
const REFUSED: (&str, &str) = ("wait_sessions", r#"{"timeout_s":-1}"#);

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let program = build(context)?;
    let idler = context.target.join("release/examples/nothing");
    let mut report = Report::new(COLUMNS);
    let scratch = Scratch::create(context, "mcp")?;
    let mut starts = Samples::default();
    for _ in 0..STARTS {
        let began = Instant::now();
        let server = Server::start(&program, scratch.path())?;
        starts.add(began.elapsed());
        drop(server);
    }
    row(&mut report, "start to the first answer", 0, &starts, None);
    for &sessions in &options.sessions {
        measure(context, [&program, &idler], sessions, &mut report)?;
    }
    Ok(report)
}

fn measure(
    context: &Context,
    [program, idler]: [&Path; 2],
    sessions: usize,
    report: &mut Report,
) -> Result<()> {
    let mut progress = Progress::start(context.terminal, format!("  starting {sessions} sessions"));
    let scratch = Scratch::create(context, &format!("mcp{sessions}"))?;
    let mut server = Server::start(program, scratch.path())?;
    for number in 1..=sessions {
        context.go_on()?;
        let spawn =
            json!({ "agent": "generic", "name": format!("bench-{number:04}"), "args": ["sleep", "86400"] });
        server.call("spawn_session", &spawn)?;
        progress.tick();
    }
    progress.doing("calling");
    let mut tmux = Control::attach(scratch.path())?;
    let mut idle = Server::start(idler, scratch.path())?;
    let mut trips = Samples::default();
    let mut nothing = Samples::default();
    let mut refusals = Samples::default();
    let mut status = Samples::default();
    let last = json!({ "session": format!("bench-{sessions:04}") });
    let refused: Value = serde_json::from_str(REFUSED.1).unwrap_or_default();
    for _ in 0..CALLS {
        context.go_on()?;
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
    }
    let mut list = Samples::default();
    for _ in 0..LISTS {
        context.go_on()?;
        let began = Instant::now();
        let answer = server.call("list_sessions", &json!({ "limit": 100 }))?;
        list.add(began.elapsed());
        if answer["total"] != sessions {
            return Err(Failure::new(format!("a list had {} of {sessions} sessions", answer["total"])));
        }
    }
    let before = server.memory();
    row(report, "one tmux round trip", sessions, &trips, None);
    row(report, "a tool that does nothing", sessions, &nothing, None);
    row(report, "a call that is refused", sessions, &refusals, None);
    row(report, "session_status", sessions, &status, None);
    row(report, "list_sessions", sessions, &list, before);
    if let (Some(status), Some(nothing), Some(trip)) = (status.p50(), nothing.p50(), trips.p50()) {
        let name = format!("session_status to doing nothing and a tmux round trip, {sessions} sessions");
        report.ratio(name, status, nothing + trip);
    }
    let mut many = Samples::default();
    for _ in 0..MANY {
        context.go_on()?;
        let began = Instant::now();
        server.call("session_status", &last)?;
        many.add(began.elapsed());
    }
    let after = server.memory();
    row(report, "session_status, many", sessions, &many, after);
    if let (Some(before), Some(after)) = (before, after) {
        report.ratio(format!("memory after {MANY} more calls to before, {sessions} sessions"), after, before);
    }
    for number in 1..=sessions {
        let end = json!({ "session": format!("bench-{number:04}"), "force": true });
        server.call("kill_session", &end)?;
    }
    Ok(())
}

fn row(report: &mut Report, what: &str, sessions: usize, samples: &Samples, memory: Option<f64>) {
    let memory: Cell = memory.into();
    report.row(vec![
        what.into(),
        sessions.into(),
        samples.len().into(),
        samples.p50().into(),
        samples.p99().into(),
        memory,
    ]);
}

/// Builds the server as it would ship, and the one that does nothing beside it.
fn build(context: &Context) -> Result<PathBuf> {
    let mut cargo = context.cargo();
    cargo.args(["build", "--release", "--package", "lisa-mcp", "--bin", "lisa-mcp", "--example", "nothing"]);
    run::through(context, cargo, run::BUILD_LIMIT, "building the server, optimised")?;
    Ok(context.target.join("release/lisa-mcp"))
}

/// A server and its client, in a private place.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Server {
    /// Starts a server and waits for its first answer.
    fn start(program: &Path, home: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", home).env("LANG", "C.UTF-8").current_dir(home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("LISA_STATE_DIR", home.join("state")).env("LISA_CONFIG_DIR", home.join("config"));
        command.env("LISA_TMUX_SOCKET", home.join("tmux")).env("LISA_MAX_SESSIONS", "1000");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| Failure::io("run", program, &error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("the server has no pipes"));
        };
        let mut server = Self { child, input, output: BufReader::new(output), last: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "0" },
        });
        server.request("initialize", &hello)?;
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn say(&mut self, message: &Value) -> Result<()> {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).map_err(|error| gone(&error))
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).map_err(|error| gone(&error))? == 0 {
                return Err(Failure::new("the server is gone"));
            }
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == id {
                return Ok(message["result"].clone());
            }
        }
    }

    /// Calls a tool, whatever it answers.
    fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool that must succeed.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let mut result = self.ask(tool, arguments)?;
        if result["isError"] == false {
            return Ok(result["structuredContent"].take());
        }
        Err(Failure::new(format!("{tool}: {result}")))
    }

    /// Resident memory in MB, where the system tells.
    fn memory(&self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        let kb: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kb / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gone(error: &std::io::Error) -> Failure {
    Failure::new(format!("the server can not be reached: {error}"))
}

/// A connection to tmux that stays, as the server itself has one.
struct Control {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Control {
    fn attach(home: &Path) -> Result<Self> {
        let mut command = Command::new("tmux");
        command.args(["-C", "-f", "/dev/null", "-S"]).arg(home.join("tmux"));
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
        self.input.write_all(b"display-message -p x\n").map_err(|error| gone(&error))?;
        self.until_end()
    }

    fn until_end(&mut self) -> Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.output.read_until(b'\n', &mut line).map_err(|error| gone(&error))? == 0 {
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
