//! Verdicts that depend on time must not depend on how often somebody looks.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use lisa_engine::classify::observation::{Observation, Reading};
use serde_json::{Value, json};
use support::{Session, With, blank};

fn prompt_taken_up() -> Value {
    json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"})
}

/// The agent's process at this time, having used this much CPU time.
fn with_cpu(at_ms: i64, cpu_ms: u64) -> Observation {
    let mut look = blank(at_ms).process("claude");
    if let Reading::Seen(procs) = &mut look.procs {
        procs[0].cpu_ms = cpu_ms;
    }
    look
}

#[test]
fn how_often_somebody_looks_does_not_make_a_hung_agent_a_busy_one() {
    for pause in [100, 1_000, 5_000] {
        let mut session = Session::new("claude");
        session.look(&with_cpu(1_000, 0).hook(prompt_taken_up()));
        let mut said = Vec::new();
        for at in (1_000..320_000).step_by(pause) {
            // One per cent of a core, in ticks of 10 ms.
            said.push(session.says(&with_cpu(at, u64::try_from(at / 1_000).unwrap_or(0) * 10)).0);
        }
        assert_eq!(said.last().map(String::as_str), Some("stuck"), "looked at every {pause} ms");
        let busy = session.memory.agent.busy_at;
        assert_eq!(busy, None, "looked at every {pause} ms");
    }
    let mut session = Session::new("claude");
    session.look(&with_cpu(1_000, 0).hook(prompt_taken_up()));
    for at in (1_000..320_000).step_by(100) {
        let cpu = u64::try_from(at / 5).unwrap_or(0);
        assert_eq!(session.says(&with_cpu(at, cpu)).0, "in_progress", "a busy one after {at} ms");
    }
}
