//! Policy flags, and the limits on sessions and nesting.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod common;

use common::{Client, Sandbox, TIMEOUT};
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Parameters of a session that does nothing.
fn idle(name: &str) -> Value {
    json!({ "agent": "generic", "name": name, "args": ["sleep", "600"] })
}

fn with(mut request: Value, more: Value) -> Value {
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

#[test]
fn each_policy_flag_rejects_with_what_is_allowed() {
    test_support::programs::demo_agent();
    let sandbox = Sandbox::new();
    let (inside, outside) = (sandbox.path().join("inside"), sandbox.path().join("outside"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    let root = inside.to_str().unwrap().to_owned();
    let options =
        ["--allow-agent", "generic", "--allow-root", &root, "--deny-flag", "--yolo", "--no-dangerous"];
    let mut client = Client::again(sandbox, &options).greet();
    let here = json!({ "cwd": root });
    for (request, kind, part) in [
        (json!({ "agent": "demo" }), "not_allowed", "allowed agents: generic"),
        (json!({ "cwd": outside.to_str().unwrap() }), "not_allowed", "allowed directories"),
        (json!({ "cwd": format!("{root}/../outside") }), "not_allowed", "allowed directories"),
        (json!({ "args": ["sleep", "600", "--yolo"] }), "not_allowed", "`--yolo`"),
        (json!({ "args": ["sleep", "600", "--yolo=1"] }), "not_allowed", "`--yolo`"),
        (json!({ "dangerous": true }), "not_allowed", "safety"),
    ] {
        let request = with(with(idle("forbidden"), here.clone()), request);
        let (said, text) = client.call_err("spawn_session", request);
        assert_eq!(said, kind, "{text}");
        assert!(text.contains(part), "{text}");
    }
    let names = client.call_ok("list_sessions", json!({}));
    assert_eq!(names["total"], 0, "no rejected session was started: {names}");
    client.call_ok("spawn_session", with(idle("allowed"), here));
    client.call_ok("kill_session", json!({ "session": "allowed", "force": true }));
}

#[test]
fn dangerous_and_denied_flags_are_rejected_in_every_spelling() {
    test_support::programs::demo_agent();
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
        let (said, text) = client.call_err("spawn_session", request.clone());
        assert_eq!(said, kind, "{request}: {text}");
    }
}

#[test]
fn killing_a_session_frees_its_place_under_the_limit() {
    let mut client = Client::silent(&["--max-sessions", "2"]).greet();
    for name in ["one", "two"] {
        client.call_ok("spawn_session", idle(name));
    }
    let (kind, text) = client.call_err("spawn_session", idle("three"));
    assert_eq!(kind, "session_limit", "{text}");
    assert!(text.contains("kill_session"), "{text}");
    client.call_ok("kill_session", json!({ "session": "one", "force": true }));
    client.call_ok("spawn_session", idle("three"));
    for name in ["two", "three"] {
        client.call_ok("kill_session", json!({ "session": name, "force": true }));
    }
}

/// Starts a session whose program is itself an MCP client: it calls spawn_session once and saves the replies.
fn client_session(sandbox: &Sandbox, name: &str, request: &Value) -> Value {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } },
    });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "spawn_session", "arguments": request },
    });
    let asks = sandbox.path().join(format!("{name}.asks"));
    fs::write(&asks, format!("{hello}\n{ready}\n{call}\n")).unwrap();
    let answers = sandbox.path().join(format!("{name}.answers"));
    let script = "\"$0\" < \"$1\" > \"$2.part\"; mv \"$2.part\" \"$2\"; exec sleep 600";
    json!({
        "agent": "generic",
        "name": name,
        "args": ["sh", "-c", script, env!("CARGO_BIN_EXE_lisa-mcp"), asks.to_str().unwrap(), answers.to_str().unwrap()],
    })
}

/// The reply that the program of [`client_session`] got.
fn answer_to(sandbox: &Sandbox, name: &str) -> Value {
    let path = sandbox.path().join(format!("{name}.answers"));
    let began = Instant::now();
    let text = loop {
        match fs::read_to_string(&path) {
            Ok(text) => break text,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
        assert!(began.elapsed() < TIMEOUT, "{name} never got a reply");
    };
    let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.into_iter().find(|message| message["id"] == 2).unwrap()["result"].clone()
}

#[test]
fn sessions_can_be_nested_up_to_the_limit() {
    let sandbox = Sandbox::new();
    let deepest = client_session(&sandbox, "child", &idle("grandchild"));
    let outer = client_session(&sandbox, "top", &deepest);
    let mut client = Client::again(sandbox, &["--max-depth", "1"]).greet();
    client.call_ok("spawn_session", outer);
    let child = answer_to(client.sandbox(), "top");
    let session = &child["structuredContent"]["session"];
    assert_eq!((&session["parent"], &session["depth"]), (&json!("top"), &json!(1)), "{child}");
    let refused = answer_to(client.sandbox(), "child");
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(refused["structuredContent"]["kind"], "depth_limit", "{refused}");
    let ended = client.call_ok("kill_session", json!({ "session": "top", "force": true }));
    let names: Vec<&str> =
        ended["sessions"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(
        names.contains(&"top") && names.contains(&"child"),
        "killing a session kills those it started: {ended}"
    );
}

#[test]
fn a_server_inside_a_session_acts_as_that_session() {
    let sandbox = Sandbox::new();
    let mut client = Client::again(sandbox, &[]).greet();
    client.call_ok("spawn_session", idle("parent"));
    let sandbox = client.restart();
    let mut inside = Client::with(sandbox, &["--max-depth", "1"], &[("LISA_SESSION", "parent")]).greet();
    let kid = inside.call_ok("spawn_session", idle("kid"));
    assert_eq!(kid["session"]["parent"], "parent", "{kid}");
    let mine = inside.call_ok("wait_sessions", json!({ "timeout_s": 0, "until": "event", "since": 0 }));
    let heard: Vec<&str> =
        mine["events"].as_array().unwrap().iter().filter_map(|event| event["session"].as_str()).collect();
    assert!(heard.iter().all(|name| *name == "kid"), "`mine` means the sessions it started: {mine}");
    let sandbox = inside.restart();
    let mut deeper = Client::with(sandbox, &["--max-depth", "1"], &[("LISA_SESSION", "kid")]).greet();
    assert_eq!(deeper.call_err("spawn_session", idle("too-deep")).0, "depth_limit");
    deeper.call_ok("kill_session", json!({ "session": "parent", "force": true }));
    assert_eq!(deeper.call_ok("list_sessions", json!({}))["total"], 0);
}
