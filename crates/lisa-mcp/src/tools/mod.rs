//! The MCP tools: one method each, grouped by purpose.

mod drive;
mod end;
mod look;
mod read;
mod spawn;
pub(crate) mod wait;

use crate::{schema::one_line, server::Lisa, tool_error::ToolError, truncate};
use rmcp::{
    handler::server::tool::ToolRouter,
    model::{CallToolResponse, CallToolResult, MetaObject},
};
use serde::Serialize;

/// The result of a tool.
pub(crate) type Answer = Result<CallToolResponse, ToolError>;

/// Builds the router of all tools. Do it once per server: it costs more than a call.
pub(crate) fn router() -> ToolRouter<Lisa> {
    let mut router = Lisa::spawn_router()
        + Lisa::drive_router()
        + Lisa::wait_router()
        + Lisa::look_router()
        + Lisa::read_router()
        + Lisa::end_router();
    for route in router.map.values_mut() {
        route.attr.description = route.attr.description.as_deref().map(|text| one_line(text).into());
    }
    router
}

/// A structured result, truncated to the size limit.
pub(crate) fn structured<T: Serialize>(answer: &T) -> CallToolResponse {
    CallToolResult::structured(truncate::json(answer)).into()
}

/// Marks the tools of the main loop, so that clients load their schemas before the first prompt.
fn always_load() -> MetaObject {
    let mut meta = MetaObject::new();
    meta.0.insert("anthropic/alwaysLoad".to_owned(), true.into());
    meta
}
