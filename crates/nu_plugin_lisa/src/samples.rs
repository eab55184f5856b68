//! Sample sessions for tests.

use jiff::Timestamp;
use lisa_engine::api::{
    Session, Usage,
    words::{
        Activity, Attention, Confidence, DialogKind, Effect, ErrorKind, Exit, ExitKind, Failure, Mode,
        Prompt, PromptKind, PromptOption, PromptStep, SignalError, StateName, Status, Todos,
    },
};

/// A fixed timestamp.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_763_318_120).unwrap()
}

/// A session with as few known fields as possible.
pub(crate) fn session(name: &str) -> Session {
    Session {
        name: name.into(),
        agent: "demo".into(),
        status: Status::WaitingInput,
        state: StateName::Ready,
        attention: Attention::Delivered,
        reason: lisa_engine::api::words::Reason::TurnOver,
        confidence: Confidence::Certain,
        source: "hooks".into(),
        since: now(),
        idle_ms: 303_900,
        started_at: now(),
        activity: None,
        tool: None,
        prompt: None,
        last_message: None,
        asks: None,
        error: None,
        exit: None,
        expected: None,
        failed_signals: vec![],
        mode: Mode::Interactive,
        cwd: "/tmp".into(),
        project: "tmp".into(),
        project_hash: "0a1b2c3d".into(),
        tag: None,
        parent: None,
        depth: 0,
        host: "here".into(),
        pid: None,
        run_id: "r1".into(),
        agent_session_id: None,
        turn: None,
        subagents: 0,
        background_tasks: 0,
        todos: None,
        wait_estimate_s: None,
        usage: None,
        signals: None,
    }
}

fn prompt() -> Prompt {
    let option = |key: &str, label: &str, effect| PromptOption {
        key: key.into(),
        label: label.into(),
        selected: key == "1",
        checked: (key == "1").then_some(false),
        effect,
    };
    Prompt {
        id: "p1".into(),
        kind: PromptKind::Permission,
        dialog: None,
        title: "May I run this?".into(),
        body: "rm -rf build".into(),
        tool: Some("Bash".into()),
        command: Some("rm -rf build".into()),
        file: None,
        options: vec![option("1", "Yes", Effect::AllowOnce), option("2", "No", Effect::Deny)],
        multi: false,
        free_text: false,
        truncated: false,
        step: None,
        disagrees: false,
    }
}

/// Two sessions: every optional field is set in one and null in the other.
pub(crate) fn sessions() -> Vec<Session> {
    let dialog = Prompt {
        kind: PromptKind::Dialog,
        dialog: Some(DialogKind::Trust),
        step: Some(PromptStep { number: 1, of: 2 }),
        disagrees: false,
        options: vec![],
        file: Some("/tmp/x".into()),
        ..prompt()
    };
    vec![
        session("bare"),
        Session { prompt: Some(prompt()), ..session("asks") },
        Session {
            prompt: Some(dialog),
            activity: Some(Activity::Tool),
            tool: Some("Bash".into()),
            last_message: Some("Shall I?".into()),
            asks: Some(true),
            error: Some(Failure {
                kind: ErrorKind::RateLimit,
                recoverable: true,
                message: "slow down".into(),
            }),
            exit: Some(Exit { code: Some(3), signal: Some(9), kind: ExitKind::Crash }),
            expected: Some("output".into()),
            failed_signals: vec![SignalError::Hook],
            tag: Some("t".into()),
            parent: Some("root".into()),
            pid: Some(42),
            agent_session_id: Some("c-1".into()),
            turn: Some("t1".into()),
            todos: Some(Todos { done: 1, total: 3, active: Some("write".into()) }),
            wait_estimate_s: Some(30),
            usage: Some(Usage {
                model: Some("m".into()),
                input_tokens: Some(10),
                output_tokens: Some(11),
                context_tokens: Some(12),
                context_size: Some(13),
                cost_usd: Some(0.5),
            }),
            signals: serde_json::json!({ "agent_pid": { "value": 42, "age_ms": 10 } }).as_object().cloned(),
            ..session("full")
        },
    ]
}
