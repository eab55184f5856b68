//! A process that does nothing but watch: what is measured, or what stands beside what is measured.

use super::{
    trial::pause,
    usage::{memory_mb, spent_ms},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
};
use lisa_engine::{api::WatchRequest, config::Environment, engine::Engine, watch::Caller};
use std::{
    collections::VecDeque,
    env,
    fs::File,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A process is at rest when it has not used more than this much processor time for so long.
const QUIET: Duration = Duration::from_millis(500);
const QUIET_MS: f64 = 1.0;
/// How often that is looked at, and how long it may take.
const LOOK: Duration = Duration::from_millis(10);
const REST_LIMIT: Duration = Duration::from_secs(60);
/// How long the first look at all sessions may take, and for each of them more, where nobody can tell that it is over.
const FIRST_LOOK: Duration = Duration::from_secs(3);
const FIRST_LOOK_EACH: Duration = Duration::from_millis(10);
/// How long it may take until a process is the observer.
const ELECTION_LIMIT: Duration = Duration::from_secs(20);

/// Watches everything until it is ended. A follower begins where the journal does, and prints the cursor of each event.
pub(crate) fn watch(follower: bool, helper: &[String]) -> Result<()> {
    let cwd = env::current_dir().map_err(|error| Failure::new(error.to_string()))?;
    let caller = Caller { env: Environment::of_this_process(), cwd, helper: helper.to_vec(), policy: None };
    let engine = Engine::open_resident(caller)?;
    let mut watch =
        engine.watch(&WatchRequest { since: follower.then_some(0), ..WatchRequest::default() })?;
    loop {
        let event = watch.next(Duration::from_secs(3600))?;
        if let Some(event) = event.filter(|_| follower) {
            println!("{}", event.cursor);
        }
    }
}

/// A process that watches. Dropping it ends it.
pub(super) struct Watcher {
    child: Child,
    began: Instant,
}

impl Watcher {
    /// Starts one for a caller.
    pub(super) fn start(caller: &Caller) -> Result<Self> {
        Self::run(false, caller, Stdio::null())
    }

    /// Starts one that writes the cursor of each event since the journal's beginning to a file, a line each.
    pub(super) fn follow(caller: &Caller, file: &Path) -> Result<Self> {
        let said = File::create(file).map_err(|error| Failure::io("create", file, &error))?;
        Self::run(true, caller, said.into())
    }

    fn run(follower: bool, caller: &Caller, stdout: Stdio) -> Result<Self> {
        let program = env::current_exe().map_err(|error| Failure::new(error.to_string()))?;
        let mut command = Command::new(&program);
        command
            .arg("watch")
            .args(follower.then_some("--follow"))
            .args(&caller.helper)
            .env_clear()
            .envs(caller.env.iter());
        command.current_dir(&caller.cwd).stdin(Stdio::null()).stdout(stdout);
        let began = Instant::now();
        let child = command.spawn().map_err(|error| Failure::io("run", &program, &error))?;
        Ok(Self { child, began })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// When it was started.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    pub(super) fn memory_mb(&self) -> Option<f64> {
        memory_mb(self.pid())
    }

    /// Fails once it has ended, which nobody asked it to.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(Failure::new("the process that watches has ended")),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that watches for this caller, once it is the observer and has looked at every session.
pub(super) fn observer(context: &Context, caller: &Caller) -> Result<Watcher> {
    let watcher = Watcher::start(caller)?;
    until_observer(context, caller, watcher.pid())?;
    come_to_rest(context, &[watcher.pid()], watcher.began())?;
    Ok(watcher)
}

/// An engine whose own process is the observer, once it has had the time to look at every session.
pub(super) fn observing(context: &Context, caller: &Caller, sessions: usize) -> Result<Engine> {
    let engine = Engine::open_resident(caller.clone())?;
    until_observer(context, caller, std::process::id())?;
    let sessions = u32::try_from(sessions).unwrap_or(u32::MAX);
    pause(context, FIRST_LOOK + FIRST_LOOK_EACH.saturating_mul(sessions))?;
    Ok(engine)
}

/// Waits until a process is the observer.
pub(super) fn until_observer(context: &Context, caller: &Caller, pid: u32) -> Result<()> {
    let asked = Engine::open(caller.clone())?;
    let began = Instant::now();
    while asked.observer_health().map(|health| health.pid) != Some(pid) {
        context.go_on()?;
        if began.elapsed() > ELECTION_LIMIT {
            return Err(Failure::new(format!("process {pid} never became the observer")));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// How processes came to rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    /// How long they were busy.
    pub(super) took: Duration,
    /// The processor time that they had used by then, in milliseconds.
    pub(super) spent_ms: f64,
}

/// Waits until processes that began at a moment do nothing any more; `None` when they do not come to rest.
pub(super) fn come_to_rest(context: &Context, pids: &[u32], began: Instant) -> Result<Option<Rest>> {
    let mut looks: VecDeque<(Instant, f64)> = VecDeque::new();
    let little = QUIET_MS * pids.len() as f64;
    while began.elapsed() < REST_LIMIT {
        context.go_on()?;
        let gone = || Failure::new("a process whose processor time is measured is gone");
        let (now, spent) = (Instant::now(), spent_ms(pids).ok_or_else(gone)?);
        looks.push_back((now, spent));
        while looks.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= QUIET) {
            looks.pop_front();
        }
        if let Some((at, before)) = looks.front().copied()
            && now.duration_since(at) >= QUIET
            && spent - before <= little
        {
            return Ok(Some(Rest { took: at.saturating_duration_since(began), spent_ms: before }));
        }
        thread::sleep(LOOK);
    }
    Ok(None)
}
