//! An MCP server as its client sees it: a program with two pipes.

use crate::failure::{Failure, Result};
use lisa_engine::watch::Caller;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, channel},
    },
    thread,
};

/// A program that is ended when nobody needs it any more.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server and its client: one call after the other, and calls that are begun and ended later.
pub(super) struct Server {
    program: Program,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
    /// Calls that were begun and not answered yet, and the answers to those that were.
    open: HashSet<u64>,
    answered: Vec<Value>,
}

impl Server {
    /// Starts a server and waits for its first answer.
    pub(super) fn start(program: &Path, caller: &Caller) -> Result<Self> {
        let mut command = Command::new(program);
        command.env_clear().envs(caller.env.iter()).current_dir(&caller.cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| Failure::io("run", program, &error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("the server has no pipes"));
        };
        let mut server = Self {
            program: Program(child),
            input,
            output: BufReader::new(output),
            last: 0,
            open: HashSet::new(),
            answered: Vec::new(),
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "0" },
        });
        server.request("initialize", &hello)?;
        say(&mut server.input, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.program.0.id()
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params)?;
        loop {
            let (answered, result) = self.receive()?;
            if answered == Some(id) {
                return Ok(result);
            }
        }
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.last += 1;
        say(&mut self.input, &asked(self.last, method, params))?;
        Ok(self.last)
    }

    /// The next message: which request it answers, and the result. Answers to what was only begun are kept.
    fn receive(&mut self) -> Result<(Option<u64>, Value)> {
        let message = hear(&mut self.output)?.ok_or_else(|| Failure::new("the server is gone"))?;
        let id = message["id"].as_u64();
        if let Some(id) = id.filter(|id| self.open.remove(id)) {
            self.answered.push(message["result"].clone());
            return Ok((Some(id), Value::Null));
        }
        Ok((id, message["result"].clone()))
    }

    /// Calls a tool, whatever it answers.
    pub(super) fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool that must succeed.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let result = self.ask(tool, arguments)?;
        succeeded(tool, result)
    }

    /// Begins to call a tool.
    pub(super) fn begin(&mut self, tool: &str, arguments: &Value) -> Result<()> {
        let id = self.send("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        self.open.insert(id);
        Ok(())
    }

    /// How many calls were begun and not answered so far.
    pub(super) fn begun(&self) -> usize {
        self.open.len()
    }

    /// Waits until every call that was begun is answered, and gives the answers.
    pub(super) fn finish(&mut self) -> Result<Vec<Value>> {
        while !self.open.is_empty() {
            self.receive()?;
        }
        Ok(std::mem::take(&mut self.answered))
    }

    /// The same server for several threads.
    pub(super) fn share(self) -> Shared {
        let waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let shared = Shared {
            input: Mutex::new(self.input),
            last: AtomicU64::new(self.last),
            waiting: Arc::clone(&waiting),
            _program: self.program,
        };
        let mut output = self.output;
        // Ends with the server, which closes its pipe.
        thread::spawn(move || {
            while let Ok(Some(mut message)) = hear(&mut output) {
                let sender = message["id"].as_u64().and_then(|id| locked(&waiting).as_mut()?.remove(&id));
                if let Some(sender) = sender {
                    let _ = sender.send(message["result"].take());
                }
            }
            *locked(&waiting) = None;
        });
        shared
    }
}

/// Who waits for which answer; `None` once the server is gone.
type Waiting = Option<HashMap<u64, Sender<Value>>>;

/// A server that several threads call at once.
pub(super) struct Shared {
    input: Mutex<ChildStdin>,
    last: AtomicU64,
    waiting: Arc<Mutex<Waiting>>,
    _program: Program,
}

impl Shared {
    /// Calls a tool that must succeed.
    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let gone = || Failure::new("the server is gone");
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = channel();
        locked(&self.waiting).as_mut().ok_or_else(gone)?.insert(id, sender);
        let params = json!({ "name": tool, "arguments": arguments });
        say(&mut locked(&self.input), &asked(id, "tools/call", &params))?;
        succeeded(tool, receiver.recv().map_err(|_| gone())?)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn asked(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn say(input: &mut ChildStdin, message: &Value) -> Result<()> {
    input.write_all(format!("{message}\n").as_bytes()).map_err(|error| unreachable(&error))
}

/// The next message; `None` when there will be no more.
fn hear(output: &mut BufReader<ChildStdout>) -> Result<Option<Value>> {
    let mut line = String::new();
    match output.read_line(&mut line).map_err(|error| unreachable(&error))? {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_str(&line).unwrap_or_default())),
    }
}

fn succeeded(tool: &str, mut result: Value) -> Result<Value> {
    if result["isError"] == false {
        return Ok(result["structuredContent"].take());
    }
    Err(Failure::new(format!("{tool}: {result}")))
}

pub(super) fn unreachable(error: &io::Error) -> Failure {
    Failure::new(format!("the server cannot be reached: {error}"))
}
