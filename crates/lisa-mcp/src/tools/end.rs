//! The tool that ends sessions.

use super::{Answer, structured};
use crate::{
    args::Args,
    next::{self, WithNext},
    schema,
    server::Lisa,
};
use lisa_engine::api::{Actions, KillRequest};
use rmcp::{tool, tool_router};

#[tool_router(router = end_router, vis = "pub(super)")]
impl Lisa {
    /// End a session for good: its agent, the agent's processes, the sessions it started, and its state directory
    /// (never your files). Use this when its work is done and read. If the session is already gone, that's a success
    /// (`done: already_gone`). To stop only the turn use interrupt_session. Next: list_sessions.
    #[tool(
        title = "End a session",
        input_schema = schema::input::<KillRequest>(|_| {}),
        output_schema = schema::output::<WithNext<Actions>>(),
        annotations(read_only_hint = false, destructive_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn kill_session(&self, Args(args): Args<KillRequest>) -> Answer {
        let request = args?;
        let answer = self.run(move |engine| engine.kill(&request)).await?;
        Ok(structured(&WithNext::new(answer, next::after_kill)))
    }
}
