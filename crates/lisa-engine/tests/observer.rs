//! Many processes that stay, one of which watches: whoever that is, and whenever it dies or hangs, each event is written
//! once and seen once by everybody.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, command, demo, until};
use lisa_engine::{
    api::{words::StateName, *},
    engine::Engine,
    process,
    watch::Cancel,
};
use std::{
    path::PathBuf,
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

const SHORT: Duration = Duration::from_secs(20);

/// A process that stays, and writes down the cursor of each event that it sees.
struct Resident {
    child: Child,
    seen: PathBuf,
}

impl Resident {
    fn start(lab: &Lab, number: usize) -> Self {
        Self::run(lab, number, &|program| program)
    }

    /// One whose program is started in a way of the test's own.
    fn run(lab: &Lab, number: usize, by: &dyn Fn(Command) -> Command) -> Self {
        let seen = lab.path().join(format!("seen-{number}"));
        let child = by(lab.process(&["follow", seen.to_str().unwrap()])).spawn().unwrap();
        let resident = Self { child, seen };
        assert!(until(SHORT, || resident.seen.exists()), "it does not follow the journal");
        resident
    }

    fn cursors(&self) -> Vec<u64> {
        cursors(&self.seen)
    }

    /// What its waits were told.
    fn waited(&self) -> Vec<u64> {
        cursors(&self.seen.with_extension("waits"))
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

fn cursors(file: &std::path::Path) -> Vec<u64> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

impl Drop for Resident {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(engine: &Engine, session: &str, text: &str) -> String {
    let request =
        SendRequest { session: session.into(), text: Some(text.to_owned()), ..SendRequest::default() };
    let sent = engine.send(&request).unwrap();
    let turn = sent.receipt.turn.clone();
    turn.unwrap_or_else(|| panic!("not sent: {:?}", sent.receipt))
}

/// A short turn, from its prompt to the last that the agent tells of it: its hooks run beside it and may come late.
fn one_turn(engine: &Engine, name: &str) -> String {
    let turn = send(engine, name, "!think 30ms ; !say done");
    let now = || engine.status(&SessionRequest { session: name.into() }).unwrap();
    let ended = || {
        let session = now();
        let told = session.signals.as_ref().is_some_and(|signals| signals["last_hook"] == "Stop");
        told && session.state == StateName::Ready && session.turn.as_ref() == Some(&turn)
    };
    if !until(SHORT, ended) {
        let events = written(engine, 0).into_iter().rev().filter(|event| event.session == name).take(12);
        let told: Vec<String> = events.map(|event| format!("{event:?}")).collect();
        panic!("{turn} did not end: {:?}\n{}", now(), told.join("\n"));
    }
    turn
}

fn turn_ended(engine: &Engine, session: &str, turn: &str) -> WaitResponse {
    let request = WaitRequest {
        sessions: vec![session.into()],
        turn: Some(turn.to_owned()),
        timeout_s: Some(20.0),
        ..WaitRequest::default()
    };
    engine.wait(&request, &Cancel::default(), &mut |_| {}).unwrap()
}

/// Everything that the journal has after a cursor.
fn written(engine: &Engine, since: u64) -> Vec<Event> {
    let mut events = engine.watch(&WatchRequest { since: Some(since), ..WatchRequest::default() }).unwrap();
    std::iter::from_fn(|| events.next(Duration::from_millis(500)).unwrap()).collect()
}

fn observer(engine: &Engine) -> Option<u32> {
    engine.observer_health().map(|health| health.pid)
}

/// Cursors follow each other, every turn ended once, and each transition begins where the one before ended.
fn assert_sound(events: &[Event], since: u64, turns: &[String]) {
    let cursors: Vec<u64> = events.iter().map(|event| event.cursor).collect();
    assert_eq!(
        cursors,
        (since + 1..=since + events.len() as u64).collect::<Vec<_>>(),
        "a gap or a repetition"
    );
    for turn in turns {
        let ends = |event: &&Event| event.event == EventKind::TurnEnded && event.turn.as_ref() == Some(turn);
        assert_eq!(events.iter().filter(ends).count(), 1, "{turn}");
    }
    let mut states: std::collections::HashMap<&str, StateName> = std::collections::HashMap::new();
    for event in events.iter().filter(|event| event.event == EventKind::Transition) {
        let was = event.detail.split(" -> ").next().unwrap();
        if let Some(before) = states.insert(&event.session, event.state) {
            assert_eq!(was, before.as_str(), "{event:?}");
        }
    }
}

#[test]
fn an_observer_that_is_killed_100_times_while_others_wait_loses_no_event_and_doubles_none() {
    let lab = Lab::new();
    // None of these watches: it would have to be killed with the test.
    let engine = lab.engine();
    for name in ["one", "two"] {
        engine.spawn(&demo(&lab, name, None)).unwrap();
    }
    let since = engine.cursor().unwrap();
    let follower = Resident::start(&lab, 0);
    let mut others: Vec<Resident> = (1..=3).map(|number| Resident::start(&lab, number)).collect();
    let over = AtomicBool::new(false);
    let turns = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut turns = Vec::new();
            while !over.load(Ordering::SeqCst) {
                let name = ["one", "two"][turns.len() % 2];
                turns.push(one_turn(&engine, name));
            }
            turns
        });
        for round in 1..=100 {
            assert!(until(SHORT, || observer(&engine).is_some()), "nobody watches");
            let Some(pid) = observer(&engine) else { continue };
            std::thread::sleep(Duration::from_millis(round * 37 % 60));
            match others.iter().position(|other| other.child.id() == pid) {
                Some(at) => {
                    others[at].signal(rustix::process::Signal::KILL);
                    others[at] = Resident::start(&lab, round as usize + 10);
                }
                // It must live to tell: it is stopped until another has taken over.
                None => {
                    follower.signal(rustix::process::Signal::STOP);
                    assert!(until(SHORT, || observer(&engine).is_some_and(|now| now != pid)));
                    follower.signal(rustix::process::Signal::CONT);
                }
            }
        }
        over.store(true, Ordering::SeqCst);
        sender.join().unwrap()
    });
    assert!(turns.len() > 20, "{} turns", turns.len());
    let events = written(&engine, since);
    assert_sound(&events, since, &turns);
    let all: Vec<u64> = events.iter().map(|event| event.cursor).collect();
    let complete = || follower.cursors().last() == all.last() && follower.waited().last() == all.last();
    assert!(until(SHORT, complete), "a follower that lived through all of it is behind");
    assert_eq!(follower.cursors(), all, "its stream");
    assert_eq!(follower.waited(), all, "its waits");
}

