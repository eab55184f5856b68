//! Side effects requested by the agent. [`crate::side_effects`] and the front ends perform them.

use serde_json::{Value, json};

use crate::screen::Entry;

/// A side effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Append to the transcript on the screen.
    Print(Entry),
    /// Clear the transcript on the screen.
    ClearScreen,
    /// Run the hooks.
    Hook(Hook),
    /// Append a line to the test log.
    Log(Value),
    /// Append a line to the transcript file.
    Record(Value),
    /// Change the session id.
    Session(String),
    /// Run a shell command. Its end is reported as [`crate::agent::ExternalEvent::Ran`].
    Run {
        /// The token of the run.
        token: u64,
        /// The command for `sh -c`.
        command: String,
    },
    /// Kill this run.
    StopRun(u64),
    /// Start a process that outlives the turn.
    Background(String),
    /// Exit.
    Quit {
        /// The exit code.
        code: i32,
        /// The reason for the hook `SessionEnd`.
        reason: &'static str,
    },
    /// Abort at once.
    Abort,
    /// Stop reacting.
    Hang {
        /// Whether to ignore SIGTERM too.
        hard: bool,
    },
}

/// A hook event.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// `Stop`, `PermissionRequest`, ...
    pub event: &'static str,
    /// Fields specific to the event.
    pub fields: Value,
    /// The token of the decision, if the agent waits for one.
    pub decides: Option<u64>,
}

impl Effect {
    /// An event without a decision.
    #[must_use]
    pub fn hook(event: &'static str, fields: Value) -> Self {
        Self::Hook(Hook { event, fields, decides: None })
    }

    /// A tool event.
    #[must_use]
    pub fn tool_hook(event: &'static str, name: &str, input: &Value) -> Self {
        Self::hook(event, json!({"tool_name": name, "tool_input": input}))
    }
}

/// 64-bit FNV-1a, as a fingerprint of prompts.
#[must_use]
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_known_values() {
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
