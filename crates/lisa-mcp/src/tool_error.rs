//! Errors as tool results: a kind to match on, a message, and the next step.

use lisa_engine::error::{Error, Kind};
use rmcp::{
    ErrorData,
    handler::server::tool::IntoCallToolResult,
    model::{CallToolResponse, CallToolResult, ContentBlock},
};
use serde_json::json;

/// An error returned as a tool result with `isError`.
#[derive(Debug)]
pub struct ToolError(pub Error);

impl ToolError {
    /// Puts kind, message and next step into both the text and the structured content: a client may show only one.
    pub fn into_result(self) -> CallToolResult {
        let Self(error) = self;
        let next = next_step(&error);
        let text = format!("{}: {}. Next: {next}", error.kind().as_str(), error.message());
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content =
            Some(json!({ "kind": error.kind().as_str(), "message": error.message(), "next": next }));
        result
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoCallToolResult for ToolError {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(self.into_result().into())
    }
}

/// The engine's hint, followed by the tool that helps, if there is one.
fn next_step(error: &Error) -> String {
    let tool = match error.kind() {
        // Without similar names the engine's hint says the same.
        Kind::SessionNotFound if error.near().is_empty() => {
            return "list_sessions lists all sessions".to_owned();
        }
        Kind::SessionNotFound | Kind::AmbiguousSession | Kind::NameTaken => {
            "list_sessions lists all sessions"
        }
        Kind::NoPrompt | Kind::PromptChanged | Kind::UnknownChoice | Kind::AnswerUnconfirmed => {
            "session_status shows the current prompt"
        }
        Kind::UnknownAgent
        | Kind::AgentMissing
        | Kind::TmuxMissing
        | Kind::TmuxTooOld
        | Kind::TmuxTimeout
        | Kind::TmuxFailed
        | Kind::UnsafeStateDir => "doctor checks the installation",
        Kind::SessionLimit => "kill_session ends sessions you no longer need",
        Kind::LaunchFailed => "explain_session shows what Lisa saw",
        Kind::CursorExpired => "call wait_sessions without `since`",
        _ => "",
    };
    [error.hint(), tool].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_structured_content_both_have_kind_and_next_step() {
        let result = ToolError(Error::not_found("fx-login", &["fix-login".to_owned()])).into_result();
        assert_eq!(result.is_error, Some(true));
        let structured = result.structured_content.unwrap();
        assert_eq!(structured["kind"], "session_not_found");
        assert!(structured["next"].as_str().unwrap().contains("did you mean fix-login?"));
        let text = result.content[0].as_text().unwrap().text.clone();
        assert!(text.starts_with("session_not_found: there is no session `fx-login`"), "{text}");
        assert!(text.contains("list_sessions"), "{text}");
    }
}
