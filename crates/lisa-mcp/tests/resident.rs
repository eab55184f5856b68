//! The server talks to tmux without being a client of it: it must be right where no tmux runs, and where it dies and comes
//! back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails loudly")]

mod common;

use common::{Client, World};
use serde_json::{Value, json};

fn spawn(client: &mut Client, name: &str) -> Value {
    client.good("spawn_session", json!({ "agent": "generic", "name": name, "args": ["sleep", "600"] }))
}

fn status(client: &mut Client, name: &str) -> Value {
    client.good("session_status", json!({ "session": name }))
}

/// Clients that are attached to the tmux server.
fn clients(world: &World) -> usize {
    world.tmux(&["list-clients", "-F", "#{client_control_mode}"]).map_or(0, |text| text.lines().count())
}

#[test]
fn where_no_tmux_runs_a_look_starts_none_and_the_first_session_does() {
    let mut client = Client::start();
    assert_eq!(client.good("list_sessions", json!({}))["total"], 0);
    assert_eq!(client.fault("session_status", json!({ "session": "a" })).0, "session_not_found");
    assert_eq!(client.good("doctor", json!({}))["ok"], true);
    assert_eq!(client.world().tmux_pid(), None, "a look has no effect");
    spawn(&mut client, "first");
    assert_eq!(status(&mut client, "first")["name"], "first");
    assert!(client.world().tmux_pid().is_some());
}

/// A control client that is attaching when anything is told to it takes a tmux server before 3.7 down.
#[test]
fn neither_looks_nor_waits_make_a_client_of_tmux_and_sessions_stay_when_the_server_ends() {
    let mut client = Client::start();
    spawn(&mut client, "stays");
    for _ in 0..20 {
        status(&mut client, "stays");
    }
    client.good("wait_sessions", json!({ "sessions": ["stays"], "until": "exited", "timeout_s": 1 }));
    assert_eq!(clients(client.world()), 0);
    let world = client.restart();
    assert!(world.tmux(&["has-session", "-t", "=stays"]).is_some());
}

#[test]
fn the_log_says_why_a_session_was_looked_at_and_what_came_of_it() {
    common::build_demo_agent();
    let world = World::new();
    let log = world.path().join("log");
    let mut command = world.command();
    command.env("LISA_LOG", "lisa_engine=debug").stderr(std::fs::File::create(&log).unwrap());
    let mut client = Client::of(command, world).greet();
    client.good(
        "spawn_session",
        json!({ "agent": "demo", "name": "told", "prompt": "!say hi", "wait_ready_s": 20 }),
    );
    client.good("wait_sessions", json!({ "sessions": ["told"], "until": "ready", "timeout_s": 20 }));
    let looked = |reason: &str| {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines().any(|line| {
            line.contains("looked")
                && line.contains("session=told")
                && line.contains(&format!("reason=\"{reason}\""))
        })
    };
    for reason in ["listed", "hook"] {
        assert!(common::until(|| looked(reason)), "{reason}: {}", std::fs::read_to_string(&log).unwrap());
    }
    let came_of_it = || std::fs::read_to_string(&log).unwrap().contains("state=ready rule=");
    assert!(common::until(came_of_it), "{}", std::fs::read_to_string(&log).unwrap());
    client.good("kill_session", json!({ "session": "told", "force": true }));
}

#[test]
fn a_server_that_died_is_not_taken_for_a_running_one_and_comes_back_with_the_next_session() {
    let mut client = Client::start();
    spawn(&mut client, "lost");
    assert_eq!(status(&mut client, "lost")["exit"], Value::Null);
    let first = client.world().tmux_pid().unwrap();
    client.world().end_tmux();
    let lost = status(&mut client, "lost");
    assert_eq!(lost["state"], "exited", "{lost}");
    assert_eq!(client.world().tmux_pid(), None, "a look does not bring it back");
    spawn(&mut client, "found");
    assert_ne!(client.world().tmux_pid(), Some(first));
    assert_ne!(status(&mut client, "found")["state"], "exited");
    let all = client.good("list_sessions", json!({}));
    assert_eq!(all["total"], 2, "{all}");
    let wait = json!({ "sessions": ["lost"], "timeout_s": 5 });
    assert_eq!(client.good("wait_sessions", wait)["timed_out"], false);
    client.good("kill_session", json!({ "session": "lost" }));
    client.good("kill_session", json!({ "session": "found", "force": true }));
}
