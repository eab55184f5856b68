//! Tools that drive a running session: send, answer, interrupt.

use super::{Answer, always_load, structured};
use crate::{
    args::{Args, check_length},
    schema,
    server::Lisa,
};
use lisa_engine::{
    api::{ActResponse, AnswerRequest, AnswerResponse, SendRequest, SendResponse, SessionRequest},
    error::Error,
};
use rmcp::{model::JsonObject, tool, tool_router};
use std::sync::Arc;

fn send_input_schema() -> Arc<JsonObject> {
    schema::input::<SendRequest>(|p| {
        p.bounds("wait_s", 0, 600).describe(
            "wait_s",
            "Seconds to wait for an agent that is still starting: 0 to 600 (default: 30).",
        );
    })
}

/// `text` and `keys` are mutually exclusive, and one is required.
fn check_send(request: &SendRequest) -> Result<(), Error> {
    check_length("text", request.text.as_deref())?;
    match (&request.text, request.keys.is_empty()) {
        (Some(_), false) => Err(Error::invalid(
            "`text` and `keys` are mutually exclusive",
            "send the text first, then the keys in a second call",
        )),
        (None, true) => Err(Error::invalid(
            "send_input needs `text` or `keys`",
            "pass `text` for a prompt, or `keys` such as [\"Escape\"]",
        )),
        (Some(text), true) if text.trim().is_empty() => {
            Err(Error::invalid("`text` is empty", "pass a prompt, or `keys` [\"Enter\"] to press Enter"))
        }
        _ => Ok(()),
    }
}

/// `choice` and `choices` are mutually exclusive, and one of them or `text` is required.
fn check_answer(request: &AnswerRequest) -> Result<(), Error> {
    check_length("text", request.text.as_deref())?;
    match (&request.choice, request.choices.is_empty(), &request.text) {
        (Some(_), false, _) => Err(Error::invalid(
            "`choice` and `choices` are mutually exclusive",
            "pass `choice` for one option, `choices` for several",
        )),
        (None, true, None) => Err(Error::invalid(
            "answer_prompt needs `choice`, `choices` or `text`",
            "pass an option's key, label or effect (allow_once, allow_always, deny) as `choice`",
        )),
        _ => Ok(()),
    }
}

#[tool_router(router = drive_router, vis = "pub(super)")]
impl Lisa {
    /// Send a running agent its next prompt (`text`), or press keys (`keys`). Use this when its turn is over (state
    /// ready) and there is more to do. The text is pasted whole, submitted, and checked to have arrived. Returns a
    /// receipt with `delivered` (submitted, queued, refused, unconfirmed) and the new `turn`. Refused means nothing
    /// was submitted: `refusal` and `hint` say what to do instead. For a question, permission or other dialog use
    /// answer_prompt. Next: wait_sessions.
    #[tool(
        title = "Send a prompt or keys",
        input_schema = send_input_schema(),
        output_schema = schema::output::<SendResponse>(),
        annotations(read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = false),
        meta = always_load()
    )]
    async fn send_input(&self, Args(args): Args<SendRequest>) -> Answer {
        let request = args?;
        check_send(&request)?;
        let answer = self.run(move |engine| engine.send(&request)).await?;
        Ok(structured(&answer))
    }

    /// Answer the prompt a session is blocked on (state awaiting_permission, awaiting_question, awaiting_plan or
    /// awaiting_dialog). Use this whenever a session has a `prompt`. Pass `choice`: an option's key, label or effect
    /// (allow_once, allow_always, deny); or `choices` for several; or `text` if the prompt takes free text. Pass the
    /// `prompt_id` you read: if another prompt is open by now, nothing is pressed. Read `prompt.command` and
    /// `prompt.body` before you allow anything. Next: wait_sessions.
    #[tool(
        title = "Answer an agent's prompt",
        input_schema = schema::input::<AnswerRequest>(|_| {}),
        output_schema = schema::output::<AnswerResponse>(),
        annotations(read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = false),
        meta = always_load()
    )]
    async fn answer_prompt(&self, Args(args): Args<AnswerRequest>) -> Answer {
        let request = args?;
        check_answer(&request)?;
        let answer = self.run(move |engine| engine.answer(&request)).await?;
        Ok(structured(&answer))
    }

    /// Stop an agent's current turn; the agent keeps running. Use this when it does the wrong thing. Does nothing if
    /// the agent isn't working (`done: not_working`). Next: send_input with what to do instead.
    #[tool(
        title = "Interrupt a turn",
        input_schema = schema::input::<SessionRequest>(|p| { p.describe("session", "The session's exact name."); }),
        output_schema = schema::output::<ActResponse>(),
        annotations(read_only_hint = false, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn interrupt_session(&self, Args(args): Args<SessionRequest>) -> Answer {
        let request = args?;
        let answer = self.run(move |engine| engine.interrupt(&request)).await?;
        Ok(structured(&answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_keys_are_mutually_exclusive() {
        let both =
            SendRequest { text: Some("a".into()), keys: vec!["Enter".into()], ..SendRequest::default() };
        assert!(check_send(&both).unwrap_err().message().contains("mutually exclusive"));
        assert!(
            check_send(&SendRequest::default()).unwrap_err().message().contains("needs `text` or `keys`")
        );
        let blank = SendRequest { text: Some(" \n".into()), ..SendRequest::default() };
        assert!(check_send(&blank).unwrap_err().message().contains("is empty"));
    }

    #[test]
    fn choice_and_choices_are_mutually_exclusive() {
        let both =
            AnswerRequest { choice: Some("1".into()), choices: vec!["2".into()], ..AnswerRequest::default() };
        assert!(check_answer(&both).is_err());
        assert!(check_answer(&AnswerRequest::default()).is_err());
        let deny = AnswerRequest {
            choice: Some("deny".into()),
            text: Some("why".into()),
            ..AnswerRequest::default()
        };
        assert!(check_answer(&deny).is_ok());
    }
}
