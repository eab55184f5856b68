//! Hooks: commands that receive events and may decide instead of the user.
//!
//! One thread runs them in order, so the screen never waits for a hook. A hook that hangs delays only the hooks after it.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::agent::ExternalEvent;
use crate::side_effects::Waker;

/// On exit, running hooks get this long to finish.
const DRAIN: Duration = Duration::from_secs(3);

/// A command to run for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The event to run on; `None` means all events.
    event: Option<String>,
    argv: Vec<String>,
}

impl HookCommand {
    /// Parses a JSON list of arguments, or a shell command.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let argv = serde_json::from_str::<Vec<String>>(text).ok().filter(|argv| !argv.is_empty());
        Self { event: None, argv: argv.unwrap_or_else(|| shell(text)) }
    }

    /// Parses `{"hooks": {"Stop": "line for the shell", "Notification": ["program", "argument"]}}`.
    ///
    /// # Errors
    /// A message if the JSON is malformed.
    pub fn from_settings(text: &str) -> Result<Vec<Self>, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| format!("settings: {e}"))?;
        let Some(hooks) = value.get("hooks") else { return Ok(Vec::new()) };
        let hooks = hooks.as_object().ok_or("settings: `hooks` must be an object")?;
        hooks.iter().map(|(event, command)| Self::from_setting(event, command)).collect()
    }

    fn from_setting(event: &str, command: &Value) -> Result<Self, String> {
        let argv = match command {
            Value::String(line) => shell(line),
            Value::Array(_) => serde_json::from_value(command.clone()).unwrap_or_default(),
            _ => Vec::new(),
        };
        if argv.is_empty() {
            return Err(format!("settings: hook {event} must be a string or a list of strings"));
        }
        let event = (event != "*").then(|| event.to_owned());
        Ok(Self { event, argv })
    }

    fn wants(&self, event: &str) -> bool {
        self.event.as_deref().is_none_or(|wanted| wanted == event)
    }

    /// Runs the command with the payload on standard input. Returns its output if `read`.
    fn run(&self, payload: &[u8], read: bool) -> Option<String> {
        let (program, args) = self.argv.split_first()?;
        let output = if read { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A hook may ignore its input.
            let _ = stdin.write_all(payload);
        }
        let mut text = String::new();
        if let Some(mut stdout) = child.stdout.take() {
            let _ = stdout.read_to_string(&mut text);
        }
        let _ = child.wait();
        Some(text)
    }
}

fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

struct Job {
    event: &'static str,
    payload: Vec<u8>,
    decides: Option<u64>,
}

/// The hook thread.
#[derive(Debug)]
pub struct Hooks {
    jobs: Option<Sender<Job>>,
    finished: Receiver<()>,
}

impl Hooks {
    /// Starts the thread if there are hooks.
    #[must_use]
    pub fn start(commands: Vec<HookCommand>, waker: Waker) -> Self {
        let (done, finished) = channel();
        if commands.is_empty() {
            return Self { jobs: None, finished };
        }
        let (jobs, queue) = channel::<Job>();
        thread::spawn(move || {
            for job in queue {
                let decision = run_all(&commands, &job);
                if let Some(token) = job.decides {
                    waker.send(ExternalEvent::Decided { token, decision });
                }
            }
            let _ = done.send(());
        });
        Self { jobs: Some(jobs), finished }
    }

    /// Queues an event.
    pub fn tell(&self, event: &'static str, payload: &Value, decides: Option<u64>) {
        if let Some(jobs) = &self.jobs {
            let mut payload = payload.to_string().into_bytes();
            payload.push(b'\n');
            let _ = jobs.send(Job { event, payload, decides });
        }
    }

    /// Waits until the queue is empty, with a timeout.
    pub fn drain(&mut self) {
        if self.jobs.take().is_some() {
            let _ = self.finished.recv_timeout(DRAIN);
        }
    }
}

/// Runs all commands for an event; the first one that prints a decision decides.
fn run_all(commands: &[HookCommand], job: &Job) -> Option<Value> {
    let mut decision = None;
    for command in commands.iter().filter(|command| command.wants(job.event)) {
        let text = command.run(&job.payload, job.decides.is_some()).unwrap_or_default();
        let value = serde_json::from_str::<Value>(&text).ok();
        decision = decision.or(value.filter(|v| v.get("decision").is_some()));
    }
    decision
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lists_or_shell_lines() {
        assert_eq!(HookCommand::parse(r#"["/bin/lisa","hook"]"#).argv, ["/bin/lisa", "hook"]);
        assert_eq!(HookCommand::parse("cat >> x").argv, ["sh", "-c", "cat >> x"]);
        assert_eq!(HookCommand::parse("[ -f x ]").argv, ["sh", "-c", "[ -f x ]"]);
    }

    #[test]
    fn settings_name_events() {
        let all = HookCommand::from_settings(r#"{"hooks":{"Stop":"a","*":["b","c"]},"other":1}"#).unwrap();
        assert!(all[0].wants("Stop") && !all[0].wants("SessionStart"));
        assert!(all[1].wants("Stop") && all[1].wants("SessionStart"));
        assert_eq!(all[1].argv, ["b", "c"]);
        assert!(HookCommand::from_settings(r#"{"hooks":{"Stop":3}}"#).is_err());
        assert_eq!(HookCommand::from_settings("{}").unwrap(), []);
    }

    #[test]
    fn the_first_decision_counts_and_silence_is_none() {
        let job =
            |payload: &str| Job { event: "PermissionRequest", payload: payload.into(), decides: Some(1) };
        let quiet = HookCommand::parse("cat > /dev/null");
        let echo = HookCommand::parse("cat");
        let commands = [quiet.clone(), echo];
        let decision = run_all(&commands, &job(r#"{"decision":"deny"}"#));
        assert_eq!(decision, Some(serde_json::json!({"decision": "deny"})));
        assert_eq!(run_all(&[quiet], &job("{}")), None);
        assert_eq!(run_all(&[HookCommand::parse(r#"["/does/not/exist"]"#)], &job("{}")), None);
    }
}
