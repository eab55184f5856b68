//! The built server over stdio: everything that needs no session.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod common;

use common::{Client, command};
use serde_json::{Value, json};
use std::{io::Write, process::Stdio, time::Instant};

#[test]
fn the_instructions_describe_the_loop_within_two_kilobytes() {
    let mut client = Client::silent(&[]);
    for (i, version) in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].into_iter().enumerate() {
        if i > 0 {
            client = Client::silent(&[]);
        }
        let info = json!({ "name": "test", "version": "0" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info });
        let reply = client.request("initialize", params);
        assert_eq!(reply["result"]["protocolVersion"], version);
        let text = reply["result"]["instructions"].as_str().unwrap();
        assert!(text.len() <= 2048, "{} bytes", text.len());
        let order: Vec<usize> =
            ["spawn_session", "wait_sessions", "answer_prompt", "read_session", "send_input", "kill_session"]
                .iter()
                .map(|tool| text.find(tool).unwrap())
                .collect();
        assert!(order.is_sorted(), "the tools are in the order of the loop");
    }
}

/// The `_meta` that 2026-07-28 requests have instead of a handshake.
fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

#[test]
fn a_client_without_a_handshake_is_served_too() {
    let mut client = Client::silent(&[]);
    let reply = client.request("server/discover", json!({ "_meta": meta(json!({})) }));
    assert!(reply["result"]["instructions"].is_string(), "{reply}");
    let reply = client.request("tools/list", json!({ "_meta": meta(json!({})) }));
    assert_eq!(reply["result"]["tools"].as_array().unwrap().len(), 12);
}

#[test]
fn a_listener_gets_the_accepted_subscriptions() {
    let mut client = Client::silent(&[]);
    let wanted = json!({ "resourceSubscriptions": ["lisa://sessions", "file:///etc/passwd"], "toolsListChanged": true });
    client.ask("subscriptions/listen", json!({ "notifications": wanted, "_meta": meta(json!({})) }));
    let note = client.next();
    assert_eq!(note["method"], "notifications/subscriptions/acknowledged", "{note}");
    assert_eq!(note["params"]["notifications"], json!({ "resourceSubscriptions": ["lisa://sessions"] }));
    let began = Instant::now();
    assert_eq!(client.leave(), Some(0));
    assert!(began.elapsed().as_secs() < 4, "an open stream does not delay the exit");
}

#[test]
fn each_mistake_has_its_own_error_message() {
    let mut client = Client::start();
    let long = "x".repeat(10 << 20);
    let mut seen = std::collections::HashSet::new();
    for (tool, arguments, part) in [
        ("send_input", json!({ "text": "hi" }), "missing parameter `session` for send_input"),
        ("send_input", json!({ "session": "a", "text": "x", "keys": ["Enter"] }), "mutually exclusive"),
        ("send_input", json!({ "session": "a" }), "needs `text` or `keys`"),
        ("send_input", json!({ "session": "a", "text": long }), "10485760 bytes"),
        ("send_input", json!({ "session": "a", "text": "x", "wait_s": -1 }), "the minimum is 0"),
        ("wait_sessions", json!({ "timeout_s": -5 }), "`timeout_s` is -5"),
        ("wait_sessions", json!({ "timeout_s": 1e9 }), "the maximum is 3600"),
        ("wait_sessions", json!({ "until": "turn" }), "requires `turn`"),
        ("wait_sessions", json!({ "until": "idle" }), "invalid value `idle` for `until`"),
        ("wait_sessions", json!({ "sesions": ["a"] }), "did you mean sessions?"),
        ("read_session", json!({ "session": "a", "view": "sreen" }), "did you mean screen?"),
        ("answer_prompt", json!({ "session": "a" }), "needs `choice`, `choices` or `text`"),
        ("spawn_session", json!({ "agent": 7 }), "`agent` must be a string, not the number 7"),
        ("spawn_session", json!({ "agent": "demo", "mode": "batch" }), "allowed: interactive, exec"),
        (
            "spawn_session",
            json!({ "agent": "demo", "size": { "columns": 5, "rows": 24 } }),
            "`size.columns` is 5",
        ),
        ("list_sessions", json!({ "limit": 0 }), "`limit` is 0"),
        ("doctor", json!({ "verbose": true }), "unknown parameter `verbose` for doctor"),
    ] {
        let (kind, text) = client.call_err(tool, arguments);
        assert_eq!(kind, "invalid_argument");
        assert!(text.contains(part), "{tool}: {text}");
        assert!(text.contains("Next: "), "{text}");
        assert!(seen.insert(text));
    }
}

