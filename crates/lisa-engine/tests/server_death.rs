//! The tmux server dies with every agent in it: each session says so, nothing is told that is not so, and all of them can
//! be taken up again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, demo, until};
use lisa_engine::{
    api::{
        words::{StateName, Status},
        *,
    },
    engine::Engine,
};
use std::time::Duration;

const SHORT: Duration = Duration::from_secs(10);

fn status(engine: &Engine, session: &str) -> Session {
    engine.status(&SessionRequest { session: session.to_owned() }).unwrap()
}

#[test]
fn every_session_of_a_server_that_died_says_so_doctor_names_them_and_all_can_be_resumed() {
    let lab = Lab::new();
    let engine = lab.engine();
    let names = ["one", "two", "three"];
    for name in names {
        engine.spawn(&demo(&lab, name, Some("!say hello"))).unwrap();
        assert!(until(SHORT, || status(&engine, name).state == StateName::Ready));
    }
    // One is in the middle of a turn, after a prompt that was answered.
    let send = SendRequest {
        session: "one".into(),
        text: Some("!permission Bash make ; !think 60s".into()),
        ..SendRequest::default()
    };
    engine.send(&send).unwrap();
    assert!(until(SHORT, || status(&engine, "one").prompt.is_some()));
    let answer = AnswerRequest {
        session: "one".into(),
        choice: Some("allow_once".into()),
        ..AnswerRequest::default()
    };
    engine.answer(&answer).unwrap();
    assert!(until(SHORT, || status(&engine, "one").state == StateName::Working));
    let cursor = engine.cursor().unwrap();
    let server = lab.server_pid().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(server as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert!(until(SHORT, || lisa_engine::process::start_time(server).is_none()));
    for name in names {
        let lost = status(&engine, name);
        assert_eq!((lost.status, lost.reason.as_str()), (Status::Crashed, "server_died"), "{name}");
    }
    let events = engine.watch(&WatchRequest { since: Some(cursor), ..WatchRequest::default() }).unwrap();
    let prompts = drain(events).into_iter().filter(|event| event.event == EventKind::Prompt).count();
    assert_eq!(prompts, 0, "a prompt that was answered is told again");
    let check = engine.doctor().checks.into_iter().find(|check| check.name == "lost sessions").unwrap();
    assert!(!check.ok && names.iter().all(|name| check.detail.contains(name)), "{check:?}");
    for name in names {
        let request = ResumeRequest { session: name.into(), prompt: None, wait_ready_s: Some(15.0) };
        assert_eq!(engine.resume(&request).unwrap().action.done, "resumed");
        assert_ne!(status(&engine, name).state, StateName::Exited);
    }
    assert!(engine.doctor().checks.iter().all(|check| check.name != "lost sessions"));
}

/// What a stream gives within a moment.
fn drain(mut events: lisa_engine::engine::Watch) -> Vec<Event> {
    std::iter::from_fn(|| events.next(Duration::from_millis(300)).unwrap()).collect()
}
