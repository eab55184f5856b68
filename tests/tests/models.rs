//! The real agents against the scripted model servers: both are what they claim to be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails in a helper fails the test")]

use std::process::Output;

use lisa_tests::agents::{Agent, AgentHome, AgentKind, HomeOptions, McpServer};
use lisa_tests::model_server::{Api, Asker, End, Match, ModelServer, Reply, Scenario, Source};
use serde_json::{Value, json};

/// An MCP server with one tool, in the only language that is there wherever npm is.
const ECHO_SERVER: &str = r#"
const answers = {
  initialize: ({ protocolVersion }) =>
    ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "lab", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "echo_word", description: "Says it again",
    inputSchema: { type: "object", properties: { word: { type: "string" } } },
    annotations: { readOnlyHint: true } }] }),
  "tools/call": ({ arguments: { word } }) =>
    ({ content: [{ type: "text", text: "as text" }], structuredContent: { echo: word } }),
};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method]
    ? { result: answers[method](params ?? {}) } : { error: { code: -32601, message: method } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
"#;

/// An agent with a home and a server, or nothing where agents cannot be had.
fn stage(kind: AgentKind, scenario: Scenario) -> Option<(Agent, AgentHome, ModelServer)> {
    let agent = Agent::for_test(kind).unwrap_or_else(|why| panic!("{why}"))?;
    let server = ModelServer::start(scenario).unwrap();
    let home = AgentHome::new(&server).unwrap();
    Some((agent, home, server))
}

fn claude_print(agent: &Agent, home: &AgentHome, prompt: &str) -> (Option<i32>, Value) {
    let output = agent.command(home).args(["-p", prompt, "--output-format", "json"]).output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")))
}

fn codex_exec(agent: &Agent, home: &AgentHome, prompt: &str) -> Output {
    agent.command(home).args(["exec", "--json", "--skip-git-repo-check", prompt]).output().unwrap()
}

fn json_lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"))).collect()
}

#[test]
fn claude_prints_the_scripted_text() {
    let scenario = Scenario::new().turn(Reply::new().think("Easy.").say("Four."));
    let Some((agent, home, server)) = stage(AgentKind::Claude, scenario) else { return };
    let (code, result) = claude_print(&agent, &home, "two and two");
    assert_eq!((code, result["result"].as_str()), (Some(0), Some("Four.")));
    let [exchange] = &server.exchanges()[..] else { panic!("{:?}", server.log()) };
    assert_eq!((exchange.request.api, exchange.request.asker), (Api::Anthropic, Asker::Main));
    assert_eq!(exchange.request.prompt, "two and two");
    assert_eq!(exchange.source, Some(Source::Queue(0)));
    assert_eq!(exchange.end.map(|(_, end)| end), Some(End::Complete));
}

#[test]
fn claude_in_print_mode_denies_a_command_and_goes_on() {
    let call = Reply::tool("Bash", json!({"command": "mkfifo made", "description": "Make a pipe"}));
    let Some((agent, home, server)) =
        stage(AgentKind::Claude, Scenario::new().turn([call, Reply::text("I may not.")]))
    else {
        return;
    };
    let (code, result) = claude_print(&agent, &home, "make it");
    assert_eq!((code, result["result"].as_str()), (Some(0), Some("I may not.")));
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    assert!(!home.project().join("made").exists());
    let exchanges = server.exchanges();
    assert_eq!(exchanges.len(), 2);
    assert_eq!(exchanges[1].request.prompt, "make it");
    assert!(exchanges[1].request.results[0].contains("approval"), "{:?}", exchanges[1].request.results);
}

#[test]
fn claude_retries_a_server_error_and_gives_up() {
    let scenario = Scenario::new().turn([Reply::error(500), Reply::error(500)]);
    let Some((agent, mut home, server)) = stage(AgentKind::Claude, scenario) else { return };
    home.set_env("CLAUDE_CODE_MAX_RETRIES", "1");
    let (code, result) = claude_print(&agent, &home, "hello");
    assert_eq!(
        (code, &result["is_error"], &result["api_error_status"]),
        (Some(1), &json!(true), &json!(500))
    );
    let statuses: Vec<_> = server.exchanges().iter().filter_map(|exchange| exchange.headers).collect();
    assert_eq!(statuses.iter().map(|(_, status)| *status).collect::<Vec<_>>(), [500, 500]);
}

