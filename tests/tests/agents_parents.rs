//! Real agents as parents: each has Lisa's MCP server by its own means of configuration, and drives two real children
//! from spawn to kill, without a terminal and in one.
//!
//! A parent and its two children are three agents at once, one more than elsewhere: there is no parent of two with
//! fewer. The tests of this file run one after the other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lisa_engine::api::words::StateName;
use lisa_engine::api::{Event, EventKind, ReadRequest, SpawnRequest, View};
use lisa_engine::process::Identity;
use lisa_engine::watch::journal::Journal;
use lisa_tests::agents::{Agent, AgentKind};
use lisa_tests::lab::{Lab, LabOptions, lisa_mcp, until};
use lisa_tests::model_server::{Match, Reply, Scenario, Source, Step, exchanges};
use lisa_tests::parents::{self, Call, DONE, KIDS, Kid, LOST, TASK};
use serde_json::{Value, json};

/// How long a parent may take for the whole of it, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(100);
/// What Codex does not give a server unless it is told to, and what the children of these tests need.
const NEEDED: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "DISABLE_AUTOUPDATER",
    "FAKE_KEY",
];

fn lab(kind: AgentKind) -> Option<Lab> {
    // All the room there is: no other test runs agents meanwhile.
    let lab = Lab::with(kind, parents::scenario(), LabOptions { agents: 2, ..LabOptions::default() })?;
    let other = if kind == AgentKind::Claude { AgentKind::Codex } else { AgentKind::Claude };
    lab.add(other).then_some(lab)
}

/// Registers the server by `lisa-mcp install`, which runs the client's own command; then does what it advises.
fn install(lab: &Lab, words: &[&str]) {
    let mut command = Command::new(lisa_mcp());
    command.env_clear().envs(lab.home.env()).current_dir(lab.home.project());
    let output = command.args(["install", "--client", lab.kind.command()]).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("running: "), "{said}");
    if lab.kind == AgentKind::Codex {
        assert!(said.contains("default_tools_approval_mode = \"approve\""), "{said}");
        assert!(said.contains("env_vars = ["), "{said}");
        let file = lab.home.config_dir(AgentKind::Codex).join("config.toml");
        let text = fs::read_to_string(&file).unwrap();
        let table = "[mcp_servers.lisa]";
        assert!(text.contains(table), "{text}");
        let more = format!("{table}\ndefault_tools_approval_mode = \"approve\"\nenv_vars = {NEEDED:?}");
        fs::write(&file, text.replace(table, &more)).unwrap();
    }
}

