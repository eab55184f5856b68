//! Converts the results of actions, and journal events.

use super::{date, int, json_record, or_null, text, text_or_null, texts};
use crate::{errors::code, next_step::describe};
use lisa_engine::{
    api::{Action, AnswerResponse, Event, Receipt, SendResponse, SpawnResponse},
    error::Error,
};
use nu_protocol::{Record, Span, Value, record};

/// The result of a spawn.
pub(crate) fn spawned(response: &SpawnResponse, span: Span) -> Value {
    let mut record = super::session_record(&response.session, span);
    record.push(
        "receipt",
        or_null(response.receipt.as_ref(), span, |receipt, span| {
            Value::record(receipt_record(receipt, span), span)
        }),
    );
    record.push("cursor", int(response.cursor, span));
    record.push("next", text(describe(&response.next), span));
    Value::record(record, span)
}

/// The result of a send.
pub(crate) fn sent(response: &SendResponse, span: Span) -> Value {
    let mut record = record! { "name" => text(response.session.as_str(), span) };
    record.extend(receipt_record(&response.receipt, span));
    record.extend(record! {
        "status" => text(response.status.as_str(), span),
        "state" => text(response.state.as_str(), span),
        "cursor" => int(response.cursor, span),
        "next" => text(describe(&response.next), span),
    });
    Value::record(record, span)
}

fn receipt_record(receipt: &Receipt, span: Span) -> Record {
    record! {
        "delivered" => text(receipt.delivered.as_str(), span),
        "turn" => text_or_null(receipt.turn.as_deref(), span),
        "evidence" => text_or_null(receipt.evidence.as_deref(), span),
        "at" => date(receipt.at, span),
        "refusal" => text_or_null(receipt.refusal.map(|refusal| refusal.as_str()), span),
        "hint" => text_or_null(receipt.hint.as_deref(), span),
        "recorded" => Value::bool(receipt.recorded, span),
    }
}

/// The result of an answer.
pub(crate) fn answered(response: &AnswerResponse, span: Span) -> Value {
    Value::record(
        record! {
            "name" => text(response.session.as_str(), span),
            "effect" => text_or_null(response.effect.map(|effect| effect.as_str()), span),
            "detail" => text(response.answered.join(", "), span),
            "state" => text(response.state.as_str(), span),
            "status" => text(response.status.as_str(), span),
            "answered" => texts(&response.answered, span),
            "title" => text(response.title.as_str(), span),
            "prompt_id" => text(response.prompt_id.as_str(), span),
            "recorded" => Value::bool(response.recorded, span),
            "cursor" => int(response.cursor, span),
            "next" => text(describe(&response.next), span),
            "error" => Value::nothing(span),
        },
        span,
    )
}

/// The row of a failed answer.
pub(crate) fn not_answered(name: &str, error: &Error, span: Span) -> Value {
    let null = Value::nothing(span);
    Value::record(
        record! {
            "name" => text(name, span),
            "effect" => null.clone(),
            "detail" => text(error.message(), span),
            "state" => null.clone(),
            "status" => null.clone(),
            "answered" => texts(&[], span),
            "title" => null.clone(),
            "prompt_id" => null.clone(),
            "recorded" => null.clone(),
            "cursor" => null.clone(),
            "next" => null,
            "error" => problem(error, span),
        },
        span,
    )
}

/// The result of an action.
pub(crate) fn action(action: &Action, span: Span) -> Value {
    Value::record(
        record! {
            "name" => text(action.name.as_str(), span),
            "was" => text(action.was.as_str(), span),
            "done" => text(action.done.as_str(), span),
            "detail" => text_or_null(action.detail.as_deref(), span),
            "recorded" => Value::bool(action.recorded, span),
            "error" => Value::nothing(span),
        },
        span,
    )
}

