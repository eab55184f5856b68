//! A session is the pane that it was started in, whatever a person does around that pane in tmux.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, demo, driving::*, until};
use lisa_engine::{
    api::{words::StateName, *},
    engine::Engine,
    tmux::Cmd,
};

/// Runs a command of a person in the lab's tmux; returns what it prints.
fn person(lab: &Lab, words: &[&str]) -> String {
    let (name, args) = words.split_first().unwrap();
    let command = args.iter().fold(Cmd::new(name), |command, word| command.arg(*word));
    let replies = lab.tmux().call(&[command]).unwrap().unwrap();
    let printed = replies.into_iter().next().unwrap();
    assert!(printed.is_ok(), "{words:?}: {printed:?}");
    String::from_utf8(printed.unwrap()).unwrap().trim().to_owned()
}

fn panes(lab: &Lab) -> Vec<String> {
    lab.tmux().panes(false).unwrap().into_iter().map(|row| row.pane_id).collect()
}

fn pane_of(lab: &Lab, run: &str) -> String {
    let rows = lab.tmux().panes(false).unwrap();
    rows.into_iter().find(|row| row.run_id == run).unwrap().pane_id
}

/// Checks that the session is there, is listed, takes a prompt, and is no leftover.
#[track_caller]
fn is_well(engine: &Engine, name: &str, after: &str, said: &mut u32) {
    let session = status(engine, name);
    assert_eq!(session.state, StateName::Ready, "{after}: {}", session.reason);
    let rows = engine.list(&ListRequest::default()).unwrap().sessions;
    let row = rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!(row.state, StateName::Ready, "{after}: {}", row.reason);
    assert_eq!(engine.cleanup().unwrap().removed, [], "{after}");
    *said += 1;
    let sent = send(engine, name, &format!("!say word {said}"));
    assert_eq!(sent.receipt.delivered, Delivery::Submitted, "{after}: {:?}", sent.receipt);
    let turn = WaitRequest {
        sessions: vec![name.to_owned()],
        turn: sent.receipt.turn,
        timeout_s: Some(20.0),
        ..WaitRequest::default()
    };
    let ended = wait(engine, &turn);
    assert_eq!(ended.sessions[0].last_message.as_deref(), Some(&*format!("word {said}")), "{after}");
}

#[test]
fn what_a_person_splits_opens_swaps_renames_moves_or_closes_changes_no_session() {
    let lab = Lab::new();
    let one_shot = lab.engine();
    for name in ["fix", "other"] {
        one_shot.spawn(&demo(&lab, name, None)).unwrap();
        wait_for(&one_shot, name, "ready");
    }
    let resident = Engine::open_resident(lab.caller()).unwrap();
    let run = status(&one_shot, "fix").run_id;
    let agent = pane_of(&lab, &run);
    let other = pane_of(&lab, &status(&one_shot, "other").run_id);
    let before = resident.cursor().unwrap();
    let mut said = 0;
    let mut check = |after: &str| {
        is_well(&one_shot, "fix", after, &mut said);
        is_well(&resident, "fix", after, &mut said);
    };
    check("nothing");
    let beside = person(&lab, &["split-window", "-t", &agent, "-P", "-F", "#{pane_id}", "sleep", "600"]);
    check("split");
    person(&lab, &["split-window", "-t", &agent, "-P", "-F", "#{pane_id}", "true"]);
    check("split, and what ran there has ended");
    person(&lab, &["new-window", "-t", "=fix:", "-P", "sleep", "600"]);
    check("another window");
    person(&lab, &["rename-window", "-t", &agent, "mine"]);
    person(&lab, &["swap-pane", "-s", &agent, "-t", &beside]);
    check("renamed window, swapped panes");
    person(&lab, &["break-pane", "-d", "-s", &agent, "-t", "=fix:"]);
    check("in a window of its own");
    person(&lab, &["rename-session", "-t", "=fix", "renamed"]);
    check("renamed session");
    person(&lab, &["kill-pane", "-t", &beside]);
    check("closed what was beside it");
    person(&lab, &["join-pane", "-d", "-s", &agent, "-t", &other]);
    check("in the window of another session");
    assert_eq!(pane_of(&lab, &run), agent);
    let events = wait(
        &resident,
        &WaitRequest {
            sessions: vec!["fix".to_owned()],
            since: Some(before),
            until: Some("event".to_owned()),
            timeout_s: Some(0.0),
            ..WaitRequest::default()
        },
    )
    .events;
    let wrong: Vec<_> =
        events.iter().filter(|event| matches!(event.event, EventKind::Exited | EventKind::Killed)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn ending_a_session_ends_its_agent_and_nothing_that_a_person_or_another_session_has_beside_it() {
    let lab = Lab::new();
    let engine = lab.engine();
    for name in ["fix", "other"] {
        engine.spawn(&demo(&lab, name, None)).unwrap();
        wait_for(&engine, name, "ready");
    }
    let agent = pane_of(&lab, &status(&engine, "fix").run_id);
    let other = pane_of(&lab, &status(&engine, "other").run_id);
    let beside = person(&lab, &["split-window", "-t", &agent, "-P", "-F", "#{pane_id}", "sleep", "600"]);
    let kill = |name: &str| {
        let request = KillRequest { session: name.to_owned(), force: false };
        engine.kill(&request).unwrap().sessions.remove(0)
    };
    assert_eq!(kill("fix").done, "killed");
    assert_eq!(panes(&lab), [beside.clone(), other.clone()], "what a person runs beside an agent is theirs");
    // Its name is free.
    engine.spawn(&demo(&lab, "fix", None)).unwrap();
    wait_for(&engine, "fix", "ready");
    let agent = pane_of(&lab, &status(&engine, "fix").run_id);
    person(&lab, &["join-pane", "-d", "-s", &agent, "-t", &other]);
    assert_eq!(kill("fix").done, "killed");
    assert_eq!(panes(&lab), [beside, other]);
    assert_eq!(status(&engine, "other").state, StateName::Ready);
    assert!(until(SHORT, || engine.names().unwrap() == ["other"]));
}