#[test]
fn claude_does_not_retry_an_invalid_request() {
    let scenario = Scenario::new().turn(Reply::error(400).message("No such field."));
    let Some((agent, home, server)) = stage(AgentKind::Claude, scenario) else { return };
    let (code, result) = claude_print(&agent, &home, "hello");
    assert_eq!((code, result["result"].as_str()), (Some(1), Some("API Error: 400 No such field.")));
    assert_eq!(server.exchanges().len(), 1);
}

#[test]
fn codex_prints_the_scripted_text() {
    let scenario = Scenario::new().turn(Reply::new().think("**Adding**").say("Four."));
    let Some((agent, home, server)) = stage(AgentKind::Codex, scenario) else { return };
    let output = codex_exec(&agent, &home, "two and two");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines = json_lines(&output);
    assert!(lines.iter().any(|line| line["item"]["text"] == "Four."), "{lines:?}");
    assert_eq!(lines.last().unwrap()["usage"]["input_tokens"], 1200);
    let [exchange] = &server.exchanges()[..] else { panic!("{:?}", server.log()) };
    assert_eq!((exchange.request.api, exchange.request.asker), (Api::OpenAi, Asker::Main));
    assert_eq!(exchange.request.prompt, "two and two");
    assert_eq!(exchange.request.conversation, lines[0]["thread_id"].as_str().unwrap());
}

#[test]
fn codex_runs_a_scripted_command() {
    let call = Reply::tool("exec_command", json!({"cmd": "echo scripted-$((40+2))"}));
    let Some((agent, home, server)) =
        stage(AgentKind::Codex, Scenario::new().turn([call, Reply::text("Ran.")]))
    else {
        return;
    };
    let output = codex_exec(&agent, &home, "run it");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let exchanges = server.exchanges();
    assert_eq!(exchanges.len(), 2);
    assert!(exchanges[1].request.results[0].contains("scripted-42"), "{:?}", exchanges[1].request.results);
}

#[test]
fn codex_fails_on_an_invalid_request() {
    let scenario = Scenario::new().turn(Reply::error(400).message("No such field."));
    let Some((agent, home, server)) = stage(AgentKind::Codex, scenario) else { return };
    let output = codex_exec(&agent, &home, "hello");
    assert_eq!(output.status.code(), Some(1));
    let last = json_lines(&output).pop().unwrap();
    assert_eq!(last["type"], "turn.failed");
    assert!(last["error"]["message"].as_str().unwrap().contains("No such field."), "{last}");
    assert_eq!(server.exchanges().len(), 1);
}

#[test]
fn both_agents_call_a_tool_of_an_mcp_server_by_the_same_script() {
    let say_again = |word: &str| Reply::tool("mcp__lab__echo_word", json!({"word": word}));
    let scenario = Scenario::new().on(
        Match::prompt("echo"),
        // The second word comes from the first result: what a parent does with a cursor or a prompt's id.
        [
            say_again("one"),
            Reply::given(move |asked| say_again(&format!("{} two", asked.result_json()["echo"]))),
            Reply::text("Echoed."),
        ],
    );
    for kind in [AgentKind::Claude, AgentKind::Codex] {
        let Some(agent) = Agent::for_test(kind).unwrap_or_else(|why| panic!("{why}")) else { return };
        let server = ModelServer::start(scenario.clone()).unwrap();
        let script = tempfile::Builder::new().suffix(".cjs").tempfile().unwrap();
        std::fs::write(&script, ECHO_SERVER).unwrap();
        let command = ["/usr/bin/env", "node", script.path().to_str().unwrap()].map(str::to_owned).to_vec();
        let env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
        let mcp = vec![McpServer { name: "lab".to_owned(), command, env }];
        let home = AgentHome::with(&server, HomeOptions { mcp, ..HomeOptions::default() }).unwrap();
        let code = match kind {
            AgentKind::Claude => {
                let tools = ["--allowedTools", "mcp__lab__echo_word"];
                agent.command(&home).args(["-p", "echo it"]).args(tools).output().unwrap().status.code()
            }
            AgentKind::Codex => codex_exec(&agent, &home, "echo it").status.code(),
        };
        assert_eq!(code, Some(0), "{kind:?}");
        let results: Vec<_> = server
            .exchanges()
            .iter()
            .map(|exchange| exchange.request.result_json()["echo"].clone())
            .collect();
        assert_eq!(results, [json!(null), json!("one"), json!("\"one\" two")], "{kind:?}");
    }
}
