//! Test helpers: a sandbox, and a minimal JSON-RPC client for the built server over stdio.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

pub mod http;

use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};
use test_support::place::{Place, environment};

/// Timeout for anything a test waits for. Generous, for loaded machines.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A sandbox of its own for one test: no user configuration, state and tmux server in a directory that goes with it.
pub struct Sandbox {
    place: Place,
}

impl Sandbox {
    pub fn new() -> Self {
        Self { place: Place::new() }
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// A command that runs the server in this sandbox.
    pub fn command(&self) -> Command {
        command(self.path())
    }

    /// Runs a tmux command in this sandbox's tmux server; `None` if it isn't running.
    pub fn tmux(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("tmux");
        command.args(["-N", "-f", "/dev/null", "-S"]).arg(self.place.socket()).args(arguments);
        let output = command.env_remove("TMUX").stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The pid of this sandbox's tmux server.
    pub fn tmux_pid(&self) -> Option<u32> {
        self.place.server_pid()
    }

    /// Stops this sandbox's tmux server and waits until it has exited.
    pub fn end_tmux(&self) {
        self.place.end_server();
    }
}

/// The server's program with everything private below `home`.
pub fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lisa-mcp"));
    command.env_clear().envs(environment(home)).current_dir(home);
    command
}

/// A client with its server process.
pub struct Client {
    pub child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Value>,
    last: u64,
    pub notes: VecDeque<Value>,
    sandbox: Option<Sandbox>,
}

impl Client {
    /// Starts a server with these options in a new sandbox. Sends nothing.
    pub fn silent(options: &[&str]) -> Self {
        Self::again(Sandbox::new(), options)
    }

    /// Starts a server in an existing sandbox.
    pub fn again(sandbox: Sandbox, options: &[&str]) -> Self {
        Self::with(sandbox, options, &[])
    }

    /// Starts a server in a sandbox, with additional environment variables.
    pub fn with(sandbox: Sandbox, options: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = sandbox.command();
        command.envs(env.iter().copied());
        command.args(options).stderr(Stdio::null());
        Self::of(command, sandbox)
    }

    /// Starts a server from a command, in a sandbox.
    pub fn of(mut command: Command, sandbox: Sandbox) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = lines(child.stdout.take().unwrap());
        Self {
            input: child.stdin.take(),
            child,
            output,
            last: 0,
            notes: VecDeque::new(),
            sandbox: Some(sandbox),
        }
    }

    /// Starts a server and does the handshake of 2025-06-18.
    pub fn start() -> Self {
        Self::silent(&[]).greet()
    }

    /// Does the handshake of 2025-06-18.
    pub fn greet(mut self) -> Self {
        let reply = self.request(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "0" },
            }),
        );
        assert_eq!(reply["result"]["protocolVersion"], "2025-06-18", "{reply}");
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        self
    }

    pub fn sandbox(&self) -> &Sandbox {
        self.sandbox.as_ref().unwrap()
    }

    pub fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    pub fn raw(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Sends bytes and a newline.
    pub fn bytes(&mut self, line: &[u8]) {
        self.part(line);
        self.part(b"\n");
    }

    /// Sends bytes without a newline.
    pub fn part(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes the server's standard input.
    pub fn hang_up(&mut self) {
        drop(self.input.take());
    }

    /// Sends a request without waiting for the reply. Returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message from the server.
    pub fn next(&mut self) -> Value {
        self.output.recv_timeout(TIMEOUT).expect("a message before the timeout")
    }

    /// The reply to a request. Other messages are kept in `notes`.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.output.recv_timeout(TIMEOUT).expect("a reply before the timeout");
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

    /// Calls a tool and returns its result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].clone()
    }

    /// Calls a tool that must fail. Returns the error kind and the text.
    pub fn call_err(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let kind = result["structuredContent"]["kind"].as_str().unwrap().to_owned();
        (kind, result["content"][0]["text"].as_str().unwrap().to_owned())
    }

    /// Calls a tool that must succeed. Returns the structured content.
    pub fn call_ok(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// Disconnects, waits for the server to exit, and returns the sandbox.
    pub fn restart(mut self) -> Sandbox {
        drop(self.input.take());
        self.child.wait().unwrap();
        self.sandbox.take().unwrap()
    }

    /// Disconnects and returns the server's exit code.
    pub fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

/// Waits until something holds.
pub fn wait_until(holds: impl FnMut() -> bool) -> bool {
    test_support::until(TIMEOUT, holds)
}

/// Waits for a process to exit and returns its exit code. Kills it and panics on timeout.
pub fn ends_within(child: &mut Child, limit: Duration) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if began.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            panic!("still running after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Drop for Client {
    /// Closes the pipe, so that the server exits by itself. A killed server would leave its connection to tmux behind.
    fn drop(&mut self) {
        drop(self.input.take());
        wait_until(|| !matches!(self.child.try_wait(), Ok(None)));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(output: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let message =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("stdout is not JSON: {line}"));
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}
