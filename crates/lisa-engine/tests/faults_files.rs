//! A full disk, a disk that takes no writes, a torn file, a pipe in place of a file: a clear word, and nothing lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{
    Lab, check, command, demo,
    driving::*,
    faults::{Disk, in_own_mounts},
    until,
};
use lisa_engine::{
    api::{words::*, *},
    error::Kind,
};
use std::{
    os::unix::fs::DirBuilderExt,
    time::{Duration, Instant},
};

/// Events of one kind of a session.
fn told(lab: &Lab, name: &str, kind: EventKind) -> Vec<Event> {
    let mut watch = lab.engine().watch(&WatchRequest { since: Some(0), ..WatchRequest::default() }).unwrap();
    let mut found = Vec::new();
    while let Some(event) = watch.next(Duration::from_millis(100)).unwrap() {
        found.extend((event.session == name && event.event == kind).then_some(event));
    }
    found
}

fn kill(lab: &Lab, name: &str) -> Action {
    let request = KillRequest { session: name.to_owned(), force: true };
    lab.engine().kill(&request).unwrap().sessions.remove(0)
}

#[test]
fn a_look_on_a_full_disk_says_degraded_and_its_events_are_told_once_when_there_is_room() {
    if !in_own_mounts("a_look_on_a_full_disk_says_degraded_and_its_events_are_told_once_when_there_is_room") {
        return;
    }
    let lab = Lab::new();
    let disk = Disk::mount(&lab.config.state_dir);
    lab.engine().spawn(&demo(&lab, "full", None)).unwrap();
    let before = told(&lab, "full", EventKind::TurnEnded).len();
    send(&lab.engine(), "full", "!think 300ms ; !say done");
    disk.fill();
    let mut reasons = Vec::new();
    assert!(until(SHORT, || {
        let seen = status(&lab.engine(), "full");
        reasons.push((seen.status, seen.reason.to_string()));
        reasons.last().unwrap().0 == Status::Degraded
    }));
    assert_eq!(reasons.last().unwrap().1, "state_unwritable");
    for _ in 0..7 {
        assert_eq!(status(&lab.engine(), "full").status, Status::Degraded);
    }
    assert_eq!(told(&lab, "full", EventKind::TurnEnded).len(), before);
    disk.free();
    assert_eq!(wait_for(&lab.engine(), "full", "ready").last_message.as_deref(), Some("done"));
    assert_eq!(told(&lab, "full", EventKind::TurnEnded).len(), before + 1);
}

#[test]
fn an_answer_that_cannot_be_written_down_is_not_given() {
    if !in_own_mounts("an_answer_that_cannot_be_written_down_is_not_given") {
        return;
    }
    let lab = Lab::new();
    let disk = Disk::mount(&lab.config.state_dir);
    lab.engine().spawn(&demo(&lab, "asks", Some("!permission Bash ls ; !say done"))).unwrap();
    wait_for(&lab.engine(), "asks", "awaiting_permission");
    disk.fill();
    let request = AnswerRequest {
        session: "asks".into(),
        choice: Some("allow_once".into()),
        ..AnswerRequest::default()
    };
    let error = lab.engine().answer(&request).unwrap_err();
    assert_eq!(error.kind(), Kind::DiskFull, "{error}");
    assert_eq!(answers(&lab, "asks"), Vec::<serde_json::Value>::new());
    disk.free();
    assert!(lab.engine().answer(&request).unwrap().recorded);
    assert_eq!(answers(&lab, "asks").len(), 1);
    assert_eq!(told(&lab, "asks", EventKind::Answer).len(), 1);
}

