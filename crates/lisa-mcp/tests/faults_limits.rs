//! HTTP limits: slow or idle connections are closed, and long responses are never cut off.
//!
//! The server runs in this process, with short timeouts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod common;

use common::{
    TIMEOUT,
    http::{hello, modern, post},
};
use lisa_engine::config::Environment;
use lisa_mcp::{
    cli::HttpFlags,
    http::{self, HttpConfig, Limits},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock},
    service::RequestContext,
};
use serde_json::json;
use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A short timeout, but longer than a request takes on a loaded machine.
const SHORT: Duration = Duration::from_millis(400);

/// A server whose tools return when the test releases the semaphore.
#[derive(Clone)]
struct Slow(Arc<Semaphore>);

impl ServerHandler for Slow {
    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.acquire().await.unwrap().forget();
        Ok(CallToolResult::success(vec![ContentBlock::text("at last")]).into())
    }
}

struct Server {
    address: String,
    answers: Arc<Semaphore>,
    _ends: DropGuard,
}

fn limits() -> Limits {
    Limits { head: SHORT, body: SHORT, ..Limits::default() }
}

fn start(limits: Limits) -> Server {
    let flags = HttpFlags { http: Some("127.0.0.1:0".to_owned()), no_auth: true, ..HttpFlags::default() };
    let config = HttpConfig::new(&flags, &Environment::default(), Path::new("/nowhere")).unwrap();
    let (answers, ends) = (Arc::new(Semaphore::new(0)), CancellationToken::new());
    let (handler, until) = (Slow(answers.clone()), ends.clone());
    let (sender, address) = mpsc::channel::<SocketAddr>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = http::bind(&config).await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            http::serve(handler, config, listener, limits, until).await.unwrap();
        });
    });
    Server { address: address.recv().unwrap().to_string(), answers, _ends: ends.drop_guard() }
}

impl Server {
    /// Opens a connection and writes these bytes.
    fn open(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    /// The headers of a request with a body of this length.
    fn head(&self, length: usize) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n",
            self.address
        )
    }

    /// Starts a call that returns when the test releases the semaphore.
    fn call(&self) -> std::thread::JoinHandle<common::http::Reply> {
        let address = self.address.clone();
        std::thread::spawn(move || {
            let headers =
                [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "slow")];
            post(&address, &headers, &modern(1, "tools/call", json!({ "name": "slow", "arguments": {} })))
        })
    }
}

/// Reads until the server closes the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("it was never closed"),
        _ => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

#[test]
fn half_open_connections_get_an_error_and_are_closed() {
    let server = start(limits());
    let half_a_body = format!("{}{{\"jsonrpc\"", server.head(100));
    let kinds = [&b""[..], b"POST /mc", b"POST /mcp HTTP/1.1\r\nHost: x\r\nConte", half_a_body.as_bytes()];
    let open: Vec<TcpStream> = (0..200).map(|i| server.open(kinds[i % kinds.len()])).collect();
    for (i, stream) in open.into_iter().enumerate() {
        let text = rest(stream);
        match i % kinds.len() {
            0 => assert_eq!(text, "", "a silent connection gets no response"),
            3 => {
                assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
                assert!(text.contains("the body took longer") && text.contains("\"id\":null"), "{text}");
            }
            _ => assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("took too long"), "{text}"),
        }
    }
    assert_eq!(post(&server.address, &[], &hello()).status, 200, "it still serves");
}

#[test]
fn wrong_headers_are_rejected_before_the_body_arrives() {
    let server = start(Limits { body: 10 * TIMEOUT, ..limits() });
    let head = server.head(5000);
    for (status, head) in [
        ("406", head.replace("Accept: application/json,", "Accept:")),
        ("415", head.replace("Content-Type: application/json", "Content-Type: text/plain")),
    ] {
        let text = rest(server.open(head.as_bytes()));
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    }
}