#[test]
fn observers_that_hang_one_after_the_other_and_wake_up_too_late_change_nothing() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "one", None)).unwrap();
    let since = engine.cursor().unwrap();
    let residents: Vec<Resident> = (0..3).map(|number| Resident::start(&lab, number)).collect();
    let over = AtomicBool::new(false);
    let turns = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut turns = Vec::new();
            while !over.load(Ordering::SeqCst) {
                turns.push(one_turn(&engine, "one"));
            }
            turns
        });
        for round in 1..=12 {
            assert!(until(SHORT, || observer(&engine).is_some()), "nobody watches");
            let pid = observer(&engine).unwrap();
            std::thread::sleep(Duration::from_millis(round * 37 % 60));
            let hung = residents.iter().find(|resident| resident.child.id() == pid).unwrap();
            hung.signal(rustix::process::Signal::STOP);
            assert!(until(SHORT, || observer(&engine).is_some_and(|now| now != pid)));
            hung.signal(rustix::process::Signal::CONT);
        }
        over.store(true, Ordering::SeqCst);
        sender.join().unwrap()
    });
    let events = written(&engine, since);
    assert_sound(&events, since, &turns);
    let all: Vec<u64> = events.iter().map(|event| event.cursor).collect();
    for resident in &residents {
        assert!(until(SHORT, || resident.cursors().last() == all.last()));
        assert_eq!(resident.cursors(), all);
    }
}

#[test]
fn one_of_several_watches_and_when_it_hangs_another_takes_over_and_it_steps_down() {
    let lab = Lab::new();
    let asking = Engine::open(lab.caller()).unwrap();
    asking.spawn(&demo(&lab, "one", None)).unwrap();
    assert_eq!(observer(&asking), None, "a process that does not stay does not watch");
    let residents: Vec<Resident> = (0..3).map(|number| Resident::start(&lab, number)).collect();
    assert!(until(SHORT, || observer(&asking).is_some()));
    let first = observer(&asking).unwrap();
    let since = asking.cursor().unwrap();
    let hung = residents.iter().find(|resident| resident.child.id() == first).unwrap();
    hung.signal(rustix::process::Signal::STOP);
    let began = Instant::now();
    assert!(until(SHORT, || observer(&asking).is_some_and(|pid| pid != first)), "nobody took over");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let turn = send(&asking, "one", "!say while it hangs");
    assert!(!turn_ended(&asking, "one", &turn).timed_out);
    hung.signal(rustix::process::Signal::CONT);
    let second = observer(&asking).unwrap();
    let turn2 = send(&asking, "one", "!say after it woke up");
    assert!(!turn_ended(&asking, "one", &turn2).timed_out);
    assert_eq!(observer(&asking), Some(second), "the one that hung took the office back");
    let events = written(&asking, since);
    assert_sound(&events, since, &[turn, turn2]);
    let all: Vec<u64> = events.iter().map(|event| event.cursor).collect();
    for resident in &residents {
        assert!(until(SHORT, || resident.cursors().last() == all.last()));
        assert_eq!(resident.cursors(), all);
    }
}

