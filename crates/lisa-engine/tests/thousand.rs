//! A thousand sessions are normal.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, command, entries, until};
use lisa_engine::{api::*, engine::Engine, watch::Cancel};
use std::time::{Duration, Instant};

const COUNT: usize = 1_000;
const LANES: usize = 4;

#[test]
fn a_thousand_sessions_are_listed_waited_for_and_ended_and_nothing_is_left() {
    let lab = Lab::with(&[("LISA_MAX_SESSIONS", "1100")]);
    let engine = Engine::open_resident(lab.caller()).unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let engine = &engine;
            scope.spawn(move || {
                for number in (lane..COUNT).step_by(LANES) {
                    engine.spawn(&command(&format!("s{number:04}"), &["sleep", "3600"])).unwrap();
                }
            });
        }
    });
    println!("{COUNT} sessions were started in {:?}", began.elapsed());
    let list = || engine.list(&ListRequest::default()).unwrap();
    assert_eq!(list().total as usize, COUNT);
    let alive = || list().sessions.iter().filter(|row| row.pid.is_some()).count();
    assert!(until(Duration::from_secs(30), || alive() == COUNT), "{} are alive", alive());
    // One of them ends, and whoever waits for any of them is told which.
    let names: Vec<String> = engine.names().unwrap();
    let victim = list().sessions[777].clone();
    let pid = rustix::process::Pid::from_raw(victim.pid.unwrap() as i32).unwrap();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    });
    let request = WaitRequest {
        sessions: names,
        until: Some("exited".into()),
        timeout_s: Some(30.0),
        ..WaitRequest::default()
    };
    let waited = engine.wait(&request, &Cancel::default(), &mut |_| {}).unwrap();
    killer.join().unwrap();
    assert!(!waited.timed_out);
    assert!(waited.events.iter().any(|event| event.session == victim.name), "{:?}", waited.events);
    let began = Instant::now();
    let ended = engine.kill_all(&KillAllRequest { force: true, ..KillAllRequest::default() }).unwrap();
    println!("they were ended in {:?}", began.elapsed());
    assert_eq!(ended.sessions.len(), COUNT);
    assert_eq!(entries(&lab.config.state_dir.join("sessions")), Vec::<String>::new());
    assert!(lab.tmux().panes(false).unwrap().is_empty());
    assert!(until(Duration::from_secs(10), || list().total == 0));
}
