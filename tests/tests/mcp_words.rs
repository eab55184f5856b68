//! The two front ends cover the same operations with the same words: one table says which command is which tool and
//! how their parameters correspond. Both sides are read as text: the pinned tools, and the plugin's own sources.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails loudly")]

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// An operation: the tool, the command, and the parameters that are called differently there. An empty word means
/// that the command has another way for it, which the comment names.
struct Operation {
    tool: &'static str,
    command: &'static str,
    differs: &'static [(&'static str, &'static str)],
}

const OPERATIONS: &[Operation] = &[
    Operation { tool: "spawn_session", command: "lisa session spawn", differs: &[("wait_ready_s", "wait")] },
    Operation {
        tool: "send_input",
        command: "lisa session send",
        differs: &[("session", "name"), ("wait_s", "wait")],
    },
    // Several choices are a list given to the same flag.
    Operation {
        tool: "answer_prompt",
        command: "lisa session answer",
        differs: &[("session", ""), ("choices", "choice")],
    },
    // `mode: all` is a switch; a stream has its own command, which takes the cursor.
    Operation {
        tool: "wait_sessions",
        command: "lisa session monitor",
        differs: &[("sessions", ""), ("mode", "all"), ("timeout_s", "timeout"), ("since", "")],
    },
    Operation { tool: "session_status", command: "lisa session status", differs: &[("session", "")] },
    // A table is paged by whoever looks at it.
    Operation {
        tool: "list_sessions",
        command: "lisa session list",
        differs: &[("limit", ""), ("cursor", "")],
    },
    Operation {
        tool: "read_session",
        command: "lisa session capture",
        differs: &[("session", ""), ("max_lines", "lines")],
    },
    Operation { tool: "interrupt_session", command: "lisa session interrupt", differs: &[("session", "")] },
    Operation { tool: "kill_session", command: "lisa session kill", differs: &[("session", "")] },
    Operation {
        tool: "resume_session",
        command: "lisa session resume",
        differs: &[("session", ""), ("wait_ready_s", "wait")],
    },
    Operation { tool: "explain_session", command: "lisa session explain", differs: &[("session", "")] },
    Operation { tool: "doctor", command: "lisa doctor", differs: &[] },
];

/// Commands without a tool, and why a parent model needs none.
const FOR_PEOPLE: &[(&str, &str)] = &[
    ("lisa", "help"),
    ("lisa session", "help"),
    ("lisa agent", "help"),
    ("lisa session attach", "a terminal in the foreground"),
    ("lisa session name", "spawn_session makes one"),
    ("lisa session exists", "session_status says so"),
    ("lisa session tree", "each session names its parent"),
    ("lisa session kill-all", "a model ends what it names"),
    ("lisa agent list", "doctor lists them"),
    ("lisa agent build-cmd", "for scripts"),
    ("lisa watch", "resources have change notifications"),
    ("lisa cleanup", "for people"),
    ("lisa record", "a sub-command of the server"),
    ("lisa replay", "a sub-command of the server"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Each tool with its parameters, as they are pinned.
fn tools() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("crates/lisa-mcp/tests/golden/tools.json")).unwrap();
    let tools: Vec<Value> = serde_json::from_str(&text).unwrap();
    let parameters = |tool: &Value| {
        let properties = tool["inputSchema"]["properties"].as_object();
        properties.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
    };
    tools.iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), parameters(tool))).collect()
}

/// Each command with the source that defines it.
fn commands() -> BTreeMap<String, String> {
    let sources = root().join("crates/nu_plugin_lisa/src");
    let shared = fs::read_to_string(sources.join("signature.rs")).unwrap();
    let mut found = BTreeMap::new();
    let mut directories = vec![sources.join("commands")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                directories.push(entry);
                continue;
            }
            let text = fs::read_to_string(&entry).unwrap();
            let Some((_, after)) = text.split_once("fn name(&self)") else { continue };
            let name = after.split('"').nth(1).unwrap().to_owned();
            found.insert(name, format!("{text}\n{shared}"));
        }
    }
    found
}

#[test]
fn every_tool_is_a_command_and_every_command_a_tool_or_for_people() {
    let known: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.tool).collect();
    let tools = tools();
    assert_eq!(tools.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
    let ours = OPERATIONS.iter().map(|operation| operation.command);
    let known: BTreeSet<&str> = ours.chain(FOR_PEOPLE.iter().map(|(command, _)| *command)).collect();
    let commands = commands();
    assert_eq!(commands.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
}

#[test]
fn parameters_have_the_same_words_on_both_sides() {
    let (tools, commands) = (tools(), commands());
    for Operation { tool, command, differs } in OPERATIONS {
        let source = &commands[*command];
        for (parameter, _) in *differs {
            assert!(tools[*tool].contains(*parameter), "{tool} has no `{parameter}` any more");
        }
        for parameter in &tools[*tool] {
            let word = match differs.iter().find(|(name, _)| name == parameter) {
                Some((_, "")) => continue,
                Some((_, word)) => (*word).to_owned(),
                None => parameter.replace('_', "-"),
            };
            assert!(
                source.contains(&format!("\"{word}\"")),
                "`{command}` has no `{word}` for {tool}'s {parameter}"
            );
        }
    }
}