#[test]
fn a_wait_that_is_cancelled_ends_at_once_and_hundreds_of_them_hold_no_threads() {
    let lab = Lab::new();
    let engine = Engine::open_resident(lab.caller()).unwrap();
    engine.spawn(&command("sleeps", &["sleep", "600"])).unwrap();
    let before = threads();
    let cancel = Cancel::default();
    let (sender, answers) = std::sync::mpsc::channel();
    for _ in 0..600 {
        let request = WaitRequest {
            sessions: vec!["sleeps".into()],
            until: Some("exited".into()),
            timeout_s: Some(600.0),
            ..WaitRequest::default()
        };
        let sender = sender.clone();
        engine.wait_parked(request, &cancel, false, move |said| sender.send(said).unwrap()).unwrap();
    }
    let status = || engine.status(&SessionRequest { session: "sleeps".into() }).unwrap();
    assert_eq!(status().name, "sleeps");
    assert!(threads() <= before + 4, "{} threads, {before} before", threads());
    assert!(answers.try_recv().is_err(), "nothing has happened yet");
    cancel.cancel();
    for _ in 0..600 {
        let said = answers.recv_timeout(SHORT).unwrap();
        let lisa_engine::engine::WaitMessage::Done(answer) = said else { panic!("{said:?}") };
        assert_eq!(answer.unwrap_err().kind(), lisa_engine::error::Kind::Cancelled);
    }
    engine.kill(&KillRequest { session: "sleeps".into(), force: true }).unwrap();
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Watching a process takes a descriptor.
#[test]
fn an_observer_without_descriptors_says_which_sessions_it_cannot_watch_and_looks_at_them_all_the_same() {
    let lab = Lab::new();
    let engine = lab.engine();
    for number in 0..60 {
        engine.spawn(&command(&format!("s{number:02}"), &["sleep", "600"])).unwrap();
    }
    let _resident = Resident::run(&lab, 0, &|program| {
        let mut few = Command::new("sh");
        few.args(["-c", "ulimit -n 48; exec \"$0\" \"$@\""])
            .arg(program.get_program())
            .args(program.get_args());
        few
    });
    let troubles = || engine.observer_health().map(|health| health.troubles).unwrap_or_default();
    assert!(until(SHORT, || troubles().len() > 5), "{:?}", troubles());
    let check = engine.doctor().checks.into_iter().find(|check| check.name == "observer").unwrap();
    assert!(!check.ok && check.detail.contains("could not watch"), "{check:?}");
    // One that is not watched ends: it is seen all the same.
    let (unwatched, _) = troubles().remove(0);
    let session = || engine.status(&SessionRequest { session: unwatched.clone() }).unwrap();
    let pid = rustix::process::Pid::from_raw(session().pid.unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(until(SHORT, || session().state == StateName::Exited));
}

#[test]
fn output_of_an_agent_without_hooks_is_noticed_although_nothing_is_attached() {
    let lab = Lab::new();
    let engine = Engine::open_resident(lab.caller()).unwrap();
    let script = "sleep 1; printf 'Do you want to proceed? '; sleep 600";
    engine.spawn(&command("prints", &["sh", "-c", script])).unwrap();
    let pid = engine.status(&SessionRequest { session: "prints".into() }).unwrap().pid.unwrap();
    let idle = || engine.status(&SessionRequest { session: "prints".into() }).unwrap().idle_ms;
    assert!(until(SHORT, || observer(&engine).is_some()));
    assert!(until(SHORT, || idle() > 1_500), "it never came to rest");
    let clients = lisa_engine::tmux::Cmd::new("list-clients").args(["-F", "x"]);
    assert_eq!(lab.tmux().call(&[clients]).unwrap().unwrap()[0].as_ref().unwrap(), b"");
    assert!(process::start_time(pid).is_some());
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid as i32).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let request = WaitRequest {
        sessions: vec!["prints".into()],
        until: Some("exited".into()),
        timeout_s: Some(10.0),
        ..WaitRequest::default()
    };
    assert!(!engine.wait(&request, &Cancel::default(), &mut |_| {}).unwrap().timed_out);
}
