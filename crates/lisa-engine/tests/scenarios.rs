//! What happened to the systems before this one, as tests: each scenario by name.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use lisa_engine::api::words::{Activity, Attention, ExitKind, SignalError, State, StateName, Status};
use lisa_engine::classify::explain::reasons;
use lisa_engine::classify::resolve::is_expired;
use lisa_engine::{
    api::words::Mode,
    classify::observation::{At, Done, Reading},
};
use serde_json::json;
use support::{Session, With, blank, conversation, idle_screen, permission_screen, working_screen};

fn hook(name: &str) -> serde_json::Value {
    json!({"hook_event_name": name, "session_id": "s", "tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "make"}})
}

fn turn_over_line() -> serde_json::Value {
    json!({"type": "system", "subtype": "turn_duration", "sessionId": "s"})
}

fn claude() -> Session {
    Session::new("claude")
}

// ---- no flicker, hook precedence, expiry ---------------------------------------------------------------------------

#[test]
fn no_flicker_during_normal_execution() {
    let mut session = claude();
    let mut statuses = Vec::new();
    for second in 1..=58 {
        let mut look = blank(second * 1_000);
        if second % 20 == 1 {
            look = look.hook(hook("PreToolUse"));
        }
        statuses.push(session.says(&look).0);
    }
    assert!(statuses.iter().all(|status| status == "in_progress"), "{statuses:?}");
}

#[test]
fn a_hook_beats_an_older_statement_of_the_transcript() {
    let mut session = claude();
    session.look(&blank(1_000).transcript(turn_over_line()));
    let said = session.says(&blank(2_000).hook(hook("PreToolUse")));
    assert_eq!(said, ("in_progress".into(), "event_working".into()));
}

#[test]
fn the_transcript_is_used_when_there_is_no_hook() {
    let said = claude().says(&blank(1_000).transcript(turn_over_line()));
    assert_eq!(said, ("waiting_input".into(), "turn_over".into()));
}

#[test]
fn a_working_hook_expires_and_the_transcript_takes_over() {
    let mut session = claude();
    session.look(
        &blank(1_000)
            .hook(hook("UserPromptSubmit"))
            .transcript(json!({"type": "user", "message": {"content": "go"}})),
    );
    assert_eq!(session.says(&blank(59_000)).0, "in_progress");
    let late = blank(63_000).transcript(turn_over_line());
    assert_eq!(session.says(&late).0, "waiting_input");
}

#[test]
fn a_two_minute_drought_of_hooks_with_a_busy_process_stays_working() {
    let mut session = claude();
    session.look(&blank(1_000).process("claude").hook(hook("PreToolUse")));
    for second in 2..=120 {
        let mut look = blank(second * 1_000).process("claude");
        if let Reading::Seen(procs) = &mut look.procs {
            procs[0].cpu_ms = u64::try_from(second).unwrap_or(0) * 200;
        }
        assert_eq!(session.says(&look).0, "in_progress", "after {second} s");
    }
}

#[test]
fn a_blocking_hook_never_expires() {
    let mut session = claude();
    session.look(&blank(1_000).hook(hook("UserPromptSubmit")).hook(hook("PermissionRequest")));
    let outcome = session.look(&blank(1_000 + 2 * 3_600_000));
    assert_eq!(outcome.verdict.state.name(), StateName::AwaitingPermission);
    assert_eq!(outcome.verdict.state.prompt().and_then(|prompt| prompt.command.as_deref()), Some("make"));
}

#[test]
fn nothing_known_is_never_called_ready() {
    let mut look = blank(400_000);
    look.pane = Reading::Unavailable { why: "no server".into() };
    let outcome = claude().look(&look);
    assert_eq!(outcome.verdict.status(), Status::Degraded);
    assert_eq!(claude().look(&blank(1_000)).verdict.status(), Status::JustStarted);
}

#[test]
fn a_prompt_that_was_answered_is_not_open_again_because_the_screen_cannot_be_read() {
    let mut session = claude();
    let asked = blank(1_000).screen(&permission_screen("make")).hook(hook("UserPromptSubmit"));
    session.look(&asked.hook(hook("PermissionRequest")));
    let working = session.look(&blank(2_000).title("⠂ x").screen(&working_screen()));
    assert_eq!(working.verdict.state.name(), StateName::Working);
    let mut unread = blank(3_000);
    unread.pane = Reading::Unavailable { why: "no server".into() };
    unread.screen = Reading::Unavailable { why: "no server".into() };
    let outcome = session.look(&unread);
    assert!(outcome.verdict.state.prompt().is_none(), "{:?}", outcome.verdict);
    // One that is announced now may well be open.
    let mut asked = blank(4_000).hook(hook("PermissionRequest"));
    asked.pane = Reading::Unavailable { why: "no server".into() };
    assert_eq!(session.look(&asked).verdict.state.name(), StateName::AwaitingPermission);
}

#[test]
fn a_session_whose_tmux_server_died_has_crashed_whatever_it_was_doing() {
    let mut session = claude();
    session.look(&blank(1_000).screen(&permission_screen("make")).hook(hook("PermissionRequest")));
    let mut gone = blank(2_000);
    gone.pane = Reading::Absent;
    gone.server_died = true;
    let outcome = session.look(&gone);
    assert_eq!((outcome.verdict.status(), outcome.verdict.reason.as_str()), (Status::Crashed, "server_died"));
    let done = Done { run_id: "run".into(), code: Some(0), signal: None, at: At(1_500) };
    gone.done = Reading::Seen(done);
    assert_eq!(session.says(&gone), ("completed".to_owned(), "run_done".to_owned()), "it had ended before");
}

#[test]
fn transient_states_do_not_expire_before_a_minute() {
    assert!(!is_expired(StateName::Working, 59_000) && !is_expired(StateName::Starting, 0));
}

#[test]
fn transient_states_expire_after_a_minute() {
    assert!(is_expired(StateName::Working, 61_000) && is_expired(StateName::Working, 3_600_000));
}

#[test]
fn blocking_states_never_expire() {
    for state in
        [StateName::AwaitingPermission, StateName::AwaitingQuestion, StateName::Error, StateName::Ready]
    {
        assert!(!is_expired(state, 604_800_000), "{state}");
    }
}

#[test]
fn terminal_states_never_expire() {
    assert!(!is_expired(StateName::Exited, 604_800_000));
}

#[test]
fn an_older_look_never_overwrites_a_newer_one() {
    let mut session = claude();
    session.look(&blank(10_000).title("⠂ Claude Code").screen(&working_screen()));
    let before = session.memory.clone();
    let outcome = session.look(&blank(9_000).title("✳ Claude Code").screen(&idle_screen()));
    assert_eq!(outcome.verdict.status(), Status::InProgress);
    assert_eq!(session.memory, before);
}

// ---- the state machine's five gaps ---------------------------------------------------------------------------------

#[test]
fn a_static_screen_during_a_long_tool_is_not_ready() {
    let mut session = claude();
    let screen = conversation("❯ go\n\n● Bash(make)\n  ⎿  Running…\n\n✻ Perusing… (3s)", "esc to interrupt");
    session.look(&blank(1_000).title("⠂ x").screen(&screen).hook(hook("PreToolUse")));
    for second in 2..=30 {
        let outcome = session.look(&blank(second * 1_000).title("⠂ x").screen(&screen));
        assert_eq!(outcome.verdict.status(), Status::InProgress);
        let State::Working { activity, tool } = outcome.verdict.state else { panic!("working") };
        assert_eq!((activity, tool.as_deref()), (Activity::Tool, Some("Bash")));
    }
}

#[test]
fn done_and_check_marks_in_tool_output_are_not_ready() {
    let output = "❯ go\n\n● Bash(make test)\n  ⎿  ✓ all tests\n     Done\n     Task complete\n     $ \n     Claude >\n\n✻ Perusing… (3s)";
    let mut session = claude();
    for second in 1..=10 {
        let look = blank(second * 1_000).title("⠂ x").screen(&conversation(output, "esc to interrupt"));
        assert_eq!(session.says(&look).0, "in_progress");
    }
}

#[test]
fn a_spinner_with_an_unknown_mark_is_still_working() {
    let screen = conversation("❯ go\n\n◈ Perusing… (3s · ↓ 2 tokens)", "esc to interrupt");
    let mut session = claude();
    assert_eq!(session.says(&blank(1_000).screen(&screen)), ("in_progress".into(), "screen_working".into()));
    let bare = conversation("❯ go\n\n◈ Perusing…", "");
    assert_eq!(session.says(&blank(2_000).screen(&bare)).0, "in_progress");
    assert_eq!(claude().says(&blank(1_000).title("⣾ x").screen(&bare)).1, "title_working");
}

#[test]
fn subagent_activity_keeps_a_session_working() {
    let mut session = claude();
    session.look(&blank(1_000).title("⠂ x").hook(hook("UserPromptSubmit")));
    let start = json!({"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a"});
    let outcome = session.look(&blank(2_000).title("⠂ x").screen(&working_screen()).hook(start));
    assert!(matches!(outcome.verdict.state, State::Working { activity: Activity::Subagent, .. }));
    assert_eq!(outcome.signals.subagents, 1);
    let stop = json!({"hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "a"});
    let outcome = session.look(&blank(3_000).title("⠂ x").screen(&working_screen()).hook(stop));
    assert_eq!((outcome.verdict.status(), outcome.signals.subagents), (Status::InProgress, 0));
}

#[test]
fn a_prompt_stays_while_somebody_scrolls_in_copy_mode() {
    let mut session = claude();
    let look = |at| blank(at).title("✳ x").screen(&permission_screen("make"));
    let first = session.look(&look(1_000));
    let scrolled = session.look(&look(2_000).pane(|pane| pane.in_mode = true));
    assert!(scrolled.verdict.state.prompt().is_some());
    assert_eq!(first.verdict.state.prompt(), scrolled.verdict.state.prompt());
}

#[test]
fn a_cut_off_screen_does_not_clear_a_prompt_that_the_agent_announced() {
    let mut session = claude();
    let waiting = json!({"status": "waiting", "waitingFor": "permission prompt"});
    session
        .look(&blank(1_000).native(waiting.clone()).hook(hook("PreToolUse")).hook(hook("PermissionRequest")));
    let mut unread = blank(5_000).native(waiting);
    unread.screen = Reading::Unavailable { why: "capture failed".into() };
    assert_eq!(session.look(&unread).verdict.state.name(), StateName::AwaitingPermission);
}

// ---- hook gaps: every state that a hook makes has an observable fallback ------------------------------------------

#[test]
fn an_interrupt_without_any_hook_is_seen() {
    let mut session = claude();
    session.look(&blank(1_000).title("⠂ x").screen(&working_screen()).hook(hook("UserPromptSubmit")));
    let screen = conversation("❯ go\n  ⎿  Interrupted · What should Claude do instead?", "? for shortcuts");
    let look = |at| blank(at).title("✳ x").screen(&screen);
    session.look(&look(2_000));
    assert_eq!(session.look(&look(3_000)).verdict.state.name(), StateName::Interrupted);
}

#[test]
fn a_subagent_that_was_interrupted_with_its_turn_is_forgotten() {
    let mut session = claude();
    let start = json!({"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a"});
    let working = blank(1_000).title("⠂ x").screen(&working_screen());
    session.look(&working.hook(hook("UserPromptSubmit")).hook(start));
    let screen = conversation("❯ go\n  ⎿  Interrupted · What should Claude do instead?", "? for shortcuts");
    for at in [2_000, 3_000, 9_000] {
        session.look(&blank(at).title("✳ x").screen(&screen));
    }
    let next = blank(20_000).title("⠂ x").screen(&working_screen()).hook(hook("UserPromptSubmit"));
    assert_eq!(session.look(&next).signals.subagents, 0);
    let outcome = session.look(&blank(25_000).title("✳ x").screen(&idle_screen()).hook(hook("Stop")));
    assert_eq!(outcome.verdict.state.name(), StateName::Ready);
    assert_eq!(outcome.verdict.attention, Attention::Delivered);
}

#[test]
fn an_answered_permission_is_working_again_though_no_hook_says_so() {
    let mut session = claude();
    let asked = blank(1_000).title("✳ x").screen(&permission_screen("make"));
    session
        .look(&asked.hook(hook("UserPromptSubmit")).hook(hook("PreToolUse")).hook(hook("PermissionRequest")));
    let outcome = session.look(&blank(2_000).title("⠂ x").screen(&working_screen()));
    assert_eq!(outcome.verdict.status(), Status::InProgress);
}

#[test]
fn a_permission_that_another_hook_decides_is_not_blocked() {
    let mut session = Session::new("codex");
    let screen = "› go\n\n• Working (2s • esc to interrupt)\n\n\n› Ask Codex to do anything\n\n  GPT-6 default · /home/dev\n";
    let look = blank(1_000).title("⠋ x").screen(screen).pane(|pane| {
        pane.cursor_visible = true;
        pane.cursor = (2, 5);
    });
    assert_eq!(session.says(&look.hook(hook("PermissionRequest"))).0, "in_progress");
}

#[test]
fn a_stop_hook_that_another_hook_blocks_is_still_working() {
    let mut session = claude();
    session.look(&blank(1_000).title("⠂ x").screen(&working_screen()).hook(hook("UserPromptSubmit")));
    let blocked = blank(2_000).title("⠂ x").native(json!({"status": "busy"})).screen(&working_screen());
    assert_eq!(session.says(&blocked.hook(hook("Stop"))).0, "in_progress");
}

#[test]
fn a_failed_turn_is_an_error_with_its_kind() {
    let mut session = claude();
    let failure = json!({"hook_event_name": "StopFailure", "session_id": "s", "error": "billing_error", "last_assistant_message": "Credit balance too low"});
    let outcome = session.look(&blank(1_000).hook(failure));
    let State::Error { failure } = &outcome.verdict.state else { panic!("{:?}", outcome.verdict) };
    assert_eq!((failure.kind.as_str(), failure.recoverable), ("billing", false));
    assert_eq!(outcome.verdict.attention, Attention::NeedsYou);
}

// ---- attention -----------------------------------------------------------------------------------------------------

#[test]
fn a_pull_request_is_work_delivered() {
    let mut session = claude();
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "gh pr create --fill"}});
    let done =
        json!({"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "t"});
    let stop = json!({"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "Shall I merge it later on my own.", "background_tasks": [{"id": 1}]});
    session.look(&blank(1_000).hook(hook("UserPromptSubmit")).hook(call));
    let outcome = session.look(&blank(2_000).hook(done).hook(stop));
    assert_eq!(
        (outcome.verdict.status(), outcome.verdict.attention),
        (Status::WaitingInput, Attention::Delivered)
    );
}

#[test]
fn a_turn_that_ends_in_a_question_needs_you() {
    let stop = json!({"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "Which one should I take?"});
    let outcome = claude().look(&blank(1_000).hook(stop));
    assert!(matches!(&outcome.verdict.state, State::Ready { asks: true, .. }));
    assert_eq!(outcome.verdict.attention, Attention::NeedsYou);
}

#[test]
fn a_shell_that_runs_on_after_a_turn_is_counted_and_the_turn_is_delivered() {
    let stop = json!({"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "It runs.", "background_tasks": [{"id": "1", "type": "shell"}]});
    let outcome = claude()
        .look(&blank(1_000).title("✳ x").screen(&idle_screen()).hook(hook("SessionStart")).hook(stop));
    assert_eq!(
        (outcome.verdict.status(), outcome.verdict.attention),
        (Status::WaitingInput, Attention::Delivered)
    );
    assert_eq!((outcome.signals.background_tasks, outcome.signals.subagents), (1, 0));
}

#[test]
fn commits_since_the_turn_began_are_work_delivered() {
    let mut look =
        blank(1_000).hook(json!({"hook_event_name": "Stop", "session_id": "s", "background_tasks": [1]}));
    look.commits_since_turn = Some(2);
    assert_eq!(claude().look(&look).verdict.attention, Attention::Delivered);
}

// ---- ends ----------------------------------------------------------------------------------------------------------

#[test]
fn exits_are_told_by_code_and_signal_and_an_empty_status_is_unknown() {
    let exit = |code: Option<i32>, signal: Option<i32>| {
        let look = blank(1_000).pane(|pane| {
            pane.dead = true;
            pane.exit_status = code;
            pane.exit_signal = signal;
        });
        let outcome = claude().look(&look);
        let State::Exited { exit } = &outcome.verdict.state else { panic!("exited") };
        (outcome.verdict.status(), exit.kind)
    };
    assert_eq!(exit(Some(0), None), (Status::Completed, ExitKind::UserInitiated));
    assert_eq!(exit(Some(130), None), (Status::Completed, ExitKind::UserInitiated));
    assert_eq!(exit(None, Some(2)), (Status::Completed, ExitKind::UserInitiated));
    assert_eq!(exit(Some(137), None), (Status::Crashed, ExitKind::Killed));
    assert_eq!(exit(None, Some(9)), (Status::Crashed, ExitKind::Killed));
    assert_eq!(exit(Some(7), None), (Status::Crashed, ExitKind::Crash));
    assert_eq!(exit(None, None), (Status::Crashed, ExitKind::Unknown));
}

#[test]
fn the_done_file_fills_in_an_empty_exit_status() {
    let mut look = blank(1_000).pane(|pane| pane.dead = true);
    look.done = Reading::Seen(Done { run_id: "run".into(), code: Some(0), signal: None, at: At(900) });
    assert_eq!(claude().look(&look).verdict.status(), Status::Completed);
}

#[test]
fn the_done_file_of_another_run_is_ignored() {
    let mut look = blank(1_000).title("⠂ x").screen(&working_screen());
    look.done = Reading::Seen(Done { run_id: "another".into(), code: Some(0), signal: None, at: At(900) });
    let outcome = claude().look(&look);
    assert_eq!((outcome.verdict.status(), outcome.signals.done_file), (Status::InProgress, None));
}

#[test]
fn a_malformed_done_file_degrades_only_when_nothing_stronger_speaks() {
    let unread = || Reading::Unavailable { why: "not `run:code`".to_owned() };
    let mut weak = blank(400_000);
    weak.done = unread();
    let outcome = claude().look(&weak);
    assert_eq!(outcome.verdict.status(), Status::Degraded);
    assert_eq!(outcome.signals.done_file_read_error.as_deref(), Some("not `run:code`"));
    let mut strong = blank(1_000).title("⠂ x").screen(&working_screen());
    strong.done = unread();
    assert_eq!(claude().look(&strong).verdict.status(), Status::InProgress);
}

#[test]
fn the_pane_s_end_wins_when_capture_fails() {
    let mut look = blank(1_000).pane(|pane| {
        pane.dead = true;
        pane.exit_status = Some(0);
    });
    look.screen = Reading::Unavailable { why: "can't find pane".into() };
    assert_eq!(claude().look(&look).verdict.status(), Status::Completed);
}

#[test]
fn an_exec_run_is_never_waiting_for_input() {
    let mut session = Session::new("generic");
    let mut look = blank(5_000).screen("$ make\nok\ndone\n> \n").process("make");
    look.mode = Mode::Exec;
    assert_eq!(session.says(&look).0, "in_progress");
    let marked = |at| {
        let mut look = blank(at).screen("ok\n__LISA_EXEC_DONE__:7\nuser@host ~ ❯ \n");
        look.mode = Mode::Exec;
        look
    };
    let printed = session.says(&marked(6_000).process("make"));
    assert_eq!(printed.0, "in_progress", "anybody can print the marker while the process lives");
    let mut ended = marked(7_000);
    ended.procs = Reading::Seen(Vec::new());
    assert_eq!(session.says(&ended), ("crashed".into(), "run_done".into()));
}

#[test]
fn a_suspended_agent_behind_a_shell_is_stuck_not_ready() {
    let mut look = blank(5_000).title("⠂ x").process("claude").pane(|pane| pane.command = "bash".into());
    if let Reading::Seen(procs) = &mut look.procs {
        procs[0].stopped = true;
    }
    assert_eq!(claude().says(&look), ("stuck".into(), "agent_suspended".into()));
}

#[test]
fn a_silent_agent_that_nothing_moves_is_stuck() {
    let mut session = Session::new("generic");
    session.look(&blank(1_000).process("tool").screen("working on it\n"));
    let outcome = session.look(&blank(400_000).process("tool").screen("working on it\n"));
    assert_eq!((outcome.verdict.status(), outcome.verdict.reason.as_str()), (Status::Stuck, "nothing_moves"));
}

// ---- explain -------------------------------------------------------------------------------------------------------

#[test]
fn an_explanation_names_the_rule_both_sides_and_what_failed() {
    let mut session = claude();
    session.look(&blank(1_000).hook(hook("UserPromptSubmit")).title("⠂ x").screen(&working_screen()));
    let mut look = blank(2_000).title("⠂ x").screen(&working_screen()).native(json!({"status": "idle"}));
    look.procs = Reading::Unavailable { why: "ps failed".into() };
    let outcome = session.look(&look);
    let why = reasons(&outcome, look.at);
    assert_eq!(outcome.verdict.reason.as_str(), "title_working");
    assert!(why.rule_says.contains("title"));
    assert!(why.passed_over.iter().any(|rule| rule.rule == "dialog_shown" && !rule.why_not.is_empty()));
    assert!(why.evidence_for.iter().any(|item| item.quote == "⠂ x"));
    assert!(why.evidence_against.iter().any(|item| item.quote.contains("idle")));
    assert_eq!(why.failed[0].signal, SignalError::AgentScan);
    assert!(why.failed[0].would_tell.contains("process"));
}

#[test]
fn memory_survives_being_stored() {
    let mut session = claude();
    session
        .look(&blank(1_000).title("✳ x").screen(&permission_screen("make")).hook(hook("PermissionRequest")));
    let stored = serde_json::to_string(&session.memory).expect("memory is stored");
    let read: lisa_engine::classify::memory::Memory = serde_json::from_str(&stored).expect("memory is read");
    assert_eq!(read, session.memory);
}

// ---- frozen --------------------------------------------------------------------------------------------------------

#[test]
fn a_turn_that_is_shown_but_has_not_moved_for_a_minute_is_stuck() {
    let mut session = claude();
    let look = |at: i64| blank(at).process("claude").title("⠂ Claude Code").screen(&working_screen());
    session.look(&look(1_000).hook(hook("UserPromptSubmit")));
    for second in [2, 30, 60] {
        assert_eq!(session.says(&look(second * 1_000)).0, "in_progress", "after {second} s");
    }
    assert_eq!(session.says(&look(62_000)), ("stuck".into(), "frozen".into()));
    assert_eq!(session.says(&look(900_000)), ("stuck".into(), "frozen".into()));
    // Any movement is a sign of life: a title, a screen, output, an event.
    assert_eq!(session.says(&look(901_000).title("⠐ Claude Code")).0, "in_progress");
    assert_eq!(
        session.says(&look(990_000).title("⠐ Claude Code").hook(hook("PostToolUse"))).0,
        "in_progress"
    );
    let printed = look(1_100_000).title("⠐ Claude Code").pane(|pane| pane.activity = At(1_099_000));
    assert_eq!(session.says(&printed).0, "in_progress");
}

#[test]
fn a_frozen_screen_never_looks_ready_or_hides_a_prompt() {
    let mut session = claude();
    let over = blank(1_000).title("✳ Claude Code").screen(&idle_screen()).hook(hook("Stop"));
    session.look(&over);
    let frozen = |at: i64| blank(at).title("⠂ Claude Code").screen(&working_screen());
    session.look(&frozen(5_000));
    assert_eq!(session.says(&frozen(70_000)).0, "stuck");
    let asking = blank(300_000).title("⠂ Claude Code").screen(&permission_screen("make"));
    session.look(&asking);
    assert_eq!(
        session.says(&blank(900_000).title("⠂ Claude Code").screen(&permission_screen("make"))).0,
        "waiting_input"
    );
}

#[test]
fn background_tasks_count_as_a_list_and_as_a_number() {
    for (agent, tasks) in [("claude", json!([{"id": "a"}, {"id": "b"}])), ("demo", json!(2))] {
        let mut session = Session::new(agent);
        let stop = json!({"hook_event_name": "Stop", "session_id": "s", "background_tasks": tasks});
        let outcome = session.look(&blank(1_000).hook(stop));
        assert_eq!(outcome.memory.feeds.hook.background, 2, "{agent}");
        assert_eq!(outcome.verdict.attention, Attention::NeedsYou, "{agent}: no turn was seen");
    }
}

#[test]
fn a_prompt_given_at_the_start_is_awaited_before_the_agent_is_called_ready() {
    let fresh = conversation("Welcome", "? for shortcuts · ← for agents");
    let look = |at: i64| {
        let mut look = blank(at).screen(&fresh).title("✳ Claude Code").process("claude");
        look.prompt_sent_at = Some(look.spawned_at);
        look
    };
    let mut session = claude();
    for at in [2_000, 4_500, 6_500] {
        let (status, _) = session.says(&look(at));
        assert_eq!(status, "just_started", "after {at} ms");
    }
    let taken_up = look(7_000).hook(hook("UserPromptSubmit"));
    assert_eq!(session.says(&taken_up).0, "in_progress");
    // What was never taken up is not waited for without end; what is sent later is not this rule's affair.
    let mut deaf = claude();
    for at in [2_000, 4_500] {
        deaf.look(&look(at));
    }
    assert_eq!(deaf.says(&look(20_000)), ("waiting_input".into(), "input_ready".into()));
    let mut idle = claude();
    let unasked = |at: i64| blank(at).screen(&fresh).title("✳ Claude Code").process("claude");
    idle.look(&unasked(2_000));
    assert_eq!(idle.says(&unasked(6_500)).0, "waiting_input");
}

#[test]
fn a_hook_of_the_turn_before_that_comes_late_does_not_end_the_turn_that_was_just_sent() {
    let mut session = claude();
    let idle = |at: i64| blank(at).screen(&idle_screen()).title("✳ Claude Code").process("claude");
    session.look(&idle(4_000).hook(hook("SessionStart")));
    session.look(&idle(5_000).hook(hook("UserPromptSubmit")));
    // The screen has shown the end of that turn long before its hook comes.
    assert_eq!(session.says(&idle(20_000)).0, "waiting_input");
    let sent = |at: i64| {
        let mut look = idle(at);
        look.prompt_sent_at = Some(At(20_100));
        look
    };
    let late = sent(20_150).hook(hook("Stop"));
    assert_eq!(session.says(&late), ("in_progress".into(), "just_sent".into()));
    assert!(!session.memory.turn_over_since(Some(At(20_100))), "it was the turn before that ended");
    session.look(&sent(20_200).hook(hook("UserPromptSubmit")));
    session.look(&sent(20_250).hook(hook("Stop")));
    assert!(session.memory.turn_over_since(Some(At(20_100))));
    assert_eq!(session.says(&sent(20_300)), ("waiting_input".into(), "turn_over".into()));
}
