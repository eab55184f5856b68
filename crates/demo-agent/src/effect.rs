//! What the agent wants done outside of itself. The agent only decides; [`crate::world`] and the front ends do.

use serde_json::{Value, json};

use crate::screen::Entry;

/// One wish.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Add to the transcript on the screen.
    Print(Entry),
    /// Forget the transcript on the screen.
    ClearScreen,
    /// Tell the hooks.
    Hook(Hook),
    /// Add a line to the test log.
    Log(Value),
    /// Add a line to the transcript file.
    Record(Value),
    /// From now on the session has this id.
    Session(String),
    /// Run a shell command; its end comes back as [`crate::agent::News::Ran`].
    Run {
        /// Which run it is.
        token: u64,
        /// For `sh -c`.
        command: String,
    },
    /// End that run.
    StopRun(u64),
    /// Start a process that outlives the turn.
    Background(String),
    /// Leave.
    Quit {
        /// The exit code.
        code: i32,
        /// For the hook `SessionEnd`.
        reason: &'static str,
    },
    /// Abort on the spot.
    Abort,
    /// Stop reacting.
    Hang {
        /// To SIGTERM as well.
        hard: bool,
    },
}

/// An event for the hooks.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// `Stop`, `PermissionRequest`, ...
    pub event: &'static str,
    /// What is particular to it.
    pub fields: Value,
    /// Set when the agent waits for a decision, which comes back under this token.
    pub decides: Option<u64>,
}

impl Effect {
    /// An event nobody waits for.
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
