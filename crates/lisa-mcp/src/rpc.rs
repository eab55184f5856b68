//! Parses client messages and reports malformed ones as JSON-RPC errors.
//!
//! rmcp 3.8 silently drops invalid JSON, and answers any other malformed message with "Invalid request" and no `id`, so
//! the client waits for a reply that never comes. Both transports therefore parse messages here: bytes in, a message or
//! a [`RpcError`] out.

use lisa_engine::error::printable;
use rmcp::model::{
    self, ClientJsonRpcMessage, ClientRequest, CustomRequest, ErrorData, GetMeta, JsonRpcMessage,
    ProtocolVersion, RequestId,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Maximum message size in bytes. Large enough for the largest JSON-escaped string parameter, so that longer strings
/// get the tool's own error.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// RFC 8259 allows parsers to ignore it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The error for a message that cannot be served.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    id: Option<RequestId>,
    error: ErrorData,
    /// Whether the sender expects a reply. Notifications and responses never get one.
    pub(crate) wants_reply: bool,
}

impl RpcError {
    fn new(id: Option<RequestId>, error: ErrorData) -> Self {
        Self { id, error, wants_reply: true }
    }

    /// A parse error. The `id` is unknown.
    pub(crate) fn parse_error(why: &str) -> Self {
        Self::new(None, ErrorData::parse_error(why.to_owned(), None))
    }

    /// An invalid request whose `id` is unknown.
    pub(crate) fn invalid_request(why: String) -> Self {
        Self::new(None, ErrorData::invalid_request(why, None))
    }

    /// A message above the size limit.
    pub(crate) fn too_long(max: usize) -> Self {
        Self::parse_error(&format!(
            "the message is longer than {max} bytes and was skipped; send a shorter one, or write the text to a file \
             and send its path"
        ))
    }

    /// The reply. JSON-RPC requires an `id` of null if it couldn't be parsed.
    pub(crate) fn reply(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error })
    }

    /// The error message, for the log.
    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }
}

/// Parses one message.
pub(crate) fn read(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Box<RpcError>> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        RpcError::parse_error(&format!(
            "the message is not valid UTF-8 (after {} bytes); encode it as UTF-8",
            error.valid_up_to()
        ))
    })?;
    let message =
        serde_json::from_str::<ClientJsonRpcMessage>(text).map_err(|error| diagnose(text, &error))?;
    if let JsonRpcMessage::Request(request) = &message
        // rmcp falls back to `CustomRequest` if the parameters don't match the method.
        && let ClientRequest::CustomRequest(custom) = &request.request
        && !is_removed_method(custom)
        && let Some(error) = params_error(&custom.method, custom.params.as_ref())
    {
        return Err(Box::new(RpcError::new(Some(request.id.clone()), error)));
    }
    Ok(message)
}

/// Whether a 2026-07-28 client calls a method that this protocol version removed. The error is then "method not found",
/// whatever the parameters are.
fn is_removed_method(request: &CustomRequest) -> bool {
    let version = request.get_meta().protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
        && ["initialize", "resources/subscribe", "resources/unsubscribe"].contains(&&*request.method)
}

/// Finds out why text is not a valid message.
fn diagnose(text: &str, error: &serde_json::Error) -> RpcError {
    match serde_json::from_str(text) {
        Err(error) => RpcError::parse_error(&format!(
            "the message is not valid JSON: {error}; send one JSON-RPC 2.0 message, and no line breaks inside it"
        )),
        Ok(Value::Array(_)) => RpcError::invalid_request(
            "batches are not supported: MCP dropped them with 2025-06-18; send each message by itself"
                .to_owned(),
        ),
        Ok(Value::Object(message)) => diagnose_object(&message, error),
        Ok(other) => {
            RpcError::invalid_request(format!("a message must be an object, not {}", json_type(&other)))
        }
    }
}

fn diagnose_object(message: &Map<String, Value>, error: &serde_json::Error) -> RpcError {
    let id = message.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let error = object_error(message, id.is_some(), error);
    RpcError { id, error, wants_reply: wants_reply(message) }
}

/// Whether a malformed message can only be a request: a notification has no `id`, a response has no method.
fn wants_reply(message: &Map<String, Value>) -> bool {
    match message.get("method") {
        Some(Value::String(_)) => message.contains_key("id"),
        Some(_) => true,
        None => !is_response(message),
    }
}

fn is_response(message: &Map<String, Value>) -> bool {
    message.contains_key("result") || message.contains_key("error")
}

fn object_error(message: &Map<String, Value>, id_fits: bool, error: &serde_json::Error) -> ErrorData {
    let version = message.get("jsonrpc").and_then(Value::as_str);
    let why = match message.get("method") {
        Some(_) if is_response(message) => {
            "a message has either `method` or one of `result` and `error`".to_owned()
        }
        None if is_response(message) => format!("malformed response: {error}"),
        None => "`method` is missing: a message is a request, a notification or a response".to_owned(),
        Some(_) if message.contains_key("id") && !id_fits => "`id` must be a string or an integer".to_owned(),
        Some(_) if version != Some("2.0") => "`jsonrpc` must be \"2.0\"".to_owned(),
        Some(Value::String(method)) => return wrong_params(method, message.get("params")),
        Some(other) => format!("`method` must be a string, not {}", json_type(other)),
    };
    ErrorData::invalid_request(why, None)
}

/// The remaining explanation when every part of a message is valid.
const DUPLICATE_FIELD: &str = "malformed message: is a field given twice?";

