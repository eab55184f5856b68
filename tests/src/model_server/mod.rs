//! Model servers that follow a script: the Anthropic Messages API and the OpenAI Responses API on loopback.
//!
//! ```
//! use lisa_tests::model_server::{Match, ModelServer, Reply, Scenario};
//! use serde_json::json;
//!
//! # fn main() -> std::io::Result<()> {
//! let server = ModelServer::start(
//!     Scenario::new()
//!         .turn("Hello!")
//!         .on(Match::prompt("CHILD-A"), [
//!             Reply::tool("Bash", json!({"command": "make"})),
//!             Reply::new().think("It compiles.").say("Done."),
//!         ]),
//! )?;
//! assert!(server.anthropic_url().starts_with("http://127.0.0.1:"));
//! assert!(server.log().is_empty());
//! # Ok(())
//! # }
//! ```

mod anthropic;
mod director;
mod http;
mod log;
mod openai;
mod request;
mod scenario;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

pub use log::{End, Event, Exchange, Source, What, exchanges};
pub use request::{Api, Asker, Request};
pub use scenario::{Match, Pace, Reply, Scenario, Step, Stop, Turn, Usage};

use director::Director;
use http::Stage;

/// A running server; dropped, it is gone with all its connections.
pub struct ModelServer {
    address: SocketAddr,
    stage: Arc<Stage>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server for both APIs on a free port of 127.0.0.1.
    pub fn start(scenario: Scenario) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stage = Arc::new(Stage {
            director: Mutex::new(Director::new(scenario)),
            log: log::Log::default(),
            gates: watch::Sender::default(),
        });
        let routes = http::routes(stage.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("model-server".into()).spawn(move || {
            runtime.block_on(async {
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    tokio::select! {
                        _ = axum::serve(listener, routes).into_future() => {}
                        _ = stopped => {}
                    }
                }
            });
        })?;
        Ok(Self { address, stage, stop: Some(stop), thread: Some(thread) })
    }

    /// For `ANTHROPIC_BASE_URL`.
    pub fn anthropic_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// For the `base_url` of a Codex model provider.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Queues a turn behind those of the scenario.
    pub fn add_turn(&self, turn: impl Into<Turn>) {
        self.stage.direct(|director| director.add_turn(turn.into()));
    }

    /// Adds a rule behind those of the scenario.
    pub fn add_rule(&self, when: Match, turn: impl Into<Turn>) {
        self.stage.direct(|director| director.add_rule(when, turn.into()));
    }

    /// Lets every reply go on that holds at this gate, now or later.
    pub fn release(&self, gate: &str) {
        self.stage.gates.send_modify(|gates| gates.push(gate.to_owned()));
    }

    /// Everything that happened so far.
    pub fn log(&self) -> Vec<Event> {
        self.stage.log.snapshot()
    }

    /// The scripted exchanges so far: the log by request, without the auxiliary ones.
    pub fn exchanges(&self) -> Vec<Exchange> {
        let mut all = exchanges(&self.log());
        all.retain(|exchange| exchange.request.asker != Asker::Auxiliary);
        all
    }

    /// Waits until `done` says yes to the log; no when the time is over first.
    pub fn wait(&self, time: Duration, done: impl Fn(&[Event]) -> bool) -> bool {
        self.stage.log.wait(time, done)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that the thread has ended already.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
