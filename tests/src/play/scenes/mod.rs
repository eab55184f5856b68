//! The table of scenarios. What an agent does not offer is said here and nowhere else.

mod asking;
mod ends;
mod turns;

use super::Scene;
use crate::agents::AgentKind;

/// A scene that every agent offers and that asks for permissions if it asks at all.
const PLAIN: Scene = Scene {
    id: "",
    what: "",
    not_offered: &[],
    recorded_as: ["", ""],
    asks: "blocked_permission",
    ends: "exited_ok",
    play: |_| {},
};

/// Scenes that share a session, in an order in which each finds it as it needs it.
pub const CONVERSATION: &[Scene] = &[
    Scene {
        id: "prompt",
        recorded_as: ["argv_prompt", "prompt_arg"],
        what: "started with a prompt, it works and answers",
        play: turns::prompt,
        ..PLAIN
    },
    Scene {
        id: "follow_up",
        recorded_as: ["plain_short", "short_answer"],
        what: "a second prompt has a receipt, and its turn an end",
        play: turns::follow_up,
        ..PLAIN
    },
    Scene {
        id: "permission_yes",
        recorded_as: ["perm_bash_yes", "approve_yes"],
        what: "a permission is granted once",
        play: asking::permission_yes,
        ..PLAIN
    },
    Scene {
        id: "permission_no",
        recorded_as: ["perm_bash_no", "approve_no"],
        what: "a permission is denied",
        play: asking::permission_no,
        ..PLAIN
    },
    Scene {
        id: "permission_always",
        recorded_as: ["perm_bash_always", ""],
        what: "a permission is granted for good",
        play: asking::permission_always,
        ..PLAIN
    },
    Scene {
        id: "question",
        recorded_as: ["ask_single", "question_options"],
        what: "a question is answered by an option's label",
        asks: "blocked_question",
        play: asking::question,
        ..PLAIN
    },
    Scene {
        id: "long_prompt",
        recorded_as: ["paste_50k", ""],
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
        recorded_as: ["esc_streaming", "esc_interrupt"],
        what: "a turn is stopped, and a new prompt begins another",
        play: turns::interrupt,
        ..PLAIN
    },
    Scene {
        id: "api_failure",
        recorded_as: ["api_400", "api_400_fatal"],
        what: "failures of the model's service, retried or final, and the recovery",
        play: turns::api_failure,
        ..PLAIN
    },
    Scene {
        id: "subagent",
        recorded_as: ["subagent_long", "subagent"],
        what: "a subagent works",
        play: turns::subagent,
        ..PLAIN
    },
    Scene {
        id: "background",
        recorded_as: ["background_bash", ""],
        what: "a shell goes on in the background when the turn is over",
        play: turns::background,
        ..PLAIN
    },
    Scene { id: "clear", what: "a new conversation in the same session", play: turns::clear, ..PLAIN },
    Scene {
        id: "compaction",
        recorded_as: ["compact_manual", "compact_manual"],
        what: "the conversation is compacted",
        play: turns::compaction,
        ..PLAIN
    },
    Scene {
        id: "exit",
        recorded_as: ["exit_cmd", ""],
        what: "the agent is told to leave",
        play: ends::exit,
        ..PLAIN
    },
    Scene {
        id: "resume",
        recorded_as: ["", "resume_last"],
        what: "its conversation is taken up again after it has ended",
        play: ends::resume,
        ..PLAIN
    },
    Scene {
        id: "kill_9",
        recorded_as: ["", "kill9_working"],
        what: "its process is killed",
        ends: "exited_crash",
        play: ends::kill_9,
        ..PLAIN
    },
];

/// Scenes with a session of their own.
pub const ALONE: &[Scene] = &[
    Scene {
        id: "plan",
        recorded_as: ["plan_approve", ""],
        what: "a plan is approved",
        asks: "blocked_plan",
        play: asking::plan,
        ..PLAIN
    },
    Scene {
        id: "trust",
        recorded_as: ["", "trust_dialog"],
        what: "the dialog about an untrusted folder is answered, and the prompt waits for it",
        asks: "blocked_trust",
        play: asking::trust,
        ..PLAIN
    },
    Scene {
        id: "exec",
        recorded_as: ["print_ok", "exec_success"],
        what: "exec mode runs a prompt to completion",
        play: ends::exec,
        ..PLAIN
    },
    Scene {
        id: "exec_failure",
        recorded_as: ["print_fail500", ""],
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
