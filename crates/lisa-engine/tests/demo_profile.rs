//! The demo agent's profile, proven by screens that were captured from the demo agent.
//!
//! Every file in `data/demo` is one capture: lines about the terminal, a `--`, what must be read from it, a `---`, and
//! the screen as it was. `UPDATE_EXPECT=1` writes down what is read now; look at the difference before you keep it.
//! `gap` names what the screen shows and the engine cannot read from it yet: it is not compared.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use lisa_engine::api::words::{Prompt, State};
use lisa_engine::classify::evidence::{Claim, Source};
use lisa_engine::classify::memory::Memory;
use lisa_engine::classify::profile::{Profile, Profiles};
use lisa_engine::classify::{Outcome, step};
use lisa_engine::{
    api::words::Mode,
    classify::observation::{At, Line, Observation, Pane, Proc, Reading},
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// When looks are taken, in milliseconds after the start: often enough for everything to have settled.
const LOOKS: [i64; 4] = [1_000, 2_500, 4_000, 7_000];

struct Capture {
    path: PathBuf,
    title: String,
    cursor_visible: bool,
    cursor: (u16, u16),
    size: (u16, u16),
    gaps: Vec<String>,
    expected: Vec<String>,
    screen: String,
}

impl Capture {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let (head, screen) = text.split_once("\n---\n").unwrap();
        let (terminal, expected) = head.split_once("\n--").unwrap();
        let value = |key: &str| {
            let line = terminal.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            line.unwrap_or_default().to_owned()
        };
        let pair = |text: &str, by: char| {
            let (left, right) = text.split_once(by).unwrap();
            (left.parse().unwrap(), right.parse().unwrap())
        };
        let cursor = value("cursor");
        let (shown, place) = cursor.split_once(' ').unwrap();
        Self {
            path: path.to_owned(),
            title: value("title"),
            cursor_visible: shown == "shown",
            cursor: pair(place, ','),
            size: pair(&value("size"), 'x'),
            gaps: value("gap").split_whitespace().map(str::to_owned).collect(),
            expected: expected.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
            screen: screen.to_owned(),
        }
    }

    fn all() -> Vec<Self> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/demo");
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        assert!(paths.len() > 50, "the captures are not there");
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn named(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/demo");
        Self::read(&dir.join(format!("{name}.txt")))
    }

    fn has_dialog(&self) -> bool {
        !self.cursor_visible
    }

    /// One look at this screen: pane, process and screen, nothing else.
    fn observation(&self, at: At) -> Observation {
        Observation {
            pane: Reading::Seen(Pane {
                dead: false,
                exit_status: None,
                exit_signal: None,
                command: "lisa-demo-agent".to_owned(),
                pid: 100,
                cursor: self.cursor,
                cursor_visible: self.cursor_visible,
                alternate: false,
                in_mode: false,
                history: 0,
                activity: at,
                size: self.size,
                inputs: 0,
                title: self.title.clone(),
            }),
            screen: Reading::Seen(Arc::from(self.screen.trim_end())),
            procs: Reading::Seen(vec![process("lisa-demo-agent")]),
            ..Observation::none(at, At(0), "run", Mode::Interactive)
        }
    }

    /// What is read from this screen once it has stood for a while.
    fn read_settled(&self, profile: &Profile) -> Vec<String> {
        let mut memory = Memory::default();
        let mut read = Vec::new();
        for at in LOOKS {
            let outcome = step(profile, memory, &self.observation(At(at)));
            read = describe(&outcome);
            memory = outcome.memory;
        }
        read
    }

    /// These lines without what the engine cannot read yet.
    fn comparable<'l>(&self, lines: &'l [String]) -> Vec<&'l str> {
        let is_gap = |line: &&str| self.gaps.iter().any(|gap| line.starts_with(&format!("{gap}: ")));
        lines.iter().map(String::as_str).filter(|line| !is_gap(line)).collect()
    }

    fn bless(&self, read: &[String]) {
        let text = std::fs::read_to_string(&self.path).unwrap();
        let (terminal, _) = text.split_once("\n--").unwrap();
        let (_, screen) = text.split_once("\n---\n").unwrap();
        let kept =
            self.expected.iter().filter(|line| !self.comparable(&self.expected).contains(&line.as_str()));
        let new = self.comparable(read).into_iter().map(str::to_owned).chain(kept.cloned());
        let lines: Vec<String> = new.collect();
        std::fs::write(&self.path, format!("{terminal}\n--\n{}\n---\n{screen}", lines.join("\n"))).unwrap();
    }
}