#[test]
fn a_kill_on_a_disk_that_takes_no_writes_says_that_it_could_not_be_written_down_and_the_next_call_does() {
    if !in_own_mounts(
        "a_kill_on_a_disk_that_takes_no_writes_says_that_it_could_not_be_written_down_and_the_next_call_does",
    ) {
        return;
    }
    let lab = Lab::new();
    let disk = Disk::mount(&lab.config.state_dir);
    lab.engine().spawn(&command("ro", &["sleep", "600"])).unwrap();
    let pid = lab.pane("ro").pane.pid;
    disk.read_only();
    let done = kill(&lab, "ro");
    assert_eq!((done.done.as_str(), done.recorded), ("killed", false), "{done:?}");
    assert!(done.detail.unwrap().contains("could not be recorded"));
    assert!(lisa_engine::process::Identity::of(pid).is_none_or(|process| !process.alive()));
    disk.writable();
    assert_eq!(status(&lab.engine(), "ro").state, StateName::Exited);
    assert_eq!(told(&lab, "ro", EventKind::Exited).len(), 1);
    assert!(kill(&lab, "ro").recorded);
    assert_eq!(told(&lab, "ro", EventKind::Removed).len(), 1);
}

#[test]
fn a_full_disk_starts_nothing_and_leaves_nothing() {
    if !in_own_mounts("a_full_disk_starts_nothing_and_leaves_nothing") {
        return;
    }
    let lab = Lab::new();
    let disk = Disk::mount(&lab.config.state_dir);
    lab.engine().spawn(&command("there", &["sleep", "600"])).unwrap();
    disk.fill();
    let error = lab.engine().spawn(&command("new", &["sleep", "600"])).unwrap_err();
    assert_eq!(error.kind(), Kind::DiskFull, "{error}");
    assert_eq!(lab.tmux().panes(false).unwrap().len(), 1);
    disk.free();
    lab.engine().spawn(&command("new", &["sleep", "600"])).unwrap();
}

#[test]
fn a_session_whose_metadata_is_torn_is_listed_as_what_its_pane_says_and_can_be_ended() {
    let lab = Lab::new();
    lab.engine().spawn(&demo(&lab, "torn", Some("!think 60s"))).unwrap();
    wait_for(&lab.engine(), "torn", "working");
    let pid = lab.pane("torn").pane.pid;
    let meta = lab.config.state_dir.join("sessions/torn/meta.json");
    let whole = std::fs::read(&meta).unwrap();
    std::fs::write(&meta, &whole[..whole.len() / 2]).unwrap();
    let rows = lab.engine().list(&ListRequest::default()).unwrap().sessions;
    assert_eq!((rows.len(), rows[0].name.as_str(), rows[0].agent.as_str()), (1, "torn", "demo"));
    assert_eq!(status(&lab.engine(), "torn").state, StateName::Working);
    let doctor = lab.engine().doctor();
    let found = doctor.checks.iter().find(|check| check.detail.contains("torn"));
    assert!(found.is_some_and(|check| !check.fix.as_deref().unwrap_or_default().is_empty()), "{doctor:?}");
    std::fs::write(&meta, "").unwrap();
    assert_eq!(kill(&lab, "torn").done, "killed");
    assert!(until(SHORT, || lisa_engine::process::Identity::of(pid).is_none_or(|process| !process.alive())));
    assert!(lab.tmux().panes(false).unwrap().is_empty());
    assert_eq!(told(&lab, "torn", EventKind::Killed).len(), 1);
}

#[test]
fn a_session_whose_directory_was_moved_away_is_still_ended_by_its_name() {
    let lab = Lab::new();
    lab.engine().spawn(&command("moved", &["sleep", "600"])).unwrap();
    let pid = lab.pane("moved").pane.pid;
    std::fs::rename(lab.config.state_dir.join("sessions/moved"), lab.path().join("elsewhere")).unwrap();
    let done = kill(&lab, "moved");
    assert_eq!((done.done.as_str(), done.recorded), ("killed", true));
    assert!(until(SHORT, || lisa_engine::process::Identity::of(pid).is_none_or(|process| !process.alive())));
    assert!(lab.tmux().panes(false).unwrap().is_empty());
    assert_eq!(told(&lab, "moved", EventKind::Killed).len(), 1);
    assert_eq!(check::contradictions(&lab), Vec::<String>::new());
}

