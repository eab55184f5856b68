//! The built server with demo agent sessions in a real tmux.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod common;

use common::{Client, TIMEOUT};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ASKS: &str = "!permission Bash rm -rf build";

/// Starts a demo session and returns the cursor.
fn spawn(client: &mut Client, name: &str, prompt: &str) -> Value {
    test_support::programs::demo_agent();
    let answer = client.call_ok("spawn_session", json!({ "agent": "demo", "name": name, "prompt": prompt }));
    assert_eq!(answer["session"]["name"], name);
    assert!(answer["next"].is_string());
    answer["cursor"].clone()
}

/// Waits until the session is in a state. Returns the session and the cursor.
fn wait_for(client: &mut Client, name: &str, since: Value, state: &str) -> (Value, Value) {
    let mut since = since;
    let began = Instant::now();
    while began.elapsed() < TIMEOUT {
        let request = json!({ "sessions": [name], "since": since, "timeout_s": 5 });
        let answer = client.call_ok("wait_sessions", request);
        since = answer["cursor"].clone();
        let sessions = answer["sessions"].as_array().unwrap();
        if let Some(session) = sessions.iter().find(|session| session["state"] == state) {
            return (session.clone(), since);
        }
    }
    panic!("{name} never reached {state}: {}", client.call_ok("explain_session", json!({ "session": name })));
}

fn end(client: &mut Client, names: &[&str]) {
    for name in names {
        client.call_ok("kill_session", json!({ "session": name, "force": true }));
    }
}

#[test]
fn the_loop_from_spawn_to_kill() {
    let mut client = Client::start();
    let cursor = spawn(&mut client, "loop", ASKS);
    let (session, cursor) = wait_for(&mut client, "loop", cursor, "awaiting_permission");
    assert_eq!(session["attention"], "needs_you");
    let prompt = &session["prompt"];
    let refused = client.call_ok("send_input", json!({ "session": "loop", "text": "yes" }));
    assert_eq!((&refused["delivered"], &refused["refusal"]), (&json!("refused"), &json!("prompt_open")));
    let (kind, _) = client
        .call_err("answer_prompt", json!({ "session": "loop", "choice": "deny", "prompt_id": "other" }));
    assert_eq!(kind, "prompt_changed");
    let (kind, _) = client.call_err("answer_prompt", json!({ "session": "loop", "choice": "maybe" }));
    assert_eq!(kind, "unknown_choice");
    let answer = json!({ "session": "loop", "choice": "allow_once", "prompt_id": prompt["id"] });
    let answered = client.call_ok("answer_prompt", answer);
    assert_eq!(answered["effect"], "allow_once");
    let (_, cursor) = wait_for(&mut client, "loop", cursor, "ready");
    let said = client.call("read_session", json!({ "session": "loop" }));
    assert!(said.get("structuredContent").is_none());
    assert!(said["content"][0]["text"].as_str().unwrap().lines().last().unwrap().starts_with("cursor="));
    let sent = client.call_ok("send_input", json!({ "session": "loop", "text": "and now?" }));
    assert_eq!(sent["delivered"], "submitted", "{sent}");
    let request = json!({ "sessions": ["loop"], "until": "turn", "turn": sent["turn"], "since": cursor });
    assert_eq!(client.call_ok("wait_sessions", request)["timed_out"], false);
    for turn in ["loop#99", "loop"] {
        let (kind, said) = client.call_err("wait_sessions", json!({ "sessions": ["loop"], "turn": turn }));
        assert_eq!(kind, "invalid_argument", "waited for a turn that does not exist: {said}");
    }
    end(&mut client, &["loop"]);
    let again = client.call_ok("kill_session", json!({ "session": "loop" }));
    assert!(again["sessions"].as_array().unwrap().iter().all(|row| row["done"] == "already_gone"), "{again}");
}

#[test]
fn a_misspelt_session_name_gets_a_suggestion() {
    let mut client = Client::start();
    spawn(&mut client, "fix-login", "hello");
    for tool in ["session_status", "send_input", "kill_session"] {
        let arguments = match tool {
            "send_input" => json!({ "session": "fix-logn", "text": "x" }),
            _ => json!({ "session": "fix-logn" }),
        };
        let result = client.call(tool, arguments);
        assert!(result.to_string().contains("fix-login"), "{tool}: {result}");
    }
    end(&mut client, &["fix-login"]);
}

