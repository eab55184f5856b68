//! Every operation of the engine, for tests that disturb it in the middle.

use lisa_engine::{api::*, engine::Engine, watch::Cancel};

/// An operation: its name, and what a process of its own does.
pub type Operation = (&'static str, fn(&Engine));

/// Every operation on the sessions that a test of faults prepares.
pub const OPERATIONS: &[Operation] = &[
    ("spawn", |engine| {
        let name = format!("new-{}", std::process::id());
        let request = SpawnRequest {
            agent: "demo".into(),
            name: Some(name),
            cwd: Some("/".into()),
            ..SpawnRequest::default()
        };
        let _ = engine.spawn(&request);
    }),
    ("send", |engine| {
        let request = SendRequest {
            session: "ready".into(),
            text: Some("!think 50ms ; !say x".into()),
            ..SendRequest::default()
        };
        let _ = engine.send(&request);
    }),
    ("answer", |engine| {
        let request = AnswerRequest {
            session: "asks".into(),
            choice: Some("allow_once".into()),
            ..AnswerRequest::default()
        };
        let _ = engine.answer(&request);
    }),
    ("press", |engine| {
        let request = SendRequest {
            session: "ready".into(),
            keys: vec!["x".into(), "BSpace".into()],
            ..SendRequest::default()
        };
        let _ = engine.send(&request);
    }),
    ("wait", |engine| {
        let request = WaitRequest {
            sessions: vec!["works".into()],
            until: Some("event".into()),
            timeout_s: Some(0.3),
            ..WaitRequest::default()
        };
        let _ = engine.wait(&request, &Cancel::default(), &mut |_| {});
    }),
    ("kill", |engine| {
        let _ = engine.kill(&KillRequest { session: "victim".into(), force: true });
    }),
    ("resume", |engine| {
        let _ = engine.resume(&ResumeRequest { session: "ended".into(), ..ResumeRequest::default() });
    }),
    ("cleanup", |engine| {
        let _ = engine.cleanup();
    }),
];
