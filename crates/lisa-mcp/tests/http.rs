//! HTTP access control: bearer token, Host and Origin headers, loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod common;

use common::{
    command,
    http::{Server, hello, modern},
};
use serde_json::json;
use std::{
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn requests_need_the_token() {
    let server = Server::start(&[], Some(TOKEN));
    assert_eq!(server.post(&[], &hello()).status, 401);
    assert_eq!(server.post(&[("Authorization", "Bearer wrong")], &hello()).status, 401);
    let answer = server.post(&[("Authorization", &format!("Bearer {TOKEN}"))], &hello());
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.text.contains("lisa-mcp"), "{}", answer.text);
}

#[test]
fn a_token_is_generated_by_default() {
    let server = Server::start(&[], None);
    let path = server.sandbox.path().join("state/mcp-token");
    assert!(server.said().iter().any(|line| line.contains(path.to_str().unwrap())), "{:?}", server.said());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&path).unwrap();
    assert!(!server.said().iter().any(|line| line.contains(token.trim())), "the token itself is not printed");
    assert_eq!(server.post(&[("Authorization", &format!("Bearer {}", token.trim()))], &hello()).status, 200);
}

#[test]
fn foreign_origins_and_hosts_are_rejected() {
    let server = Server::start(&["--no-auth"], None);
    assert_eq!(server.post(&[], &hello()).status, 200);
    assert_eq!(server.post(&[("Origin", "https://evil.example")], &hello()).status, 403);
    assert_eq!(server.post(&[("Host", "evil.example")], &hello()).status, 403);
    let open = Server::start(&["--no-auth", "--allow-origin", "http://localhost:6274"], None);
    assert_eq!(open.post(&[("Origin", "http://localhost:6274")], &hello()).status, 200);
    assert_eq!(open.post(&[("Origin", "http://localhost:1")], &hello()).status, 403);
}

#[test]
fn a_long_text_gets_the_tools_error_and_a_longer_one_gets_413() {
    let server = Server::start(&["--no-auth"], None);
    let call = |text: &str| {
        let arguments = json!({ "session": "a", "text": text });
        modern(2, "tools/call", json!({ "name": "send_input", "arguments": arguments }))
    };
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "send_input")];
    let answer = server.post(&headers, &call(&"x".repeat(10 << 20)));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.text.contains("10485760 bytes"), "{}", answer.text);
    let status = server.post(&headers, &call(&"x".repeat(20 << 20))).status;
    assert!(matches!(status, 413 | 0), "{status}");
}

#[test]
fn sigterm_exits_with_0() {
    let mut server = Server::start(&["--no-auth"], None);
    let pid = server.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let began = Instant::now();
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(0));
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn remote_addresses_need_allow_remote() {
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = command(home.path()).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = run(&["--http", "0.0.0.0:0"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("--allow-remote"), "{text}");
    let (_, text) = run(&["--http", "0.0.0.0:0", "--allow-remote", "--no-auth"]);
    assert!(text.contains("loopback only"), "{text}");
}
