//! The built server over HTTP, with a minimal client.

use super::{Sandbox, TIMEOUT};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

/// A server on a free port, in its own sandbox.
pub struct Server {
    pub child: Child,
    pub address: String,
    pub sandbox: Sandbox,
    said: Arc<Mutex<Vec<String>>>,
}

/// An HTTP response.
pub struct Reply {
    pub status: u16,
    pub text: String,
}

impl Reply {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (head, _) = self.text.split_once("\r\n\r\n")?;
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The last JSON-RPC message in the body, which is JSON or an event stream.
    pub fn message(&self) -> Option<Value> {
        let lines = self.text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        lines
            .filter(|line| line.starts_with('{'))
            .filter_map(|line| serde_json::from_str(line).ok())
            .next_back()
    }
}

impl Server {
    pub fn start(options: &[&str], token: Option<&str>) -> Self {
        Self::start_in(Sandbox::new(), options, token)
    }

    pub fn start_in(sandbox: Sandbox, options: &[&str], token: Option<&str>) -> Self {
        let mut command = sandbox.command();
        if let Some(token) = token {
            command.env("LISA_MCP_TOKEN", token);
        }
        command.args(["--http", "127.0.0.1:0"]).args(options).stdin(Stdio::null()).stderr(Stdio::piped());
        let (child, address, said) = Self::spawn(&mut command);
        Self { child, address, sandbox, said }
    }

    /// Starts a server. Returns the process, its address, and its standard error.
    pub fn spawn(command: &mut Command) -> (Child, String, Arc<Mutex<Vec<String>>>) {
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = loop {
            let line = errors.next().expect("the server prints its address").unwrap();
            said.push(line.clone());
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.trim_end_matches("/mcp").to_owned();
            }
        };
        let said = Arc::new(Mutex::new(said));
        let heard = Arc::clone(&said);
        // Drain standard error, so that it never blocks the server; it may contain a panic.
        std::thread::spawn(move || {
            errors.map_while(Result::ok).for_each(|line| heard.lock().unwrap().push(line));
        });
        (child, address, said)
    }

    /// The lines on standard error so far.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Posts a message with additional headers.
    pub fn post(&self, headers: &[(&str, &str)], body: &(impl AsRef<[u8]> + ?Sized)) -> Reply {
        post(&self.address, headers, body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Posts a message on a new connection.
pub fn post(address: &str, headers: &[(&str, &str)], body: &(impl AsRef<[u8]> + ?Sized)) -> Reply {
    let body = body.as_ref();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut text = "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
                    Accept: application/json, text/event-stream\r\n"
        .to_owned();
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str(&format!("Host: {address}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    // A server that rejects a large body may close the connection before it has read all of it.
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(body));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    Reply { status: text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0), text }
}

/// The `initialize` request of a 2025-06-18 client.
pub fn hello() -> String {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } },
    })
    .to_string()
}

/// A request of a 2026-07-28 client, which has no handshake.
pub fn modern(id: u64, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}