/// The error for a message that is complete but malformed, usually because of its parameters.
fn wrong_params(method: &str, params: Option<&Value>) -> ErrorData {
    let why = match params {
        Some(Value::Object(fields)) => {
            if let Some(error) = params_error(method, params) {
                return error;
            }
            if fields.get("_meta").is_none_or(Value::is_object) {
                return ErrorData::invalid_request(DUPLICATE_FIELD, None);
            }
            "`_meta` must be an object".to_owned()
        }
        Some(other) => format!("`params` must be an object, not {}", json_type(other)),
        None => return ErrorData::invalid_request(DUPLICATE_FIELD, None),
    };
    ErrorData::invalid_params(format!("{}: {why}", printable(method)), None)
}

/// Returns why parameters don't deserialize, or `None` if they do.
type CheckParams = fn(Value) -> Option<String>;

/// All methods with required parameters, and the check of each.
const PARAM_CHECKS: &[(&str, CheckParams)] = &[
    ("completion/complete", deserialize_error::<model::CompleteRequestParams>),
    ("initialize", deserialize_error::<model::InitializeRequestParams>),
    ("prompts/get", deserialize_error::<model::GetPromptRequestParams>),
    ("resources/read", deserialize_error::<model::ReadResourceRequestParams>),
    ("resources/subscribe", deserialize_error::<model::SubscribeRequestParams>),
    ("resources/unsubscribe", deserialize_error::<model::UnsubscribeRequestParams>),
    ("server/discover", deserialize_error::<model::DiscoverRequestParams>),
    ("subscriptions/listen", deserialize_error::<model::SubscriptionsListenRequestParams>),
    ("tasks/cancel", deserialize_error::<model::CancelTaskParams>),
    ("tasks/get", deserialize_error::<model::GetTaskParams>),
    ("tasks/update", deserialize_error::<model::UpdateTaskParams>),
    ("tools/call", deserialize_error::<model::CallToolRequestParams>),
];

/// The serde error for a `T`, truncated because it may quote what the client sent.
fn deserialize_error<T: DeserializeOwned>(params: Value) -> Option<String> {
    let why = serde_json::from_value::<T>(params).err()?.to_string();
    let mut short: String = why.chars().take(200).collect();
    if short.len() < why.len() {
        short.push('…');
    }
    Some(short)
}

/// The error for invalid parameters of a known method.
fn params_error(method: &str, params: Option<&Value>) -> Option<ErrorData> {
    let (_, deserialize_error) = PARAM_CHECKS.iter().find(|(known, _)| *known == method)?;
    let params = params.filter(|params| !params.is_null()).cloned().unwrap_or_else(|| json!({}));
    let why = deserialize_error(params)?;
    Some(ErrorData::invalid_params(format!("invalid parameters for {method}: {why}"), None))
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_reply(text: &str) -> (Value, bool) {
        let error = read(text.as_bytes()).unwrap_err();
        (error.reply(), error.wants_reply)
    }

    #[test]
    fn a_byte_order_mark_and_a_carriage_return_are_accepted() {
        for text in [
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r",
            "\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
        ] {
            assert!(read(text.as_bytes()).is_ok(), "{text}");
        }
        let unknown = read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\",\"params\":{}}");
        assert!(unknown.is_ok(), "unknown methods are left to the server");
    }

    #[test]
    fn the_reply_has_the_id_if_it_could_be_parsed() {
        let (reply, _) = error_reply("{\"jsonrpc\":\"1.0\",\"id\":\"x\",\"method\":\"ping\"}");
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!("x"), &json!(-32600)));
        let (reply, _) = error_reply("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}");
        assert_eq!(reply.get("id"), Some(&Value::Null), "{reply}");
    }

    #[test]
    fn notifications_and_responses_get_no_reply() {
        for text in [
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":7}",
            "{\"jsonrpc\":\"3.0\",\"method\":\"notifications/initialized\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}",
            "{\"jsonrpc\":\"2.0\",\"error\":7}",
        ] {
            assert!(!error_reply(text).1, "{text}");
        }
        assert!(error_reply("{\"jsonrpc\":\"2.0\",\"params\":{}}").1, "it might be a request");
    }

    #[test]
    fn removed_methods_are_left_to_the_server() {
        let of = |params: Value| {
            let text =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params });
            read(text.to_string().as_bytes())
        };
        assert!(of(json!({})).is_err());
        assert!(of(json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } })).is_ok());
    }

    #[test]
    fn deep_nesting_is_rejected() {
        assert_eq!(error_reply(&"[".repeat(100_000)).0["error"]["code"], -32700);
    }

    #[test]
    fn the_error_for_a_long_parameter_is_truncated() {
        let long = "x".repeat(100_000);
        let params = json!({ "name": "doctor", "arguments": long });
        let text = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let (reply, _) = error_reply(&text);
        assert_eq!(reply["error"]["code"], -32602);
        assert!(reply["error"]["message"].as_str().unwrap().len() < 400, "{reply}");
    }

    #[test]
    fn a_duplicate_field_is_rejected() {
        let (reply, _) = error_reply("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}");
        assert_eq!(reply["error"]["code"], -32600);
        assert!(reply["error"]["message"].as_str().unwrap().contains("twice"), "{reply}");
    }

    #[test]
    fn malformed_metadata_is_named() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":7}}";
        let (reply, _) = error_reply(text);
        assert_eq!(reply["error"]["code"], -32602);
        assert!(reply["error"]["message"].as_str().unwrap().contains("`_meta` must be an object"), "{reply}");
    }
}