#[test]
fn protocol_faults_are_protocol_errors() {
    let mut client = Client::start();
    let reply = client.request("tools/call", json!({ "name": "spwan_session", "arguments": {} }));
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("did you mean spawn_session"), "{reply}");
    let reply = client.request("no/such/method", json!({}));
    assert_eq!(reply["error"]["code"], -32601, "{reply}");
    let reply = client.request("resources/read", json!({ "uri": "lisa://session/a/smell" }));
    assert_eq!(reply["error"]["code"], -32002, "{reply}");
    let reply = client.request("tasks/get", json!({ "taskId": "wait-x" }));
    assert!(reply["error"].is_object(), "{reply}");
    client.raw("this is no JSON");
    let reply = client.request("ping", json!({}));
    assert!(reply["result"].is_object(), "it survives invalid JSON: {reply}");
}

#[test]
fn resources_prompts_and_completions_are_there() {
    let mut client = Client::start();
    let reply = client.request("resources/list", json!({}));
    assert_eq!(reply["result"]["resources"][0]["uri"], "lisa://sessions");
    let reply = client.request("resources/templates/list", json!({}));
    assert_eq!(reply["result"]["resourceTemplates"].as_array().unwrap().len(), 3);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let reply = client.request(method, json!({ "uri": "lisa://session/a/screen" }));
        assert!(reply["result"].is_object(), "{reply}");
    }
    let arguments = json!({ "task": "fix the tests", "agent": "codex" });
    let reply = client.request("prompts/get", json!({ "name": "delegate", "arguments": arguments }));
    let text = reply["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("fix the tests") && text.contains("`codex`"), "{text}");
    let template = json!({ "type": "ref/resource", "uri": "lisa://session/{name}/screen" });
    let argument = json!({ "name": "name", "value": "" });
    let reply = client.request("completion/complete", json!({ "ref": template, "argument": argument }));
    assert!(reply["result"]["completion"]["values"].is_array(), "{reply}");
}

#[test]
fn a_client_that_leaves_ends_the_server() {
    let began = Instant::now();
    let client = Client::start();
    assert_eq!(client.leave(), Some(0));
    assert!(began.elapsed().as_secs() < 10);
}

#[test]
fn a_client_that_sends_nothing_is_not_an_error() {
    let client = Client::silent(&[]);
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn standard_output_belongs_to_the_protocol_and_standard_error_may_be_closed() {
    let home = tempfile::tempdir().unwrap();
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg("exec \"$0\" 2>&-").arg(env!("CARGO_BIN_EXE_lisa-mcp"));
    shell.env("LISA_LOG", "trace").env("HOME", home.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } },
    });
    let input = format!("{hello}\n{}\n", json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(output.status.success());
}

#[test]
fn subcommands_print_to_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| command(home.path()).args(args).output().unwrap();
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(help.contains("install --client claude") && help.contains("LISA_LOG"), "{help}");
    let fault = run(&["--no-auth"]);
    assert_eq!(fault.status.code(), Some(2), "--no-auth requires --http");
    assert!(fault.stdout.is_empty());
    assert_eq!(run(&["hook"]).status.code(), Some(0), "a hook never fails its agent");
}

#[test]
fn install_runs_the_clients_own_command_or_prints_what_to_add() {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let install = |args: &[&str]| {
        let mut command = command(home.path());
        let output = command.env("PATH", &bin).arg("install").args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = install(&["--client", "claude"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("`claude` is not on the PATH") && text.contains("\"mcpServers\""), "{text}");
    let fake = bin.join("claude");
    std::fs::write(&fake, "#!/bin/sh\necho \"$@\" > called\nexit 3\n").unwrap();
    std::os::unix::fs::chown(&fake, None, None).unwrap();
    let mut mode = std::fs::metadata(&fake).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&fake, mode).unwrap();
    let (code, text) = install(&["--client", "claude", "--scope", "user", "--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("would run: claude mcp add --scope user lisa -- "), "{text}");
    assert!(!home.path().join("called").exists());
    let (code, _) = install(&["--client", "claude", "--", "--allow-agent", "demo"]);
    assert_eq!(code, Some(3), "the client's own exit status");
    let called = std::fs::read_to_string(home.path().join("called")).unwrap();
    assert!(called.starts_with("mcp add --scope project lisa -- /"), "{called}");
    assert!(called.ends_with("--allow-agent demo\n"), "{called}");
}