fn process(name: &str) -> Proc {
    Proc { pid: 100, ppid: 1, name: name.to_owned(), zombie: false, stopped: false, cpu_ms: 10 }
}

fn demo() -> Arc<Profile> {
    static DEMO: LazyLock<Arc<Profile>> = LazyLock::new(|| Profiles::shipped().get("demo").unwrap());
    Arc::clone(&DEMO)
}

/// A verdict in lines.
fn describe(outcome: &Outcome) -> Vec<String> {
    let mut lines = vec![format!("state: {}", outcome.verdict.state.name())];
    let mut say = |key: &str, value: &str| lines.push(format!("{key}: {}", value.replace('\n', " ⏎ ")));
    match &outcome.verdict.state {
        State::Working { activity, tool } => {
            say("activity", activity.as_str());
            if let Some(tool) = tool {
                say("running", tool);
            }
        }
        State::Ready { last_message, asks } => {
            if let Some(message) = last_message {
                say("message", message);
            }
            if *asks {
                say("asks", "true");
            }
        }
        State::Error { failure } => {
            say("failure", failure.kind.as_str());
            say("recoverable", if failure.recoverable { "true" } else { "false" });
            say("words", &failure.message);
        }
        _ => {}
    }
    if let Some(prompt) = outcome.verdict.state.prompt() {
        describe_prompt(prompt, &mut say);
    }
    for item in &outcome.evidence {
        if let Claim::InputShown { draft: Some(draft) } = &item.claim {
            say("draft", draft);
        }
    }
    lines
}

fn describe_prompt(prompt: &Prompt, say: &mut impl FnMut(&str, &str)) {
    if let Some(dialog) = prompt.dialog {
        say("dialog", dialog.as_str());
    }
    say("title", &prompt.title);
    if !prompt.body.is_empty() {
        say("body", &prompt.body);
    }
    for (key, value) in [("tool", &prompt.tool), ("command", &prompt.command), ("file", &prompt.file)] {
        if let Some(value) = value {
            say(key, value);
        }
    }
    for option in &prompt.options {
        let mark = if option.selected { '▸' } else { ' ' };
        let tick = option.checked.map_or("", |on| if on { "[x] " } else { "[ ] " });
        say("option", &format!("{mark} {}. {tick}{} = {}", option.key, option.label, option.effect));
    }
    let flags = [("multi", prompt.multi), ("free_text", prompt.free_text), ("truncated", prompt.truncated)];
    for (key, _) in flags.into_iter().filter(|(_, on)| *on) {
        say(key, "true");
    }
    if let Some(step) = prompt.step {
        say("step", &format!("{}/{}", step.number, step.of));
    }
}

/// Reads every capture as it is changed by `change`, and says which ones are then read otherwise.
fn differences(change: impl Fn(&mut Capture)) -> String {
    let profile = demo();
    let mut report = String::new();
    for mut capture in Capture::all() {
        change(&mut capture);
        let read = capture.read_settled(&profile);
        let (read, expected) = (capture.comparable(&read), capture.comparable(&capture.expected));
        if read != expected {
            let name = capture.path.file_name().unwrap().to_string_lossy();
            report.push_str(&format!("{name}\n  expected {expected:#?}\n  read {read:#?}\n"));
        }
    }
    report
}

