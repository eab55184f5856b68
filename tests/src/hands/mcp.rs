//! A client of the MCP server: JSON-RPC over the pipes of the built program.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lisa_engine::api::{AnswerRequest, SendRequest, SpawnRequest, View};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Answered, Done, Hands, Seen, Sent, Spawned, Told, Until};
use crate::lab::{self, Lab};

/// Longer than any one call may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a server may take to end when nobody speaks to it any more.
const GONE: Duration = Duration::from_secs(20);

/// A client with a server of its own.
pub struct Mcp {
    wire: RefCell<Wire>,
}

struct Wire {
    server: Child,
    /// Closed when the client goes.
    input: Option<ChildStdin>,
    output: Receiver<Value>,
    last: u64,
}

impl Mcp {
    /// Starts a server in a lab and shakes hands with it.
    pub fn start(lab: &Lab) -> Self {
        Self::start_in(lab.home.env(), lab.home.project())
    }

    /// Starts a server with this environment in a directory, and shakes hands with it.
    pub fn start_in(env: impl Iterator<Item = (OsString, OsString)>, directory: &Path) -> Self {
        let mut command = Command::new(lab::lisa_mcp());
        command.env_clear().envs(env).current_dir(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().unwrap();
        let (said, output) = channel();
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                if said.send(message).is_err() {
                    return;
                }
            }
        });
        let input = server.stdin.take();
        let mut wire = Wire { server, input, output, last: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "scenarios", "version": "0"}});
        wire.request("initialize", hello).unwrap();
        wire.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        Self { wire: RefCell::new(wire) }
    }

    /// Calls a tool; its result, or what it says is wrong.
    pub fn call(&self, tool: &str, arguments: Value) -> Told<Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.wire.borrow_mut().request("tools/call", params)?;
        match result["isError"] == true {
            true => Err(result.to_string()),
            false => Ok(result),
        }
    }

    fn told<T: DeserializeOwned>(&self, tool: &str, arguments: Value) -> Told<T> {
        let value = self.call(tool, arguments)?["structuredContent"].clone();
        serde_json::from_value(value.clone()).map_err(|error| format!("{tool}: {error}: {value}"))
    }
}

impl Wire {
    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").and_then(|()| input.flush()).unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Told<Value> {
        self.last += 1;
        let id = self.last;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.output.recv_timeout(PATIENCE).map_err(|error| format!("{method}: {error}"))?;
            if message["id"] == id && message.get("method").is_none() {
                return match message.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(message.to_string()),
                };
            }
        }
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let wire = self.wire.get_mut();
        wire.input = None;
        let told = Instant::now();
        while matches!(wire.server.try_wait(), Ok(None)) && told.elapsed() < GONE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let stayed = matches!(wire.server.try_wait(), Ok(None));
        let _ = wire.server.kill();
        let _ = wire.server.wait();
        assert!(!stayed || std::thread::panicking(), "the server did not end when its client went away");
    }
}

impl Hands for Mcp {
    fn spawn(&self, request: &SpawnRequest) -> Told<Spawned> {
        self.told("spawn_session", json!(request))
    }

    fn send(&self, request: &SendRequest) -> Told<Sent> {
        self.told("send_input", json!(request))
    }

    fn answer(&self, request: &AnswerRequest) -> Told<Answered> {
        self.told("answer_prompt", json!(request))
    }

    fn status(&self, session: &str) -> Told<Seen> {
        self.told("session_status", json!({"session": session}))
    }

    fn wait(&self, session: &str, until: &Until<'_>, seconds: f64) -> Told<()> {
        let mut arguments = json!({"sessions": [session], "timeout_s": seconds});
        match until {
            Until::Word(word) => arguments["until"] = json!(word),
            Until::Turn(turn) => (arguments["until"], arguments["turn"]) = (json!("turn"), json!(turn)),
        }
        let answer = self.call("wait_sessions", arguments)?;
        match answer["structuredContent"]["timed_out"].as_bool() {
            Some(false) => Ok(()),
            _ => Err(format!("the time was over: {answer}")),
        }
    }

    fn read(&self, session: &str, view: View) -> Told<String> {
        let answer =
            self.call("read_session", json!({"session": session, "view": view, "max_lines": 400}))?;
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        // The last line is the cursor.
        Ok(text.rsplit_once('\n').map_or("", |(text, _)| text).to_owned())
    }

    fn interrupt(&self, session: &str) -> Told<Done> {
        self.told("interrupt_session", json!({"session": session}))
    }

    fn resume(&self, session: &str, prompt: Option<&str>) -> Told<Done> {
        let mut arguments = json!({"session": session});
        if let Some(prompt) = prompt {
            arguments["prompt"] = json!(prompt);
        }
        self.told("resume_session", arguments)
    }

    fn kill(&self, session: &str) -> Told<Done> {
        let answer = self.call("kill_session", json!({"session": session}))?;
        let row = answer["structuredContent"]["sessions"][0].clone();
        serde_json::from_value(row).map_err(|error| format!("{error}: {answer}"))
    }
}
