//! The real agents against the scripted model servers: both are what they claim to be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

use std::process::Output;
use std::time::Duration;

use lisa_tests::agents::{Agent, AgentHome, AgentKind, HomeOptions, McpServer};
use lisa_tests::model_server::{
    Api, Asker, End, Exchange, Match, ModelServer, Reply, Scenario, Source, Step, What, exchanges,
};
use serde_json::{Value, json};

/// An MCP server with one tool, in the only language that is there wherever npm is.
const ECHO_SERVER: &str = r#"
const answers = {
  initialize: ({ protocolVersion }) =>
    ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "lab", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "echo_word", description: "Says it again",
    inputSchema: { type: "object", properties: { word: { type: "string" } } } }] }),
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
    let agent = Agent::for_test(kind)?;
    let server = ModelServer::start(scenario).unwrap();
    let home = AgentHome::new(&server).unwrap();
    Some((agent, home, server))
}

fn claude_print(agent: &Agent, home: &AgentHome, prompt: &str) -> (Option<i32>, Value) {
    let output = agent.command(home).args(["-p", prompt, "--output-format", "json"]).output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")))
}

fn codex_exec(agent: &Agent, home: &AgentHome, prompt: &str) -> Output {
    agent.command(home).args(["exec", "--json", prompt]).output().unwrap()
}

/// The shortest way to give each agent a prompt without a terminal.
fn headless(kind: AgentKind, prompt: &str) -> [&str; 2] {
    match kind {
        AgentKind::Claude => ["-p", prompt],
        AgentKind::Codex => ["exec", prompt],
    }
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
fn claude_asks_for_the_whole_message_after_a_cut_stream() {
    let scenario = Scenario::new().turn([Reply::new().say("Half a").cut(), Reply::text("A whole answer.")]);
    let Some((agent, home, server)) = stage(AgentKind::Claude, scenario) else { return };
    let (code, result) = claude_print(&agent, &home, "hello");
    assert_eq!((code, result["result"].as_str()), (Some(0), Some("A whole answer.")));
    let exchanges = server.exchanges();
    let ends: Vec<_> = exchanges.iter().filter_map(|exchange| exchange.end).map(|(_, end)| end).collect();
    assert_eq!(ends, [End::Cut, End::Complete]);
    assert_ne!(exchanges[1].request.body["stream"], true);
}

#[test]
fn a_client_that_leaves_is_noticed_at_once() {
    let scenarios = [Reply::new().say("Well").hang(), Reply::silence()];
    for (kind, reply) in [AgentKind::Claude, AgentKind::Codex].into_iter().zip(scenarios) {
        let Some((agent, home, server)) = stage(kind, Scenario::new().turn(reply)) else { return };
        let quiet = std::process::Stdio::null;
        let mut child = agent
            .command(&home)
            .args(headless(kind, "hello"))
            .stdout(quiet())
            .stderr(quiet())
            .spawn()
            .unwrap();
        let time = Duration::from_secs(30);
        let asked = |what: &What| matches!(what, What::Step(Step::Hang) | What::Chosen(Source::Queue(0)));
        assert!(server.wait(time, |events| events.iter().any(|event| asked(&event.what))), "{kind:?}");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(server.exchanges()[0].end, None);
        child.kill().unwrap();
        child.wait().unwrap();
        let left = |what: &What| matches!(what, What::Ended(End::ClientLeft));
        let second = Duration::from_secs(1);
        assert!(server.wait(second, |events| events.iter().any(|event| left(&event.what))), "{kind:?}");
    }
}

#[test]
fn subagents_have_conversations_of_their_own() {
    // Codex would not wait for its child by itself.
    let closing = || Reply::new().hold("child").say("Both are done.");
    let delegate = |name: &str, input: Value| [Reply::tool(name, input), closing()];
    let claude =
        json!({"description": "Look", "prompt": "CHILD look around", "subagent_type": "general-purpose"});
    let codex = json!({"task_name": "child", "message": "CHILD look around", "fork_turns": "none"});
    for (kind, turn) in [
        (AgentKind::Claude, delegate("Agent", claude)),
        (AgentKind::Codex, delegate("collaboration.spawn_agent", codex)),
    ] {
        let scenario =
            Scenario::new().turn(turn).on(Match::prompt("CHILD").from(Asker::Subagent), "Nothing here.");
        let Some((agent, home, server)) = stage(kind, scenario) else { return };
        let mut parent = agent.command(&home).args(headless(kind, "PARENT go")).spawn().unwrap();
        let answered =
            |exchange: &Exchange| exchange.request.asker == Asker::Subagent && exchange.end.is_some();
        let time = Duration::from_secs(30);
        assert!(server.wait(time, |events| exchanges(events).iter().any(answered)), "{:?}", server.log());
        server.release("child");
        assert!(parent.wait().unwrap().success());
        let exchanges = server.exchanges();
        let of = |asker| exchanges.iter().filter(move |exchange| exchange.request.asker == asker);
        assert_eq!((of(Asker::Main).count(), of(Asker::Subagent).count()), (2, 1), "{kind:?}");
        let child = &of(Asker::Subagent).next().unwrap().request;
        assert_eq!(child.prompt, "CHILD look around");
        assert_ne!(child.conversation, exchanges[0].request.conversation);
    }
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
        let Some(agent) = Agent::for_test(kind) else { return };
        let server = ModelServer::start(scenario.clone()).unwrap();
        let script = tempfile::Builder::new().suffix(".cjs").tempfile().unwrap();
        std::fs::write(&script, ECHO_SERVER).unwrap();
        let command = ["/usr/bin/env", "node", script.path().to_str().unwrap()].map(str::to_owned).to_vec();
        let env = vec![("PATH".to_owned(), std::env::var("PATH").unwrap())];
        let mcp = vec![McpServer { name: "lab".to_owned(), command, env, approved: true }];
        let home = AgentHome::with(&server, HomeOptions { mcp, ..HomeOptions::default() }).unwrap();
        assert!(
            agent.command(&home).args(headless(kind, "echo it")).output().unwrap().status.success(),
            "{kind:?}"
        );
        let results: Vec<_> = server
            .exchanges()
            .iter()
            .map(|exchange| exchange.request.result_json()["echo"].clone())
            .collect();
        assert_eq!(results, [json!(null), json!("one"), json!("\"one\" two")], "{kind:?}");
    }
}
