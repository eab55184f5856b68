//! A private corner of the machine with a scripted model, a real agent's home and an engine of Lisa's.
//!
//! ```no_run
//! use lisa_tests::agents::AgentKind;
//! use lisa_tests::lab::Lab;
//! use lisa_tests::model_server::Scenario;
//!
//! let Some(lab) = Lab::new(AgentKind::Claude, Scenario::new().turn("Four.")) else { return };
//! let child = lab.child("sum", Some("two and two"));
//! assert_eq!(child.until("ready").last_message.as_deref(), Some("Four."));
//! child.check();
//! ```
#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

mod child;
mod eyes;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use lisa_engine::api::{KillAllRequest, SpawnRequest};
use lisa_engine::config::{Environment, Socket};
use lisa_engine::tmux::Tmux;
use lisa_engine::{engine::Engine, watch::Caller};
use test_support::programs;

pub use child::Child;
pub(crate) use eyes::now_ms;
pub use eyes::{Eyes, Judgement};
pub use test_support::until;

use crate::agents::{Agent, AgentHome, AgentKind, HomeOptions};
use crate::model_server::{ModelServer, Scenario};

/// How many agents run at once in one test program: each takes a core while it starts.
const AGENTS_MAX: usize = 2;

/// How long anything may take that a test waits for, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// How a lab differs from the usual one.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// The home of the agents.
    pub home: HomeOptions,
    /// Further variables for the agents and for Lisa.
    pub env: Vec<(String, String)>,
    /// How many agents will run at once (default: one).
    pub agents: usize,
}

/// A corner of the machine for one test; everything in it ends when it is dropped.
pub struct Lab {
    /// The model.
    pub server: ModelServer,
    /// The agents' home.
    pub home: AgentHome,
    /// The agent that is tested.
    pub kind: AgentKind,
    /// The version that it gives for itself.
    pub version: String,
    engine: Engine,
    _slots: Slots,
}

impl Lab {
    /// A lab in which the agent starts without a dialog; nothing where the agent cannot be had.
    pub fn new(kind: AgentKind, scenario: Scenario) -> Option<Self> {
        Self::with(kind, scenario, LabOptions::default())
    }

    /// A lab that differs from the usual one.
    pub fn with(kind: AgentKind, scenario: Scenario, options: LabOptions) -> Option<Self> {
        let agent = Agent::for_test(kind)?;
        let version = agent.version().unwrap();
        let slots = Slots::take(options.agents.max(1));
        let server = ModelServer::start(scenario).unwrap();
        let mut home = AgentHome::with(&server, options.home).unwrap();
        home.link(&agent).unwrap();
        let base = home.path().canonicalize().unwrap();
        for (name, below) in [("LISA_STATE_DIR", "l"), ("LISA_CONFIG_DIR", "c"), ("LISA_TMUX_SOCKET", "t")] {
            home.set_env(name, base.join(below).to_str().unwrap());
        }
        for (name, value) in &options.env {
            home.set_env(name, value);
        }
        let engine = Engine::open_resident(caller(&home)).unwrap();
        Some(Self { server, home, kind, version, engine, _slots: slots })
    }

    /// Makes another agent known in the lab; false where it cannot be had.
    pub fn add(&self, kind: AgentKind) -> bool {
        Agent::for_test(kind).is_some_and(|agent| self.home.link(&agent).is_ok())
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// This lab as Lisa's caller, for another engine.
    pub fn caller(&self) -> Caller {
        caller(&self.home)
    }

    /// The usual request for a session of the lab's agent.
    pub fn request(&self, name: &str, prompt: Option<&str>) -> SpawnRequest {
        SpawnRequest {
            agent: self.kind.command().to_owned(),
            name: Some(name.to_owned()),
            prompt: prompt.map(str::to_owned),
            cwd: Some(self.home.project().display().to_string()),
            ..SpawnRequest::default()
        }
    }

    /// Starts the agent and follows what Lisa says of it.
    pub fn child(&self, name: &str, prompt: Option<&str>) -> Child<'_> {
        self.start(&self.request(name, prompt))
    }

    /// Starts whatever is asked for and follows what Lisa says of it.
    pub fn start(&self, request: &SpawnRequest) -> Child<'_> {
        Child::spawn(self, request)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let ended = self.engine.kill_all(&KillAllRequest { force: true, ..KillAllRequest::default() });
        // Lisa leaves its server running when the last session ends.
        let socket = Socket::Path(self.home.path().join("t"));
        let gone = Tmux::new(socket, &self.caller().env).and_then(|tmux| tmux.end_server(PATIENCE));
        if std::thread::panicking() {
            return;
        }
        if let Err(error) = ended {
            panic!("the lab's sessions could not be ended: {error}");
        }
        assert!(matches!(gone, Ok(true)), "the lab's tmux server did not end: {gone:?}");
    }
}

/// This lab as Lisa's caller.
fn caller(home: &AgentHome) -> Caller {
    let pairs: Vec<(OsString, OsString)> = home.env().collect();
    Caller {
        env: Environment::from_pairs(pairs),
        cwd: home.project().to_path_buf(),
        helper: vec![lisa_mcp().display().to_string(), "helper".to_owned()],
        policy: None,
    }
}

/// Lisa's MCP server.
pub fn lisa_mcp() -> PathBuf {
    programs::built("lisa-mcp").unwrap()
}

static TAKEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// The right to run agents: a test waits until enough others are done.
struct Slots(usize);

impl Slots {
    fn take(wanted: usize) -> Self {
        let wanted = wanted.min(AGENTS_MAX);
        let taken = TAKEN.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &mut usize| *taken + wanted > AGENTS_MAX;
        let mut taken = TAKEN.1.wait_while(taken, full).unwrap_or_else(PoisonError::into_inner);
        *taken += wanted;
        Self(wanted)
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        *TAKEN.0.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        TAKEN.1.notify_all();
    }
}
