//! Errors as tool results: a kind that programs match on, what happened, and what to do next.

use lisa_engine::error::{Error, Kind};
use rmcp::{
    ErrorData,
    handler::server::tool::IntoCallToolResult,
    model::{CallToolResponse, CallToolResult, ContentBlock},
};
use serde_json::json;

/// What a tool answers when it could not do what was asked.
#[derive(Debug)]
pub struct Failure(pub Error);

impl Failure {
    /// The parent model reads either the text or the structured part, so each says everything.
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoCallToolResult for Failure {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(self.into_result().into())
    }
}

/// The engine's hint, and the tool that helps where one does.
fn next_step(error: &Error) -> String {
    let tool = match error.kind() {
        // Its hint says the same where no name is near.
        Kind::SessionNotFound if !error.hint().contains("did you mean") => {
            return "list_sessions names every session".to_owned();
        }
        Kind::SessionNotFound | Kind::AmbiguousSession | Kind::NameTaken => {
            "list_sessions names every session"
        }
        Kind::NoPrompt | Kind::PromptChanged | Kind::UnknownChoice | Kind::AnswerUnconfirmed => {
            "session_status shows the prompt as it is now"
        }
        Kind::UnknownAgent
        | Kind::AgentMissing
        | Kind::TmuxMissing
        | Kind::TmuxTooOld
        | Kind::TmuxTimeout
        | Kind::TmuxFailed
        | Kind::UnsafeStateDir => "doctor checks the installation",
        Kind::SessionLimit => "kill_session ends those you no longer need",
        Kind::LaunchFailed => "explain_session says what was seen",
        Kind::CursorExpired => "call wait_sessions without `since`",
        _ => "",
    };
    [error.hint(), tool].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_its_kind_and_the_next_step_in_both_parts() {
        let result = Failure(Error::not_found("fx-login", &["fix-login".to_owned()])).into_result();
        assert_eq!(result.is_error, Some(true));
        let structured = result.structured_content.unwrap();
        assert_eq!(structured["kind"], "session_not_found");
        assert!(structured["next"].as_str().unwrap().contains("did you mean fix-login?"));
        let text = result.content[0].as_text().unwrap().text.clone();
        assert!(text.starts_with("session_not_found: there is no session `fx-login`"), "{text}");
        assert!(text.contains("list_sessions"), "{text}");
    }
}