#[test]
fn every_capture_is_read_as_it_says() {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let profile = demo();
        Capture::all().iter().for_each(|capture| capture.bless(&capture.read_settled(&profile)));
    }
    let report = differences(|_| {});
    assert!(report.is_empty(), "{report}");
}

#[test]
fn the_screen_says_the_same_without_a_title() {
    let report = differences(|capture| "host".clone_into(&mut capture.title));
    assert!(report.is_empty(), "{report}");
}

/// The rows as an answer of the agent shows them, or as the output of a tool.
fn quoted(rows: &str, first: &str, rest: &str) -> Vec<String> {
    let lines = rows.lines().enumerate();
    lines
        .map(|(at, row)| format!("{}{row}", if at == 0 { first } else { rest }).trim_end().to_owned())
        .collect()
}

#[test]
fn a_screen_that_is_quoted_in_the_transcript_changes_nothing() {
    let quotes = [
        "permission_bash-80x24",
        "permission_bash-44x7",
        "question_multi-80x24",
        "questions_first-80x24",
        "plan-80x24",
        "plan_cut-44x7",
        "trust-80x24",
        "bypass-80x24",
        "menu_model-80x24",
        "thinking-80x24",
        "failed_auth-80x24",
        "interrupted-80x24",
        "draft-80x24",
    ];
    for name in quotes {
        let quote = Capture::named(name).screen;
        for (first, rest) in [("◆ ", "  "), ("  └ ", "    ")] {
            let block = quoted(quote.trim_end(), first, rest);
            let report = differences(|capture| {
                if capture.screen.trim().is_empty() {
                    return;
                }
                // Right above a dialog, as where the agent speaks and then asks; elsewhere below the greeting, so
                // that the turn still ends as it did.
                let rows: Vec<&str> = capture.screen.trim_end().lines().collect();
                let rule = rows.iter().position(|row| row.starts_with('─')).unwrap_or(0);
                let greeted =
                    rows.iter().position(|row| row.starts_with("demo agent")).map_or(0, |row| row + 2);
                let at = if capture.has_dialog() { rule } else { greeted };
                let (above, below) = rows.split_at(at);
                let mut all: Vec<&str> = above.to_vec();
                if first == "  └ " {
                    all.push("◇ Bash(cat screen.txt)");
                }
                all.extend(block.iter().map(String::as_str));
                if capture.has_dialog() && first == "  └ " {
                    // What has scrolled away takes the beginning of the block with it.
                    all.drain(..=above.len() + 1);
                } else if !capture.has_dialog() {
                    all.extend(["", "conversation compacted"]);
                }
                all.extend(below);
                let (height, before) = (all.len(), rows.len());
                capture.screen = all.join("\n");
                capture.size.1 = u16::try_from(height).unwrap().max(capture.size.1);
                capture.cursor.1 += u16::try_from(height.saturating_sub(before)).unwrap();
            });
            assert!(report.is_empty(), "with {name} quoted after {first:?}:\n{report}");
        }
    }
}

fn hook(at: i64, event: &str, more: Value) -> Line {
    let mut payload = json!({"hook_event_name": event, "session_id": "s1", "cwd": "/tmp/project"});
    payload.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    Line { at: At(at), payload: Ok(payload) }
}

/// A story told by looks: each is a capture, what the hooks said just before it, and the state it must give.
fn tell(looks: &[(&str, Vec<Line>, &str)]) -> Outcome {
    let profile = demo();
    let mut memory = Memory::default();
    let mut last = None;
    for (at, (name, hooks, state)) in (5_000_i64..).step_by(5_000).zip(looks) {
        let capture = Capture::named(name);
        let mut obs = capture.observation(At(at));
        obs.feeds.hook.lines =
            hooks.iter().cloned().map(|line| Line { at: At(at - 100 + line.at.0), ..line }).collect();
        let outcome = step(&profile, memory, &obs);
        assert_eq!(
            outcome.verdict.state.name().as_str(),
            *state,
            "{name} at {at}: {}",
            outcome.verdict.reason
        );
        memory = outcome.memory.clone();
        last = Some(outcome);
    }
    last.unwrap()
}