#[test]
fn a_session_that_loses_its_record_and_its_marks_goes_on_counting_where_it_was() {
    let lab = Lab::new();
    let engine = lab.engine();
    for (number, lost) in [&["lock"][..], &["lock", "state.json", "events.jsonl"]].into_iter().enumerate() {
        let name = format!("lost-{number}");
        engine.spawn(&demo(&lab, &name, Some("!say one"))).unwrap();
        let first = wait_for(&engine, &name, "ready").turn;
        // The journal's last line is of another session.
        engine.spawn(&command(&format!("other-{number}"), &["sleep", "600"])).unwrap();
        // Its starter, this process, lives on. So a young session without a record counts as being started.
        let meta = lab.config.state_dir.join("sessions").join(&name).join("meta.json");
        let mut old: serde_json::Value = serde_json::from_slice(&std::fs::read(&meta).unwrap()).unwrap();
        old["started_at"] = (old["started_at"].as_i64().unwrap() - 60_000).into();
        std::fs::write(&meta, old.to_string()).unwrap();
        for file in lost {
            std::fs::remove_file(lab.config.state_dir.join("sessions").join(&name).join(file)).unwrap();
        }
        let sent = send(&engine, &name, "!say two");
        assert_eq!(sent.receipt.delivered, Delivery::Submitted, "{lost:?}: {sent:?}");
        assert_ne!(sent.receipt.turn, first, "{lost:?}");
        assert_eq!(wait_for(&engine, &name, "ready").last_message.as_deref(), Some("two"));
        assert_eq!(kill(&lab, &name).done, "killed");
        assert_eq!(told(&lab, &name, EventKind::TurnEnded).len(), 2, "{lost:?}");
        assert_eq!(check::contradictions(&lab), Vec::<String>::new(), "{lost:?}");
    }
}

/// Fills the disk as soon as something has been typed into a session's pane.
fn fill_when_typed(lab: &Lab, disk: &Disk, name: &str, act: impl FnOnce() + Send) {
    let before = lab.pane(name).pane.inputs;
    std::thread::scope(|scope| {
        let acting = scope.spawn(act);
        assert!(until(SHORT, || lab.pane(name).pane.inputs != before || acting.is_finished()));
        disk.fill();
    });
}

#[test]
fn what_was_typed_when_the_disk_filled_up_is_told_as_done_and_as_not_recorded() {
    if !in_own_mounts("what_was_typed_when_the_disk_filled_up_is_told_as_done_and_as_not_recorded") {
        return;
    }
    let lab = Lab::new();
    let disk = Disk::mount(&lab.config.state_dir);
    let mut unrecorded = [0, 0];
    for round in 0..6 {
        let name = format!("asks-{round}");
        lab.engine().spawn(&demo(&lab, &name, Some("!permission Bash ls ; !say done"))).unwrap();
        wait_for(&lab.engine(), &name, "awaiting_permission");
        let request = AnswerRequest {
            session: name.clone(),
            choice: Some("allow_once".into()),
            ..AnswerRequest::default()
        };
        fill_when_typed(&lab, &disk, &name, || {
            let answered = lab.engine().answer(&request).unwrap();
            unrecorded[0] += u32::from(!answered.recorded);
        });
        disk.free();
        assert_eq!(wait_for(&lab.engine(), &name, "ready").last_message.as_deref(), Some("done"));
        assert_eq!(answers(&lab, &name).len(), 1);
        assert_eq!(told(&lab, &name, EventKind::Answer).len(), 1);
        fill_when_typed(&lab, &disk, &name, || {
            let text = format!("!say round {round}");
            let request = SendRequest { session: name.clone(), text: Some(text), ..SendRequest::default() };
            match lab.engine().send(&request) {
                Ok(sent) => {
                    assert_eq!(sent.receipt.delivered, Delivery::Submitted, "{sent:?}");
                    unrecorded[1] += u32::from(!sent.receipt.recorded);
                }
                // Enough room for the paste, none for the intent to submit it.
                Err(error) => assert_eq!(error.kind(), Kind::DiskFull, "{error}"),
            }
        });
        disk.free();
        let session = wait_for(&lab.engine(), &name, "ready");
        let submitted = prompts(&lab, &name).len() == 2;
        assert_eq!(told(&lab, &name, EventKind::Send).len(), usize::from(submitted), "{session:?}");
        assert_eq!(kill(&lab, &name).done, "killed");
        assert_eq!(check::contradictions(&lab), Vec::<String>::new());
    }
    assert!(unrecorded[0] > 0, "the disk was never full in time");
}

