//! Every operation under every fault: afterwards tmux, processes, directories, records and journal agree.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{
    Lab,
    check::{contradictions, journal},
    demo,
    driving::*,
    faults::{Disk, in_own_mounts},
    until,
};
use lisa_engine::api::*;
use std::{
    collections::BTreeSet,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use test_support::operations::OPERATIONS;

/// How often a process is killed in the middle of each operation.
const KILLS: u64 = 50;

/// A process that does one operation in the lab, on a disk that takes no writes.
fn process_read_only(lab: &Lab, operation: &str) -> Child {
    let state = lab.config.state_dir.display();
    let mount = format!("mount --bind {state} {state} && mount -o remount,ro,bind {state} && exec \"$@\"");
    let operate = lab.process(&["operate", operation]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "--propagation", "private", "--", "sh", "-c", &mount, "sh"]);
    command.arg(operate.get_program()).args(operate.get_args());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A process that does one operation in the lab, with at most so many open files.
fn process(lab: &Lab, operation: &str, descriptors: Option<u32>) -> Child {
    let limit = descriptors.map(|limit| limit.to_string());
    let words = ["operate", operation].into_iter().chain(limit.as_deref());
    lab.process(&words.collect::<Vec<_>>()).spawn().unwrap()
}

fn finish(mut child: Child) {
    assert!(until(Duration::from_secs(60), || child.try_wait().unwrap().is_some()), "it hangs");
}

/// The sessions that operations are about, made anew where an earlier one has used them up.
fn prepare(lab: &Lab) {
    let engine = lab.engine();
    let names = engine.names().unwrap();
    let state = |name: &str| {
        names.iter().any(|known| known == name).then(|| engine.look(&by_name(name)).unwrap().state)
    };
    let fresh = |name: &str, prompt: Option<&str>| {
        if names.iter().any(|known| known == name) {
            engine.kill(&KillRequest { session: name.into(), force: true }).unwrap();
        }
        engine.spawn(&demo(lab, name, prompt)).unwrap();
    };
    use lisa_engine::api::words::StateName::{AwaitingPermission, Exited, Ready, Working};
    for (name, wanted, prompt) in [
        ("ready", Ready, None),
        ("asks", AwaitingPermission, Some("!permission Bash ls ; !say done")),
        ("works", Working, Some("!think 600s")),
        ("victim", Working, Some("!think 600s")),
        ("ended", Exited, Some("!say bye ; !exit 3")),
    ] {
        if state(name) != Some(wanted) {
            fresh(name, prompt);
            wait_for(&engine, name, wanted.as_str());
        }
    }
}

fn check(lab: &Lab, cell: &str) {
    // A start that was killed counts as one until tmux would have created its pane.
    let agree = until(Duration::from_secs(4), || contradictions(lab).is_empty());
    assert!(agree, "{cell}: {:#?}", contradictions(lab));
}

/// A number that differs from round to round but not from run to run.
fn scattered(round: u64, below: u64) -> u64 {
    round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407).rotate_left(29)
        % below
}

/// Does every operation, with something bad before it and the cure after it.
fn matrix(lab: &Lab, fault: &str, mut begin: impl FnMut(&str), mut cure: impl FnMut(&str)) {
    for (operation, _) in OPERATIONS {
        prepare(lab);
        begin(operation);
        finish(process(lab, operation, None));
        cure(operation);
        check(lab, &format!("{operation}, {fault}"));
    }
}

/// How long an operation takes when nothing disturbs it.
fn duration(lab: &Lab, operation: &str) -> Duration {
    prepare(lab);
    let began = Instant::now();
    finish(process(lab, operation, None));
    began.elapsed()
}

/// Turns that ended although nothing in the journal says who began them. In these tests, only Lisa begins turns.
fn turns_without_a_beginning(lab: &Lab) -> Vec<String> {
    let events: Vec<Event> = journal(lab).into_iter().map(|(_, event)| event).collect();
    let begins =
        |event: &&Event| matches!(event.event, EventKind::Spawned | EventKind::Resumed | EventKind::Send);
    let begun: BTreeSet<_> = events.iter().filter(begins).filter_map(|event| event.turn.clone()).collect();
    let ended = events.iter().filter(|event| event.event == EventKind::TurnEnded);
    ended.filter_map(|event| event.turn.clone()).filter(|turn| !begun.contains(turn)).collect()
}

#[test]
fn killed_at_any_moment() {
    let lab = Lab::new();
    for (operation, _) in OPERATIONS {
        let whole = duration(&lab, operation).as_micros() as u64;
        for round in 0..KILLS {
            prepare(&lab);
            let mut child = process(&lab, operation, None);
            std::thread::sleep(Duration::from_micros(1_000 + scattered(round, whole)));
            child.kill().unwrap();
            child.wait().unwrap();
            if round % 5 == 4 {
                check(&lab, &format!("{operation}, killed, round {round}"));
            }
        }
        for name in lab.engine().names().unwrap().iter().filter(|name| name.starts_with("new-")) {
            lab.engine().kill(&KillRequest { session: name.clone(), force: true }).unwrap();
        }
    }
    assert_eq!(turns_without_a_beginning(&lab), Vec::<String>::new());
}

#[test]
fn a_disk_that_is_full() {
    if !in_own_mounts("a_disk_that_is_full") {
        return;
    }
    let lab = Lab::new();
    let disk = Disk::mount(&lab.config.state_dir);
    matrix(&lab, "full disk", |_| disk.fill(), |_| disk.free());
}

