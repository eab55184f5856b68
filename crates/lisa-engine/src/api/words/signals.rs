//! The signals that a verdict can be based on: their values, ages and errors, as callers see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// A signal that couldn't be read or a record that couldn't be written, named after its field in [`Signals`].
    SignalError {
        /// tmux couldn't be read.
        Tmux = "tmux_read_error",
        /// The screen couldn't be captured.
        Capture = "capture_error",
        /// Processes couldn't be read.
        AgentScan = "agent_scan_error",
        /// The agent's state file couldn't be read.
        Native = "native_error",
        /// The done file couldn't be read.
        DoneFile = "done_file_read_error",
        /// The heartbeat couldn't be read.
        Heartbeat = "heartbeat_error",
        /// Hooks couldn't be read.
        Hook = "hook_error",
        /// Notifications couldn't be read.
        Notify = "notify_error",
        /// The transcript couldn't be read.
        Transcript = "transcript_error",
        /// The session's metadata couldn't be read.
        Meta = "meta_read_error",
        /// The session's stored state couldn't be read.
        State = "state_read_error",
        /// An event couldn't be written.
        Events = "events_write_error",
        /// The session's lock couldn't be taken.
        StateLock = "state_lock",
        /// The session's state couldn't be written.
        StateWrite = "state_write",
    }
}

impl SignalError {
    /// What the signal would have told.
    pub const fn would_tell(self) -> &'static str {
        match self {
            Self::Tmux => "whether the agent's process is alive, its title and its cursor",
            Self::Capture => "what the screen shows: dialogs, the input box, a spinner",
            Self::AgentScan => "whether the agent's process is alive and how busy it is",
            Self::Native => "what the agent says it is doing",
            Self::DoneFile => "whether the run is over, and its exit code",
            Self::Heartbeat => "whether the run's supervisor is alive",
            Self::Hook | Self::Notify => "turns, tools and prompts, at the moment they happen",
            Self::Transcript => "whether the turn is over, and what the agent said last",
            Self::Meta => "how the session was started",
            Self::State | Self::StateLock => "what was known at the last look",
            Self::Events | Self::StateWrite => {
                "nothing about the session, but waits and watches were not notified"
            }
        }
    }
}

/// Every signal. An absent value means that there is none; an error means that it couldn't be read.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Signals {
    /// `alive`, `exited` or `crashed`.
    pub pane_status: Option<String>,
    /// The foreground program of the pane.
    pub pane_command: Option<String>,
    /// Why tmux couldn't be read.
    pub tmux_read_error: Option<String>,
    /// Why the screen couldn't be captured.
    pub capture_error: Option<String>,
    /// The process id of the agent.
    pub agent_pid: Option<u32>,
    /// Its CPU usage since the last look, in tenths of a percent of one core.
    pub agent_cpu_permille: Option<u64>,
    /// Why processes couldn't be read.
    pub agent_scan_error: Option<String>,
    /// A hash of the screen.
    pub output_hash: Option<String>,
    /// Milliseconds since the screen changed.
    pub output_age_ms: Option<u64>,
    /// Milliseconds since the last output in the window, according to tmux.
    pub window_activity_age_ms: Option<u64>,
    /// Whether the screen shows a dialog.
    pub prompt_waiting: bool,
    /// Whether the screen shows the input box.
    pub input_shown: bool,
    /// Unsent text in the input box.
    pub draft: Option<String>,
    /// Whether the terminal's cursor is shown.
    pub cursor_visible: Option<bool>,
    /// Whether the pane is in copy mode or another mode of tmux.
    pub in_mode: Option<bool>,
    /// The terminal title.
    pub title: Option<String>,
    /// The title's meaning: `working`, `idle` or `asking`.
    pub title_status: Option<String>,
    /// The meaning of the agent's state file: `working`, `idle`, `background` or `asking`.
    pub native_status: Option<String>,
    /// Why the state file couldn't be read.
    pub native_error: Option<String>,
    /// The exit code in the marker at the end of the output.
    pub exec_marker: Option<i32>,
    /// The content of this run's done file: an exit code, or `signal N`.
    pub done_file: Option<String>,
    /// Why the done file couldn't be read.
    pub done_file_read_error: Option<String>,
    /// Milliseconds since the last heartbeat of the run's supervisor.
    pub heartbeat_age_ms: Option<u64>,
    /// Why the heartbeat couldn't be read.
    pub heartbeat_error: Option<String>,
    /// The last hook event.
    pub last_hook: Option<String>,
    /// Milliseconds since the last hook event.
    pub last_hook_age_ms: Option<u64>,
    /// Why hooks couldn't be read.
    pub hook_error: Option<String>,
    /// Why notifications couldn't be read.
    pub notify_error: Option<String>,
    /// Whether the transcript says that the turn is over.
    pub transcript_turn_complete: Option<bool>,
    /// Milliseconds since the transcript's last line.
    pub transcript_age_ms: Option<u64>,
    /// Why the transcript couldn't be read.
    pub transcript_error: Option<String>,
    /// How many subagents are working.
    pub subagents: u32,
    /// How many background tasks are still running after the turn.
    pub background_tasks: u32,
    /// The task list on the screen.
    pub todos: Option<Todos>,
    /// Milliseconds that this look waited for the state lock.
    pub state_lock_wait_ms: u64,
    /// Why the session's metadata couldn't be read.
    pub meta_read_error: Option<String>,
    /// Why the session's stored state couldn't be read.
    pub state_read_error: Option<String>,
    /// Why an event couldn't be written.
    pub events_write_error: Option<String>,
}

