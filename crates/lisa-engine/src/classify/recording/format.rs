//! The types of `lisa-recording/1`.

use crate::classify::channel::Channel;
use crate::classify::observation::{At, Pane, Proc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The format's name.
pub const FORMAT: &str = "lisa-recording/1";
/// Milliseconds of CPU time per tick in a recording.
const TICK_MS: u64 = 10;

/// The first line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Always [`FORMAT`].
    pub format: String,
    /// The profile's id.
    pub agent: String,
    /// The agent's version.
    #[serde(default)]
    pub version: String,
    /// What happens in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scenario: String,
    /// Columns and rows.
    #[serde(default)]
    pub size: Vec<u16>,
    /// The agent's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// What the agent was really doing, if known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truth: Vec<Truth>,
}

/// What the agent was really doing in a time span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// Start.
    pub t0: i64,
    /// End (exclusive).
    pub t1: i64,
    /// The label.
    pub label: String,
    /// More about it.
    #[serde(default)]
    pub detail: String,
}

/// One process of a frame: pid, parent, name, state, CPU ticks.
pub type ProcRow = (u32, u32, String, String, u64);

/// Any line after the first: a frame (which has a pane), or something between two frames.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Milliseconds since the spawn.
    pub t: i64,
    /// The pane, if the line is a frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<PaneFields>,
    /// Its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub procs: Option<Vec<ProcRow>>,
    /// The screen as plain text, if it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<String>,
    /// The screen with escape sequences, if it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ansi: Option<String>,
    /// The agent's state file, if it has changed; null if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub native: Option<Value>,
    /// A hook's payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Value>,
    /// A notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Value>,
    /// A line of the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Value>,
    /// Keys that were pressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Value>,
    /// Whether they are literal text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub literal: Option<bool>,
}

impl Row {
    /// What a channel published, if the line is from it.
    pub const fn payload(&self, channel: Channel) -> Option<&Value> {
        match channel {
            Channel::Hook => self.hook.as_ref(),
            Channel::Transcript => self.transcript.as_ref(),
            Channel::Notify => self.notify.as_ref(),
        }
    }

    /// The same, to change.
    pub const fn payload_mut(&mut self, channel: Channel) -> &mut Option<Value> {
        match channel {
            Channel::Hook => &mut self.hook,
            Channel::Transcript => &mut self.transcript,
            Channel::Notify => &mut self.notify,
        }
    }
}

/// A field that may be present with the value null.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(from).map(Some)
    }

    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
}

/// tmux's fields, as tmux prints them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PaneFields {
    /// `1` if the process has ended.
    pub pane_dead: String,
    /// Its exit status, or empty.
    pub pane_dead_status: String,
    /// The signal that killed it, or empty.
    pub pane_dead_signal: String,
    /// The foreground program.
    pub pane_current_command: String,
    /// The process id of the pane's process.
    pub pane_pid: u32,
    /// Column of the cursor.
    pub cursor_x: u16,
    /// Row of the cursor.
    pub cursor_y: u16,
    /// `1` if the cursor is shown.
    pub cursor_flag: String,
    /// `1` on the alternate screen.
    pub alternate_on: String,
    /// `1` in copy mode.
    pub pane_in_mode: String,
    /// Lines of scrollback.
    pub history_size: u32,
    /// The last output in the window, in milliseconds since the spawn.
    pub window_activity: i64,
    /// Columns.
    pub pane_width: u16,
    /// Rows.
    pub pane_height: u16,
    /// The terminal title.
    pub pane_title: String,
}

impl Default for PaneFields {
    fn default() -> Self {
        Self {
            pane_dead: "0".to_owned(),
            pane_dead_status: String::new(),
            pane_dead_signal: String::new(),
            pane_current_command: String::new(),
            pane_pid: 0,
            cursor_x: 0,
            cursor_y: 0,
            cursor_flag: "1".to_owned(),
            alternate_on: "0".to_owned(),
            pane_in_mode: "0".to_owned(),
            history_size: 0,
            window_activity: 0,
            pane_width: 80,
            pane_height: 24,
            pane_title: String::new(),
        }
    }
}

impl PaneFields {
    /// Converts these fields to a pane.
    pub fn pane(&self) -> Pane {
        let on = |field: &str| field == "1";
        Pane {
            dead: on(&self.pane_dead),
            exit_status: self.pane_dead_status.trim().parse().ok(),
            exit_signal: self.pane_dead_signal.trim().parse().ok(),
            command: self.pane_current_command.clone(),
            pid: self.pane_pid,
            cursor: (self.cursor_x, self.cursor_y),
            cursor_visible: on(&self.cursor_flag),
            alternate: on(&self.alternate_on),
            in_mode: self.pane_in_mode != "0" && !self.pane_in_mode.is_empty(),
            history: self.history_size,
            activity: At(self.window_activity),
            size: (self.pane_width, self.pane_height),
            inputs: 0,
            title: self.pane_title.clone(),
        }
    }

    /// The fields of a pane, with times relative to the spawn.
    pub fn of(pane: &Pane, spawned_at: At) -> Self {
        let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
        let number = |value: Option<i32>| value.map(|value| value.to_string()).unwrap_or_default();
        Self {
            pane_dead: flag(pane.dead),
            pane_dead_status: number(pane.exit_status),
            pane_dead_signal: number(pane.exit_signal),
            pane_current_command: pane.command.clone(),
            pane_pid: pane.pid,
            cursor_x: pane.cursor.0,
            cursor_y: pane.cursor.1,
            cursor_flag: flag(pane.cursor_visible),
            alternate_on: flag(pane.alternate),
            pane_in_mode: flag(pane.in_mode),
            history_size: pane.history,
            window_activity: pane.activity.0.saturating_sub(spawned_at.0),
            pane_width: pane.size.0,
            pane_height: pane.size.1,
            pane_title: pane.title.clone(),
        }
    }
}

/// Converts the processes of a frame.
pub(super) fn processes(rows: &[ProcRow]) -> Vec<Proc> {
    let proc = |(pid, ppid, name, state, ticks): &ProcRow| Proc {
        pid: *pid,
        ppid: *ppid,
        name: name.clone(),
        zombie: state == "Z",
        stopped: state == "T",
        cpu_ms: ticks.saturating_mul(TICK_MS),
    };
    rows.iter().map(proc).collect()
}

/// Processes in the form of a frame.
pub(super) fn proc_rows(procs: &[Proc]) -> Vec<ProcRow> {
    let row = |proc: &Proc| {
        let state = if proc.zombie {
            "Z"
        } else if proc.stopped {
            "T"
        } else {
            "S"
        };
        (proc.pid, proc.ppid, proc.name.clone(), state.to_owned(), proc.cpu_ms / TICK_MS)
    };
    procs.iter().map(row).collect()
}