#[test]
fn a_pipe_in_place_of_any_file_of_a_session_hangs_nobody() {
    let lab = Lab::new();
    for file in ["state.json", "hooks.jsonl", "events.jsonl", "done", "heartbeat", "lock", "meta.json"] {
        let name = format!("pipe-{}", file.split('.').next().unwrap());
        lab.engine().spawn(&command(&name, &["sleep", "600"])).unwrap();
        let path = lab.config.state_dir.join("sessions").join(&name).join(file);
        let _ = std::fs::remove_file(&path);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let began = Instant::now();
        let engine = lab.engine();
        let _ = engine.status(&SessionRequest { session: name.clone() });
        let _ = engine.list(&ListRequest::default()).unwrap();
        let _ =
            engine.read(&ReadRequest { session: name.clone(), view: View::Events, ..ReadRequest::default() });
        assert_eq!(kill(&lab, &name).done, "killed", "{file}");
        assert!(began.elapsed() < Duration::from_secs(9), "{file}: {:?}", began.elapsed());
        assert!(lab.tmux().panes(false).unwrap().is_empty(), "{file}");
        let _ = std::fs::remove_dir_all(path.parent().unwrap());
    }
}

/// Makes directories of sessions that have ended, as one that was looked at after its end left them.
fn leave_ended(lab: &Lab, count: usize) {
    let engine = lab.engine();
    engine.spawn(&command("model", &["true"])).unwrap();
    assert!(until(SHORT, || status(&engine, "model").state == StateName::Exited));
    let sessions = lab.config.state_dir.join("sessions");
    let text = |file: &str| std::fs::read_to_string(sessions.join("model").join(file)).unwrap();
    let run = serde_json::from_str::<serde_json::Value>(&text("meta.json")).unwrap()["run_id"].clone();
    let run = run.as_str().unwrap().to_owned();
    let (meta, state, lock) = (text("meta.json"), text("state.json"), text("lock"));
    for number in 0..count {
        let (name, own) = (format!("old-{number:05}"), format!("{:0>1$}", number, run.len()));
        // Made aside and moved there in one step: somebody may be watching.
        let directory = lab.path().join(&name);
        std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        let renamed = |text: &str| text.replace("\"model\"", &format!("\"{name}\"")).replace(&run, &own);
        let mut meta: serde_json::Value = serde_json::from_str(&renamed(&meta)).unwrap();
        (meta["started_at"], meta["pane_id"]) = (1_000.into(), "%999999".into());
        std::fs::write(directory.join("meta.json"), meta.to_string()).unwrap();
        std::fs::write(directory.join("state.json"), renamed(&state)).unwrap();
        std::fs::write(directory.join("lock"), renamed(&lock)).unwrap();
        std::fs::rename(&directory, sessions.join(&name)).unwrap();
    }
    assert_eq!(kill(lab, "model").done, "killed");
}

/// Makes it long ago that somebody looked for old sessions.
fn look_for_old_sessions_again(lab: &Lab) {
    let mark = std::fs::File::open(lab.config.state_dir.join("removal")).unwrap();
    mark.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
}