#[test]
fn hooks_tell_what_the_screen_does_not() {
    let outcome = tell(&[
        (
            "idle-80x24",
            vec![hook(0, "SessionStart", json!({"source": "startup", "model": "demo-large"}))],
            "ready",
        ),
        ("thinking-80x24", vec![hook(0, "UserPromptSubmit", json!({"prompt": "x"}))], "working"),
        (
            "permission_write-80x24",
            vec![
                hook(
                    0,
                    "PreToolUse",
                    json!({"tool_name": "Write", "tool_input": {"file_path": "src/main.rs"}}),
                ),
                hook(
                    1,
                    "PermissionRequest",
                    json!({"tool_name": "Write", "tool_input": {"file_path": "src/main.rs"}}),
                ),
            ],
            "awaiting_permission",
        ),
    ]);
    let prompt = outcome.verdict.state.prompt().unwrap();
    assert_eq!((prompt.tool.as_deref(), prompt.file.as_deref()), (Some("Write"), Some("src/main.rs")));
    assert_eq!(outcome.memory.session_id(), Some("s1"));
}

#[test]
fn a_turn_with_hooks_from_prompt_to_message() {
    let bash = json!({"tool_name": "Bash", "tool_input": {"command": "cargo test"}});
    let outcome = tell(&[
        (
            "tool-80x24",
            vec![hook(0, "UserPromptSubmit", json!({})), hook(1, "PreToolUse", bash.clone())],
            "working",
        ),
        (
            "done-80x24",
            vec![
                hook(0, "PostToolUse", bash),
                hook(1, "Stop", json!({"last_assistant_message": "Shall I go on?", "background_tasks": 0})),
            ],
            "ready",
        ),
    ]);
    let State::Ready { last_message, asks } = outcome.verdict.state else { panic!("not ready") };
    assert_eq!((last_message.as_deref(), asks), (Some("Shall I go on?"), true));
}

#[test]
fn what_no_hook_tells_is_seen() {
    let submitted = || vec![hook(0, "UserPromptSubmit", json!({}))];
    let asked = || {
        let bash = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
        vec![hook(0, "PreToolUse", bash.clone()), hook(1, "PermissionRequest", bash)]
    };
    tell(&[("thinking-80x24", submitted(), "working"), ("interrupted-80x24", vec![], "interrupted")]);
    tell(&[("thinking-80x24", submitted(), "working"), ("draft_early_escape-80x24", vec![], "ready")]);
    tell(&[
        ("thinking-80x24", submitted(), "working"),
        ("permission_bash-80x24", asked(), "awaiting_permission"),
        ("denied-80x24", vec![], "interrupted"),
    ]);
}

#[test]
fn a_failure_that_a_hook_tells_has_its_kind() {
    for kind in
        ["rate_limit", "overloaded", "network", "auth", "billing", "context", "invalid_request", "api"]
    {
        let told = json!({"error": kind, "message": "it is about rate_limit and auth"});
        let failed = format!("failed_{kind}-80x24");
        let outcome = tell(&[
            ("thinking-80x24", vec![hook(0, "UserPromptSubmit", json!({}))], "working"),
            (&failed, vec![hook(0, "StopFailure", told)], "error"),
        ]);
        let State::Error { failure } = outcome.verdict.state else { panic!("no error") };
        assert_eq!(failure.kind.as_str(), kind);
        assert_eq!(failure.message, "it is about rate_limit and auth");
    }
}

