//! Tools that start and resume sessions.

use super::{Answer, always_load, structured};
use crate::{
    args::{Args, check_length},
    schema,
    server::Lisa,
};
use lisa_engine::api::{ResumeRequest, SpawnRequest, SpawnResponse};
use rmcp::{model::JsonObject, tool, tool_router};
use std::sync::Arc;

fn spawn_input() -> Arc<JsonObject> {
    schema::input::<SpawnRequest>(|p| {
        p.bounds("wait_ready_s", 0, 600)
            .describe(
                "wait_ready_s",
                "Seconds to wait for the agent to be ready or blocked before returning: 0 to 600; 0 does not wait.",
            )
            .describe(
                "policy",
                "Patterns for permissions to allow or deny without asking. A pattern is a tool's name (`Read`), or a \
                 tool and a pattern for its command or file (`Bash(git status*)`). Deny wins. Anything else is \
                 asked (default: everything).",
            )
            .nested("size", |size| {
                size.bounds("columns", 20, 1000).bounds("rows", 5, 500);
            });
    })
}

fn resume_input() -> Arc<JsonObject> {
    schema::input::<ResumeRequest>(|p| {
        p.bounds("wait_ready_s", 0, 600)
            .describe("wait_ready_s", "Seconds to wait for the agent to be ready: 0 to 600.");
    })
}

#[tool_router(router = spawn_router, vis = "pub(super)")]
impl Lisa {
    /// Start an AI coding agent (claude, codex, opencode, or any command as `generic`) in its own tmux session and
    /// give it a prompt. Use this to delegate a task, or to run several agents side by side. The session keeps
    /// running when you or this server exit. For an agent that already runs use send_input. Next: wait_sessions with
    /// the returned `cursor` as `since`.
    #[tool(
        title = "Start an agent",
        input_schema = spawn_input(),
        output_schema = schema::output::<SpawnResponse>(),
        annotations(read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = true),
        meta = always_load()
    )]
    async fn spawn_session(&self, Args(args): Args<SpawnRequest>) -> Answer {
        let request = args?;
        check_length("prompt", request.prompt.as_deref())?;
        let answer = self.run(move |engine| engine.spawn(&request)).await?;
        Ok(structured(&answer))
    }

    /// Resume the agent's own conversation in a session whose agent has ended (state `exited`), with an optional
    /// prompt. Use this after a crash or a reboot, or when there is more to do; for a running agent use send_input.
    /// Next: wait_sessions.
    #[tool(
        title = "Resume an ended agent",
        input_schema = resume_input(),
        output_schema = schema::output::<lisa_engine::api::ActResponse>(),
        annotations(read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = true)
    )]
    async fn resume_session(&self, Args(args): Args<ResumeRequest>) -> Answer {
        let request = args?;
        check_length("prompt", request.prompt.as_deref())?;
        let answer = self.run(move |engine| engine.resume(&request)).await?;
        Ok(structured(&answer))
    }
}
