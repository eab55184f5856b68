//! What a process uses that does nothing but watch N agents: idle ones, and ones whose spinner turns ten times a
//! second. It is a process of its own here, so that its processor time and memory are its own, too.

use super::{
    Options, PROGRAMS,
    report::{Cell, Column, Report},
    trial::lanes,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    run,
    stage::{self, Stage},
    tools::{self, Release},
};
use lisa_engine::{
    api::{KillRequest, SendRequest, WaitMode, WaitRequest, WatchRequest},
    config::Environment,
    engine::{Caller, Cancel, Engine},
    process,
};
use std::{
    env, fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The word by which this program is asked to be the process that watches.
pub(super) const WORD: &str = "be-resident";

const COLUMNS: &[Column] = &[
    Column { name: "agents", unit: "" },
    Column { name: "sessions", unit: "" },
    Column { name: "server alone", unit: "ms/s" },
    Column { name: "server watched", unit: "ms/s" },
    Column { name: "resident", unit: "ms/s" },
    Column { name: "its tmux client", unit: "ms/s" },
    Column { name: "resident", unit: "MB" },
];
/// How long each figure is measured, and how long everything may come to rest before.
const MEASURED: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_secs(4);
const LANES: usize = 4;

/// Watches everything until it is ended: what is measured.
pub(super) fn be(helper: &[String]) -> Result<()> {
    let cwd = env::current_dir().map_err(|error| Failure::new(error.to_string()))?;
    let caller = Caller { env: Environment::of_this_process(), cwd, helper: helper.to_vec(), policy: None };
    let engine = Engine::open_resident(caller)?;
    let mut watch = engine.watch(&WatchRequest::default())?;
    loop {
        watch.next(Duration::from_secs(3600))?;
    }
}

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "resident", &PROGRAMS)?;
    let mut field = Field { context, stage: &stage, engine: stage.engine()?, names: Vec::new() };
    let mut progress = Progress::start(context.terminal, "  watching");
    let mut report = Report::new(COLUMNS);
    let mut counts = options.sessions.clone();
    counts.sort_unstable();
    for count in &counts {
        progress.doing(&format!("{count} idle agents"));
        field.grow(*count)?;
        field.measure("idle", &mut report)?;
    }
    progress.doing("setting all to work");
    field.set_to_work()?;
    for count in counts.iter().rev() {
        progress.doing(&format!("{count} agents at work"));
        field.shrink(*count)?;
        field.measure("spinning", &mut report)?;
    }
    Ok(report)
}

/// Agents to be watched.
struct Field<'a> {
    context: &'a Context,
    stage: &'a Stage,
    engine: Engine,
    names: Vec<String>,
}

impl Field<'_> {
    /// Starts agents until there are this many, and waits until all are up.
    fn grow(&mut self, count: usize) -> Result<()> {
        let new: Vec<String> = (self.names.len()..count).map(|number| format!("agent{number}")).collect();
        lanes(LANES, |lane| {
            for name in new.iter().skip(lane).step_by(LANES) {
                self.context.go_on()?;
                let mut request = stage::demo_agent(name);
                request.wait_ready_s = None;
                self.engine.spawn(&request)?;
            }
            Ok(())
        })?;
        self.names.extend(new);
        let request = WaitRequest {
            sessions: self.names.clone(),
            mode: WaitMode::All,
            until: Some("ready".to_owned()),
            timeout_s: Some(120.0),
            ..WaitRequest::default()
        };
        let up = self.engine.wait(&request, &Cancel::default(), &mut |_| {})?;
        // The engine that started them must not watch them as well.
        self.engine = self.stage.engine()?;
        if up.timed_out { Err(Failure::new(format!("not all of {count} agents came up"))) } else { Ok(()) }
    }

    /// Gives every agent something to think about for longer than this takes.
    fn set_to_work(&self) -> Result<()> {
        lanes(LANES, |lane| {
            for name in self.names.iter().skip(lane).step_by(LANES) {
                self.context.go_on()?;
                let request = SendRequest {
                    session: name.clone(),
                    text: Some("!think 3000s".to_owned()),
                    ..SendRequest::default()
                };
                let receipt = self.engine.send(&request)?.receipt;
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
        for name in self.names.drain(count..) {
            self.engine.kill(&KillRequest { session: name, force: true })?;
        }
        Ok(())
    }

    fn measure(&self, agents: &str, report: &mut Report) -> Result<()> {
        let server = self.server()?;
        self.pause(REST)?;
        let [alone] = self.rates([&[server]])?;
        let mut watcher = Watcher(self.start_watching()?);
        self.pause(REST)?;
        let pid = watcher.0.id();
        let below: Vec<u32> = process::tree(pid)
            .unwrap_or_default()
            .into_iter()
            .map(|proc| proc.pid)
            .filter(|below| *below != pid)
            .collect();
        let [watched, own, client] = self.rates([&[server], &[pid], &below])?;
        let memory = resident_mb(pid);
        if watcher.0.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err(Failure::new("the process that watches has ended"));
        }
        let cell = |rate: Option<f64>| Cell::from(rate);
        report.row(vec![
            agents.into(),
            self.names.len().into(),
            cell(alone),
            cell(watched),
            cell(own),
            cell(client),
            cell(memory),
        ]);
        if let (Some(alone), Some(watched), Some(own), Some(client)) = (alone, watched, own, client) {
            let added = own + client + (watched - alone).max(0.0);
            let count = self.names.len();
            report.note(format!(
                "watching {count} {agents}: adds {:.1} % of one core, {:.0} % of what the server uses",
                added / 10.0,
                added * 100.0 / alone.max(0.1)
            ));
        }
        Ok(())
    }

    /// Processor time of each group of processes, in milliseconds for each second.
    fn rates<const N: usize>(&self, groups: [&[u32]; N]) -> Result<[Option<f64>; N]> {
        let began = Instant::now();
        let before = groups.map(spent);
        self.pause(MEASURED)?;
        let seconds = began.elapsed().as_secs_f64();
        let after = groups.map(spent);
        let mut rates = [None; N];
        for (rate, (before, after)) in rates.iter_mut().zip(before.iter().zip(after)) {
            *rate = before.zip(after).map(|(before, after)| after.saturating_sub(before) as f64 / seconds);
        }
        Ok(rates)
    }

    fn pause(&self, long: Duration) -> Result<()> {
        let until = Instant::now() + long;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            self.context.go_on()?;
            thread::sleep(left.min(Duration::from_millis(200)));
        }
        Ok(())
    }

    fn start_watching(&self) -> Result<Child> {
        let program = env::current_exe().map_err(|error| Failure::new(error.to_string()))?;
        let caller = self.stage.caller();
        let mut command = Command::new(&program);
        command.args(["bench", WORD]).args(&caller.helper).env_clear().envs(caller.env.iter());
        command
            .current_dir(&caller.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| Failure::io("run", &program, &error))
    }

    fn server(&self) -> Result<u32> {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(self.stage.socket())
            .args(["display-message", "-p", "#{pid}"])
            .env_remove("TMUX");
        let answer = run::output(&mut command)?.stdout;
        let answer = String::from_utf8_lossy(&answer);
        answer.trim().parse().map_err(|_| Failure::new("tmux does not say its process id"))
    }
}

/// A process that is ended when nobody needs it any more.
struct Watcher(Child);

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spent(pids: &[u32]) -> Option<u64> {
    pids.iter().map(|pid| process::cpu_ms(*pid)).sum()
}

/// The memory that a process holds, where the system tells (Linux).
fn resident_mb(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}
