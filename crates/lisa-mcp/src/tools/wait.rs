//! The tool that waits for sessions, as a blocking call or as a task.

use super::{Answer, always_load};
use crate::{args::Args, schema, server::Lisa, tasks, truncate};
use lisa_engine::{
    api::{
        WaitRequest, WaitResponse,
        words::{StateName, Status},
    },
    engine::WaitMessage,
    error::{Error, Kind},
    watch::Cancel,
};
use rmcp::{
    RoleServer,
    model::{CallToolResult, JsonObject, ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
    tool, tool_router,
};
use std::{sync::Arc, time::Instant};
use tokio::sync::mpsc;

/// Default timeout. Shorter than the request timeout of every known client.
pub(crate) const DEFAULT_SECONDS: f64 = 45.0;

/// Maximum timeout, and the default of a task.
pub(crate) const MAX_SECONDS: u32 = 3600;

fn wait_input() -> Arc<JsonObject> {
    let words = ["attention", "event", "turn"];
    let words = words.into_iter().chain(Status::ALL.iter().map(|s| s.as_str()));
    let words = words.chain(StateName::ALL.iter().map(|s| s.as_str()));
    schema::input::<WaitRequest>(|p| {
        p.bounds("timeout_s", 0, MAX_SECONDS).enum_values("until", words).describe(
            "timeout_s",
            "Timeout in seconds: 0 to 3600 (default: 45). 0 returns at once. Many clients cancel a call after 60 s.",
        );
    })
}

/// `until: turn` requires a turn id.
fn check(request: &WaitRequest) -> Result<(), Error> {
    if request.until.as_deref() == Some("turn") && request.turn.is_none() {
        return Err(Error::invalid(
            "`until: turn` requires `turn`",
            "pass the `turn` of the receipt, or leave out `until`",
        ));
    }
    Ok(())
}

/// A wait response as a tool result.
pub(crate) fn result(answer: WaitResponse) -> CallToolResult {
    CallToolResult::structured(truncate::wait(answer))
}

#[tool_router(router = wait_router, vis = "pub(super)")]
impl Lisa {
    /// Wait until one of your sessions (or all, `mode: all`) needs attention: it asks something, its turn is over,
    /// it failed or ended. Use this after spawn_session, send_input and answer_prompt, instead of polling
    /// session_status. Times out after 45 s (default) with `timed_out` and what the sessions are doing. To go on, call
    /// again with the returned `cursor` as `since`. Next: answer_prompt if `prompt` is set, read_session if it
    /// delivered.
    #[tool(
        title = "Wait for sessions",
        input_schema = wait_input(),
        output_schema = schema::output::<WaitResponse>(),
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false),
        meta = always_load()
    )]
    async fn wait_sessions(
        &self,
        Args(args): Args<WaitRequest>,
        context: RequestContext<RoleServer>,
    ) -> Answer {
        let mut request = args?;
        check(&request)?;
        let as_task = context.client_capabilities().is_some_and(|client| client.supports_tasks());
        if as_task && request.timeout_s != Some(0.0) {
            let response = self.check_once(&request).await?;
            if response.timed_out {
                return Ok(tasks::create(self, request, &response).await?.into());
            }
            return Ok(result(response).into());
        }
        request.timeout_s.get_or_insert(DEFAULT_SECONDS);
        Ok(result(self.wait(request, &context).await?).into())
    }

    /// Evaluates the wait once, with a timeout of 0.
    pub(crate) async fn check_once(&self, request: &WaitRequest) -> Result<WaitResponse, Error> {
        let request = WaitRequest { timeout_s: Some(0.0), ..request.clone() };
        self.run(move |engine| engine.wait(&request, &Cancel::default(), &mut |_| {})).await
    }

    /// Waits without blocking a thread. Sends progress notifications, and ends when the client cancels.
    async fn wait(
        &self,
        request: WaitRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<WaitResponse, Error> {
        let guard = CancelOnDrop(Cancel::default());
        let mut progress = context.meta.get_progress_token().map(|token| Progress {
            peer: context.peer.clone(),
            token,
            began: Instant::now(),
            total: request.timeout_s.unwrap_or(DEFAULT_SECONDS),
        });
        let (sender, mut updates) = mpsc::unbounded_channel::<WaitMessage>();
        self.engine.wait_parked(request, &guard.0, progress.is_some(), move |update| {
            let _ = sender.send(update);
        })?;
        loop {
            tokio::select! {
                update = updates.recv() => match update {
                    Some(WaitMessage::Done(answer)) => return *answer,
                    Some(WaitMessage::Progress(line)) => {
                        if let Some(progress) = &mut progress {
                            progress.say(line).await;
                        }
                    }
                    None => return Err(Error::new(
                        Kind::Cancelled,
                        "the server shut down during the wait",
                        "wait again with the same cursor",
                    )),
                },
                () = context.ct.cancelled(), if !guard.0.is_cancelled() => guard.0.cancel(),
                () = self.shutdown_requested(), if !guard.0.is_cancelled() => guard.0.cancel(),
            }
        }
    }
}

/// Cancels the engine's wait when the call is dropped. Sessions are not affected.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Sends progress notifications to the client.
struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    began: Instant,
    total: f64,
}

impl Progress {
    async fn say(&mut self, line: String) {
        let done = self.began.elapsed().as_secs_f64();
        let note = ProgressNotificationParam::new(self.token.clone(), done).with_total(self.total.max(done));
        if let Err(error) = self.peer.notify_progress(note.with_message(line)).await {
            tracing::debug!(%error, "cannot send progress");
        }
    }
}
