//! What a client sent, as a message of the protocol or as the error to answer with.
//!
//! rmcp 3.8 drops what is not JSON and answers everything else it cannot read with "Invalid request" and
//! no `id`, so a client waits for a reply that never comes. Both transports read messages here instead: bytes in, a
//! message or a [`Fault`] out.

use lisa_engine::error::printable;
use rmcp::model::{
    self, ClientJsonRpcMessage, ClientRequest, CustomRequest, ErrorData, GetMeta, JsonRpcMessage,
    ProtocolVersion, RequestId,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The longest message: room for the largest text that a tool takes, written in JSON, so that a larger one gets the
/// tool's own sentence.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// RFC 8259 lets a reader skip it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a message cannot be served.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    id: Option<RequestId>,
    error: ErrorData,
    /// Whether the sender waits for a reply: notifications and responses never get one.
    pub(crate) wants_reply: bool,
}

impl Fault {
    fn new(id: Option<RequestId>, error: ErrorData) -> Self {
        Self { id, error, wants_reply: true }
    }

    /// A message that cannot be read at all, so its `id` is unknown.
    pub(crate) fn unreadable(why: &str) -> Self {
        Self::new(None, ErrorData::parse_error(why.to_owned(), None))
    }

    /// A message that was refused before it was read.
    pub(crate) fn refused(why: String) -> Self {
        Self::new(None, ErrorData::invalid_request(why, None))
    }

    /// A message of more bytes than are read.
    pub(crate) fn too_long(most: usize) -> Self {
        Self::unreadable(&format!(
            "the message is longer than {most} bytes and was skipped; send a shorter one, or write the text to a file \
             and name the file"
        ))
    }

    /// The reply. JSON-RPC wants an `id` of null where none could be read.
    pub(crate) fn reply(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error })
    }

    /// What went wrong, for the log.
    pub(crate) fn why(&self) -> &str {
        &self.error.message
    }
}

/// Reads one message.
pub(crate) fn read(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Box<Fault>> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Fault::unreadable(&format!(
            "the message is not valid UTF-8 (after {} bytes); encode it as UTF-8",
            error.valid_up_to()
        ))
    })?;
    let message =
        serde_json::from_str::<ClientJsonRpcMessage>(text).map_err(|error| diagnose(text, &error))?;
    if let JsonRpcMessage::Request(request) = &message
        // What a request is read as whose parameters do not fit its method.
        && let ClientRequest::CustomRequest(custom) = &request.request
        && !is_removed(custom)
        && let Some(error) = params_fault(&custom.method, custom.params.as_ref())
    {
        return Err(Box::new(Fault::new(Some(request.id.clone()), error)));
    }
    Ok(message)
}

/// Whether a client of 2026-07-28 asks for what that has no more. It hears that there is no such method, whatever the
/// parameters are.
fn is_removed(request: &CustomRequest) -> bool {
    let version = request.get_meta().protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
        && ["initialize", "resources/subscribe", "resources/unsubscribe"].contains(&&*request.method)
}

/// Why text is not a message.
fn diagnose(text: &str, error: &serde_json::Error) -> Fault {
    match serde_json::from_str(text) {
        Err(error) => Fault::unreadable(&format!(
            "the message is not valid JSON: {error}; send one JSON-RPC 2.0 message, and no line breaks inside it"
        )),
        Ok(Value::Array(_)) => Fault::refused(
            "batches are not supported: MCP dropped them with 2025-06-18; send each message by itself"
                .to_owned(),
        ),
        Ok(Value::Object(message)) => diagnose_object(&message, error),
        Ok(other) => Fault::refused(format!("a message must be an object, not {}", kind(&other))),
    }
}

fn diagnose_object(message: &Map<String, Value>, error: &serde_json::Error) -> Fault {
    let id = message.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    let error = object_error(message, id.is_some(), error);
    Fault { id, error, wants_reply: wants_reply(message) }
}

/// Whether a message can only be meant as a request: a notification has a method and no `id`, a response no method.
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
        None if is_response(message) => format!("the response cannot be read: {error}"),
        None => "`method` is missing: a message is a request, a notification or a response".to_owned(),
        Some(_) if message.contains_key("id") && !id_fits => "`id` must be a string or an integer".to_owned(),
        Some(_) if version != Some("2.0") => "`jsonrpc` must be \"2.0\"".to_owned(),
        Some(Value::String(method)) => return wrong_params(method, message.get("params")),
        Some(other) => format!("`method` must be a string, not {}", kind(other)),
    };
    ErrorData::invalid_request(why, None)
}

/// What is left when every part of a message is right.
const TWICE: &str = "the message cannot be read: is one of its fields given twice?";

/// What is wrong with a message that has all its parts: its parameters, as a rule.
fn wrong_params(method: &str, params: Option<&Value>) -> ErrorData {
    let why = match params {
        Some(Value::Object(fields)) => {
            if let Some(fault) = params_fault(method, params) {
                return fault;
            }
            if fields.get("_meta").is_none_or(Value::is_object) {
                return ErrorData::invalid_request(TWICE, None);
            }
            "`_meta` must be an object".to_owned()
        }
        Some(other) => format!("`params` must be an object, not {}", kind(other)),
        None => return ErrorData::invalid_request(TWICE, None),
    };
    ErrorData::invalid_params(format!("{}: {why}", printable(method)), None)
}

