//! What clients send, as functions of bytes; see `lisa_engine::fuzz`. The protocol's own messages are `rmcp`'s.

use crate::{args, resources::Uri, tools};
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

/// Every target of the MCP server.
pub const TARGETS: &[Target] = &[
    Target { name: "mcp_calls", what: "arguments of every tool that takes any", run: calls },
    Target { name: "mcp_addresses", what: "addresses of resources", run: addresses },
];

/// Reads the arguments of a call of this tool.
type Read = fn(&str, &JsonObject, JsonObject) -> Result<(), Error>;

/// The tools, each with how it reads its arguments.
const TOOLS: &[(&str, Read)] = &[
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
        assert!(SCHEMAS.contains_key(*tool), "there is no tool {tool}");
        return;
    };
    let Ok(arguments) = serde_json::from_slice::<JsonObject>(rest) else { return };
    if let Err(error) = read(tool, schema, arguments) {
        let said = error.to_string();
        assert!(!said.chars().any(char::is_control), "control characters in {said:?}");
    }
}

fn addresses(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Uri::parse(text) {
        Ok(Uri::Sessions) => {}
        Ok(Uri::Session { name, .. }) => assert!(!name.contains('/'), "{name:?} is no name"),
        Err(error) => assert!(!error.message.chars().any(char::is_control), "{:?}", error.message),
    }
}
