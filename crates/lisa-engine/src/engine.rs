//! The engine: every operation of the API as one method.

use crate::{
    api::*,
    config::{Config, Environment},
    error::{Error, Kind, Result},
};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Who calls: their environment, their folder, and how Lisa's own helper commands are run.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The caller's environment (not the plugin's or the server's own).
    pub env: Environment,
    /// The caller's folder.
    pub cwd: PathBuf,
    /// The command line that runs Lisa's helper commands (`launch`, `run`, `hook`), such as
    /// `["/usr/bin/lisa-mcp", "helper"]`.
    pub helper: Vec<String>,
}

impl Caller {
    /// This process as the caller, with its own executable as the helper (`<exe> helper …`).
    pub fn this_process() -> Result<Self> {
        let exe = std::env::current_exe().map_err(|e| Error::io("find", std::path::Path::new("the running program"), &e))?;
        let cwd = std::env::current_dir().map_err(|e| Error::io("find", std::path::Path::new("the current folder"), &e))?;
        Ok(Self {
            env: Environment::of_this_process(),
            cwd,
            helper: vec![exe.display().to_string(), "helper".to_owned()],
        })
    }
}

/// A flag that ends a wait early. Cloning it shares it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends every wait that holds this flag, within a few milliseconds.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
    /// Whether it was raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Lisa's engine. Cloning it shares it; every method blocks and may be called from any thread.
#[derive(Debug, Clone)]
pub struct Engine {
    config: Arc<Config>,
}

fn later<T>() -> Result<T> {
    Err(Error::new(Kind::NotOffered, "this part of the engine is being built", "wait for it"))
}

#[allow(unused_variables, missing_docs)]
impl Engine {
    /// Opens the engine for a caller: reads the configuration and the profiles, touches nothing.
    pub fn open(caller: Caller) -> Result<Self> {
        Ok(Self { config: Arc::new(Config::load(&caller.env)?) })
    }
    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }
    pub fn spawn(&self, request: &SpawnRequest) -> Result<SpawnResponse> {
        later()
    }
    pub fn send(&self, request: &SendRequest) -> Result<SendResponse> {
        later()
    }
    pub fn answer(&self, request: &AnswerRequest) -> Result<AnswerResponse> {
        later()
    }
    /// Blocks until the wait comes true, its time passes (`timed_out`), or `cancel` is raised (Kind::Cancelled).
    /// `progress` is called about once a second, with one line on what the sessions do.
    pub fn wait(&self, request: &WaitRequest, cancel: &Cancel, progress: &mut dyn FnMut(&str)) -> Result<WaitResponse> {
        later()
    }
    /// `exact`: operations that write never guess; reading ones take a unique prefix or tag.
    pub fn status(&self, request: &SessionRequest) -> Result<Session> {
        later()
    }
    pub fn list(&self, request: &ListRequest) -> Result<ListResponse> {
        later()
    }
    pub fn read(&self, request: &ReadRequest) -> Result<ReadResponse> {
        later()
    }
    pub fn interrupt(&self, request: &SessionRequest) -> Result<ActResponse> {
        later()
    }
    /// "Already gone" is success (`done = already_gone`).
    pub fn kill(&self, request: &KillRequest) -> Result<Actions> {
        later()
    }
    pub fn kill_all(&self, request: &KillAllRequest) -> Result<Actions> {
        later()
    }
    pub fn resume(&self, request: &ResumeRequest) -> Result<ActResponse> {
        later()
    }
    pub fn explain(&self, request: &SessionRequest) -> Result<Explanation> {
        later()
    }
    pub fn doctor(&self) -> DoctorResponse {
        DoctorResponse { ok: false, checks: Vec::new() }
    }
    pub fn tree(&self) -> Result<Vec<TreeNode>> {
        later()
    }
    pub fn exists(&self, name: &str) -> Result<bool> {
        later()
    }
    /// Names of all sessions, for completions: reads the folder only.
    pub fn names(&self) -> Result<Vec<String>> {
        later()
    }
    pub fn name(&self, request: &NameRequest) -> Result<String> {
        later()
    }
    pub fn cleanup(&self) -> Result<CleanupResponse> {
        later()
    }
    pub fn agents(&self) -> Result<Vec<AgentInfo>> {
        later()
    }
    pub fn build_command(&self, request: &BuildCommandRequest) -> Result<Vec<String>> {
        later()
    }
    /// The command line that attaches a terminal to the session (`tmux … attach …`), to be run in the foreground.
    pub fn attach_command(&self, name: &str) -> Result<Vec<String>> {
        later()
    }
    /// Where the journal stands now.
    pub fn cursor(&self) -> Result<u64> {
        later()
    }
    pub fn watch(&self, request: &WatchRequest) -> Result<Watch> {
        later()
    }
    /// Records a live session as `lisa-recording/1` lines until it ends, `limit` passes or `cancel` is raised.
    pub fn record(&self, session: &str, out: &mut dyn std::io::Write, limit: Option<Duration>, cancel: &Cancel) -> Result<u64> {
        later()
    }
    /// The verdict on each frame of a recording (`lisa-recording/1`, plain or gzip).
    pub fn replay(&self, input: &mut dyn std::io::Read) -> Result<Vec<ReplayRow>> {
        later()
    }
}

/// The journal as a stream.
#[derive(Debug)]
pub struct Watch {
    _private: (),
}

impl Watch {
    /// The next event, or `None` when `timeout` passed without one (call again). Ends with Kind::Cancelled.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Event>> {
        std::thread::sleep(timeout);
        Ok(None)
    }
}
