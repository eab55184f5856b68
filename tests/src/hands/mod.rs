//! Whoever drives a session: the engine itself, a client of the MCP server, or a script in Nushell.
//!
//! A scenario is written once, over [`Hands`]. What comes back has the same words whichever way it came, so it is read
//! into the same few types, and a front end that loses or renames a word fails the scenario.
#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

mod engine;
mod mcp;
mod nu;

use lisa_engine::api::words::{Effect, StateName, Status};
use lisa_engine::api::{AnswerRequest, SendRequest, SpawnRequest, View};
use serde::Deserialize;

pub use engine::InProcess;
pub use mcp::Mcp;
pub use nu::Nu;

use crate::lab::Lab;

/// What a front end answered, or why it did not.
pub type Told<T> = Result<T, String>;

/// One way to drive sessions.
pub trait Hands {
    /// Starts a session.
    fn spawn(&self, request: &SpawnRequest) -> Told<Spawned>;
    /// Sends a prompt or keys.
    fn send(&self, request: &SendRequest) -> Told<Sent>;
    /// Answers what is asked.
    fn answer(&self, request: &AnswerRequest) -> Told<Answered>;
    /// What Lisa says of a session.
    fn status(&self, session: &str) -> Told<Seen>;
    /// Waits for a state, a status or `attention`; or for the end of a turn. An error when the time is over.
    fn wait(&self, session: &str, until: &Until<'_>, seconds: f64) -> Told<()>;
    /// One of the views of a session.
    fn read(&self, session: &str, view: View) -> Told<String>;
    /// Stops the turn.
    fn interrupt(&self, session: &str) -> Told<Done>;
    /// Takes the conversation up again.
    fn resume(&self, session: &str, prompt: Option<&str>) -> Told<Done>;
    /// Ends a session.
    fn kill(&self, session: &str) -> Told<Done>;
}

/// What to wait for.
#[derive(Clone, Copy, Debug)]
pub enum Until<'a> {
    /// A state, a status or `attention`.
    Word(&'a str),
    /// The end of a turn.
    Turn(&'a str),
}

/// A session as every front end shows it.
#[derive(Clone, Debug, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// What it is doing, coarsely.
    pub status: Status,
    /// What it is doing, finely.
    pub state: StateName,
    /// What it asks.
    pub prompt: Option<Asked>,
    /// What a working agent is busy with.
    pub activity: Option<String>,
    /// The last message.
    pub last_message: Option<String>,
    /// Why the turn failed.
    pub error: Option<Failed>,
    /// How the process ended.
    pub exit: Option<Ended>,
    /// The agent's process.
    pub pid: Option<u32>,
    /// The agent's own id of the conversation.
    pub agent_session_id: Option<String>,
}

/// What a session asks.
#[derive(Clone, Debug, Deserialize)]
pub struct Asked {
    /// Its fingerprint.
    pub id: String,
    /// What kind of thing it is.
    pub kind: String,
    /// Which dialog, where it is one.
    pub dialog: Option<String>,
    /// The command, where it is about one.
    pub command: Option<String>,
    /// What can be chosen.
    #[serde(default)]
    pub options: Vec<Choice>,
}

/// One thing that can be chosen.
#[derive(Clone, Debug, Deserialize)]
pub struct Choice {
    /// Its label.
    pub label: String,
    /// What choosing it does.
    pub effect: Option<Effect>,
}

/// Why a turn failed.
#[derive(Clone, Debug, Deserialize)]
pub struct Failed {
    /// The kind of failure.
    pub kind: String,
}

/// How a process ended.
#[derive(Clone, Debug, Deserialize)]
pub struct Ended {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal.
    pub signal: Option<i32>,
}

/// A session that was started.
#[derive(Clone, Debug, Deserialize)]
pub struct Spawned {
    /// The receipt of its prompt.
    pub receipt: Option<Sent>,
}

/// A receipt.
#[derive(Clone, Debug, Deserialize)]
pub struct Sent {
    /// The turn it began.
    pub turn: Option<String>,
    /// What became of the prompt.
    pub delivered: String,
    /// What proves it.
    pub evidence: Option<String>,
    /// Why it was refused.
    pub refusal: Option<String>,
}

/// What was answered.
#[derive(Clone, Debug, Deserialize)]
pub struct Answered {
    /// The labels of what was chosen.
    pub answered: Vec<String>,
    /// What choosing it did.
    pub effect: Option<Effect>,
}

/// What was done.
#[derive(Clone, Debug, Deserialize)]
pub struct Done {
    /// In a word.
    pub done: String,
}

/// Which hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The engine, called from Rust.
    Engine,
    /// The MCP server, over its standard input and output.
    Mcp,
    /// The plugin, in a real Nushell.
    Nu,
}

impl Through {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Engine, Self::Mcp, Self::Nu];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Mcp => "mcp",
            Self::Nu => "nu",
        }
    }

    /// These hands, in a lab.
    pub fn hands(self, lab: &Lab) -> Box<dyn Hands> {
        match self {
            Self::Engine => Box::new(InProcess::new(lab)),
            Self::Mcp => Box::new(Mcp::start(lab)),
            Self::Nu => Box::new(Nu::new(lab)),
        }
    }
}