#[test]
fn a_disk_that_fills_up_in_the_middle() {
    if !in_own_mounts("a_disk_that_fills_up_in_the_middle") {
        return;
    }
    let lab = Lab::new();
    let disk = Disk::mount(&lab.config.state_dir);
    for (operation, _) in OPERATIONS {
        let whole = duration(&lab, operation).as_micros() as u64;
        for round in 0..10 {
            prepare(&lab);
            let child = process(&lab, operation, None);
            std::thread::sleep(Duration::from_micros(1_000 + scattered(round, whole)));
            disk.fill();
            finish(child);
            disk.free();
            check(&lab, &format!("{operation}, the disk fills up, round {round}"));
        }
    }
}

#[test]
fn a_disk_that_takes_no_writes() {
    let lab = Lab::new();
    for (operation, _) in OPERATIONS {
        prepare(&lab);
        finish(process_read_only(&lab, operation));
        check(&lab, &format!("{operation}, read-only disk"));
    }
}

#[test]
fn no_descriptors_left() {
    let lab = Lab::new();
    for (operation, _) in OPERATIONS {
        for limit in [5, 7, 9, 12, 16, 24] {
            prepare(&lab);
            finish(process(&lab, operation, Some(limit)));
            check(&lab, &format!("{operation}, {limit} descriptors"));
        }
    }
}

/// The file of a session that an operation is about, changed.
fn session_file(lab: &Lab, operation: &str, file: &str) -> std::path::PathBuf {
    let session = match operation {
        "send" | "press" | "spawn" => "ready",
        "answer" => "asks",
        "kill" => "victim",
        "resume" | "cleanup" => "ended",
        _ => "works",
    };
    lab.config.state_dir.join("sessions").join(session).join(file)
}

fn tear(path: &Path) {
    let whole = std::fs::read(path).unwrap_or_default();
    std::fs::write(path, &whole[..whole.len() / 2]).unwrap();
}

#[test]
fn torn_files() {
    let lab = Lab::new();
    for file in ["meta.json", "state.json", "hooks.jsonl", "events.jsonl", "lock"] {
        matrix(&lab, &format!("torn {file}"), |operation| tear(&session_file(&lab, operation, file)), |_| {});
    }
    let journal = lab.config.state_dir.join("journal");
    let tear_journal = |_: &str| {
        use std::io::Write;
        let last = std::fs::read_dir(&journal).unwrap().flatten().map(|entry| entry.path());
        let last = last.filter(|path| path.extension().is_some()).max().unwrap();
        std::fs::OpenOptions::new()
            .append(true)
            .open(last)
            .unwrap()
            .write_all(b"{\"id\":\"x:1\",\"curs")
            .unwrap();
    };
    matrix(&lab, "torn journal", tear_journal, |_| {});
}

#[test]
fn pipes_in_place_of_files() {
    let lab = Lab::new();
    for file in ["state.json", "hooks.jsonl", "events.jsonl", "done"] {
        let path = |operation: &str| session_file(&lab, operation, file);
        let begin = |operation: &str| {
            let _ = std::fs::remove_file(path(operation));
            nix::unistd::mkfifo(&path(operation), nix::sys::stat::Mode::S_IRWXU).unwrap();
        };
        matrix(&lab, &format!("a pipe as {file}"), begin, |operation| {
            drop(std::fs::remove_file(path(operation)))
        });
    }
}

#[test]
fn a_clock_that_was_set_back() {
    let lab = Lab::new();
    let ahead = |operation: &str| {
        // As a look under a clock that was an hour ahead leaves it.
        let path = session_file(&lab, operation, "state.json");
        let Ok(text) = std::fs::read_to_string(&path) else { return };
        let mut state: serde_json::Value = serde_json::from_str(&text).unwrap();
        let observed = state["memory"]["observed_at"].as_i64().unwrap_or(0) + 3_600_000;
        state["memory"]["observed_at"] = observed.into();
        std::fs::write(&path, state.to_string()).unwrap();
    };
    matrix(&lab, "clock set back", ahead, |_| {});
    prepare(&lab);
    ahead("send");
    assert_eq!(send(&lab.engine(), "ready", "!say after it").receipt.delivered, Delivery::Submitted);
    assert_eq!(wait_for(&lab.engine(), "ready", "ready").last_message.as_deref(), Some("after it"));
}

#[test]
fn a_tmux_server_that_is_killed() {
    for (operation, _) in OPERATIONS {
        let lab = Lab::new();
        prepare(&lab);
        let server = lab.server_pid().unwrap();
        let child = process(&lab, operation, None);
        std::thread::sleep(Duration::from_millis(8));
        let pid = rustix::process::Pid::from_raw(i32::try_from(server).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        finish(child);
        let gone = |pid: u32| lisa_engine::process::Identity::of(pid).is_none_or(|process| !process.alive());
        assert!(until(SHORT, || gone(server)));
        // Agents end with their terminal.
        assert!(until(SHORT, || contradictions(&lab).is_empty()), "{operation}: {:#?}", contradictions(&lab));
    }
}

#[test]
fn an_observer_that_is_killed() {
    let lab = Lab::new();
    for (operation, _) in OPERATIONS {
        prepare(&lab);
        let mut observer = lab.process(&["watch"]).spawn().unwrap();
        assert!(until(SHORT, || lab.engine().observer_health().is_some()));
        let child = process(&lab, operation, None);
        std::thread::sleep(Duration::from_millis(10));
        observer.kill().unwrap();
        observer.wait().unwrap();
        finish(child);
        check(&lab, &format!("{operation}, observer killed"));
    }
}
