//! What the model says, in the words of each agent's tools.

use serde_json::json;

use crate::agents::AgentKind;
use crate::model_server::{Pace, Reply, Request};

/// Words that take about this long to arrive.
pub(super) fn slowly(text: &str, seconds: u64) -> Reply {
    let pieces = 10 * seconds;
    let chars = text.chars().count().div_ceil(usize::try_from(pieces).unwrap_or(1)).max(1);
    Reply::new().say_paced(text, Pace::new(chars, 100))
}

/// A command that the agent asks about.
pub(super) fn command(kind: AgentKind, line: &str) -> Reply {
    match kind {
        AgentKind::Claude => Reply::tool("Bash", json!({"command": line, "description": "Do it"})),
        AgentKind::Codex => Reply::tool(
            "exec_command",
            json!({"cmd": line, "sandbox_permissions": "require_escalated", "justification": "May I?"}),
        ),
    }
}

/// A command that goes on when the turn is over.
pub(super) fn background(kind: AgentKind, line: &str) -> Reply {
    match kind {
        AgentKind::Claude => Reply::tool(
            "Bash",
            json!({"command": line, "description": "Do it meanwhile", "run_in_background": true}),
        ),
        AgentKind::Codex => Reply::tool("exec_command", json!({"cmd": line, "yield_time_ms": 300})),
    }
}

/// A question with the options `JSON` and `CSV`.
pub(super) fn question(kind: AgentKind) -> Reply {
    let options = json!([{"label": "JSON", "description": "For programs"},
        {"label": "CSV", "description": "For spreadsheets"}]);
    let mut asked = json!({"header": "Format", "question": "Which format?", "options": options});
    match kind {
        AgentKind::Claude => {
            asked["multiSelect"] = json!(false);
            Reply::tool("AskUserQuestion", json!({"questions": [asked]}))
        }
        AgentKind::Codex => {
            asked["id"] = json!("format");
            Reply::tool("request_user_input", json!({"questions": [asked]}))
        }
    }
}

/// Work for a subagent, whose prompt is `task`.
pub(super) fn delegate(kind: AgentKind, task: &str) -> Reply {
    match kind {
        AgentKind::Claude => Reply::tool(
            "Agent",
            json!({"description": "Look", "prompt": task, "subagent_type": "general-purpose"}),
        ),
        AgentKind::Codex => Reply::tool(
            "collaboration.spawn_agent",
            json!({"task_name": "look", "message": task, "fork_turns": "none"}),
        ),
    }
}

/// The steps of a plan that is shown for approval.
pub(super) fn plan(kind: AgentKind) -> Vec<Reply> {
    const PLAN: &str = "# Plan\n\n1. Read the code\n2. Mend it\n";
    match kind {
        AgentKind::Claude => vec![
            Reply::given(|asked: &Request| {
                let file = asked.plan_file().unwrap_or_default();
                Reply::tool("Write", json!({"file_path": file, "content": PLAN}))
            }),
            Reply::tool("ExitPlanMode", json!({})),
        ],
        AgentKind::Codex => {
            vec![Reply::text(&format!("<proposed_plan>\n{PLAN}</proposed_plan>"))]
        }
    }
}
