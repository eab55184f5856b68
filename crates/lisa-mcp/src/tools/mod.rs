//! The tools: one method for each, grouped by what they are for.

mod drive;
mod end;
mod look;
mod read;
mod spawn;
pub(crate) mod wait;

use crate::{failure::Failure, fit, schema::one_line, server::Lisa};
use rmcp::{
    handler::server::tool::ToolRouter,
    model::{CallToolResponse, CallToolResult, MetaObject},
};
use serde::Serialize;

/// What a tool gives back.
pub(crate) type Answer = Result<CallToolResponse, Failure>;

/// All tools. Built once for a server: it costs more than a call does.
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

/// A structured answer that fits.
pub(crate) fn structured<T: Serialize>(answer: &T) -> CallToolResponse {
    CallToolResult::structured(fit::json(answer)).into()
}

/// Marks the tools of the main loop, whose schemas a client should load before the first prompt.
fn always_load() -> MetaObject {
    let mut meta = MetaObject::new();
    meta.0.insert("anthropic/alwaysLoad".to_owned(), true.into());
    meta
}
