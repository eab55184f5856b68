//! What a `kill -9` of Lisa itself leaves behind: nothing half-made, nothing lost, nothing twice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, command, demo, entries, until};
use lisa_engine::{
    api::{words::StateName, *},
    watch::Cancel,
};
use std::{collections::HashMap, path::Path, time::Duration};

const SHORT: Duration = Duration::from_secs(20);

/// A number that differs from round to round but not from run to run.
fn scattered(round: u64, below: u64) -> u64 {
    round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407).rotate_left(29)
        % below
}

#[test]
fn a_spawn_that_is_killed_at_any_moment_leaves_what_the_next_call_reads() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("bystander", &["sleep", "600"])).unwrap();
    for round in 0..40 {
        let mut child = lab.process(&["spawn-and-kill"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(40 + scattered(round, 120)));
        child.kill().unwrap();
        child.wait().unwrap();
        let rows = engine.list(&ListRequest::default()).unwrap().sessions;
        assert!(
            rows.iter().any(|row| row.name == "bystander" && row.pid.is_some()),
            "round {round}: {rows:?}"
        );
    }
    // What is alive can be ended, what is left over is cleaned up, and then there is nothing.
    let left = engine.names().unwrap();
    for name in left.iter().filter(|name| *name != "bystander") {
        engine.kill(&KillRequest { session: name.clone(), force: true }).unwrap();
    }
    engine.cleanup().unwrap();
    assert_eq!(engine.names().unwrap(), ["bystander"]);
    assert_eq!(entries(&lab.config.state_dir.join("sessions")), ["bystander"]);
    assert_eq!(lab.tmux().panes(false).unwrap().len(), 1);
}

#[test]
fn a_waiter_that_is_killed_200_times_loses_no_event_and_repeats_none() {
    let lab = Lab::new();
    let engine = lab.engine();
    for name in ["one", "two"] {
        engine.spawn(&demo(&lab, name, None)).unwrap();
    }
    let cursor = engine.cursor().unwrap();
    let killer = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut turns = Vec::new();
            for round in 0..24 {
                let name = ["one", "two"][round % 2];
                let text = format!("!think 60ms ; !say answer {round}");
                let request =
                    SendRequest { session: name.into(), text: Some(text), ..SendRequest::default() };
                let sent = engine.send(&request).unwrap();
                assert_eq!(sent.receipt.delivered, Delivery::Submitted, "{sent:?}");
                turns.push(sent.receipt.turn.unwrap());
                assert!(until(SHORT, || {
                    engine.status(&SessionRequest { session: name.into() }).unwrap().state == StateName::Ready
                }));
            }
            turns
        });
        for round in 0..200 {
            let mut waiter = lab.process(&["wait"]).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(10 + scattered(round, 110)));
            waiter.kill().unwrap();
            waiter.wait().unwrap();
        }
        sender.join().unwrap()
    });
    // A new one, with the old cursor.
    let events = read_all(&lab, cursor);
    let cursors: Vec<u64> = events.iter().map(|event| event.cursor).collect();
    assert_eq!(
        cursors,
        (cursor + 1..=cursor + events.len() as u64).collect::<Vec<_>>(),
        "a gap or a repetition"
    );
    for turn in &killer {
        let ends = events
            .iter()
            .filter(|e| e.event == EventKind::TurnEnded && e.turn.as_ref() == Some(turn))
            .count();
        assert_eq!(ends, 1, "{turn} ended {ends} times");
        let sends =
            events.iter().filter(|e| e.event == EventKind::Send && e.turn.as_ref() == Some(turn)).count();
        assert_eq!(sends, 1, "{turn} was sent {sends} times");
    }
    // Each transition begins where the last one ended: none is missing, none is there twice.
    let mut state: HashMap<&str, StateName> = HashMap::new();
    for event in events.iter().filter(|event| event.event == EventKind::Transition) {
        let was = event.detail.split(" -> ").next().unwrap();
        if let Some(before) = state.insert(&event.session, event.state) {
            assert_eq!(was, before.as_str(), "{event:?}");
        }
    }
}

fn read_all(lab: &Lab, cursor: u64) -> Vec<Event> {
    let engine = lab.engine();
    let mut events = Vec::new();
    let mut since = cursor;
    loop {
        let request = WaitRequest { since: Some(since), timeout_s: Some(0.0), ..WaitRequest::default() };
        let answer = engine.wait(&request, &Cancel::default(), &mut |_| {}).unwrap();
        since = answer.cursor;
        if answer.events.is_empty() {
            return events;
        }
        events.extend(answer.events);
    }
}

#[test]
fn what_others_wrote_is_read_past_a_torn_line() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("torn", &["sleep", "600"])).unwrap();
    let directory = lab.config.state_dir.join("sessions/torn");
    std::fs::write(directory.join("state.json"), "{\"memory\":").unwrap();
    std::fs::write(directory.join("hooks.jsonl"), "{\"at\":1,\"payl").unwrap();
    std::fs::write(directory.join("done"), "garbage").unwrap();
    let session = engine.status(&SessionRequest { session: "torn".into() }).unwrap();
    let signals = session.signals.unwrap();
    assert!(signals["state_read_error"].as_str().unwrap().contains("malformed"), "{signals:?}");
    assert!(signals["done_file_read_error"].is_string(), "{signals:?}");
    assert_ne!(session.state, StateName::Exited, "a torn done file ends nothing");
    assert!(Path::new(&directory).join("state.json").metadata().unwrap().len() > 50, "the look repairs it");
}
