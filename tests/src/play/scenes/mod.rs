//! The table of scenarios. What an agent does not offer is said here and nowhere else.

mod asking;
mod ends;
mod turns;

use super::Scene;
use crate::agents::AgentKind;

/// A scene that every agent offers and that asks for permissions if it asks at all.
const PLAIN: Scene =
    Scene { id: "", what: "", not_offered: &[], asks: "blocked_permission", ends: "exited_ok", play: |_| {} };

/// Scenes that share a session, in an order in which each finds it as it needs it.
pub const CONVERSATION: &[Scene] = &[
    Scene { id: "prompt", what: "started with a prompt, it works and answers", play: turns::prompt, ..PLAIN },
    Scene {
        id: "follow_up",
        what: "a second prompt has a receipt, and its turn an end",
        play: turns::follow_up,
        ..PLAIN
    },
    Scene {
        id: "permission_yes",
        what: "a permission is granted once",
        play: asking::permission_yes,
        ..PLAIN
    },
    Scene { id: "permission_no", what: "a permission is denied", play: asking::permission_no, ..PLAIN },
    Scene {
        id: "permission_always",
        what: "a permission is granted for good",
        play: asking::permission_always,
        ..PLAIN
    },
    Scene {
        id: "question",
        what: "a question is answered by an option's label",
        asks: "blocked_question",
        play: asking::question,
        ..PLAIN
    },
    Scene {
        id: "long_prompt",
        what: "a prompt of 50 KB arrives byte for byte",
        play: turns::long_prompt,
        ..PLAIN
    },
    Scene {
        id: "tabs",
        what: "tabs in a prompt arrive as tabs",
        // It makes four spaces of each.
        not_offered: &[AgentKind::Claude],
        play: turns::tabs,
        ..PLAIN
    },
    Scene {
        id: "interrupt",
        what: "a turn is stopped, and a new prompt begins another",
        play: turns::interrupt,
        ..PLAIN
    },
    Scene {
        id: "api_failure",
        what: "failures of the model's service, retried or final, and the recovery",
        play: turns::api_failure,
        ..PLAIN
    },
    Scene { id: "subagent", what: "a subagent works", play: turns::subagent, ..PLAIN },
    Scene {
        id: "background",
        what: "a shell goes on in the background when the turn is over",
        play: turns::background,
        ..PLAIN
    },
    Scene { id: "clear", what: "a new conversation in the same session", play: turns::clear, ..PLAIN },
    Scene { id: "compaction", what: "the conversation is compacted", play: turns::compaction, ..PLAIN },
    Scene { id: "exit", what: "the agent is told to leave", play: ends::exit, ..PLAIN },
    Scene {
        id: "resume",
        what: "its conversation is taken up again after it has ended",
        play: ends::resume,
        ..PLAIN
    },
    Scene { id: "kill_9", what: "its process is killed", ends: "exited_crash", play: ends::kill_9, ..PLAIN },
];

/// Scenes with a session of their own.
pub const ALONE: &[Scene] = &[
    Scene { id: "plan", what: "a plan is approved", asks: "blocked_plan", play: asking::plan, ..PLAIN },
    Scene {
        id: "trust",
        what: "the dialog about an untrusted folder is answered, and the prompt waits for it",
        asks: "blocked_trust",
        play: asking::trust,
        ..PLAIN
    },
    Scene { id: "exec", what: "exec mode runs a prompt to completion", play: ends::exec, ..PLAIN },
    Scene {
        id: "exec_failure",
        what: "exec mode fails, with its exit code",
        ends: "exited_crash",
        play: ends::exec_failure,
        ..PLAIN
    },
];

/// Scenes with two sessions at once.
pub const PAIR: &[Scene] = &[Scene {
    id: "two_at_once",
    what: "two sessions in one project are told apart",
    play: ends::two_at_once,
    ..PLAIN
}];