#[test]
fn a_cancelled_wait_leaves_the_session_alone() {
    let mut client = Client::start();
    let cursor = spawn(&mut client, "busy", "!think 20s");
    let id = client.ask(
        "tools/call",
        json!({
            "name": "wait_sessions",
            "arguments": { "sessions": ["busy"], "since": cursor, "timeout_s": 60, "until": "ready" },
            "_meta": { "progressToken": "p" },
        }),
    );
    let told = |note: &Value| {
        note["method"] == "notifications/progress"
            && note["params"]["message"].as_str().is_some_and(|message| message.contains("busy"))
    };
    let began = Instant::now();
    while !client.notes.iter().any(told) {
        assert!(began.elapsed() < TIMEOUT, "{:?}", client.notes);
        client.request("ping", json!({}));
        std::thread::sleep(Duration::from_millis(100));
    }
    client.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
    );
    let status = client.call_ok("session_status", json!({ "session": "busy" }));
    assert_eq!(status["status"], "in_progress", "{status}");
    end(&mut client, &["busy"]);
}

/// The `_meta` of a 2026-07-28 client with tasks.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    })
}

#[test]
fn a_cancelled_task_stays_cancelled_and_its_session_keeps_running() {
    let call =
        |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments, "_meta": meta() });
    test_support::programs::demo_agent();
    let mut first = Client::silent(&[]);
    first.request(
        "tools/call",
        call("spawn_session", json!({ "agent": "demo", "name": "on", "prompt": "!think 60s" })),
    );
    let reply =
        first.request("tools/call", call("wait_sessions", json!({ "sessions": ["on"], "until": "ready" })));
    let id = reply["result"]["taskId"].clone();
    let reply = first.request("tasks/cancel", json!({ "taskId": id, "_meta": meta() }));
    assert!(reply.get("error").is_none(), "{reply}");
    let mut second = Client::again(first.restart(), &[]);
    let reply = second.request("tasks/get", json!({ "taskId": id, "_meta": meta() }));
    assert_eq!(reply["result"]["status"], "cancelled", "{reply}");
    let reply = second.request("tools/call", call("session_status", json!({ "session": "on" })));
    assert_eq!(reply["result"]["structuredContent"]["status"], "in_progress", "{reply}");
    let _ = second.request("tools/call", call("kill_session", json!({ "session": "on", "force": true })));
}

#[test]
fn sessions_outlive_the_server_and_so_does_a_task() {
    let meta = meta();
    let call = |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments, "_meta": meta });
    test_support::programs::demo_agent();
    let mut first = Client::silent(&[]);
    let spawned = first.request(
        "tools/call",
        call("spawn_session", json!({ "agent": "demo", "name": "long", "prompt": "!think 4s" })),
    );
    let since = &spawned["result"]["structuredContent"]["cursor"];
    let arguments = json!({ "sessions": ["long"], "since": since, "until": "ready" });
    let reply = first.request("tools/call", call("wait_sessions", arguments));
    assert_eq!(reply["result"]["resultType"], "task", "{reply}");
    let id = reply["result"]["taskId"].clone();
    // Clients reject longer ids.
    assert!(id.as_str().is_some_and(|id| id.len() <= 128), "{id}");
    let sandbox = first.restart();
    let mut second = Client::again(sandbox, &[]);
    let began = Instant::now();
    let result = loop {
        let reply = second.request("tasks/get", json!({ "taskId": id, "_meta": meta }));
        match reply["result"]["status"].as_str() {
            Some("completed") => break reply["result"]["result"].clone(),
            Some("working") => std::thread::sleep(Duration::from_millis(300)),
            _ => panic!("{reply}"),
        }
        assert!(began.elapsed() < TIMEOUT);
    };
    assert_eq!(result["structuredContent"]["timed_out"], false, "{result}");
    let _ = second.request("tools/call", call("kill_session", json!({ "session": "long" })));
}

