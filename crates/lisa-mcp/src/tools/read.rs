//! The tool that reads a session's screen, messages or events as plain text.

use super::{Answer, always_load};
use crate::{args::Args, schema, server::Lisa, truncate};
use lisa_engine::api::{ReadRequest, ReadResponse, View};
use rmcp::{
    model::{CallToolResult, ContentBlock, JsonObject},
    tool, tool_router,
};
use std::sync::Arc;

fn read_input() -> Arc<JsonObject> {
    schema::input::<ReadRequest>(|p| {
        p.bounds("max_lines", 1, 2000).describe(
            "max_lines",
            "Maximum number of lines, 1 to 2000 (default: 80); at most 40,000 characters.",
        );
    })
}

/// The text, followed by the cursor line. If there is no text, a note says where to look instead.
pub(crate) fn as_text(answer: &ReadResponse, view: View) -> String {
    let text = match answer.text.trim_end_matches('\n') {
        "" if view == View::LastMessage => {
            "(no message that Lisa could read; view=screen or view=output shows its terminal)"
        }
        "" => "(empty, or nothing new)",
        text => text,
    };
    format!("{text}\ncursor={} more={}", answer.cursor, answer.more)
}

#[tool_router(router = read_router, vis = "pub(super)")]
impl Lisa {
    /// Read a session as plain text: its last message (default), the turn, the screen, the whole transcript, its
    /// events, or its output. Use this after wait_sessions says that it delivered. Returns up to 80 lines (default);
    /// the last line is `cursor=… more=…`: pass the cursor as `since` to read on. For the state use session_status.
    /// Next: send_input for more, or kill_session.
    #[tool(
        title = "Read a session",
        input_schema = read_input(),
        annotations(read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false),
        meta = always_load()
    )]
    async fn read_session(&self, Args(args): Args<ReadRequest>) -> Answer {
        let request = args?;
        let view = request.view;
        let answer = self.run(move |engine| truncate::read(&request, |request| engine.read(request))).await?;
        Ok(CallToolResult::success(vec![ContentBlock::text(as_text(&answer, view))]).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_the_cursor() {
        let answer = ReadResponse { text: "one\ntwo\n".into(), cursor: 7, more: true };
        assert_eq!(as_text(&answer, View::Screen), "one\ntwo\ncursor=7 more=true");
        let empty = ReadResponse { text: String::new(), cursor: 0, more: false };
        assert_eq!(as_text(&empty, View::Events), "(empty, or nothing new)\ncursor=0 more=false");
        assert!(as_text(&empty, View::LastMessage).contains("view=output"));
    }
}
