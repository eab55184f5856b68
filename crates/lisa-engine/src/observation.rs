//! What one look at a session saw: plain data, gathered by `observe` (or read from a recording), judged elsewhere.
//!
//! A read that failed is [`Reading::Unavailable`] with its reason, never an absence: "there is no such file" and
//! "the file could not be read" lead to different verdicts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A moment in milliseconds since the Unix epoch; in a recording, since the spawn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct At(pub i64);

impl At {
    /// How long after `earlier` this moment is, in milliseconds; 0 if it is not after it.
    pub fn since(self, earlier: At) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// The same moment by a clock that was set back by so many milliseconds.
    pub(crate) fn set_back(&mut self, by: u64) {
        self.0 = self.0.saturating_sub_unsigned(by);
    }
}

/// The outcome of one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    /// It was read.
    Seen(T),
    /// There is nothing to read.
    Absent,
    /// It could not be read.
    Unavailable {
        /// Why, for `signals` and `explain`.
        why: String,
    },
}

impl<T> Reading<T> {
    /// What was read, if anything was.
    pub const fn seen(&self) -> Option<&T> {
        match self {
            Self::Seen(value) => Some(value),
            _ => None,
        }
    }

    /// Why it could not be read, if it could not.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Unavailable { why } => Some(why),
            _ => None,
        }
    }
}

/// How a session runs its agent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A terminal session that takes prompt after prompt.
    #[default]
    Interactive,
    /// One prompt, run to completion.
    Exec,
}

impl Mode {
    /// The mode's public word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Exec => "exec",
        }
    }
}

/// What tmux says about the session's pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// Whether the pane's process has ended.
    pub dead: bool,
    /// Its exit status; tmux leaves it empty for seconds sometimes, which means unknown, not 0.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub exit_signal: Option<i32>,
    /// The name of the program in the foreground; empty where it was not asked for.
    pub command: String,
    /// The pane's process.
    pub pid: u32,
    /// Column and row of the cursor, from 0.
    pub cursor: (u16, u16),
    /// Whether the cursor is shown.
    pub cursor_visible: bool,
    /// Whether the alternate screen is on.
    pub alternate: bool,
    /// Whether the pane is in copy mode or another mode of tmux.
    pub in_mode: bool,
    /// Lines of history above the screen.
    pub history: u32,
    /// When the window last had output (tmux knows it to the second).
    pub activity: At,
    /// Columns and rows.
    pub size: (u16, u16),
    /// How often something was typed into it, by whomever; 0 where that is not counted.
    pub inputs: u64,
    /// The terminal title.
    pub title: String,
}

/// One process of the pane's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proc {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// The program's name (`comm`), or the base name of argv[0] where that says more.
    pub name: String,
    /// Whether it is a zombie.
    pub zombie: bool,
    /// Whether it is stopped (SIGSTOP, ctrl-z).
    pub stopped: bool,
    /// CPU time used so far, in milliseconds.
    pub cpu_ms: u64,
}

/// One JSON line that the agent published, and when it became visible to Lisa.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// When it was seen.
    pub at: At,
    /// The payload as the agent sent it, or the raw text and why it is no JSON.
    pub payload: Result<Value, String>,
}

/// The done file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The run it belongs to; another run's done file says nothing about this one.
    pub run_id: String,
    /// The exit code of the process, if it was not ended by a signal.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// When.
    pub at: At,
}

/// One look at a session.
#[derive(Debug, Clone)]
pub struct Observation {
    /// When the look was taken: the time every verdict is measured by.
    pub at: At,
    /// When the session was started.
    pub spawned_at: At,
    /// The run this look belongs to.
    pub run_id: String,
    /// How the session runs its agent.
    pub mode: Mode,
    /// The pane.
    pub pane: Reading<Pane>,
    /// Whether the pane is gone because its tmux server is.
    pub server_died: bool,
    /// The visible screen, plain text, rows joined by `\n`, trailing blank rows cut off.
    pub screen: Reading<Arc<str>>,
    /// The same with escape sequences; absent where nobody asked for it.
    pub screen_ansi: Reading<Arc<str>>,
    /// The processes below (and including) the pane's own.
    pub procs: Reading<Vec<Proc>>,
    /// The state file that the agent itself keeps, whole.
    pub native: Reading<Value>,
    /// Hook payloads that arrived since the last look.
    pub hooks: Vec<Line>,
    /// Notifications of the agent's `notify` command since the last look.
    pub notifies: Vec<Line>,
    /// Transcript or rollout lines that appeared since the last look.
    pub transcript: Vec<Line>,
    /// Why hooks, notifications or the transcript could not be read, if they could not.
    pub stream_errors: Vec<(&'static str, String)>,
    /// The run's done file.
    pub done: Reading<Done>,
    /// When the run's supervisor last showed a sign of life.
    pub heartbeat: Reading<At>,
    /// Milliseconds that this look waited for the state lock.
    pub lock_wait_ms: u64,
    /// When Lisa last submitted a prompt (no command of the agent's own, such as `/model`) to this session.
    pub prompt_sent_at: Option<At>,
    /// Commits made in the working folder since the turn began, where that was looked at.
    pub commits_since_turn: Option<u32>,
}

impl Observation {
    /// A look at which nothing was read.
    pub fn none(at: At, spawned_at: At, run_id: &str, mode: Mode) -> Self {
        Self {
            at,
            spawned_at,
            run_id: run_id.to_owned(),
            mode,
            pane: Reading::Absent,
            server_died: false,
            screen: Reading::Absent,
            screen_ansi: Reading::Absent,
            procs: Reading::Absent,
            native: Reading::Absent,
            hooks: Vec::new(),
            notifies: Vec::new(),
            transcript: Vec::new(),
            stream_errors: Vec::new(),
            done: Reading::Absent,
            heartbeat: Reading::Absent,
            lock_wait_ms: 0,
            prompt_sent_at: None,
            commits_since_turn: None,
        }
    }
}