/// Runs the parent without a terminal to its end.
fn run(lab: &Lab, words: &[&str]) {
    let agent = Agent::for_test(lab.kind).unwrap();
    let said = tempfile::NamedTempFile::new().unwrap();
    let errors = Stdio::from(said.reopen().unwrap());
    let mut parent =
        agent.command(&lab.home).args(words).stdout(said.reopen().unwrap()).stderr(errors).spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        match parent.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() > PATIENCE => {
                parent.kill().unwrap();
                panic!("the parent does not end: {}", told(lab));
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let said = fs::read_to_string(said.path()).unwrap();
    assert!(status.success() && said.contains(DONE), "{status} {said}\n{}", told(lab));
}

/// Waits until a parent in a terminal says that it is done.
fn done(lab: &Lab) {
    let says = |step: &Step, words: &str| matches!(step, Step::Text { text, .. } if text.starts_with(words));
    let over = lab.server.wait(PATIENCE, |events| {
        let all = exchanges(events);
        let mut steps = all.iter().flat_map(|item| &item.steps);
        steps.any(|(_, step)| says(step, DONE) || says(step, LOST))
    });
    let read = ReadRequest { session: "parent".to_owned(), view: View::Screen, ..ReadRequest::default() };
    let screen = || lab.engine().read(&read).map(|read| read.text);
    assert!(over, "the parent does not come to an end: {}\n{:?}", told(lab), screen());
}

/// Every call of the parent and what it got, for somebody who looks at a failure.
fn told(lab: &Lab) -> String {
    let calls = parents::calls(&lab.server.exchanges());
    calls
        .iter()
        .map(|call| format!("\n{} {}\n  {}", call.tool, call.input, call.shown.join("\n  ")))
        .collect()
}

/// Compares all that the parent's model was told with what was really so.
fn check(lab: &Lab, parent: Option<&str>) -> Vec<Call> {
    let calls = parents::calls(&lab.server.exchanges());
    let of = |tool: &str, kid: &Kid| -> Vec<Call> {
        let about = |call: &&Call| call.input["session"] == kid.name || call.input["name"] == kid.name;
        calls.iter().filter(|call| call.tool == tool).filter(about).cloned().collect()
    };
    for kid in &KIDS {
        let [spawned] = &of("spawn_session", kid)[..] else { panic!("{}", told(lab)) };
        let spawned = spawned.answer();
        assert_eq!(spawned["receipt"]["delivered"], "submitted", "{spawned}");
        assert_eq!(spawned["session"]["parent"].as_str(), parent, "{spawned}");
        assert_eq!(spawned["session"]["depth"], u32::from(parent.is_some()), "{spawned}");
        let pid = u32::try_from(spawned["session"]["pid"].as_u64().unwrap()).unwrap();
        assert!(until(Duration::from_secs(3), || Identity::of(pid).is_none()), "{} runs on", kid.name);

        let asked = permission(&calls, kid).unwrap_or_else(|| panic!("{}", told(lab)));
        assert_eq!(asked["command"], kid.command, "{asked}");
        let allowed = of("answer_prompt", kid);
        let allowed = allowed.iter().find(|call| call.input["prompt_id"] == asked["id"]).unwrap().answer();
        assert_eq!((&allowed["effect"], &allowed["prompt_id"]), (&json!("allow_once"), &asked["id"]));
        let state = allowed["state"].as_str().unwrap();
        assert!(!state.starts_with("awaiting"), "what was answered is still asked: {allowed}");
        assert!(fs::metadata(lab.home.project().join(kid.made)).unwrap().file_type().is_fifo());

        let read: Vec<_> = of("read_session", kid).into_iter().map(|call| call.shown.join("\n")).collect();
        assert_eq!(read.len(), 2);
        assert!(read[0].contains(kid.first) && read[1].contains(kid.second), "{read:?}");
        let [sent] = &of("send_input", kid)[..] else { panic!("{}", told(lab)) };
        let turn = format!("{}#2", kid.name);
        assert_eq!(
            (&sent.answer()["delivered"], &sent.answer()["turn"]),
            (&json!("submitted"), &json!(turn))
        );
        let [killed] = &of("kill_session", kid)[..] else { panic!("{}", told(lab)) };
        assert_eq!(killed.answer()["sessions"][0]["done"], "killed");
    }
    let listed = calls.last().unwrap().answer();
    let left: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(left, parent.iter().collect::<Vec<_>>(), "{listed}");
    check_journal(lab, &calls);
    for exchange in lab.server.exchanges() {
        assert!(matches!(exchange.source, Some(Source::Rule(..))), "{:?}", exchange.request.said);
    }
    calls
}

/// The permission that a child asked for, as a wait told it.
fn permission(calls: &[Call], kid: &Kid) -> Option<Value> {
    let waits = calls.iter().filter(|call| call.tool == "wait_sessions").map(Call::answer);
    let sessions = waits.flat_map(|answer| answer["sessions"].as_array().cloned().unwrap_or_default());
    let mut prompts =
        sessions.filter(|session| session["name"] == kid.name).map(|mut one| one["prompt"].take());
    prompts.find(|prompt| prompt["kind"] == "permission")
}

/// The journal knows no answer that the parent did not give, and no child was called ready before its turn was over.
fn check_journal(lab: &Lab, calls: &[Call]) {
    let journal = Journal::open(lab.engine().config()).unwrap();
    for kid in &KIDS {
        let events = journal.read(0, 500, |entry| entry.event.session == kid.name).unwrap().events;
        let asked = events.iter().position(|event| event.state == StateName::AwaitingPermission);
        let ready = events.iter().position(|event| event.state == StateName::Ready);
        assert!(asked.is_some() && asked < ready, "{} was called ready too early: {events:#?}", kid.name);
        let of = |kind: EventKind| events.iter().filter(move |event| event.event == kind);
        let given = |call: &&Call| call.tool == "answer_prompt" && call.input["session"] == kid.name;
        assert_eq!(of(EventKind::Answer).count(), calls.iter().filter(given).count(), "{events:#?}");
        let turn = |event: &Event| format!("{} {}", event.turn.as_deref().unwrap_or_default(), event.detail);
        let ended: Vec<_> = of(EventKind::TurnEnded).map(turn).collect();
        assert_eq!(ended, [1, 2].map(|turn| format!("{}#{turn} finished", kid.name)), "{events:#?}");
    }
}

/// Nothing that ran inside a child runs any more, where the system lets one look.
fn nothing_left(lab: &Lab) {
    let home = lab.home.path().canonicalize().unwrap();
    let left = || -> Vec<String> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let environs = processes.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
        let texts = environs.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', "\n"));
        let ours =
            |text: &String| text.contains(home.to_str().unwrap()) && text.contains("LISA_SESSION=kid-");
        texts.filter(ours).collect()
    };
    assert!(until(Duration::from_secs(5), || left().is_empty()), "{:#?}", left());
}

