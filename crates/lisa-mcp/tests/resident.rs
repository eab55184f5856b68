//! A long-lived server and tmux: no tmux server running, a tmux server that dies and comes back, and no attached
//! clients.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod common;

use common::{Client, Sandbox};
use serde_json::{Value, json};

fn spawn(client: &mut Client, name: &str) -> Value {
    client.call_ok("spawn_session", json!({ "agent": "generic", "name": name, "args": ["sleep", "600"] }))
}

fn status(client: &mut Client, name: &str) -> Value {
    client.call_ok("session_status", json!({ "session": name }))
}

/// The number of clients attached to the tmux server.
fn clients(sandbox: &Sandbox) -> usize {
    sandbox.tmux(&["list-clients", "-F", "#{client_control_mode}"]).map_or(0, |text| text.lines().count())
}

#[test]
fn queries_do_not_start_tmux_but_the_first_session_does() {
    let mut client = Client::start();
    assert_eq!(client.call_ok("list_sessions", json!({}))["total"], 0);
    assert_eq!(client.call_err("session_status", json!({ "session": "a" })).0, "session_not_found");
    assert_eq!(client.call_ok("doctor", json!({}))["ok"], true);
    assert_eq!(client.sandbox().tmux_pid(), None, "queries have no side effects");
    spawn(&mut client, "first");
    assert_eq!(status(&mut client, "first")["name"], "first");
    assert!(client.sandbox().tmux_pid().is_some());
}

/// A control client that is attaching can crash a tmux server before 3.7 (tmux issues 4980, 5004).
#[test]
fn no_call_attaches_to_tmux_and_sessions_outlive_the_server() {
    let mut client = Client::start();
    spawn(&mut client, "stays");
    for _ in 0..20 {
        status(&mut client, "stays");
    }
    client.call_ok("wait_sessions", json!({ "sessions": ["stays"], "until": "exited", "timeout_s": 1 }));
    assert_eq!(clients(client.sandbox()), 0);
    let sandbox = client.restart();
    assert!(sandbox.tmux(&["has-session", "-t", "=stays"]).is_some());
}

#[test]
fn the_log_says_why_a_session_was_checked_and_the_verdict() {
    test_support::programs::demo_agent();
    let sandbox = Sandbox::new();
    let log = sandbox.path().join("log");
    let mut command = sandbox.command();
    command.env("LISA_LOG", "lisa_engine=debug").stderr(std::fs::File::create(&log).unwrap());
    let mut client = Client::of(command, sandbox).greet();
    client.call_ok(
        "spawn_session",
        json!({ "agent": "demo", "name": "told", "prompt": "!say hi", "wait_ready_s": 20 }),
    );
    client.call_ok("wait_sessions", json!({ "sessions": ["told"], "until": "ready", "timeout_s": 20 }));
    let looked = |reason: &str| {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines().any(|line| {
            line.contains("looked")
                && line.contains("session=told")
                && line.contains(&format!("reason=\"{reason}\""))
        })
    };
    for reason in ["listed", "hook"] {
        assert!(
            common::wait_until(|| looked(reason)),
            "{reason}: {}",
            std::fs::read_to_string(&log).unwrap()
        );
    }
    let came_of_it = || std::fs::read_to_string(&log).unwrap().contains("state=ready rule=");
    assert!(common::wait_until(came_of_it), "{}", std::fs::read_to_string(&log).unwrap());
    client.call_ok("kill_session", json!({ "session": "told", "force": true }));
}

#[test]
fn a_dead_tmux_server_is_noticed_and_the_next_session_starts_a_new_one() {
    let mut client = Client::start();
    spawn(&mut client, "lost");
    assert_eq!(status(&mut client, "lost")["exit"], Value::Null);
    let first = client.sandbox().tmux_pid().unwrap();
    client.sandbox().end_tmux();
    let lost = status(&mut client, "lost");
    assert_eq!(lost["state"], "exited", "{lost}");
    assert_eq!(client.sandbox().tmux_pid(), None, "queries do not restart it");
    spawn(&mut client, "found");
    assert_ne!(client.sandbox().tmux_pid(), Some(first));
    assert_ne!(status(&mut client, "found")["state"], "exited");
    let all = client.call_ok("list_sessions", json!({}));
    assert_eq!(all["total"], 2, "{all}");
    let wait = json!({ "sessions": ["lost"], "timeout_s": 5 });
    assert_eq!(client.call_ok("wait_sessions", wait)["timed_out"], false);
    client.call_ok("kill_session", json!({ "session": "lost" }));
    client.call_ok("kill_session", json!({ "session": "found", "force": true }));
}
