//! What the suites expect word for word: tools, resources and prompts that answer at once.

use crate::Context;
use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock,
        GetPromptRequestParams, GetPromptResult, JsonObject, LoggingLevel, LoggingMessageNotificationParam,
        ProgressNotificationParam, Prompt, PromptArgument, ReadResourceResult, Resource, ResourceTemplate,
        ServerRequest, Tool,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// No sound at all.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

const PAUSE: Duration = Duration::from_millis(50);

/// Tools without arguments.
const PLAIN: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_error_handling",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_reconnection",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

/// A value of the protocol, from the JSON that the specification shows.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn object(value: Value) -> JsonObject {
    typed(value).unwrap_or_default()
}

pub(crate) fn tools() -> Vec<Tool> {
    let tool = |name: &'static str, schema: Value| {
        Tool::new(name, "A fixture of the conformance suites.", object(schema))
    };
    let mut tools: Vec<Tool> =
        PLAIN.iter().map(|name| tool(name, json!({ "type": "object", "properties": {} }))).collect();
    let text = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    tools.push(tool("test_sampling", text("prompt")));
    tools.push(tool("test_elicitation", text("message")));
    tools.push(tool(
        "test_custom_headers",
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } }),
    ));
    tools.push(tool(
        "json_schema_2020_12_tool",
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
                },
            },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        }),
    ));
    tools
}

pub(crate) async fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let image = || json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let content = match request.name.as_ref() {
        "test_simple_text" => json!([{ "type": "text", "text": "This is a simple text response for testing." }]),
        "test_image_content" => json!([image()]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => json!([{ "type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content.",
        } }]),
        "test_multiple_content_types" => json!([
            { "type": "text", "text": "Multiple content types test:" },
            image(),
            { "type": "resource", "resource": {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": json!({ "test": "data", "value": 123 }).to_string(),
            } },
        ]),
        "test_error_handling" => {
            let text = "This tool intentionally returns an error for testing";
            return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
        }
        "test_missing_capability" => {
            let required = typed(json!({ "sampling": {} }))?;
            return Err(ErrorData::missing_required_client_capability(required));
        }
        "test_tool_with_logging" => {
            for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(&context.peer, line).await;
                tokio::time::sleep(PAUSE).await;
            }
            text("logged")
        }
        "test_logging_tool" => {
            if context.meta.log_level().is_some() {
                log(&context.peer, "asked for").await;
            }
            text("done")
        }
        "test_tool_with_progress" => {
            for done in [0.0, 50.0, 100.0] {
                if let Some(token) = context.meta.get_progress_token() {
                    let note = ProgressNotificationParam::new(token, done).with_total(100.0);
                    let _ = context.peer.notify_progress(note).await;
                }
                tokio::time::sleep(PAUSE).await;
            }
            text("done")
        }
        "test_sampling" => {
            let message = json!({ "role": "user", "content": { "type": "text", "text": argument("prompt") } });
            let params = json!({ "messages": [message], "maxTokens": 100 });
            let answer = ask(&context.peer, "sampling/createMessage", params).await?;
            text(&format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))
        }
        "test_elicitation" => {
            let field = json!({ "type": "string" });
            elicit(context, &argument("message"), json!({ "username": field, "email": field })).await?
        }
        "test_elicitation_sep1034_defaults" => elicit(context, "Please check", json!({
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
        }))
        .await?,
        "test_elicitation_sep1330_enums" => elicit(context, "Please choose", enums()).await?,
        "test_streaming_elicitation" | "test_reconnection" | "test_custom_headers" | "json_schema_2020_12_tool" => {
            text("done")
        }
        _ => return Err(ErrorData::invalid_params("there is no such tool", None)),
    };
    Ok(CallToolResult::success(typed(content)?).into())
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

/// The five ways to offer a choice.
fn enums() -> Value {
    let titled = |word: &str, one: &str| {
        let options = (1..=3).map(|n| json!({ "const": format!("value{n}"), "title": format!("{one} {n}") }));
        json!({ word: options.collect::<Vec<_>>() })
    };
    let plain = json!({ "type": "string", "enum": ["option1", "option2", "option3"] });
    let mut single = titled("oneOf", "Option");
    single["type"] = json!("string");
    json!({
        "untitledSingle": plain,
        "titledSingle": single,
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": plain },
        "titledMulti": { "type": "array", "items": titled("anyOf", "Choice") },
    })
}

async fn log(peer: &Peer<RoleServer>, line: &str) {
    let note = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
    let _ = peer.notify_logging_message(note).await;
}

async fn elicit(context: &Context, message: &str, properties: Value) -> Result<Value, ErrorData> {
    let schema = json!({ "type": "object", "properties": properties, "required": [] });
    let params = json!({ "message": message, "requestedSchema": schema });
    let answer = ask(&context.peer, "elicitation/create", params).await?;
    Ok(text(&format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"])))
}

/// A request to a client of the older era; its answer as JSON.
async fn ask(peer: &Peer<RoleServer>, method: &str, params: Value) -> Result<Value, ErrorData> {
    let request: ServerRequest = typed(json!({ "method": method, "params": params }))?;
    let answer: Result<ClientResult, _> = peer.send_request(request).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

pub(crate) fn resources() -> Vec<Resource> {
    let one = |uri: &str, name: &str, mime: &str| Resource::new(uri, name).with_mime_type(mime);
    vec![
        one("test://static-text", "static-text", "text/plain"),
        one("test://static-binary", "static-binary", "image/png"),
        one("test://watched-resource", "watched-resource", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![ResourceTemplate::new("test://template/{id}/data", "template").with_mime_type("application/json")]
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        "test://static-text" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        "test://watched-resource" => json!({ "uri": uri, "mimeType": "text/plain", "text": "Watched." }),
        _ => {
            let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
            let id = id.ok_or_else(|| ErrorData::resource_not_found("there is no such resource", None))?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
        }
    };
    Ok(ReadResourceResult::new(vec![typed(contents)?]))
}

pub(crate) fn prompts() -> Vec<Prompt> {
    let one = |name: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(|name| PromptArgument::new(*name).with_required(true)).collect();
        Prompt::new(name, Some("A fixture of the conformance suites."), Some(arguments))
    };
    vec![
        one("test_simple_prompt", &[]),
        one("test_prompt_with_arguments", &["arg1", "arg2"]),
        one("test_prompt_with_embedded_resource", &["resourceUri"]),
        one("test_prompt_with_image", &[]),
        one("test_input_required_result_prompt", &[]),
    ]
}

pub(crate) fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let text = |text: String| json!({ "type": "text", "text": text });
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.".into())],
        "test_prompt_with_arguments" => vec![text(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))],
        "test_prompt_with_embedded_resource" => vec![
            json!({ "type": "resource", "resource": {
                "uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing.",
            } }),
            text("Please process the embedded resource above.".into()),
        ],
        "test_prompt_with_image" => vec![
            json!({ "type": "image", "data": PNG, "mimeType": "image/png" }),
            text("Please analyze the image above.".into()),
        ],
        _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
    };
    let messages: Vec<Value> =
        contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
    Ok(GetPromptResult::new(typed(Value::Array(messages))?))
}
