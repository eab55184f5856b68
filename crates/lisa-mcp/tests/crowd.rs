//! Stress test over HTTP: many clients at once, and broken ones. Every reply is correct, and nothing leaks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod common;

use common::http::{Reply, Server, hello, modern, post};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::{Duration, Instant},
};

const CLIENTS: u64 = 50;
const EACH: u64 = 40;

/// A request and the check of its reply.
type Check = fn(&Value) -> bool;
const CALLS: &[(&str, &str, &str, Check)] = &[
    ("tools/call", "session_status", r#"{"session":"crowd"}"#, |a| {
        a["result"]["structuredContent"]["name"] == "crowd"
    }),
    ("tools/call", "list_sessions", "{}", |a| a["result"]["structuredContent"]["total"] == 1),
    ("tools/call", "session_status", r#"{"session":"nobody"}"#, |a| {
        a["result"]["structuredContent"]["kind"] == "session_not_found"
    }),
    ("tools/call", "wait_sessions", r#"{"timeout_s":-1}"#, |a| {
        a["result"]["structuredContent"]["kind"] == "invalid_argument"
    }),
    ("tools/call", "read_session", r#"{"session":"crowd","view":"screen"}"#, |a| {
        a["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("here I am"))
    }),
    ("tools/call", "no_such_tool", "{}", |a| a["error"]["code"] == -32602),
    ("tools/list", "", "", |a| a["result"]["tools"].as_array().is_some_and(|tools| tools.len() == 12)),
    ("resources/read", "", r#"{"uri":"lisa://sessions"}"#, |a| {
        a["result"]["contents"][0]["text"].as_str().is_some_and(|text| text.contains("crowd"))
    }),
];

fn params(tool: &str, arguments: &str) -> Value {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
    if tool.is_empty() { arguments } else { json!({ "name": tool, "arguments": arguments }) }
}

fn check(reply: &Reply, id: u64, what: &str, holds: Check) {
    let message = reply.message().unwrap_or_else(|| panic!("{what}: {} {}", reply.status, reply.text));
    assert_eq!(message["id"], id, "{what}: reply to another request: {message}");
    assert!(holds(&message), "{what}: {message}");
}

/// A 2026-07-28 client: no handshake, no session.
fn alone(address: &str, client: u64) {
    for turn in 0..EACH {
        let (method, tool, arguments, holds) = CALLS[((client + turn) as usize) % CALLS.len()];
        let id = client * 1000 + turn;
        let body = modern(id, method, params(tool, arguments));
        let uri = params(tool, arguments)["uri"].as_str().unwrap_or_default().to_owned();
        let name = if tool.is_empty() { uri.as_str() } else { tool };
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", name));
        }
        check(&post(address, &headers, &body), id, tool, holds);
    }
}

/// A 2025-06-18 client: handshake, session, and DELETE at the end.
fn in_session(address: &str, client: u64) {
    let reply = post(address, &[], &hello());
    assert_eq!(reply.status, 200, "{}", reply.text);
    let session = reply.header("mcp-session-id").expect("a session").to_owned();
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(post(address, &headers, &ready).status, 202);
    for turn in 2..EACH {
        let (method, tool, arguments, holds) = CALLS[((client + turn) as usize) % CALLS.len()];
        let id = client * 1000 + turn;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params(tool, arguments) });
        check(&post(address, &headers, &body.to_string()), id, tool, holds);
    }
    let mut stream = TcpStream::connect(address).unwrap();
    let goodbye = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    stream.write_all(goodbye.as_bytes()).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

/// A broken client: noise, half a request, a missing body, or a silent connection.
fn nuisance(address: &str, number: usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    let noise: Vec<u8> = (0..4096_usize).map(|at| (at * 7919 + number * 31) as u8).collect();
    let accept = "Accept: application/json, text/event-stream\r\n";
    let whole =
        |body: &str| format!("{head}{accept}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    let said = match number % 8 {
        0 => noise,
        1 => head.into_bytes(),
        2 => format!("{head}Content-Length: 5000\r\n\r\n{{\"jsonrpc\"").into_bytes(),
        3 => whole("this is no JSON"),
        4 => whole("{\"jsonrpc\":\"2.0\",\"id\":1}"),
        5 => whole("[[[[[[[[[[[[[[[[[["),
        6 => whole(&hello()),
        _ => Vec::new(),
    };
    let _ = stream.write_all(&said);
    if number.is_multiple_of(3) {
        let _ = stream.shutdown(Shutdown::Write);
    }
    if number.is_multiple_of(2) {
        let _ = stream.read(&mut [0; 512]);
    }
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

/// Runs all clients concurrently.
fn storm(address: &str) {
    thread::scope(|scope| {
        for client in 1..=CLIENTS {
            scope.spawn(move || {
                if client.is_multiple_of(2) { alone(address, client) } else { in_session(address, client) }
            });
        }
        scope.spawn(move || (0..200).for_each(|number| nuisance(address, number)));
    });
}

#[test]
fn fifty_concurrent_clients_get_their_own_replies_and_leak_nothing() {
    let server = Server::start(&["--no-auth"], None);
    let pid = server.child.id();
    let args = json!(["sh", "-c", "echo here I am; exec sleep 600"]);
    let spawn = json!({ "agent": "generic", "name": "crowd", "args": args });
    let call = modern(1, "tools/call", json!({ "name": "spawn_session", "arguments": spawn }));
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "spawn_session")];
    let reply = server.post(&headers, &call);
    assert!(reply.text.contains("\"crowd\""), "{}", reply.text);
    // Wait until the shell has printed the text that all clients read.
    thread::sleep(Duration::from_secs(1));

    storm(&server.address);
    thread::sleep(Duration::from_secs(1));
    let (fds, kb) = (descriptors(pid), resident_kb(pid));
    storm(&server.address);
    let began = Instant::now();
    while cfg!(target_os = "linux") && descriptors(pid) > fds + 4 {
        assert!(began.elapsed() < common::TIMEOUT, "{} descriptors were open, now {}", fds, descriptors(pid));
        thread::sleep(Duration::from_millis(100));
    }
    let now = resident_kb(pid);
    assert!(now <= kb + 24 * 1024, "it held {kb} kB after the first storm and {now} kB after the second");
    let said = server.said();
    assert!(!said.iter().any(|line| line.contains("panicked")), "{said:?}");
    assert_eq!(server.post(&[], &hello()).status, 200, "it still serves");
}
