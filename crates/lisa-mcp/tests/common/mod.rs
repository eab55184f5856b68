//! A client in a few lines: JSON-RPC over the pipes of the built server.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails loudly")]

pub mod http;

use lisa_engine::{
    config::{Environment, Socket},
    tmux::Tmux,
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// Longer than anything should take, even on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A world of its own for one test: no user configuration, state and tmux server in a folder that goes with it.
pub struct World {
    dir: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        Self { dir: tempfile::Builder::new().prefix("lisa-").tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The server's program in this world.
    pub fn command(&self) -> Command {
        command(self.path())
    }

    /// A question to this world's tmux server; `None` when none runs.
    pub fn tmux(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new("tmux");
        command.args(["-N", "-f", "/dev/null", "-S"]).arg(self.path().join("tmux")).args(arguments);
        let output = command.env_remove("TMUX").stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The process of this world's tmux server.
    pub fn tmux_pid(&self) -> Option<u32> {
        self.tmux(&["display-message", "-p", "#{pid}"])?.parse().ok()
    }

    /// Ends this world's tmux server, and waits until it is gone.
    pub fn end_tmux(&self) {
        let tmux = Tmux::new(Socket::Path(self.path().join("tmux")), &Environment::of_this_process());
        let gone = tmux.and_then(|tmux| tmux.end_server(PATIENCE));
        if !std::thread::panicking() {
            assert!(matches!(gone, Ok(true)), "the tmux server of this test did not end: {gone:?}");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.end_tmux();
    }
}

/// Makes sure that the demo agent stands beside the server, where `agent: demo` finds it.
pub fn build_demo_agent() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let beside = Path::new(env!("CARGO_BIN_EXE_lisa-mcp")).with_file_name("lisa-demo-agent");
        if beside.exists() {
            return;
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "demo-agent"]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success() && beside.exists(), "the demo agent could not be built");
    });
}

/// The server's program with everything private below `home`.
pub fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lisa-mcp"));
    command.env_clear();
    command
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LANG", "C.UTF-8");
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
    world: Option<World>,
}

impl Client {
    /// Starts a server with these options, without saying anything yet.
    pub fn silent(options: &[&str]) -> Self {
        Self::again(World::new(), options)
    }

    /// Starts a server in the world of an earlier one.
    pub fn again(world: World, options: &[&str]) -> Self {
        Self::with(world, options, &[])
    }

    /// Starts a server in a world, with more in its environment.
    pub fn with(world: World, options: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = world.command();
        command.envs(env.iter().copied());
        command.args(options).stderr(Stdio::null());
        Self::of(command, world)
    }

    /// Starts a server by a command, in a world.
    pub fn of(mut command: Command, world: World) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = lines(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), child, output, last: 0, notes: VecDeque::new(), world: Some(world) }
    }

    /// Starts a server and shakes hands as a client of 2025-06-18.
    pub fn start() -> Self {
        Self::silent(&[]).greet()
    }

    /// Shakes hands as a client of 2025-06-18.
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

    pub fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    pub fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    pub fn raw(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// A line of any bytes.
    pub fn bytes(&mut self, line: &[u8]) {
        self.part(line);
        self.part(b"\n");
    }

    /// Bytes without the end of a line.
    pub fn part(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes the server's standard input.
    pub fn hang_up(&mut self) {
        drop(self.input.take());
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
    pub fn restart(mut self) -> World {
        drop(self.input.take());
        self.child.wait().unwrap();
        self.world.take().unwrap()
    }

    /// The client goes away; the server's exit code.
    pub fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

/// Waits for something to come true.
pub fn until(mut holds: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Waits for a process to end by itself; its exit code. One that does not is killed.
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
    /// A client leaves by closing the pipe; a server that was killed instead would leave its connection to tmux behind.
    fn drop(&mut self) {
        drop(self.input.take());
        until(|| !matches!(self.child.try_wait(), Ok(None)));
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
