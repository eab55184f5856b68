//! The server keeps one connection to tmux: it must be right where no tmux runs, and where it dies and comes back.

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

/// Processes of `tmux` that the server holds.
fn connections(world: &World) -> usize {
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

#[test]
fn many_looks_share_one_connection() {
    let mut client = Client::start();
    spawn(&mut client, "one");
    for _ in 0..20 {
        status(&mut client, "one");
    }
    assert_eq!(connections(client.world()), 1);
}

#[test]
fn a_server_that_ends_takes_its_connections_with_it_and_leaves_the_sessions() {
    let mut client = Client::start();
    spawn(&mut client, "stays");
    // A wait has eyes of its own, which look on until the server ends.
    client.good("wait_sessions", json!({ "sessions": ["stays"], "until": "exited", "timeout_s": 1 }));
    assert!(connections(client.world()) >= 2);
    let world = client.restart();
    assert!(common::until(|| connections(&world) == 0), "{} connections are left", connections(&world));
    assert!(world.tmux(&["has-session", "-t", "=stays"]).is_some());
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
