//! Resuming sessions that ended.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, demo, driving::*, until};
use lisa_engine::{api::*, watch::Cancel};

#[test]
fn a_session_that_ended_is_resumed_under_its_name() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "back", Some("!say first"))).unwrap();
    wait_for(&engine, "back", "ready");
    let run = status(&engine, "back").run_id;
    assert_eq!(
        engine
            .resume(&ResumeRequest { session: "back".into(), ..ResumeRequest::default() })
            .unwrap()
            .action
            .done,
        "already_running"
    );
    send(&engine, "back", "/exit");
    wait_for(&engine, "back", "exited");
    let resumed = engine
        .resume(&ResumeRequest {
            session: "back".into(),
            prompt: Some("!say second".into()),
            wait_ready_s: Some(10.0),
        })
        .unwrap();
    assert_eq!(resumed.action.done, "resumed");
    let session = wait_for(&engine, "back", "ready");
    assert_ne!(session.run_id, run);
    assert!(until(SHORT, || status(&engine, "back").last_message.as_deref() == Some("second")));
}

#[test]
fn a_run_that_was_killed_while_it_asked_does_not_ask_after_a_resume() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "asked", Some("!permission Bash ls"))).unwrap();
    wait_for(&engine, "asked", "awaiting_permission");
    let agent = i32::try_from(status(&engine, "asked").pid.unwrap()).unwrap();
    let agent = rustix::process::Pid::from_raw(agent).unwrap();
    rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
    wait_for(&engine, "asked", "exited");
    let before = engine.cursor().unwrap();
    let request =
        ResumeRequest { session: "asked".into(), wait_ready_s: Some(10.0), ..ResumeRequest::default() };
    assert_eq!(engine.resume(&request).unwrap().action.done, "resumed");
    wait_for(&engine, "asked", "ready");
    let since = WaitRequest {
        sessions: vec!["asked".into()],
        since: Some(before),
        until: Some("event".into()),
        timeout_s: Some(0.0),
        ..WaitRequest::default()
    };
    let events = engine.wait(&since, &Cancel::default(), &mut |_| {}).unwrap().events;
    let asked = events.into_iter().find(|event| event.event == EventKind::Prompt);
    assert!(asked.is_none(), "the run before asked: {asked:?}");
}

#[test]
fn a_session_is_resumed_after_its_server_has_gone() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "back", Some("!say first"))).unwrap();
    wait_for(&engine, "back", "ready");
    let server = lab.server_pid().unwrap();
    let pid = rustix::process::Pid::from_raw(server as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(until(SHORT, || lisa_engine::process::start_time(server).is_none()));
    let request =
        ResumeRequest { session: "back".into(), wait_ready_s: Some(10.0), ..ResumeRequest::default() };
    assert_eq!(engine.resume(&request).unwrap().action.done, "resumed");
    assert_eq!(send(&engine, "back", "!say second").receipt.delivered, Delivery::Submitted);
    wait_for(&engine, "back", "ready");
    assert!(until(SHORT, || status(&engine, "back").last_message.as_deref() == Some("second")));
}