#[test]
fn subscribers_get_change_notifications() {
    let mut client = Client::start();
    client.request("resources/subscribe", json!({ "uri": "lisa://sessions" }));
    spawn(&mut client, "heard", "hello");
    let began = Instant::now();
    while !client.notes.iter().any(|note| note["params"]["uri"] == "lisa://sessions") {
        assert!(began.elapsed() < TIMEOUT, "{:?}", client.notes);
        client.request("ping", json!({}));
        std::thread::sleep(Duration::from_millis(100));
    }
    let reply = client.request("resources/read", json!({ "uri": "lisa://session/heard/screen" }));
    assert!(reply["result"]["contents"][0]["text"].is_string(), "{reply}");
    end(&mut client, &["heard"]);
}

#[test]
fn listeners_of_the_newer_protocol_get_change_notifications() {
    let mut client = Client::start();
    let wanted =
        json!({ "resourceSubscriptions": ["lisa://session/heard/events"], "resourcesListChanged": true });
    client.ask("subscriptions/listen", json!({ "notifications": wanted, "_meta": meta() }));
    spawn(&mut client, "heard", "hello");
    let heard = |client: &Client, method: &str| client.notes.iter().any(|note| note["method"] == method);
    let began = Instant::now();
    while !heard(&client, "notifications/resources/updated")
        || !heard(&client, "notifications/resources/list_changed")
    {
        assert!(began.elapsed() < TIMEOUT, "{:?}", client.notes);
        client.request("ping", json!({}));
        std::thread::sleep(Duration::from_millis(100));
    }
    end(&mut client, &["heard"]);
}

#[test]
fn a_wait_for_a_turn_ends_when_the_turn_opens_a_prompt() {
    let mut client = Client::start();
    let cursor = spawn(&mut client, "asks", "!say Hello.");
    let (_, _) = wait_for(&mut client, "asks", cursor, "ready");
    let sent = client.call_ok("send_input", json!({ "session": "asks", "text": ASKS }));
    let request =
        json!({ "sessions": ["asks"], "turn": sent["turn"], "since": sent["cursor"], "timeout_s": 25 });
    let answer = client.call_ok("wait_sessions", request);
    assert_eq!(answer["timed_out"], false, "{answer}");
    assert_eq!(answer["sessions"][0]["state"], "awaiting_permission", "{answer}");
    assert!(answer["next"].as_str().unwrap().starts_with("answer_prompt"), "{answer}");
    let twice = answer["events"].as_array().unwrap().iter().any(|event| event["data"]["prompt"].is_object());
    assert!(!twice, "the prompt is in the result once: {answer}");
    // A wait for something else that times out also returns the open prompt.
    let request = json!({ "sessions": ["asks"], "until": "ready", "timeout_s": 0 });
    let answer = client.call_ok("wait_sessions", request);
    assert_eq!(answer["timed_out"], true, "{answer}");
    assert!(answer["next"].as_str().unwrap().starts_with("answer_prompt"), "{answer}");
    end(&mut client, &["asks"]);
}

#[test]
fn results_have_the_next_step() {
    let mut client = Client::start();
    test_support::programs::demo_agent();
    let spawned =
        client.call_ok("spawn_session", json!({ "agent": "demo", "name": "next", "prompt": "!think 20s" }));
    let since = format!("since={}", spawned["cursor"]);
    let next = spawned["next"].as_str().unwrap();
    assert!(next.starts_with("wait_sessions with sessions=[\"next\"]") && next.contains(&since), "{next}");
    wait_until_working(&mut client, "next");
    let stopped = client.call_ok("interrupt_session", json!({ "session": "next" }));
    assert_eq!(stopped["done"], "interrupted", "{stopped}");
    assert!(stopped["next"].as_str().unwrap().starts_with("send_input"), "{stopped}");
    let status = client.call_ok("session_status", json!({ "session": "next" }));
    assert!(status.get("signals").is_none(), "only explain_session has signals: {status}");
    let explained = client.call_ok("explain_session", json!({ "session": "next" }));
    assert!(explained["session"]["signals"].is_object(), "{explained}");
    let (kind, text) = client.call_err("wait_sessions", json!({ "sessions": ["next"], "since": 99_999 }));
    assert_eq!(kind, "invalid_argument", "{text}");
    assert!(text.contains("the journal's newest cursor is"), "{text}");
    end(&mut client, &["next"]);
}

fn wait_until_working(client: &mut Client, name: &str) {
    let request = json!({ "sessions": [name], "until": "working", "timeout_s": 25 });
    assert_eq!(client.call_ok("wait_sessions", request)["timed_out"], false);
}
