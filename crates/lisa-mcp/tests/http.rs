//! The built server over HTTP: who is let in.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails loudly")]

mod common;

use common::command;
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

struct Server {
    child: Child,
    address: String,
    home: tempfile::TempDir,
    said: Vec<String>,
}

impl Server {
    fn start(options: &[&str], token: Option<&str>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = command(home.path());
        if let Some(token) = token {
            command.env("LISA_MCP_TOKEN", token);
        }
        command.args(["--http", "127.0.0.1:0"]).args(options).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = Vec::new();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = errors.next().expect("it says where it listens").unwrap();
            said.push(line.clone());
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.trim_end_matches("/mcp").to_owned();
            }
        };
        Self { child, address, home, said }
    }

    /// Posts a message with these headers; status and body.
    fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(common::PATIENCE)).unwrap();
        let mut text = "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
                        Accept: application/json, text/event-stream\r\n"
            .to_owned();
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        // A server that refuses a large body may close before it has read all of it.
        let _ = stream.write_all(text.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        (status, answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hello() -> String {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } },
    })
    .to_string()
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn only_the_token_opens_the_door() {
    let server = Server::start(&[], Some(TOKEN));
    assert_eq!(server.post(&[], &hello()).0, 401);
    assert_eq!(server.post(&[("Authorization", "Bearer wrong")], &hello()).0, 401);
    let (status, answer) = server.post(&[("Authorization", &format!("Bearer {TOKEN}"))], &hello());
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("lisa-mcp"), "{answer}");
}

#[test]
fn a_token_is_made_where_none_is_given() {
    let server = Server::start(&[], None);
    let path = server.home.path().join("state/mcp-token");
    assert!(server.said.iter().any(|line| line.contains(path.to_str().unwrap())), "{:?}", server.said);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&path).unwrap();
    assert!(!server.said.iter().any(|line| line.contains(token.trim())), "the token itself is not shown");
    assert_eq!(server.post(&[("Authorization", &format!("Bearer {}", token.trim()))], &hello()).0, 200);
}

#[test]
fn web_pages_and_rebound_names_stay_outside() {
    let server = Server::start(&["--no-auth"], None);
    assert_eq!(server.post(&[], &hello()).0, 200);
    assert_eq!(server.post(&[("Origin", "https://evil.example")], &hello()).0, 403);
    assert_eq!(server.post(&[("Host", "evil.example")], &hello()).0, 403);
    let open = Server::start(&["--no-auth", "--allow-origin", "http://localhost:6274"], None);
    assert_eq!(open.post(&[("Origin", "http://localhost:6274")], &hello()).0, 200);
    assert_eq!(open.post(&[("Origin", "http://localhost:1")], &hello()).0, 403);
}

#[test]
fn a_long_text_gets_the_tools_sentence_and_a_flood_is_cut_off() {
    let server = Server::start(&["--no-auth"], None);
    let call = |text: &str| {
        json!({
            "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {
                "name": "send_input",
                "arguments": { "session": "a", "text": text },
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "0" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        })
        .to_string()
    };
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "send_input")];
    let (status, answer) = server.post(&headers, &call(&"x".repeat(10 << 20)));
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("10485760 bytes"), "{answer}");
    let (status, _) = server.post(&headers, &call(&"x".repeat(20 << 20)));
    assert!(matches!(status, 413 | 0), "{status}");
}

#[test]
fn a_signal_ends_it_gently() {
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
fn other_machines_must_be_asked_for() {
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