/// Sends one byte at a time until there is a response.
fn trickle(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let began = Instant::now();
    let mut answer = [0; 12];
    loop {
        assert!(began.elapsed() < TIMEOUT, "it never stops reading");
        let _ = stream.write_all(b"x");
        match stream.read(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => return String::from_utf8_lossy(&answer).into_owned(),
        }
    }
}

#[test]
fn trickling_bytes_does_not_keep_a_connection_open() {
    let server = start(limits());
    assert_eq!(trickle(server.open(b"POST /mcp HTTP/1.1\r\nX: ")), "HTTP/1.1 408");
    assert_eq!(trickle(server.open(server.head(1_000_000).as_bytes())), "HTTP/1.1 408");
}

#[test]
fn a_long_call_and_an_open_stream_are_not_cut() {
    let server = start(limits());
    let greeting = post(&server.address, &[], &hello());
    let session = greeting.header("mcp-session-id").unwrap().to_owned();
    let call = server.call();
    let mut events = server.open(
        format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n",
            server.address
        )
        .as_bytes(),
    );
    let mut head = [0; 12];
    events.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    // Open two connections, one after the other, and let them time out, so that enough time passes.
    for _ in 0..2 {
        assert_eq!(rest(server.open(b"")), "");
    }
    assert!(!call.is_finished());
    server.answers.add_permits(1);
    let answer = call.join().unwrap();
    assert!(answer.status == 200 && answer.text.contains("at last"), "{}", answer.text);
    assert!(still_open(&mut events));
}

/// Whether the response is still open.
fn still_open(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn a_connection_serves_several_requests_and_is_closed_when_idle() {
    let server = start(limits());
    let ping = modern(1, "server/discover", json!({}));
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\nContent-Length";
    let request = server.head(ping.len()).replace("Content-Length", headers) + &ping;
    let mut stream = server.open(request.as_bytes());
    for again in [true, false] {
        let mut seen = String::new();
        while !seen.contains("\r\n0\r\n\r\n") {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "closed after {seen}");
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        assert!(seen.starts_with("HTTP/1.1 200 "), "{seen}");
        if again {
            stream.write_all(request.as_bytes()).unwrap();
        }
    }
    assert_eq!(rest(stream), "", "an idle connection is closed without an error");
}

#[test]
fn a_connection_above_the_limit_gets_503_until_another_one_closes() {
    let server = start(Limits { connections: 2, head: TIMEOUT, ..limits() });
    let first = server.open(b"POST");
    let _second = server.open(b"POST");
    let refused = rest(server.open(b""));
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("Too many connections"), "{refused}");
    drop(first);
    assert!(common::wait_until(|| post(&server.address, &[], &hello()).status == 200));
}

#[test]
fn headers_and_bodies_that_are_too_large_have_their_own_status() {
    let server = start(Limits { head_bytes: 16 << 10, body_bytes: 4 << 10, ..limits() });
    let fits = [("X-Long", &*"x".repeat(8 << 10))];
    assert_eq!(post(&server.address, &fits, &hello()).status, 200);
    let long = [("X-Long", &*"x".repeat(32 << 10))];
    assert_eq!(post(&server.address, &long, &hello()).status, 431);
    let many = vec![("X-Many", "1"); 200];
    assert_eq!(post(&server.address, &many, &hello()).status, 431);

    let reply = post(&server.address, &[], &"x".repeat(5 << 10));
    assert_eq!(reply.status, 413, "{}", reply.text);
    assert_eq!(reply.message().unwrap()["error"]["code"], -32700);
    assert!(reply.text.contains("longer than 4096 bytes"), "{}", reply.text);

    let chunks = server.head(0).replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let chunk = format!("{chunks}1400\r\n{}\r\n", "x".repeat(0x1400));
    let text = rest(server.open(chunk.as_bytes()));
    assert!(text.starts_with("HTTP/1.1 413 "), "without a content-length: {text}");
}
