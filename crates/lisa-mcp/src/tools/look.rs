//! Tools that inspect sessions and the installation.

use super::{Answer, structured};
use crate::{
    args::Args,
    next::{self, WithNext},
    schema,
    server::Lisa,
    truncate,
};
use lisa_engine::api::{
    DoctorResponse, Explanation, ListRequest, ListResponse, Session, SessionRequest, next_step,
};
use rmcp::{model::JsonObject, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Default number of rows of a list.
const LIST_LIMIT: u32 = 20;

/// No parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn list_input() -> Arc<JsonObject> {
    schema::input::<ListRequest>(|p| {
        p.bounds("limit", 1, 100).describe("limit", "Maximum number of rows, 1 to 100 (default: 20).");
    })
}

fn one_session() -> Arc<JsonObject> {
    schema::input::<SessionRequest>(|p| {
        p.describe("session", "The session's name, a unique prefix of it, or its tag.");
    })
}

#[tool_router(router = look_router, vis = "pub(super)")]
impl Lisa {
    /// Show one session: status, state, attention, open prompt with its options, last message, todos, usage. Use this
    /// for a single look, such as before answer_prompt. To wait for a change use wait_sessions, which takes one call
    /// instead of many; for the text it wrote use read_session. Next: answer_prompt if `prompt` is set, else what
    /// `next` says.
    #[tool(
        title = "Status of one session",
        input_schema = one_session(),
        output_schema = schema::output::<WithNext<Session>>(),
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn session_status(&self, Args(args): Args<SessionRequest>) -> Answer {
        let request = args?;
        let (mut session, cursor) =
            self.run(move |engine| Ok((engine.status(&request)?, engine.cursor()?))).await?;
        // explain_session shows the signals.
        session.signals = None;
        Ok(structured(&WithNext::new(session, |session| next::text(&next_step(session, cursor)))))
    }

    /// List sessions as short rows, oldest first (default: 20, at most 100). Use this to find sessions again, or to
    /// see which need you; filter by status, agent or project, and page with `cursor`. For one session use
    /// session_status. Next: session_status of one that needs you, or wait_sessions.
    #[tool(
        title = "List sessions",
        input_schema = list_input(),
        output_schema = schema::output::<WithNext<ListResponse>>(),
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn list_sessions(&self, Args(args): Args<ListRequest>) -> Answer {
        let mut request = args?;
        request.limit.get_or_insert(LIST_LIMIT);
        let mut answer = self.run(move |engine| engine.list(&request)).await?;
        truncate::list(&mut answer);
        Ok(structured(&WithNext::new(answer, next::after_list)))
    }

    /// Explain a session's status: the rule that decided, the evidence for and against it with ages and quotes, and
    /// the signals that could not be read. Use this when a status surprises you, or for state stalled or unknown.
    /// Next: read_session view=screen to see for yourself, then what `next` says.
    #[tool(
        title = "Explain a verdict",
        input_schema = one_session(),
        output_schema = schema::output::<WithNext<Explanation>>(),
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn explain_session(&self, Args(args): Args<SessionRequest>) -> Answer {
        let request = args?;
        let (answer, cursor) =
            self.run(move |engine| Ok((engine.explain(&request)?, engine.cursor()?))).await?;
        Ok(structured(&WithNext::new(answer, |answer| next::after_explain(answer, cursor))))
    }

    /// Check the installation: tmux, each agent with its path and version, the state directory, limits; each problem
    /// has a fix. Use this when spawn_session fails, or to see which agents can be started. Next: spawn_session, or
    /// the `fix` of each failed check.
    #[tool(
        title = "Check the installation",
        input_schema = schema::input::<Nothing>(|_| {}),
        output_schema = schema::output::<WithNext<DoctorResponse>>(),
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn doctor(&self, Args(args): Args<Nothing>) -> Answer {
        let Nothing {} = args?;
        let answer = self.run(|engine| Ok(engine.doctor())).await?;
        Ok(structured(&WithNext::new(answer, next::after_doctor)))
    }
}
