//! Background work that outlives its turn, and events that come late or out of order.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use lisa_engine::api::words::{Activity, Attention, State, Status};
use lisa_engine::classify::observation::{At, Reading};
use serde_json::json;
use support::{Session, With, blank, conversation, idle_screen, working_screen};

fn hook(name: &str) -> serde_json::Value {
    json!({"hook_event_name": name, "session_id": "s", "tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "make"}})
}

fn turn_over_line() -> serde_json::Value {
    json!({"type": "system", "subtype": "turn_duration", "sessionId": "s"})
}

fn claude() -> Session {
    Session::new("claude")
}

// ---- background work ------------------------------------------------------------------------------------------------

/// The hook that ends a turn while this subagent runs on.
fn stop_with_subagent() -> serde_json::Value {
    let task = json!({"id": "a1", "type": "subagent", "status": "running"});
    json!({"hook_event_name": "Stop", "session_id": "s", "prompt_id": "p1", "last_assistant_message": "It runs.", "background_tasks": [task]})
}

fn of_turn(name: &str, turn: &str) -> serde_json::Value {
    let mut payload = hook(name);
    payload["prompt_id"] = turn.into();
    payload
}

#[test]
fn a_subagent_that_runs_on_after_a_turn_is_work_until_the_agent_is_back() {
    let mut session = claude();
    let look = |at: i64| blank(at).screen(&idle_screen());
    session.look(&look(4_000).hook(hook("SessionStart")).hook(of_turn("UserPromptSubmit", "p1")));
    let outcome = session.look(&look(5_000).hook(stop_with_subagent()));
    let State::Working { activity, .. } = outcome.verdict.state else { panic!("{:?}", outcome.verdict) };
    assert_eq!((activity, outcome.verdict.attention), (Activity::Background, Attention::Autonomous));
    assert_eq!((outcome.signals.subagents, outcome.signals.background_tasks), (1, 0));
    // Its own tools say nothing about the turn.
    let mut tool = of_turn("PreToolUse", "p1");
    tool["agent_id"] = "a1".into();
    assert_eq!(session.says(&look(30_000).hook(tool)).0, "in_progress");
    let ended =
        json!({"hook_event_name": "SubagentStop", "session_id": "s", "prompt_id": "p1", "agent_id": "a1"});
    assert_eq!(session.says(&look(40_000).hook(ended)).0, "in_progress", "the agent is about to come back");
    assert_eq!(session.says(&look(41_000).hook(of_turn("UserPromptSubmit", "p2"))).0, "in_progress");
    let stop =
        json!({"hook_event_name": "Stop", "session_id": "s", "prompt_id": "p2", "background_tasks": []});
    let outcome = session.look(&look(43_000).hook(stop));
    assert_eq!((outcome.verdict.status(), outcome.signals.subagents), (Status::WaitingInput, 0));
}

#[test]
fn a_subagent_that_is_stopped_and_brings_nobody_back_is_not_waited_for_without_end() {
    let mut session = claude();
    let look = |at: i64| blank(at).screen(&idle_screen());
    session.look(&look(4_000).hook(hook("SessionStart")).hook(of_turn("UserPromptSubmit", "p1")));
    session.look(&look(5_000).hook(stop_with_subagent()));
    session.look(
        &look(6_000).hook(json!({"hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "a1"})),
    );
    assert_eq!(session.says(&look(12_000)).0, "waiting_input");
}

#[test]
fn screen_and_transcript_know_a_subagent_that_runs_on_without_any_hook() {
    let waiting = conversation(
        "❯ go\n\n● It runs.\n\n✻ Waiting for 1 background agent to finish",
        "⏸ manual mode on · ? for shortcuts",
    );
    let outcome = claude().look(&blank(5_000).screen(&waiting));
    assert!(matches!(outcome.verdict.state, State::Working { activity: Activity::Background, .. }));
    let rows = format!(
        "{}\n  ● main\n  ◯ general-purpose  Scan the code            12s · ↓ 1.2k tokens\n",
        idle_screen().trim_end()
    );
    let outcome = claude().look(&blank(5_000).screen(&rows));
    assert!(matches!(outcome.verdict.state, State::Working { activity: Activity::Background, .. }));
    let mut over = turn_over_line();
    over["pendingBackgroundAgentCount"] = 2.into();
    let outcome = claude().look(&blank(5_000).screen(&idle_screen()).transcript(over));
    assert!(matches!(outcome.verdict.state, State::Working { activity: Activity::Background, .. }));
    assert_eq!(outcome.signals.subagents, 2);
}

/// Esc fires no hook.
#[test]
fn after_an_interrupted_subagent_the_next_turn_is_delivered() {
    for agent in ["claude", "demo"] {
        let mut session = Session::new(agent);
        let started = json!({"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "r"});
        session.look(&blank(4_000).hook(hook("SessionStart")));
        session.look(&blank(5_000).hook(hook("UserPromptSubmit")).hook(started));
        // Nobody looked while the interrupt was on the screen.
        session.look(&blank(60_000).hook(hook("UserPromptSubmit")));
        let stop = json!({"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "Hi."});
        let outcome = session.look(&blank(61_000).hook(stop));
        let verdict = outcome.verdict;
        assert_eq!(
            (verdict.status(), verdict.attention),
            (Status::WaitingInput, Attention::Delivered),
            "{agent}"
        );
        assert_eq!(outcome.signals.subagents, 0, "{agent}");
    }
}

// ---- late and reordered events --------------------------------------------------------------------------------------

/// A line of the transcript that starts this turn.
fn asked(turn: &str) -> serde_json::Value {
    json!({"type": "user", "sessionId": "s", "promptId": turn, "message": {"content": "go"}})
}

#[test]
fn a_hook_of_a_turn_that_is_over_reopens_nothing() {
    let mut session = claude();
    let look = |at: i64| blank(at).screen(&idle_screen());
    session.look(&look(4_000).hook(hook("SessionStart")).transcript(asked("p1")));
    session.look(&look(6_000).transcript(turn_over_line()));
    for (at, late) in [(7_000, "PreToolUse"), (7_300, "UserPromptSubmit"), (7_600, "PermissionRequest")] {
        assert_eq!(session.says(&look(at).hook(of_turn(late, "p1"))).0, "waiting_input", "{late}");
    }
}

#[test]
fn a_hook_that_ends_an_earlier_turn_does_not_end_the_next_one() {
    let mut session = claude();
    // Text is being written, and there is a draft in the box: the screen says nothing about the turn.
    let screen = conversation("❯ go\n\n● One line.", "").replace("❯\u{a0}", "❯\u{a0}and then");
    let look = |at: i64| blank(at).screen(&screen);
    session.look(&look(4_000).hook(hook("SessionStart")).hook(of_turn("UserPromptSubmit", "p1")));
    session.look(&look(6_000).transcript(asked("p2")));
    assert_eq!(session.says(&look(6_500).hook(of_turn("Stop", "p1"))).0, "in_progress");
    // A queued prompt is taken up without a hook of its own: its first line opens its turn.
    session.look(&look(9_000).hook(of_turn("Stop", "p2")));
    assert_eq!(session.says(&look(9_500).hook(of_turn("PreToolUse", "p3"))).0, "in_progress");
}

#[test]
fn a_start_of_the_session_that_comes_after_its_first_turn_resets_nothing() {
    let mut session = claude();
    let look = |at: i64| blank(at).screen(&working_screen());
    session.look(&look(4_000).hook(of_turn("UserPromptSubmit", "p1")));
    let mut late = hook("SessionStart");
    late["source"] = "startup".into();
    session.look(&look(5_000).hook(late));
    assert_eq!(session.memory.feeds.hook.turn.as_deref(), Some("p1"));
    let mut again = hook("SessionStart");
    again["source"] = "resume".into();
    session.look(&look(6_000).hook(again));
    assert_eq!(session.memory.feeds.hook.turn, None, "a resumed one begins anew");
}

#[test]
fn a_late_announcement_never_overrules_the_state_file() {
    let mut session = claude();
    let mut look = blank(5_000).native(json!({"status": "busy"}));
    look.screen = Reading::Unavailable { why: "too narrow".into() };
    session.look(&look);
    assert_eq!(session.says(&look.clone().hook(hook("PermissionRequest"))).0, "in_progress");
    look.native = Reading::Seen(json!({"status": "waiting", "waitingFor": "permission prompt"}));
    look.at = At(6_000);
    assert_eq!(session.says(&look).0, "waiting_input");
}

#[test]
fn the_last_tool_is_the_one_that_was_started_last() {
    let mut session = claude();
    let call = |id: &str, tool: &str| json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": tool, "tool_use_id": id});
    let outcome = session.look(&blank(5_000).hook(call("z", "Read")).hook(call("a", "Bash")));
    let State::Working { tool, .. } = outcome.verdict.state else { panic!("{:?}", outcome.verdict) };
    assert_eq!(tool.as_deref(), Some("Bash"));
}
