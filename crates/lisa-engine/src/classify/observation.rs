//! What one look at a session saw: plain data, gathered by `observe` or read from a recording.
//!
//! A failed read is [`Reading::Unavailable`] with its reason, never an absence: "the file doesn't exist" and "the file
//! couldn't be read" lead to different verdicts.

use crate::api::words::Mode;
use crate::classify::channel::PerChannel;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A time in milliseconds since the Unix epoch; in a recording, since the spawn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct At(pub i64);

impl At {
    /// Milliseconds from `earlier` to this time; 0 if `earlier` is later.
    pub fn since(self, earlier: At) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// The same time on a clock that was set back by this many milliseconds.
    pub(crate) fn set_back(&mut self, by: u64) {
        self.0 = self.0.saturating_sub_unsigned(by);
    }
}

/// The result of one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    /// It was read.
    Seen(T),
    /// There is nothing to read.
    Absent,
    /// It couldn't be read.
    Unavailable {
        /// Why, for `signals` and `explain`.
        why: String,
    },
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub const fn seen(&self) -> Option<&T> {
        match self {
            Self::Seen(value) => Some(value),
            _ => None,
        }
    }

    /// Why it couldn't be read, if it couldn't.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Unavailable { why } => Some(why),
            _ => None,
        }
    }
}

/// What tmux reports about the session's pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// Whether the pane's process has ended.
    pub dead: bool,
    /// Its exit status. tmux leaves it empty for seconds sometimes, which means unknown, not 0.
    pub exit_status: Option<i32>,
    /// The signal that killed it.
    pub exit_signal: Option<i32>,
    /// The foreground program; empty if it wasn't asked for.
    pub command: String,
    /// The process id of the pane's process.
    pub pid: u32,
    /// Column and row of the cursor, from 0.
    pub cursor: (u16, u16),
    /// Whether the cursor is shown.
    pub cursor_visible: bool,
    /// Whether the alternate screen is on.
    pub alternate: bool,
    /// Whether the pane is in copy mode or another mode of tmux.
    pub in_mode: bool,
    /// Lines of scrollback.
    pub history: u32,
    /// The last output in the window (tmux has a resolution of one second).
    pub activity: At,
    /// Columns and rows.
    pub size: (u16, u16),
    /// How often anything was typed into it; 0 if that isn't counted.
    pub inputs: u64,
    /// The terminal title.
    pub title: String,
}

/// One process of the pane's process tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proc {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// The program's name (`comm`), or the base name of argv[0] if that is more specific.
    pub name: String,
    /// Whether it is a zombie.
    pub zombie: bool,
    /// Whether it is stopped (SIGSTOP, ctrl-z).
    pub stopped: bool,
    /// CPU time used so far, in milliseconds.
    pub cpu_ms: u64,
}

/// One JSON line published by the agent, and when Lisa saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// When it was seen.
    pub at: At,
    /// The payload as the agent sent it, or the raw text and why it is malformed.
    pub payload: Result<Value, String>,
}

/// The lines that one look found on a channel.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct NewLines {
    /// The lines, oldest first.
    pub lines: Vec<Line>,
    /// Why the channel couldn't be read.
    pub error: Option<String>,
}

/// The done file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The run it belongs to; a done file of another run says nothing about this one.
    pub run_id: String,
    /// The exit code, unless a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// When it ended.
    pub at: At,
}

/// Everything that one look saw.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The time of the look; all ages in a verdict are relative to it.
    pub at: At,
    /// When the session was started.
    pub spawned_at: At,
    /// The run that this look is of.
    pub run_id: String,
    /// `interactive` or `exec`.
    pub mode: Mode,
    /// The pane.
    pub pane: Reading<Pane>,
    /// Whether the pane is gone because its tmux server died.
    pub server_died: bool,
    /// The visible screen as plain text: rows joined by `\n`, without trailing blank rows.
    pub screen: Reading<Arc<str>>,
    /// The same with escape sequences; absent if nobody asked for it.
    pub screen_ansi: Reading<Arc<str>>,
    /// The process tree of the pane, including its own process.
    pub procs: Reading<Vec<Proc>>,
    /// The agent's own state file, complete.
    pub native: Reading<Value>,
    /// What the agent has published on each channel since the last look.
    pub feeds: PerChannel<NewLines>,
    /// The run's done file.
    pub done: Reading<Done>,
    /// The last heartbeat of the run's supervisor.
    pub heartbeat: Reading<At>,
    /// Why what was known at the last look couldn't be read.
    pub state_error: Option<String>,
    /// Milliseconds that this look waited for the state lock.
    pub lock_wait_ms: u64,
    /// When Lisa last submitted a prompt to this session (commands of the agent such as `/model` don't count).
    pub prompt_sent_at: Option<At>,
    /// Commits in the working directory since the turn began, if known.
    pub commits_since_turn: Option<u32>,
}

impl Observation {
    /// A look that has read nothing.
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
            feeds: PerChannel::default(),
            done: Reading::Absent,
            heartbeat: Reading::Absent,
            state_error: None,
            lock_wait_ms: 0,
            prompt_sent_at: None,
            commits_since_turn: None,
        }
    }
}
