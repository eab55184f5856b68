//! A client in a few lines: JSON-RPC over the pipes of the built server.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails loudly")]

use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

/// Longer than anything should take, even on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The server's program, in a world of its own: no user configuration, state in a temporary folder.
pub fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lisa-mcp"));
    command.env_clear();
    let mut path = Path::new(env!("CARGO_BIN_EXE_lisa-mcp")).parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home).env("PATH", path).env("LANG", "C.UTF-8");
    command.env("LISA_STATE_DIR", home.join("state")).env("LISA_CONFIG_DIR", home.join("config"));
    command.env("LISA_TMUX_SOCKET", home.join("tmux")).current_dir(home);
    command
}

/// A client and its server.
pub struct Client {
    pub child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Value>,
    last: u64,
    pub notes: VecDeque<Value>,
    home: Option<tempfile::TempDir>,
}

impl Client {
    /// Starts a server with these options, without saying anything yet.
    pub fn silent(options: &[&str]) -> Self {
        Self::again(tempfile::tempdir().unwrap(), options)
    }

    /// Starts a server in the world of an earlier one.
    pub fn again(home: tempfile::TempDir, options: &[&str]) -> Self {
        let mut command = command(home.path());
        command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = lines(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), child, output, last: 0, notes: VecDeque::new(), home: Some(home) }
    }

    /// Starts a server and shakes hands as a client of 2025-06-18.
    pub fn start() -> Self {
        let mut client = Self::silent(&[]);
        let reply = client.request(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "0" },
            }),
        );
        assert_eq!(reply["result"]["protocolVersion"], "2025-06-18", "{reply}");
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    pub fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    pub fn raw(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Sends a request without waiting for its answer; its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Whatever the server says next.
    pub fn next(&mut self) -> Value {
        self.output.recv_timeout(PATIENCE).expect("something in time")
    }

    /// The answer to a request; what comes in between is kept in `notes`.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.output.recv_timeout(PATIENCE).expect("an answer in time");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notes.push_back(message);
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool; its result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].clone()
    }

    /// Calls a tool that must fail; its kind and the whole text.
    pub fn fault(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let kind = result["structuredContent"]["kind"].as_str().unwrap().to_owned();
        (kind, result["content"][0]["text"].as_str().unwrap().to_owned())
    }

    /// Calls a tool that must succeed; its structured answer.
    pub fn good(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// The client goes away, and its server with it; what is left is their world.
    pub fn restart(mut self) -> tempfile::TempDir {
        drop(self.input.take());
        self.child.wait().unwrap();
        self.home.take().unwrap()
    }

    /// The client goes away; the server's exit code.
    pub fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(output: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON on stdout: {line}"));
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}