#[test]
fn the_state_file_is_understood() {
    let profile = demo();
    let expectations = [
        (json!({"status": "busy", "waiting_for": null}), "working"),
        (json!({"status": "waiting", "waiting_for": "permission prompt"}), "awaiting_permission"),
        (json!({"status": "waiting", "waiting_for": "question"}), "awaiting_question"),
        (json!({"status": "waiting", "waiting_for": "plan approval"}), "awaiting_plan"),
        (json!({"status": "waiting", "waiting_for": "dialog open"}), "awaiting_dialog"),
    ];
    for (file, state) in expectations {
        let mut obs = Capture::named("idle-80x24").observation(At(5_000));
        obs.screen = Reading::Unavailable { why: "a test".to_owned() };
        if let Reading::Seen(pane) = &mut obs.pane {
            "host".clone_into(&mut pane.title);
        }
        obs.native = Reading::Seen(file);
        let outcome = step(&profile, Memory::default(), &obs);
        assert_eq!(outcome.verdict.state.name().as_str(), state);
        assert_eq!(outcome.verdict.source, Some(Source::Native));
    }
}

#[test]
fn the_transcript_file_is_understood() {
    let profile = demo();
    let line = |value: Value| Line { at: At(4_000), payload: Ok(value) };
    let user = json!({"type": "user", "text": "go"});
    let tool = json!({"type": "tool", "phase": "start", "name": "Bash", "input": {"command": "ls"}});
    let stories: [(&[Value], &str); 5] = [
        (&[user.clone(), tool.clone()], "working"),
        (
            &[
                user.clone(),
                json!({"type": "assistant", "text": "Well.", "stop": "end_turn"}),
                json!({"type": "turn_end", "turn": 1, "outcome": "end_turn", "tokens": {"input": 3, "output": 2}}),
            ],
            "ready",
        ),
        (
            &[
                user.clone(),
                json!({"type": "interrupted"}),
                json!({"type": "turn_end", "turn": 1, "outcome": "interrupted", "tokens": {"input": 3, "output": 2}}),
            ],
            "interrupted",
        ),
        (
            &[
                user.clone(),
                json!({"type": "assistant", "text": "API error: auth: no", "stop": "error"}),
                json!({"type": "turn_end", "turn": 1, "outcome": "error", "tokens": {"input": 3, "output": 2}}),
            ],
            "error",
        ),
        (
            &[
                user,
                tool,
                json!({"type": "tool", "phase": "end", "name": "Bash", "input": {}, "outcome": "ok", "output": ""}),
            ],
            "working",
        ),
    ];
    for (lines, state) in stories {
        // The screen of an agent that shows no signs, so that the file alone is heard.
        let mut obs = Capture::named("resumed-80x24").observation(At(5_000));
        obs.screen = Reading::Seen(Arc::from("demo agent"));
        if let Reading::Seen(pane) = &mut obs.pane {
            "host".clone_into(&mut pane.title);
        }
        obs.feeds.transcript.lines = lines.iter().cloned().map(line).collect();
        let memory = Memory { up: true, ..Memory::default() };
        let outcome = step(&profile, memory, &obs);
        assert_eq!(outcome.verdict.state.name().as_str(), state, "{lines:?}: {}", outcome.verdict.reason);
        if lines.len() == 3 && state == "ready" {
            assert_eq!(outcome.memory.feeds.transcript.usage.input_tokens, Some(3));
            assert_eq!(outcome.memory.last_message(), Some("Well."));
        }
    }
}

#[test]
fn the_agent_is_known_by_its_process_and_its_end_is_seen() {
    let profile = demo();
    let seen = step(&profile, Memory::default(), &Capture::named("done-80x24").observation(At(5_000)));
    let mut obs = Capture::named("done-80x24").observation(At(6_000));
    obs.procs = Reading::Seen(vec![process("bash")]);
    if let Reading::Seen(pane) = &mut obs.pane {
        pane.title.clear();
        "bash".clone_into(&mut pane.command);
    }
    let outcome = step(&profile, seen.memory, &obs);
    assert_eq!(outcome.verdict.state.name().as_str(), "exited");
    assert_eq!(outcome.verdict.status().as_str(), "completed");
}
