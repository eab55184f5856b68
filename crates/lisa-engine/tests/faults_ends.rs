//! However many end sessions, wait for them or leave by themselves: each run ends once, and the journal says how.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{
    Lab,
    check::{journal, journal_contradictions},
    command, demo,
    driving::*,
};
use lisa_engine::{api::*, engine::Engine, watch::Cancel};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// How many sessions end in the large test, and how many of them at once.
const SESSIONS: usize = 1_000;
const AT_ONCE: usize = 50;

fn ends(events: &[(String, Event)]) -> usize {
    let is_end = |event: &Event| matches!(event.event, EventKind::Exited | EventKind::Killed);
    events.iter().filter(|(_, event)| is_end(event)).count()
}

fn kill(engine: &Engine, name: &str) -> Action {
    let request = KillRequest { session: name.to_owned(), force: true };
    engine.kill(&request).unwrap().sessions.remove(0)
}

#[test]
fn a_session_that_is_killed_while_somebody_looks_at_it_ends_once_and_so_does_its_turn() {
    let lab = Lab::new();
    let engine = lab.engine();
    for round in 0..15 {
        let name = format!("s{round}");
        engine.spawn(&demo(&lab, &name, Some("!think 60s"))).unwrap();
        wait_for(&engine, &name, "working");
        std::thread::scope(|scope| {
            let (killers, lookers) = (2, 2);
            for _ in 0..killers {
                let (other, name) = (lab.engine(), &name);
                scope.spawn(move || kill(&other, name));
            }
            for _ in 0..lookers {
                let (other, name) = (lab.engine(), &name);
                scope.spawn(move || while other.look(&SessionRequest { session: name.clone() }).is_ok() {});
            }
        });
    }
    let events = journal(&lab);
    assert_eq!(journal_contradictions(&events), Vec::<String>::new());
    assert_eq!(ends(&events), 15);
    let died = events.iter().filter(|(_, event)| event.event == EventKind::TurnEnded);
    assert!(died.clone().all(|(_, event)| event.detail == "died"), "{:?}", died.collect::<Vec<_>>());
    assert!(events.iter().all(|(_, event)| event.event != EventKind::Exited), "each of them was killed");
}

#[test]
fn removing_a_session_whose_agent_left_by_itself_is_no_second_end() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("left", &["sh", "-c", "exit 3"])).unwrap();
    wait_for(&engine, "left", "exited");
    assert_eq!(kill(&engine, "left").done, "killed");
    let events = journal(&lab);
    let kinds: Vec<EventKind> = events.iter().map(|(_, event)| event.event).collect();
    assert_eq!(journal_contradictions(&events), Vec::<String>::new());
    assert_eq!(kinds[kinds.len() - 2..], [EventKind::Exited, EventKind::Removed]);
}

/// Killers, waiters and agents that leave by themselves, in any mixture, from several processes' worth of engines.
#[test]
fn a_thousand_sessions_end_once_each_whoever_ends_them() {
    let lab = Lab::with(&[("LISA_MAX_SESSIONS", "200"), ("LISA_EVENTS_MAX_LINES", "1000000")]);
    let watching = Engine::open_resident(lab.caller()).unwrap();
    let done = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for lane in 0..4 {
            let (lab, done, next) = (&lab, &done, &next);
            let engine = if lane == 0 { watching.clone() } else { lab.engine() };
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= SESSIONS {
                        return;
                    }
                    let name = format!("s{number}");
                    let argv: &[&str] = match number % 3 {
                        0 => &["sleep", "600"],
                        1 => &["sh", "-c", "sleep 0.0$((RANDOM % 9)); exit 4"],
                        _ => &["true"],
                    };
                    engine.spawn(&command(&name, argv)).unwrap();
                    let waiting = done.lock().unwrap().len();
                    done.lock().unwrap().push(name.clone());
                    if number % 5 == 0 {
                        let request = WaitRequest {
                            sessions: vec![name.clone()],
                            until: Some("exited".to_owned()),
                            timeout_s: Some(0.05),
                            ..WaitRequest::default()
                        };
                        let _ = engine.wait(&request, &Cancel::default(), &mut |_| {});
                    }
                    if waiting >= AT_ONCE {
                        // Some are ended twice at once, by different hands.
                        let oldest: Vec<String> = done.lock().unwrap().drain(..AT_ONCE / 2).collect();
                        std::thread::scope(|scope| {
                            for _ in 0..2 {
                                let (engine, oldest) = (engine.clone(), &oldest);
                                scope.spawn(move || oldest.iter().for_each(|name| drop(kill(&engine, name))));
                            }
                        });
                    }
                }
            });
        }
    });
    watching.kill_all(&KillAllRequest { force: true, ..KillAllRequest::default() }).unwrap();
    let events = journal(&lab);
    assert_eq!(journal_contradictions(&events), Vec::<String>::new());
    let spawned = events.iter().filter(|(_, event)| event.event == EventKind::Spawned).count();
    assert_eq!((spawned, ends(&events)), (SESSIONS, SESSIONS));
    assert_eq!(common::entries(&lab.config.state_dir.join("sessions")), Vec::<String>::new());
    assert!(lab.tmux().panes(false).unwrap().is_empty());
    // A reader that goes on from cursor to cursor sees the same.
    let mut watch = watching.watch(&WatchRequest { since: Some(0), ..WatchRequest::default() }).unwrap();
    let mut cursor = 0;
    while let Some(event) = watch.next(Duration::from_millis(200)).unwrap() {
        assert_eq!(event.cursor, cursor + 1);
        cursor = event.cursor;
    }
    assert_eq!(cursor, events.len() as u64);
}
