//! Golden test of all tool definitions: API changes show up as a diff of `golden/tools.json`.
//! `UPDATE_EXPECT=1 cargo test -p lisa-mcp --test golden` regenerates it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod common;

use common::Client;
use serde_json::{Value, json};

fn tools() -> Vec<Value> {
    let mut client = Client::start();
    let reply = client.request("tools/list", json!({}));
    reply["result"]["tools"].as_array().unwrap().clone()
}

#[test]
fn tools_match_the_golden_file() {
    let mut text = serde_json::to_string_pretty(&tools()).unwrap();
    text.push('\n');
    expect_test::expect_file!["golden/tools.json"].assert_eq(&text);
}

#[test]
fn every_tool_has_annotations_and_says_when_to_use_it() {
    for tool in tools() {
        let name = &tool["name"];
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{name} does not set {hint}");
        }
        assert!(tool["title"].is_string(), "{name}");
        let description = tool["description"].as_str().unwrap();
        assert!(description.contains("Use this") && description.contains("Next: "), "{name}: {description}");
        let text_only = name == "read_session";
        assert_eq!(tool.get("outputSchema").is_none(), text_only, "{name}");
    }
}

#[test]
fn schemas_use_only_the_portable_subset() {
    for tool in tools() {
        let text = tool.to_string();
        for foreign in ["\"null\"", "\"default\":null", "uint", "\"double\"", "\"$schema\"", "\"nullable\""] {
            assert!(!text.contains(foreign), "{foreign} in {}", tool["name"]);
        }
        let input = &tool["inputSchema"];
        assert_eq!((&input["type"], &input["additionalProperties"]), (&json!("object"), &json!(false)));
        assert!(!input.to_string().contains("$ref"), "{}", tool["name"]);
        for (name, property) in input["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}.{name} has no description", tool["name"]);
        }
    }
}

#[test]
fn only_the_main_loop_is_loaded_before_the_first_prompt() {
    let loaded: Vec<Value> = tools()
        .into_iter()
        .filter(|tool| tool["_meta"]["anthropic/alwaysLoad"] == true)
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(loaded, ["answer_prompt", "read_session", "send_input", "spawn_session", "wait_sessions"]);
}