/// The agent's checklist.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todos {
    /// Items done.
    pub done: u32,
    /// Items in all.
    pub total: u32,
    /// The item in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
}

impl Signals {
    /// Every signal that couldn't be read, and why.
    pub fn errors(&self) -> impl Iterator<Item = (SignalError, &str)> {
        let why = |error: &SignalError| Some((*error, self.error(*error)?));
        SignalError::ALL.iter().filter_map(why)
    }

    fn error(&self, error: SignalError) -> Option<&str> {
        let slot = match error {
            SignalError::Tmux => &self.tmux_read_error,
            SignalError::Capture => &self.capture_error,
            SignalError::AgentScan => &self.agent_scan_error,
            SignalError::Native => &self.native_error,
            SignalError::DoneFile => &self.done_file_read_error,
            SignalError::Heartbeat => &self.heartbeat_error,
            SignalError::Hook => &self.hook_error,
            SignalError::Notify => &self.notify_error,
            SignalError::Transcript => &self.transcript_error,
            SignalError::Meta => &self.meta_read_error,
            SignalError::State => &self.state_read_error,
            SignalError::Events => &self.events_write_error,
            SignalError::StateLock | SignalError::StateWrite => return None,
        };
        slot.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_after_their_fields() {
        let fields = serde_json::to_value(Signals::default()).unwrap();
        let fields = fields.as_object().unwrap();
        let named: Vec<&str> =
            fields.keys().map(String::as_str).filter(|name| name.ends_with("_error")).collect();
        let without_a_field = [SignalError::StateLock, SignalError::StateWrite];
        let words: Vec<&str> = SignalError::ALL
            .iter()
            .filter(|error| !without_a_field.contains(error))
            .map(|error| error.as_str())
            .collect();
        assert!(
            named.iter().all(|name| words.contains(name)) && named.len() == words.len(),
            "{named:?} {words:?}"
        );
    }

    #[test]
    fn a_word_is_the_same_in_json() {
        for error in SignalError::ALL {
            assert_eq!(serde_json::to_value(error).unwrap(), error.as_str());
        }
    }

    #[test]
    fn errors_lists_what_was_not_read_and_why() {
        let signals = Signals { hook_error: Some("torn".into()), ..Signals::default() };
        assert_eq!(signals.errors().collect::<Vec<_>>(), [(SignalError::Hook, "torn")]);
    }
}