#[test]
fn sessions_that_ended_long_ago_are_left_out_of_lists_and_removed_bit_by_bit_and_live_ones_never() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("alive", &["sleep", "600"])).unwrap();
    leave_ended(&lab, 230);
    // The oldest directory of all is the one of the live session.
    let directory = std::fs::File::open(lab.config.state_dir.join("sessions/alive")).unwrap();
    directory.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let rows = engine.list(&ListRequest::default()).unwrap().sessions;
    assert_eq!(rows.len(), 201);
    assert!(rows.iter().any(|row| row.name == "alive" && row.state != StateName::Exited));
    let ended = rows.iter().filter(|row| row.state == StateName::Exited).count();
    assert_eq!(ended, 200);
    let before = engine.names().unwrap().len();
    // A start a moment ago has looked for old ones.
    engine.spawn(&command("soon", &["sleep", "600"])).unwrap();
    assert_eq!(engine.names().unwrap().len(), before + 1);
    look_for_old_sessions_again(&lab);
    engine.spawn(&command("later", &["sleep", "600"])).unwrap();
    assert_eq!(engine.names().unwrap().len(), 200 + 3);
    assert_eq!(status(&engine, "alive").name, "alive");
}

#[test]
fn a_session_that_ended_longer_ago_than_sessions_are_kept_is_removed_however_few_there_are() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&command("alive", &["sleep", "600"])).unwrap();
    leave_ended(&lab, 3);
    for name in ["old-00001", "alive"] {
        let directory = std::fs::File::open(lab.config.state_dir.join("sessions").join(name)).unwrap();
        directory.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    look_for_old_sessions_again(&lab);
    engine.spawn(&command("new", &["sleep", "600"])).unwrap();
    assert_eq!(engine.names().unwrap(), ["alive", "new", "old-00000", "old-00002"]);
}

#[test]
fn a_payload_of_21_mb_leaves_a_short_line_and_the_agent_is_not_held_up() {
    let lab = Lab::new();
    lab.engine().spawn(&demo(&lab, "big", None)).unwrap();
    wait_for(&lab.engine(), "big", "ready");
    let directory = lab.config.state_dir.join("sessions/big");
    let before = std::fs::metadata(directory.join("hooks.jsonl")).unwrap().len();
    let payload =
        serde_json::json!({ "hook_event_name": "PostToolUse", "output": "x\u{1b}[31m".repeat(3 << 20) });
    let mut hook = std::process::Command::new(&common::helper()[0])
        .args(["hook".as_ref(), directory.as_os_str()])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
    assert!(hook.wait().unwrap().success());
    let added = std::fs::metadata(directory.join("hooks.jsonl")).unwrap().len() - before;
    assert!((1..50_000).contains(&added), "{added} bytes");
    assert_eq!(status(&lab.engine(), "big").state, StateName::Ready);
}

#[test]
fn a_journal_that_drops_its_oldest_part_tells_nothing_again_and_a_sessions_own_list_stays_short() {
    let lab = Lab::with(&[("LISA_EVENTS_MAX_LINES", "100")]);
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "talks", None)).unwrap();
    engine.spawn(&command("silent", &["sleep", "600"])).unwrap();
    for round in 0..60 {
        let turn = send(&engine, "talks", &format!("!say {round}")).receipt.turn;
        let over = WaitRequest {
            sessions: vec!["talks".into()],
            turn,
            timeout_s: Some(20.0),
            ..WaitRequest::default()
        };
        assert!(!wait(&engine, &over).timed_out, "round {round}");
    }
    // Everything that was told of this one has been dropped.
    assert_eq!(kill(&lab, "silent").done, "killed");
    let events = check::journal(&lab);
    assert!(events.len() <= 130, "{} events", events.len());
    let cursors: Vec<u64> = events.iter().map(|(_, event)| event.cursor).collect();
    assert!(cursors.windows(2).all(|two| two[1] == two[0] + 1), "{cursors:?}");
    let ids: std::collections::BTreeSet<&String> = events.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), events.len());
    let of_silent: Vec<EventKind> =
        events.iter().filter(|(_, event)| event.session == "silent").map(|(_, event)| event.event).collect();
    assert_eq!(of_silent, [EventKind::Killed]);
}
