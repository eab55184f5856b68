//! Fuzz targets for client input; see `lisa_engine::fuzz`. Protocol messages are `rmcp`'s to parse.

use crate::{args, resources::ResourceUri, tools};
use lisa_engine::{
    api::{
        AnswerRequest, KillRequest, ListRequest, ReadRequest, ResumeRequest, SendRequest, SessionRequest,
        SpawnRequest, WaitRequest,
    },
    error::Error,
    fuzz::Target,
};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use std::{collections::BTreeMap, sync::LazyLock};

/// All fuzz targets of the MCP server.
pub const TARGETS: &[Target] = &[
    Target { name: "mcp_calls", what: "arguments of every tool that takes any", run: calls },
    Target { name: "mcp_addresses", what: "addresses of resources", run: addresses },
];

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