#[test]
fn claude_without_a_terminal_drives_two_children() {
    let Some(lab) = lab(AgentKind::Claude) else { return };
    install(&lab, &[]);
    run(&lab, &["-p", TASK, "--allowedTools", "mcp__lisa"]);
    let calls = check(&lab, None);
    // The project offers the server to every Claude Code in it: the child asks, and the parent says no.
    let declined = calls.iter().filter(|call| call.tool == "answer_prompt");
    let declined =
        declined.filter(|call| call.answer()["answered"][0].as_str().unwrap().contains(parents::WITHOUT));
    assert_eq!(declined.count(), 1, "{}", told(&lab));
    nothing_left(&lab);
}

#[test]
fn codex_without_a_terminal_drives_two_children() {
    let Some(lab) = lab(AgentKind::Codex) else { return };
    install(&lab, &[]);
    run(&lab, &["exec", TASK]);
    check(&lab, None);
    nothing_left(&lab);
}

#[test]
fn claude_in_a_terminal_is_woken_when_a_wait_is_over() {
    let Some(lab) = lab(AgentKind::Claude) else { return };
    let Some(newer) = Agent::with_tasks() else { return };
    install(&lab, &["--scope", "user"]);
    let words = [newer.program.to_str().unwrap(), TASK, "--allowedTools", "mcp__lisa"];
    let args = words.map(str::to_owned).to_vec();
    let request = SpawnRequest { agent: "generic".to_owned(), args, ..lab.request("parent", None) };
    let parent = lab.start(&request);
    done(&lab);
    let calls = check(&lab, Some("parent"));
    let woken = calls.iter().filter(|call| call.tool == "wait_sessions" && call.shown.len() == 2);
    let woken: Vec<_> = woken.filter(|call| call.shown[0].contains("background")).collect();
    assert!(!woken.is_empty(), "no wait became a task: {}", told(&lab));
    assert!(woken.iter().all(|call| call.answer()["timed_out"] == false), "{}", told(&lab));
    assert_eq!(parent.kill(), "killed");
    nothing_left(&lab);
}

#[test]
fn codex_in_a_terminal_drives_two_children_and_is_seen_at_work() {
    let Some(lab) = lab(AgentKind::Codex) else { return };
    install(&lab, &[]);
    let parent = lab.child("parent", Some(TASK));
    parent.only(TASK);
    done(&lab);
    parent.until("ready");
    check(&lab, Some("parent"));
    assert_eq!(parent.kill(), "killed");
    parent.check();
    nothing_left(&lab);
}

#[test]
fn a_child_that_has_the_server_too_can_not_go_beyond_the_depth_limit() {
    let spawn = json!({"agent": "codex", "name": "grandchild", "prompt": "too deep"});
    let scenario = Scenario::new().on(
        Match::prompt("go deeper"),
        [Reply::tool("mcp__lisa__spawn_session", spawn), Reply::text("No way.")],
    );
    let limit = vec![("LISA_MAX_DEPTH".to_owned(), "0".to_owned())];
    let options = LabOptions { env: limit, ..LabOptions::default() };
    let Some(lab) = Lab::with(AgentKind::Codex, scenario, options) else { return };
    install(&lab, &[]);
    let child = lab.child("child", Some("go deeper"));
    child.asked(2);
    let refused = lab.server.exchanges()[1].request.result_json();
    assert_eq!(refused["kind"], "depth_limit", "{refused}");
    child.until("ready");
    child.check();
}
