//! Somebody who uses agents through an MCP server: starts one, gives it work, answers what it asks, ends it, and begins
//! again.

use super::{super::client::Shared, Log};
use crate::{context::Context, failure::Result};
use serde_json::{Value, json};
use std::time::Instant;

/// What an agent is asked to do, and how often before it is ended.
const PROMPT: &str = "!think 300ms ; !permission Bash ls ; !think 200ms ; !say done";
const TURNS: usize = 2;
/// How long an agent may take for a step.
const LIMIT_S: u64 = 20;

/// One lane of them.
pub(super) struct Driver<'a> {
    pub(super) context: &'a Context,
    pub(super) server: &'a Shared,
    pub(super) log: &'a Log,
    pub(super) lane: usize,
}

impl Driver<'_> {
    /// Drives one agent after the other until a moment. What fails is counted, and the next one is begun.
    pub(super) fn run(self, end: Instant) -> Result<()> {
        let mut number = 0;
        while Instant::now() < end {
            self.context.go_on()?;
            number += 1;
            let name = format!("soak{}-{number}", self.lane);
            let spawn = json!({
                "agent": "demo", "name": name, "args": ["--stream-cps=0"], "wait_ready_s": LIMIT_S,
            });
            if self.call("spawn_session", &spawn, "sessions spawned").is_none() {
                continue;
            }
            for _ in 0..TURNS {
                if Instant::now() >= end || self.turn(&name).is_none() {
                    break;
                }
            }
            self.call("kill_session", &json!({ "session": name, "force": true }), "sessions killed");
        }
        Ok(())
    }

    /// One prompt, what the agent asks, and the end of the turn.
    fn turn(&self, name: &str) -> Option<()> {
        let sent = self.ask("send_input", &json!({ "session": name, "text": PROMPT }))?;
        let Some(turn) = sent["turn"].as_str() else {
            self.log.count("prompts refused");
            let why = format!("{}, {}: {}", sent["delivered"], sent["refusal"], sent["hint"]);
            self.log.tell("no turn was begun", &why);
            return None;
        };
        self.log.count("prompts sent");
        let asks = json!({ "sessions": [name], "until": "awaiting_permission", "timeout_s": LIMIT_S });
        let answer = self.ask("wait_sessions", &asks)?;
        let prompt = &answer["sessions"][0]["prompt"]["id"];
        let Some(id) = prompt.as_str().filter(|_| answer["timed_out"] == false) else {
            let session = &answer["sessions"][0];
            self.log.failed(
                "no permission was asked for",
                &format!("{} {}", session["state"], session["reason"]),
            );
            return None;
        };
        let yes = json!({ "session": name, "choice": "allow_once", "prompt_id": id });
        self.call("answer_prompt", &yes, "permissions answered")?;
        let over = json!({ "sessions": [name], "turn": turn, "timeout_s": LIMIT_S });
        let answer = self.ask("wait_sessions", &over)?;
        if answer["timed_out"] != false {
            let session = &answer["sessions"][0];
            self.log.failed("a turn did not end", &format!("{} {}", session["state"], session["reason"]));
            return None;
        }
        self.log.count("turns over");
        Some(())
    }

    /// Calls a tool, and counts it where it succeeds.
    fn call(&self, tool: &str, arguments: &Value, counted: &'static str) -> Option<Value> {
        let answer = self.ask(tool, arguments)?;
        self.log.count(counted);
        Some(answer)
    }

    fn ask(&self, tool: &str, arguments: &Value) -> Option<Value> {
        match self.server.call(tool, arguments) {
            Ok(answer) => Some(answer),
            Err(failure) => {
                self.log.failed(tool, &failure.line());
                None
            }
        }
    }
}
