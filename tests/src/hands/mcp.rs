//! The MCP server, called by the client of MCP's own SDK.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lisa_engine::api::{AnswerRequest, SendRequest, SpawnRequest, View};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService, serve_client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::{Answered, Done, Hands, Seen, Sent, Spawned, Told, Until};
use crate::lab::{self, Lab};

/// Longer than any one call may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a server may take to end when nobody speaks to it any more.
const GONE: Duration = Duration::from_secs(20);

/// A client with a server of its own. Its calls block, as those of the other hands do.
pub struct Mcp {
    runtime: Runtime,
    service: RunningService<RoleClient, ()>,
    server: Child,
}

impl Mcp {
    /// Starts a server in a lab and shakes hands with it.
    pub fn start(lab: &Lab) -> Self {
        Self::start_in(lab.home.env(), lab.home.project())
    }

    /// Starts a server with this environment in a directory, and shakes hands with it.
    pub fn start_in(env: impl Iterator<Item = (OsString, OsString)>, directory: &Path) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut command = Command::new(lab::lisa_mcp());
        command.env_clear().envs(env).current_dir(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let (service, server) = runtime.block_on(async {
            let mut server = command.spawn().unwrap();
            let pipes = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
            (serve_client((), pipes).await.unwrap(), server)
        });
        Self { runtime, service, server }
    }

    /// Calls a tool; its result, or what it says is wrong.
    pub fn call(&self, tool: &str, arguments: Value) -> Told<Value> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments.as_object().cloned();
        let called = self.runtime.block_on(async { timeout(PATIENCE, self.service.call_tool(params)).await });
        let result = called.map_err(|error| format!("{tool}: {error}"))?;
        let result = json!(result.map_err(|error| format!("{tool}: {error}"))?);
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

impl Drop for Mcp {
    fn drop(&mut self) {
        let Self { runtime, service, server } = self;
        let ended = runtime.block_on(async {
            // It hears that its client is gone by the end of its standard input.
            let _ = service.close().await;
            let ended = timeout(GONE, server.wait()).await.is_ok();
            let _ = server.kill().await;
            ended
        });
        assert!(ended || std::thread::panicking(), "the server did not end when its client went away");
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
