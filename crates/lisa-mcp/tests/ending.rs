//! Shutdown: the server exits within a second of a disconnect or a signal, replies to every call in flight, and leaves
//! no processes behind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod common;

use common::{
    Client, Sandbox, ends_within,
    http::{Server, hello, modern},
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::process::CommandExt,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

/// Timeout for the exit.
const SECOND: Duration = Duration::from_secs(1);

/// A way to shut down a server.
type End = fn(&mut Client);

/// All ways to shut down a stdio server.
const WAYS: [(&str, End); 3] = [
    ("standard input is closed", Client::hang_up),
    ("SIGTERM", |client| signal(&client.child, Signal::TERM)),
    ("SIGINT", |client| signal(&client.child, Signal::INT)),
];

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(pid(child), signal).unwrap();
}

/// Starts a server in its own process group, so that leftover processes can be found.
fn start() -> Client {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command();
    command.process_group(0).stderr(std::fs::File::create(sandbox.path().join("log")).unwrap());
    Client::of(command, sandbox).greet()
}

/// Asserts that the server exits in time, without a panic and without leftover processes.
#[track_caller]
fn assert_ends(client: &mut Client, how: &str) {
    let group = pid(&client.child);
    let began = Instant::now();
    assert_eq!(ends_within(&mut client.child, SECOND), Some(0), "{how}");
    assert!(began.elapsed() < SECOND, "{how}: {:?}", began.elapsed());
    assert!(test_kill_process_group(group).is_err(), "{how}: a process is left");
    let log = std::fs::read_to_string(client.sandbox().path().join("log")).unwrap();
    assert!(!log.contains("panicked"), "{how}: {log}");
}

/// Starts a tool call and returns once the server is running it: the server handles messages in order.
fn begin(client: &mut Client, tool: &str, arguments: Value) -> u64 {
    let id = client.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
    client.request("ping", json!({}));
    id
}

/// Starts a session that never becomes ready.
fn spawn(client: &mut Client) {
    client.call_ok("spawn_session", json!({ "agent": "generic", "name": "a", "args": ["sleep", "600"] }));
}

#[track_caller]
fn assert_cancelled(reply: &Value, how: &str) {
    assert_eq!(reply["result"]["structuredContent"]["kind"], "cancelled", "{how}: {reply}");
}

#[test]
fn an_idle_server_exits_at_once() {
    for (how, end) in WAYS {
        let mut client = start();
        end(&mut client);
        assert_ends(&mut client, how);
    }
}

#[test]
fn a_wait_in_flight_is_cancelled_and_answered() {
    for (how, end) in WAYS {
        let mut client = start();
        spawn(&mut client);
        let arguments = json!({ "sessions": ["a"], "until": "exited", "timeout_s": 600 });
        let id = begin(&mut client, "wait_sessions", arguments);
        end(&mut client);
        assert_ends(&mut client, how);
        assert_cancelled(&client.answer(id), how);
        assert!(
            client.sandbox().tmux(&["has-session", "-t", "=a"]).is_some(),
            "{how}: the session keeps running"
        );
    }
}

#[test]
fn a_blocking_call_gets_a_reply_and_does_not_delay_the_exit() {
    for (how, end) in WAYS {
        let mut client = start();
        spawn(&mut client);
        let id = begin(&mut client, "send_input", json!({ "session": "a", "text": "x", "wait_s": 600 }));
        end(&mut client);
        assert_ends(&mut client, how);
        assert_cancelled(&client.answer(id), how);
    }
}

#[test]
fn calls_in_flight_get_replies_when_standard_input_closes() {
    let mut client = start();
    let ids: Vec<u64> = (0..20).map(|_| client.ask("ping", json!({}))).collect();
    let call = client.ask("tools/call", json!({ "name": "list_sessions", "arguments": {} }));
    client.hang_up();
    for id in ids {
        assert!(client.answer(id)["result"].is_object());
    }
    assert_eq!(client.answer(call)["result"]["structuredContent"]["total"], 0);
    assert_ends(&mut client, "closed after the requests");
}

/// A server whose standard output the test controls.
fn raw() -> (Sandbox, Child) {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command();
    command.stderr(std::fs::File::create(sandbox.path().join("log")).unwrap());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{}", hello()).unwrap();
    (sandbox, child)
}

#[test]
fn closing_standard_output_ends_the_server_without_a_panic() {
    let (sandbox, mut child) = raw();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    drop(output);
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    writeln!(child.stdin.as_mut().unwrap(), "{ping}").unwrap();
    assert_eq!(ends_within(&mut child, SECOND), Some(0));
    let log = std::fs::read_to_string(sandbox.path().join("log")).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn a_client_that_does_not_read_does_not_delay_the_exit() {
    let (_world, mut child) = raw();
    let mut input = child.stdin.take().unwrap();
    // More than a pipe holds.
    for id in 0..50 {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })).unwrap();
    }
    drop(input);
    assert_eq!(ends_within(&mut child, SECOND), Some(0));
}

#[test]
fn over_http_a_signal_ends_calls_streams_and_half_open_connections() {
    for kind in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(&["--no-auth"], None);
        let spawn = json!({ "agent": "generic", "name": "a", "args": ["sleep", "600"] });
        assert!(call(&server.address, "spawn_session", spawn).starts_with("HTTP/1.1 200"));
        let mut half_open = TcpStream::connect(&server.address).unwrap();
        half_open.write_all(b"POST /mcp HT").unwrap();
        let address = server.address.clone();
        let wait = std::thread::spawn(move || {
            call(&address, "wait_sessions", json!({ "sessions": ["a"], "until": "exited", "timeout_s": 600 }))
        });
        let address = server.address.clone();
        let send = std::thread::spawn(move || {
            call(&address, "send_input", json!({ "session": "a", "text": "x", "wait_s": 600 }))
        });
        // Wait until both calls and the half-open connection are open.
        assert!(common::wait_until(|| sockets(server.child.id()).is_none_or(|count| count >= 4)));
        let began = Instant::now();
        signal(&server.child, kind);
        assert_eq!(ends_within(&mut server.child, SECOND), Some(0), "{:?}", server.said());
        assert!(began.elapsed() < SECOND);
        for answer in [wait.join().unwrap(), send.join().unwrap()] {
            assert!(answer.contains("cancelled"), "{answer}");
        }
        assert!(!server.said().join("\n").contains("panicked"), "{:?}", server.said());
        assert!(matches!(half_open.read(&mut [0; 100]), Ok(0) | Err(_)));
    }
}

/// Calls a tool as a 2026-07-28 client and returns the whole response.
fn call(address: &str, tool: &str, arguments: Value) -> String {
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    let body = modern(1, "tools/call", json!({ "name": tool, "arguments": arguments }));
    common::http::post(address, &headers, &body).text
}

/// The number of TCP sockets of a process, if the system has that information.
fn sockets(pid: u32) -> Option<usize> {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).ok()?;
    let own: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .ok()?
        .filter_map(|entry| Some(std::fs::read_link(entry.ok()?.path()).ok()?.to_str()?.to_owned()))
        .collect();
    let inode = |line: &str| line.split_whitespace().nth(9).map(|inode| format!("socket:[{inode}]"));
    Some(table.lines().skip(1).filter_map(inode).filter(|inode| own.contains(inode)).count())
}
