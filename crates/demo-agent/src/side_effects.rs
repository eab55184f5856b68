//! Performs side effects other than the screen: files, hooks, child processes.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::agent::{ExternalEvent, Status};
use crate::effect::{Effect, Hook};
use crate::hooks::{HookCommand, Hooks};
use crate::log::{JsonLines, StateFile, Transcript};

/// The number of output lines to show of a command.
const SHOWN_LINES: usize = 40;

/// Sends events to the main loop and wakes it.
#[derive(Debug)]
pub struct Waker {
    events: Sender<ExternalEvent>,
    bell: UnixStream,
}

impl Waker {
    /// Sends events on `events` and a wake-up byte on `bell`.
    #[must_use]
    pub fn new(events: Sender<ExternalEvent>, bell: UnixStream) -> Self {
        Self { events, bell }
    }

    /// Sends an event.
    pub fn send(&self, events: ExternalEvent) {
        if self.events.send(events).is_ok() {
            let _ = (&self.bell).write_all(b"n");
        }
    }

    fn another(&self) -> std::io::Result<Self> {
        Ok(Self { events: self.events.clone(), bell: self.bell.try_clone()? })
    }
}

/// The configured files and hooks.
#[derive(Debug)]
pub struct OutputFiles {
    /// The test log.
    pub log: Option<JsonLines>,
    /// The transcript.
    pub transcript: Option<Transcript>,
    /// The state file.
    pub state: Option<StateFile>,
    /// The hooks.
    pub hooks: Vec<HookCommand>,
}

/// Performs the agent's effects.
#[derive(Debug)]
pub struct SideEffects {
    log: Option<JsonLines>,
    transcript: Option<Transcript>,
    state: Option<StateFile>,
    hooks: Hooks,
    waker: Waker,
    session: String,
    cwd: String,
    seq: u64,
    started: bool,
    runs: HashMap<u64, Pid>,
    later: Vec<Deferred>,
}

#[derive(Debug)]
enum Deferred {
    Tell { event: &'static str, payload: Value, decides: Option<u64> },
    Run { token: u64, command: String },
    Background(String),
}

impl SideEffects {
    /// Sets up the files and hooks of a session.
    ///
    /// # Errors
    /// If the wake-up socket cannot be cloned.
    pub fn new(outlets: OutputFiles, waker: Waker, session: &str, cwd: &str) -> std::io::Result<Self> {
        Ok(Self {
            log: outlets.log,
            transcript: outlets.transcript,
            state: outlets.state,
            hooks: Hooks::start(outlets.hooks, waker.another()?),
            waker,
            session: session.to_owned(),
            cwd: cwd.to_owned(),
            seq: 0,
            started: false,
            runs: HashMap::new(),
            later: Vec::new(),
        })
    }

    /// Writes files at once and defers processes to [`SideEffects::flush`], so that a hook finds log, state and screen up to
    /// date.
    pub fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Log(line) => {
                if let Some(log) = &mut self.log {
                    log.push(line);
                }
            }
            Effect::Record(line) => {
                if let Some(transcript) = &mut self.transcript {
                    transcript.push(line);
                }
            }
            Effect::Session(id) => {
                if let Some(transcript) = &mut self.transcript {
                    transcript.switch(&id);
                }
                self.session = id;
            }
            Effect::Hook(hook) => self.prepare(hook),
            Effect::Run { token, command } => self.later.push(Deferred::Run { token, command }),
            Effect::Background(command) => self.later.push(Deferred::Background(command)),
            Effect::StopRun(token) => {
                if let Some(group) = self.runs.remove(&token) {
                    let _ = kill_process_group(group, Signal::TERM);
                }
            }
            Effect::Print(_)
            | Effect::ClearScreen
            | Effect::Quit { .. }
            | Effect::Abort
            | Effect::Hang { .. } => {}
        }
    }

    fn prepare(&mut self, hook: Hook) {
        self.started |= hook.event == "SessionStart";
        self.seq += 1;
        let path = self.transcript.as_ref().map(|t| t.path().to_string_lossy().into_owned());
        let mut payload = json!({
            "hook_event_name": hook.event, "session_id": self.session, "cwd": self.cwd,
            "transcript_path": path, "seq": self.seq,
        });
        if let (Some(all), Value::Object(fields)) = (payload.as_object_mut(), hook.fields) {
            all.extend(fields);
        }
        self.later.push(Deferred::Tell { event: hook.event, payload, decides: hook.decides });
    }

    /// Publishes the agent's state.
    pub fn publish(&mut self, status: Option<&Status>) {
        if let (Some(state), Some(status)) = (&mut self.state, status) {
            state.publish(status, &self.session, &self.cwd);
        }
    }

    /// Runs the deferred hooks and processes.
    pub fn flush(&mut self) {
        for later in std::mem::take(&mut self.later) {
            match later {
                Deferred::Tell { event, payload, decides } => self.hooks.tell(event, &payload, decides),
                Deferred::Run { token, command } => self.run(token, &command),
                Deferred::Background(command) => self.background(&command),
            }
        }
    }

    /// Cleans up: runs the last hook and removes the state file.
    pub fn close(&mut self, reason: &'static str) {
        if self.started {
            self.prepare(Hook { event: "SessionEnd", fields: json!({"reason": reason}), decides: None });
        }
        self.flush();
        if let Some(state) = &self.state {
            state.remove();
        }
        self.hooks.drain();
    }

    fn run(&mut self, token: u64, command: &str) {
        let child = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1\n{command}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let (Ok(child), Ok(waker)) = (child, self.waker.another()) else {
            self.waker.send(ExternalEvent::Ran { token, output: "cannot start sh".to_owned(), code: None });
            return;
        };
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            self.runs.insert(token, group);
        }
        thread::spawn(move || waker.send(wait_for(child, token)));
    }

    fn background(&self, command: &str) {
        let child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match (child, self.waker.another()) {
            (Ok(mut child), Ok(waker)) => {
                thread::spawn(move || {
                    let _ = child.wait();
                    waker.send(ExternalEvent::BackgroundEnded);
                });
            }
            _ => self.waker.send(ExternalEvent::BackgroundEnded),
        }
    }
}

fn wait_for(mut child: Child, token: u64) -> ExternalEvent {
    let mut bytes = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        let _ = stdout.read_to_end(&mut bytes);
    }
    let code = child.wait().ok().and_then(|status| status.code());
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let hidden = lines.len().saturating_sub(SHOWN_LINES);
    let mut output = lines[hidden..].join("\n");
    if hidden > 0 {
        output = format!("({hidden} lines not shown)\n{output}");
    }
    ExternalEvent::Ran { token, output, code }
}