/// Says why parameters are not what they should be.
type Unfit = fn(Value) -> Option<String>;

/// Every method with parameters that it cannot do without, and what they are read as.
const METHODS: &[(&str, Unfit)] = &[
    ("completion/complete", unfit::<model::CompleteRequestParams>),
    ("initialize", unfit::<model::InitializeRequestParams>),
    ("prompts/get", unfit::<model::GetPromptRequestParams>),
    ("resources/read", unfit::<model::ReadResourceRequestParams>),
    ("resources/subscribe", unfit::<model::SubscribeRequestParams>),
    ("resources/unsubscribe", unfit::<model::UnsubscribeRequestParams>),
    ("server/discover", unfit::<model::DiscoverRequestParams>),
    ("subscriptions/listen", unfit::<model::SubscriptionsListenRequestParams>),
    ("tasks/cancel", unfit::<model::CancelTaskParams>),
    ("tasks/get", unfit::<model::GetTaskParams>),
    ("tasks/update", unfit::<model::UpdateTaskParams>),
    ("tools/call", unfit::<model::CallToolRequestParams>),
];

/// Why parameters are not a `T`; the start of it, as it may quote what the client sent.
fn unfit<T: DeserializeOwned>(params: Value) -> Option<String> {
    let why = serde_json::from_value::<T>(params).err()?.to_string();
    let mut short: String = why.chars().take(200).collect();
    if short.len() < why.len() {
        short.push('…');
    }
    Some(short)
}

/// The error for parameters that do not fit a known method.
fn params_fault(method: &str, params: Option<&Value>) -> Option<ErrorData> {
    let (_, unfit) = METHODS.iter().find(|(known, _)| *known == method)?;
    let params = params.filter(|params| !params.is_null()).cloned().unwrap_or_else(|| json!({}));
    let why = unfit(params)?;
    Some(ErrorData::invalid_params(format!("the parameters of {method} cannot be read: {why}"), None))
}

fn kind(value: &Value) -> &'static str {
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

    fn fault(text: &str) -> (Value, bool) {
        let fault = read(text.as_bytes()).unwrap_err();
        (fault.reply(), fault.wants_reply)
    }

    #[test]
    fn messages_are_read_with_what_editors_and_terminals_add() {
        for text in [
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r",
            "\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
        ] {
            assert!(read(text.as_bytes()).is_ok(), "{text}");
        }
        let unknown = read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\",\"params\":{}}");
        assert!(unknown.is_ok(), "an unknown method is the server's to refuse");
    }

    #[test]
    fn the_id_is_given_back_wherever_it_can_be_read() {
        let (reply, _) = fault("{\"jsonrpc\":\"1.0\",\"id\":\"x\",\"method\":\"ping\"}");
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!("x"), &json!(-32600)));
        let (reply, _) = fault("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}");
        assert_eq!(reply.get("id"), Some(&Value::Null), "{reply}");
    }

    #[test]
    fn what_is_no_request_wants_no_reply() {
        for text in [
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":7}",
            "{\"jsonrpc\":\"3.0\",\"method\":\"notifications/initialized\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}",
            "{\"jsonrpc\":\"2.0\",\"error\":7}",
        ] {
            assert!(!fault(text).1, "{text}");
        }
        assert!(fault("{\"jsonrpc\":\"2.0\",\"params\":{}}").1, "nobody can tell what it was meant as");
    }

    #[test]
    fn a_method_that_a_newer_client_does_not_have_is_unknown_to_it() {
        let of = |params: Value| {
            let text =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params });
            read(text.to_string().as_bytes())
        };
        assert!(of(json!({})).is_err());
        assert!(of(json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } })).is_ok());
    }

    #[test]
    fn nesting_without_end_is_refused() {
        assert_eq!(fault(&"[".repeat(100_000)).0["error"]["code"], -32700);
    }

    #[test]
    fn a_wrong_parameter_is_quoted_only_in_part() {
        let long = "x".repeat(100_000);
        let params = json!({ "name": "doctor", "arguments": long });
        let text = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let (reply, _) = fault(&text);
        assert_eq!(reply["error"]["code"], -32602);
        assert!(reply["error"]["message"].as_str().unwrap().len() < 400, "{reply}");
    }

    #[test]
    fn a_field_that_is_there_twice_is_refused() {
        let (reply, _) = fault("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}");
        assert_eq!(reply["error"]["code"], -32600);
        assert!(reply["error"]["message"].as_str().unwrap().contains("twice"), "{reply}");
    }

    #[test]
    fn broken_metadata_is_named() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":7}}";
        let (reply, _) = fault(text);
        assert_eq!(reply["error"]["code"], -32602);
        assert!(reply["error"]["message"].as_str().unwrap().contains("`_meta` must be an object"), "{reply}");
    }
}
