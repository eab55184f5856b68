//! What the server's flags forbid, and how deep sessions may start sessions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails loudly")]

mod common;

use common::{Client, PATIENCE, World};
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};

/// A session that does nothing for a while.
fn idle(name: &str) -> Value {
    json!({ "agent": "generic", "name": name, "args": ["sleep", "600"] })
}

fn with(mut request: Value, more: Value) -> Value {
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

#[test]
fn each_flag_forbids_what_it_names_and_says_what_is_allowed() {
    common::build_demo_agent();
    let world = World::new();
    let (inside, outside) = (world.path().join("inside"), world.path().join("outside"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    let root = inside.to_str().unwrap().to_owned();
    let options =
        ["--allow-agent", "generic", "--allow-root", &root, "--deny-flag", "--yolo", "--no-dangerous"];
    let mut client = Client::again(world, &options).greet();
    let here = json!({ "cwd": root });
    for (request, kind, part) in [
        (json!({ "agent": "demo" }), "not_allowed", "allowed are generic"),
        (json!({ "cwd": outside.to_str().unwrap() }), "not_allowed", "folders below"),
        (json!({ "cwd": format!("{root}/../outside") }), "not_allowed", "folders below"),
        (json!({ "args": ["sleep", "600", "--yolo"] }), "not_allowed", "`--yolo`"),
        (json!({ "args": ["sleep", "600", "--yolo=1"] }), "not_allowed", "`--yolo`"),
        (json!({ "dangerous": true }), "not_allowed", "safety"),
    ] {
        let request = with(with(idle("forbidden"), here.clone()), request);
        let (said, text) = client.fault("spawn_session", request);
        assert_eq!(said, kind, "{text}");
        assert!(text.contains(part), "{text}");
    }
    let names = client.good("list_sessions", json!({}));
    assert_eq!(names["total"], 0, "nothing that was refused was started: {names}");
    client.good("spawn_session", with(idle("allowed"), here));
    client.good("kill_session", json!({ "session": "allowed", "force": true }));
}

#[test]
fn safety_is_not_switched_off_nor_a_denied_flag_given_by_another_way_of_writing() {
    common::build_demo_agent();
    let mut client = Client::silent(&["--deny-flag", "--model"]).greet();
    for (request, kind) in [
        (json!({ "agent": "demo", "model": "other" }), "not_allowed"),
        (json!({ "agent": "claude", "args": ["--permission-mode", "bypassPermissions"] }), "dangerous_flag"),
        (json!({ "agent": "claude", "args": ["--permission-mode=bypassPermissions"] }), "dangerous_flag"),
        (
            json!({ "agent": "codex", "args": ["-c", "sandbox_mode=\"danger-full-access\""] }),
            "dangerous_flag",
        ),
        (json!({ "agent": "codex", "args": ["-sdanger-full-access"] }), "dangerous_flag"),
    ] {
        let (said, text) = client.fault("spawn_session", request.clone());
        assert_eq!(said, kind, "{request}: {text}");
    }
}

#[test]
fn a_place_that_is_taken_is_free_again_after_its_session_was_killed() {
    let mut client = Client::silent(&["--max-sessions", "2"]).greet();
    for name in ["one", "two"] {
        client.good("spawn_session", idle(name));
    }
    let (kind, text) = client.fault("spawn_session", idle("three"));
    assert_eq!(kind, "session_limit", "{text}");
    assert!(text.contains("kill_session"), "{text}");
    client.good("kill_session", json!({ "session": "one", "force": true }));
    client.good("spawn_session", idle("three"));
    for name in ["two", "three"] {
        client.good("kill_session", json!({ "session": name, "force": true }));
    }
}

/// A session whose program is a client of Lisa's own server: it asks for one spawn and keeps the answers.
fn client_session(world: &World, name: &str, request: &Value) -> Value {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } },
    });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "spawn_session", "arguments": request },
    });
    let asks = world.path().join(format!("{name}.asks"));
    fs::write(&asks, format!("{hello}\n{ready}\n{call}\n")).unwrap();
    let answers = world.path().join(format!("{name}.answers"));
    let script = "\"$0\" < \"$1\" > \"$2.part\"; mv \"$2.part\" \"$2\"; exec sleep 600";
    json!({
        "agent": "generic",
        "name": name,
        "args": ["sh", "-c", script, env!("CARGO_BIN_EXE_lisa-mcp"), asks.to_str().unwrap(), answers.to_str().unwrap()],
    })
}

/// What the program of [`client_session`] was answered.
fn answer_to(world: &World, name: &str) -> Value {
    let path = world.path().join(format!("{name}.answers"));
    let began = Instant::now();
    let text = loop {
        match fs::read_to_string(&path) {
            Ok(text) => break text,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
        assert!(began.elapsed() < PATIENCE, "{name} never got an answer");
    };
    let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.into_iter().find(|message| message["id"] == 2).unwrap()["result"].clone()
}

#[test]
fn a_session_may_start_sessions_down_to_the_limit_and_no_deeper() {
    let world = World::new();
    let deepest = client_session(&world, "child", &idle("grandchild"));
    let outer = client_session(&world, "top", &deepest);
    let mut client = Client::again(world, &["--max-depth", "1"]).greet();
    client.good("spawn_session", outer);
    let child = answer_to(client.world(), "top");
    let session = &child["structuredContent"]["session"];
    assert_eq!((&session["parent"], &session["depth"]), (&json!("top"), &json!(1)), "{child}");
    let refused = answer_to(client.world(), "child");
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(refused["structuredContent"]["kind"], "depth_limit", "{refused}");
    let ended = client.good("kill_session", json!({ "session": "top", "force": true }));
    let names: Vec<&str> =
        ended["sessions"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(
        names.contains(&"top") && names.contains(&"child"),
        "a session ends with those it started: {ended}"
    );
}

#[test]
fn a_server_inside_a_session_counts_as_that_session() {
    let world = World::new();
    let mut client = Client::again(world, &[]).greet();
    client.good("spawn_session", idle("parent"));
    let world = client.restart();
    let mut inside = Client::with(world, &["--max-depth", "1"], &[("LISA_SESSION", "parent")]).greet();
    let kid = inside.good("spawn_session", idle("kid"));
    assert_eq!(kid["session"]["parent"], "parent", "{kid}");
    let mine = inside.good("wait_sessions", json!({ "timeout_s": 0, "until": "event", "since": 0 }));
    let heard: Vec<&str> =
        mine["events"].as_array().unwrap().iter().filter_map(|event| event["session"].as_str()).collect();
    assert!(heard.iter().all(|name| *name == "kid"), "a wait for `mine` is for those it started: {mine}");
    let world = inside.restart();
    let mut deeper = Client::with(world, &["--max-depth", "1"], &[("LISA_SESSION", "kid")]).greet();
    assert_eq!(deeper.fault("spawn_session", idle("too-deep")).0, "depth_limit");
    deeper.good("kill_session", json!({ "session": "parent", "force": true }));
    assert_eq!(deeper.good("list_sessions", json!({}))["total"], 0);
}
