//! Malformed messages over both transports: each gets a descriptive error, and the next message works.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod common;

use common::{
    Client,
    http::{Server, hello},
};
use serde_json::{Value, json};

/// The message, the error code, the id, and a part of the error message.
type Case = (&'static [u8], i64, Value, &'static str);

/// Messages that are not JSON.
fn unreadable() -> Vec<Case> {
    vec![
        (b"this is not JSON", -32700, Value::Null, "not valid JSON"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1", -32700, Value::Null, "not valid JSON"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", -32700, Value::Null, "not valid UTF-8"),
        (b"\xfe\xff", -32700, Value::Null, "not valid UTF-8"),
    ]
}

/// JSON that is not a valid request.
fn invalid() -> Vec<Case> {
    vec![
        (b"7", -32600, Value::Null, "must be an object, not a number"),
        (b"{}", -32600, Value::Null, "`method`"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":2}", -32600, json!(2), "`method`"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":7}", -32600, json!("a"), "`method` must be a string"),
        (b"{\"jsonrpc\":\"2.0\",\"method\":7}", -32600, Value::Null, "`method` must be a string"),
        (
            b"{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}",
            -32600,
            json!(3),
            "`jsonrpc` must be \"2.0\"",
        ),
        (b"{\"id\":4,\"method\":\"ping\"}", -32600, json!(4), "`jsonrpc` must be \"2.0\""),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600, Value::Null, "`id` must be"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600, Value::Null, "`id` must be"),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"result\":{}}",
            -32600,
            json!(5),
            "either `method` or",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\",\"params\":[1]}",
            -32602,
            json!(6),
            "`params` must be an object, not an array",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":\"x\"}",
            -32602,
            json!(7),
            "`params` must be an object, not a string",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\"}",
            -32602,
            json!(8),
            "missing field `name`",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":7}}",
            -32602,
            json!(9),
            "expected a string",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"resources/read\",\"params\":{}}",
            -32602,
            json!(10),
            "missing field `uri`",
        ),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"ping\"}]",
            -32600,
            Value::Null,
            "batches are not supported",
        ),
    ]
}

#[track_caller]
fn assert_error(reply: &Value, (sent, code, id, part): &Case) {
    let sent = String::from_utf8_lossy(sent);
    assert_eq!(reply["jsonrpc"], "2.0", "{sent}: {reply}");
    assert_eq!(reply["error"]["code"], *code, "{sent}: {reply}");
    assert_eq!(reply.get("id"), Some(id), "{sent}: {reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains(part), "{sent}: {reply}");
}

#[test]
fn over_pipes_each_gets_an_error_with_its_id_before_and_after_the_handshake() {
    let mut client = Client::silent(&[]);
    for case in unreadable().iter().chain(&invalid()) {
        client.bytes(case.0);
        assert_error(&client.next(), case);
    }
    let mut client = client.greet();
    for case in unreadable().iter().chain(&invalid()) {
        client.bytes(case.0);
        assert_error(&client.next(), case);
    }
    let reply = client.request("no/such/method", json!({}));
    assert_eq!(reply["error"]["code"], -32601, "{reply}");
    assert!(
        reply["error"]["message"].as_str().unwrap().contains("unknown method `no/such/method`"),
        "{reply}"
    );
    assert!(client.request("ping", json!({}))["result"].is_object());
}

#[test]
fn malformed_notifications_and_responses_never_get_a_reply() {
    let lines: [&[u8]; 9] = [
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":7}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nobody/knows\"}",
        b"{\"jsonrpc\":\"1.0\",\"method\":\"notifications/initialized\"}",
        b"{\"method\":\"textDocument/didOpen\",\"params\":[]}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"doctor\"}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":\"x\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"an echo\"}}",
        b"",
    ];
    let mut client = Client::silent(&[]);
    for line in lines {
        client.bytes(line);
    }
    let id = client.ask("ping", json!({}));
    assert_eq!(
        client.next()["id"],
        id,
        "no other reply came first, and the server still waits for a handshake"
    );
    let mut client = client.greet();
    for line in lines {
        client.bytes(line);
    }
    let id = client.ask("ping", json!({}));
    assert_eq!(client.next()["id"], id);
}

#[test]
fn a_line_that_is_too_long_is_skipped_without_buffering_it() {
    let mut client = Client::start();
    // Written in pieces, so that the test doesn't hold it in memory either.
    let piece = vec![b'x'; 1 << 20];
    client.part(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"text\":\"");
    for _ in 0..256 {
        client.part(&piece);
    }
    client.bytes(b"\"}}");
    let reply = client.next();
    assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(-32700), &Value::Null), "{reply}");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("16777216 bytes") && message.contains("shorter"), "{message}");
    let id = client.ask("ping", json!({}));
    assert_eq!(client.next()["id"], id, "one error, then the next line works");
    if let Some(most) = peak_memory(client.child.id()) {
        assert!(most < 100 << 20, "{most} bytes at most");
    }
}

/// The peak memory of a process, if the system has that information.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? << 10)
}

#[test]
fn a_last_line_without_a_newline_gets_a_reply() {
    let mut client = Client::start();
    client.part(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\"}");
    client.hang_up();
    assert_eq!(client.next(), json!({ "jsonrpc": "2.0", "id": 77, "result": {} }));
}

#[test]
fn over_http_each_gets_status_400_and_the_same_error() {
    let server = Server::start(&["--no-auth"], None);
    for case in unreadable().iter().chain(&invalid()) {
        let reply = server.post(&[], case.0);
        assert_eq!(reply.status, 400, "{}", reply.text);
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_error(&reply.message().unwrap(), case);
    }
    assert_eq!(server.post(&[], &hello()).status, 200);
}
