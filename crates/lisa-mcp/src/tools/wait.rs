//! Waiting, as a call that ends or as a task.

use super::{Answer, always_load};
use crate::{args::Args, fit, schema, server::Lisa, tasks};
use lisa_engine::{
    api::{WaitRequest, WaitResponse},
    engine::{Cancel, Said},
    error::{Error, Kind},
    words::{StateName, Status},
};
use rmcp::{
    RoleServer,
    model::{CallToolResult, JsonObject, ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
    tool, tool_router,
};
use std::{sync::Arc, time::Instant};
use tokio::sync::mpsc;

/// Below the shortest time-out of the known clients.
pub(crate) const DEFAULT_SECONDS: f64 = 45.0;

/// The longest wait, and how long a task waits unless said.
pub(crate) const MOST_SECONDS: u32 = 3600;

fn wait_input() -> Arc<JsonObject> {
    let words = ["attention", "event", "turn"];
    let words = words.into_iter().chain(Status::ALL.iter().map(|s| s.as_str()));
    let words = words.chain(StateName::ALL.iter().map(|s| s.as_str()));
    schema::input::<WaitRequest>(|p| {
        p.bounds("timeout_s", 0, MOST_SECONDS).words("until", words).describe(
            "timeout_s",
            "How long to wait, in seconds: 45 unless said, 0 to 3600. 0 looks once. Many clients give up on a call \
             after 60 s.",
        );
    })
}

/// A turn can only be waited for by its id.
fn check(request: &WaitRequest) -> Result<(), Error> {
    if request.until.as_deref() == Some("turn") && request.turn.is_none() {
        return Err(Error::invalid(
            "`until` is `turn`, but no `turn` is given",
            "give the `turn` of the receipt, or leave `until` out",
        ));
    }
    Ok(())
}

/// A wait's answer as a tool result.
pub(crate) fn result(answer: WaitResponse) -> CallToolResult {
    CallToolResult::structured(fit::wait(answer))
}

#[tool_router(router = wait_router, vis = "pub(super)")]
impl Lisa {
    /// Wait until one of your sessions (or all, `mode: all`) needs attention: it asks something, its turn is over,
    /// it failed or ended. Use this after spawn_session, send_input and answer_prompt, instead of polling
    /// session_status. Returns after 45 s at the latest unless you say otherwise, with `timed_out` and what the
    /// sessions do; nothing is lost: call again with the returned `cursor` as `since`. Next: answer_prompt where
    /// `prompt` is set, read_session where it delivered.
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
            let look = self.look_once(&request).await?;
            if look.timed_out {
                return Ok(tasks::create(self, request, &look).await?.into());
            }
            return Ok(result(look).into());
        }
        request.timeout_s.get_or_insert(DEFAULT_SECONDS);
        Ok(result(self.wait(request, &context).await?).into())
    }

    /// What the wait would answer now.
    pub(crate) async fn look_once(&self, request: &WaitRequest) -> Result<WaitResponse, Error> {
        let request = WaitRequest { timeout_s: Some(0.0), ..request.clone() };
        self.run(move |engine| engine.wait(&request, &Cancel::default(), &mut |_| {})).await
    }

    /// Waits without a thread; tells the client what the sessions do meanwhile; ends when the client cancels.
    async fn wait(
        &self,
        request: WaitRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<WaitResponse, Error> {
        let raised = RaiseOnDrop(Cancel::default());
        let mut progress = context.meta.get_progress_token().map(|token| Progress {
            peer: context.peer.clone(),
            token,
            began: Instant::now(),
            total: request.timeout_s.unwrap_or(DEFAULT_SECONDS),
        });
        let (sender, mut said) = mpsc::unbounded_channel::<Said>();
        self.engine.wait_parked(request, &raised.0, progress.is_some(), move |said| {
            let _ = sender.send(said);
        })?;
        loop {
            tokio::select! {
                said = said.recv() => match said {
                    Some(Said::Done(answer)) => return *answer,
                    Some(Said::Progress(line)) => {
                        if let Some(progress) = &mut progress {
                            progress.say(line).await;
                        }
                    }
                    None => return Err(Error::new(
                        Kind::Cancelled,
                        "the wait ended with the server",
                        "wait again with the same cursor",
                    )),
                },
                () = context.ct.cancelled(), if !raised.0.is_cancelled() => raised.0.cancel(),
                () = self.ended(), if !raised.0.is_cancelled() => raised.0.cancel(),
            }
        }
    }
}

/// Ends the engine's wait when the call that asked for it is gone. It never touches a session.
struct RaiseOnDrop(Cancel);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Where the client wants to hear what the sessions do.
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
            tracing::debug!(%error, "progress could not be sent");
        }
    }
}