/// The row of a failed action.
pub(crate) fn not_done(name: &str, error: &Error, span: Span) -> Value {
    Value::record(
        record! {
            "name" => text(name, span),
            "was" => Value::nothing(span),
            "done" => Value::nothing(span),
            "detail" => text(error.message(), span),
            "recorded" => Value::nothing(span),
            "error" => problem(error, span),
        },
        span,
    )
}

fn problem(error: &Error, span: Span) -> Value {
    Value::record(
        record! {
            "code" => text(code(error.kind()), span),
            "message" => text(error.message(), span),
            "help" => text(error.hint(), span),
        },
        span,
    )
}

/// A journal event.
pub(crate) fn event(event: &Event, span: Span) -> Value {
    Value::record(
        record! {
            "at" => date(event.at, span),
            "session" => text(event.session.as_str(), span),
            "event" => text(event.event.as_str(), span),
            "status" => text(event.status.as_str(), span),
            "state" => text(event.state.as_str(), span),
            "detail" => text(event.detail.as_str(), span),
            "cursor" => int(event.cursor, span),
            "turn" => text_or_null(event.turn.as_deref(), span),
            "data" => or_null(event.data.as_ref(), span, json_record),
        },
        span,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{convert::samples, types};
    use lisa_engine::api::Next;
    use lisa_engine::{
        api::{
            Delivery, EventKind, Refusal,
            words::{Effect, StateName, Status},
        },
        error::Kind,
    };

    const SPAN: Span = Span::test_data();

    fn receipt() -> Receipt {
        Receipt {
            turn: None,
            delivered: Delivery::Refused,
            evidence: None,
            at: samples::now(),
            refusal: Some(Refusal::PromptOpen),
            hint: Some("answer it".into()),
            recorded: true,
        }
    }

    #[test]
    fn a_send_has_the_declared_type() {
        let response = SendResponse {
            session: "a".into(),
            receipt: receipt(),
            status: Status::WaitingInput,
            state: StateName::AwaitingPermission,
            cursor: 7,
            next: Next::Spawn,
        };
        samples::assert_type(&sent(&response, SPAN), types::sent());
        let session = samples::session("a");
        let response = SpawnResponse { session, receipt: Some(receipt()), cursor: 1, next: Next::Spawn };
        samples::assert_type(&spawned(&response, SPAN), types::spawned());
        samples::assert_type(&spawned(&SpawnResponse { receipt: None, ..response }, SPAN), types::spawned());
    }

    #[test]
    fn answers_have_the_declared_type_also_if_they_failed() {
        let response = AnswerResponse {
            session: "a".into(),
            prompt_id: "p".into(),
            title: "May I?".into(),
            answered: vec!["Yes".into()],
            effect: Some(Effect::AllowOnce),
            recorded: true,
            status: Status::InProgress,
            state: StateName::Working,
            cursor: 7,
            next: Next::Spawn,
        };
        samples::assert_type(&answered(&response, SPAN), types::answered());
        samples::assert_type(
            &not_answered("a", &Error::new(Kind::NoPrompt, "none", "wait"), SPAN),
            types::answered(),
        );
    }

    #[test]
    fn actions_have_the_declared_type_also_if_they_failed() {
        let done = Action {
            name: "a".into(),
            was: Status::Stuck,
            done: "killed".into(),
            detail: None,
            recorded: true,
        };
        samples::assert_type(&action(&done, SPAN), types::action());
        samples::assert_type(&not_done("a", &Error::new(Kind::Io, "x", "y"), SPAN), types::action());
    }

    #[test]
    fn events_have_the_declared_type() {
        let mut happened = Event {
            cursor: 3,
            at: samples::now(),
            session: "a".into(),
            event: EventKind::Spawned,
            status: Status::JustStarted,
            state: StateName::Starting,
            detail: "demo".into(),
            turn: None,
            data: None,
        };
        samples::assert_type(&event(&happened, SPAN), types::event());
        happened.data = serde_json::json!({ "tokens": 3 }).as_object().cloned();
        samples::assert_type(&event(&happened, SPAN), types::event());
    }
}
