//! Fuzz targets for client input; see `lisa_engine::fuzz`.

use crate::{args, resources::ResourceUri, stdio::StdioTransport, tools};
use lisa_engine::{
    api::{
        AnswerRequest, KillRequest, ListRequest, ReadRequest, ResumeRequest, SendRequest, SessionRequest,
        SpawnRequest, WaitRequest,
    },
    error::Error,
    fuzz::Target,
};
use rmcp::{model::JsonObject, transport::Transport};
use serde::de::DeserializeOwned;
use std::{collections::BTreeMap, io::Cursor, sync::LazyLock};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

/// All fuzz targets of the MCP server.
pub const TARGETS: &[Target] = &[
    Target { name: "mcp_lines", what: "messages on standard input, whole, torn and malformed", run: lines },
    Target { name: "mcp_calls", what: "arguments of every tool that takes any", run: calls },
    Target { name: "mcp_addresses", what: "addresses of resources", run: addresses },
];

thread_local! {
    static RUNTIME: Option<tokio::runtime::Runtime> =
        tokio::runtime::Builder::new_current_thread().build().ok();
}

/// Every line is either a message, or ignored, or answered with one line of JSON-RPC.
fn lines(bytes: &[u8]) {
    let served = async {
        let (out, mut client) = tokio::io::duplex(64 << 10);
        let input = Cursor::new(bytes.to_vec());
        let (mut transport, written) = StdioTransport::new(input, out, CancellationToken::new());
        let serve = async move {
            let mut messages = 0;
            while transport.receive().await.is_some() {
                messages += 1;
            }
            drop(transport);
            (messages, written.await)
        };
        let mut replies = String::new();
        let ((messages, _), read) = tokio::join!(serve, client.read_to_string(&mut replies));
        assert!(read.is_ok(), "a reply is not UTF-8");
        let given = bytes.split(|byte| *byte == b'\n').count();
        assert!(messages + replies.lines().count() <= given, "more came out than went in: {replies}");
        for reply in replies.lines() {
            let value = serde_json::from_str::<serde_json::Value>(reply);
            assert!(value.is_ok_and(|value| value["error"]["code"].is_i64()), "not an error: {reply}");
        }
    };
    RUNTIME.with(|runtime| {
        if let Some(runtime) = runtime {
            runtime.block_on(served);
        }
    });
}

/// Parses the arguments of a tool call.
type ParseArguments = fn(&str, &JsonObject, JsonObject) -> Result<(), Error>;

/// Each tool with its argument parser.
const TOOLS: &[(&str, ParseArguments)] = &[
    ("answer_prompt", read::<AnswerRequest>),
    ("kill_session", read::<KillRequest>),
    ("list_sessions", read::<ListRequest>),
    ("read_session", read::<ReadRequest>),
    ("resume_session", read::<ResumeRequest>),
    ("send_input", read::<SendRequest>),
    ("session_status", read::<SessionRequest>),
    ("spawn_session", read::<SpawnRequest>),
    ("wait_sessions", read::<WaitRequest>),
];

static SCHEMAS: LazyLock<BTreeMap<String, JsonObject>> = LazyLock::new(|| {
    let tools = tools::router().list_all().into_iter();
    tools.map(|tool| (tool.name.to_string(), JsonObject::clone(&tool.input_schema))).collect()
});

fn read<P: DeserializeOwned>(tool: &str, schema: &JsonObject, arguments: JsonObject) -> Result<(), Error> {
    args::parse::<P>(tool, schema, arguments).map(drop)
}

/// The first byte chooses the tool.
fn calls(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let Some((tool, read)) = TOOLS.get(usize::from(*first) % TOOLS.len()) else { return };
    let Some(schema) = SCHEMAS.get(*tool) else {
        assert!(SCHEMAS.contains_key(*tool), "unknown tool {tool}");
        return;
    };
    let Ok(arguments) = serde_json::from_slice::<JsonObject>(rest) else { return };
    if let Err(error) = read(tool, schema, arguments) {
        let message = error.to_string();
        assert!(!message.chars().any(char::is_control), "control characters in {message:?}");
    }
}

fn addresses(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match ResourceUri::parse(text) {
        Ok(ResourceUri::Sessions) => {}
        Ok(ResourceUri::Session { name, .. }) => assert!(!name.contains('/'), "invalid name {name:?}"),
        Err(error) => assert!(!error.message.chars().any(char::is_control), "{:?}", error.message),
    }
}
