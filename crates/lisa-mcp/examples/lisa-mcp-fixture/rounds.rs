//! Tools and a prompt that need input from the client in further rounds (2026-07-28).

use crate::{Context, answers::typed};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
        GetPromptResponse, GetPromptResult, InputRequiredResult, InputResponses, PromptMessage, Role,
    },
};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// What only this process knows: a state that does not carry it was not given out by it.
static SECRET: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().to_string());

fn elicit(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
    json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
}

fn sample(text: &str) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 100 } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

fn state(round: u32) -> String {
    format!("{round}:{}", SECRET.as_str())
}

fn ask(requests: Value, state: Option<String>) -> Result<InputRequiredResult, ErrorData> {
    Ok(InputRequiredResult::new(Some(typed(requests)?), state))
}

/// The first round's question, and whether it comes with a state.
fn question(name: &str, context: &Context) -> Option<(Value, bool)> {
    let name = name.strip_prefix("test_input_required_result_")?;
    Some(match name {
        "elicitation" => (json!({ "user_name": elicit("What is your name?", "name", "string") }), false),
        "sampling" => (json!({ "capital_question": sample("What is the capital of France?") }), false),
        "list_roots" => (json!({ "client_roots": roots() }), false),
        "request_state" | "tampered_state" => {
            (json!({ "confirm": elicit("Please confirm", "ok", "boolean") }), true)
        }
        "multiple_inputs" => (
            json!({
                "user_name": elicit("What is your name?", "name", "string"),
                "greeting": sample("Generate a greeting"),
                "client_roots": roots(),
            }),
            true,
        ),
        "multi_round" => (json!({ "step1": elicit("Step 1: What is your name?", "name", "string") }), true),
        "capabilities" => {
            let able = context.client_capabilities().and_then(|able| serde_json::to_value(able).ok());
            let able = able.unwrap_or_default();
            let mut requests = json!({});
            if able["sampling"].is_object() {
                requests["sampled"] = sample("Say something");
            }
            if able["elicitation"].is_object() {
                requests["user_name"] = elicit("What is your name?", "name", "string");
            }
            (requests, false)
        }
        _ => return None,
    })
}

/// Answers the tools of this file; `None` for all others.
pub(crate) fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let (requests, with_state) = question(&request.name, context)?;
    Some(next_round(
        &request.name,
        requests,
        with_state,
        request.input_responses.as_ref(),
        request.request_state.as_deref(),
    ))
}

fn next_round(
    name: &str,
    requests: Value,
    with_state: bool,
    given: Option<&InputResponses>,
    shown: Option<&str>,
) -> Result<CallToolResponse, ErrorData> {
    let first = || ask(requests.clone(), with_state.then(|| state(1))).map(Into::into);
    let Some(given) = given else { return first() };
    let round = match shown {
        Some(shown) if shown == state(1) => 1,
        Some(shown) if shown == state(2) => 2,
        Some(_) => return Err(ErrorData::invalid_params("the request state was changed", None)),
        None if with_state => return Err(ErrorData::invalid_params("the request state is missing", None)),
        None => 1,
    };
    if name.ends_with("multi_round") && round == 1 && given.contains_key("step1") {
        let second = json!({ "step2": elicit("Step 2: What is your favorite color?", "color", "string") });
        return ask(second, Some(state(2))).map(Into::into);
    }
    let asked: Vec<&String> = requests.as_object().into_iter().flatten().map(|(key, _)| key).collect();
    if round == 1 && !asked.iter().all(|key| given.get(*key).is_some_and(is_answer)) {
        return first();
    }
    let name = given.get("user_name").and_then(|answer| answer["content"]["name"].as_str()).unwrap_or("you");
    let text = format!("Hello, {name}! state-ok {}", json!(given));
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

/// Whether it has the shape of any answer that was asked for.
fn is_answer(value: &Value) -> bool {
    value["action"].is_string() || value["role"].is_string() || value["roots"].is_array()
}

/// Answers the prompt of this file; `None` for all others.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> Option<Result<GetPromptResponse, ErrorData>> {
    if request.name != "test_input_required_result_prompt" {
        return None;
    }
    Some(match &request.input_responses {
        None => {
            let question = elicit("What context should the prompt use?", "context", "string");
            ask(json!({ "user_context": question }), None).map(Into::into)
        }
        Some(given) => {
            let message = PromptMessage::new_text(Role::User, format!("Use this context: {}", json!(given)));
            Ok(GetPromptResult::new(vec![message]).into())
        }
    })
}
