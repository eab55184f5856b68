//! Whole conversations with the agent, without a terminal and without waiting: the test sets the time.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use demo_agent::agent::{Agent, Config, ExternalEvent};
use demo_agent::effect::Effect;
use demo_agent::input::{Input, Key};
use demo_agent::screen::{Bottom, Size, live};
use serde_json::{Value, json};

const ENTER: Key = Key::Enter { burst: false };

struct Talk {
    agent: Agent,
    now: Duration,
    effects: Vec<Effect>,
}

impl Talk {
    fn with(config: Config) -> Self {
        let mut talk = Self { agent: Agent::new(config), now: Duration::ZERO, effects: Vec::new() };
        talk.agent.boot(talk.now);
        talk.collect();
        talk
    }

    fn new() -> Self {
        Self::with(config())
    }

    fn collect(&mut self) {
        self.effects.extend(self.agent.take_effects());
    }

    fn key(&mut self, key: Key) {
        self.agent.input(Input::Key(key), self.now);
        self.collect();
    }

    fn text(&mut self, text: &str) {
        self.agent.input(Input::Text(text.to_owned()), self.now);
        self.collect();
    }

    fn prompt(&mut self, text: &str) {
        self.text(text);
        self.key(ENTER);
    }

    fn handle_event(&mut self, event: ExternalEvent) {
        self.agent.handle_event(event, self.now);
        self.collect();
    }

    fn pass(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while let Some(next) = self.agent.next_tick(self.now).filter(|next| *next <= until) {
            assert!(next >= self.now);
            self.now = next;
            self.agent.tick(self.now);
        }
        self.now = until;
        self.agent.tick(self.now);
        self.collect();
    }

    /// The live region without empty rows.
    fn screen(&self) -> Vec<String> {
        let rows = live(&self.agent.view(self.now), Size { cols: 60, rows: 30 }).rows;
        let texts = rows.into_iter().map(|row| row.text.trim_end().to_owned());
        texts.filter(|text| !text.is_empty() && !text.starts_with('─')).collect()
    }

    /// The transcript so far.
    fn printed(&self) -> Vec<String> {
        let entries = self.effects.iter().filter_map(|effect| match effect {
            Effect::Print(entry) => Some(entry),
            _ => None,
        });
        entries.flat_map(|entry| entry.rows(60, true)).map(|row| row.text).collect()
    }

    fn last_printed(&self, count: usize) -> Vec<String> {
        let all = self.printed();
        all[all.len() - count..].to_vec()
    }

    fn hooks(&self) -> Vec<&'static str> {
        let hooks = self.effects.iter().filter_map(|effect| match effect {
            Effect::Hook(hook) => Some(hook.event),
            _ => None,
        });
        hooks.collect()
    }

    fn records(&self) -> Vec<&Value> {
        let records = self.effects.iter().filter_map(|effect| match effect {
            Effect::Record(value) => Some(value),
            _ => None,
        });
        records.collect()
    }

    fn logged(&self, key: &str) -> Vec<&Value> {
        let lines = self.effects.iter().filter_map(|effect| match effect {
            Effect::Log(value) if value.get(key).is_some() => Some(value),
            _ => None,
        });
        lines.collect()
    }

    fn status(&self) -> &'static str {
        self.agent.status().map_or("", |status| status.status)
    }

    fn quit(&self) -> Option<i32> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Quit { code, .. } => Some(*code),
            _ => None,
        })
    }
}

fn config() -> Config {
    Config {
        cwd: "/project".to_owned(),
        model: "demo-large".to_owned(),
        session: "s1".to_owned(),
        hooks: true,
        burst: true,
        stream_cps: 400,
        spinner_hz: 10,
        ..Config::default()
    }
}

#[test]
fn a_plain_prompt_is_answered() {
    let mut talk = Talk::new();
    assert_eq!(talk.status(), "idle");
    assert_eq!(talk.screen(), ["▸", "  demo · ready"]);
    talk.prompt("fix the bug");
    assert_eq!(talk.status(), "busy");
    assert_eq!(talk.screen(), ["> fix the bug", "⣾ Thinking… (0s)", "▸", "  demo · esc to interrupt"]);
    talk.pass(310);
    assert_eq!(talk.screen(), ["▸", "  demo · esc to interrupt"], "no status line while text streams");
    talk.pass(1000);
    assert_eq!(talk.last_printed(2), ["◆ You said: fix the bug", "● Done in 0.4s"]);
    assert_eq!(talk.hooks(), ["SessionStart", "UserPromptSubmit", "Stop"]);
    let kinds: Vec<_> = talk.records().iter().map(|r| r["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "turn_end"]);
    assert_eq!(talk.records()[1]["stop"], "end_turn");
    assert_eq!(talk.logged("fnv")[0]["text"], "fix the bug");
}

#[test]
fn an_idle_agent_never_wakes_without_hooks() {
    let mut talk = Talk::with(Config { hooks: false, ..config() });
    assert_eq!(talk.agent.next_tick(talk.now), None);
    talk.prompt("hi");
    talk.pass(5000);
    assert_eq!(talk.agent.next_tick(talk.now), None);
    talk.prompt("!permission Bash ls");
    assert_eq!(talk.agent.next_tick(talk.now), None, "a dialog does not move either");
}

#[test]
fn a_permission_can_be_given_once_always_or_not() {
    let mut talk = Talk::new();
    talk.prompt("!permission Bash rm -rf a ; !say done");
    assert_eq!(talk.status(), "waiting");
    assert_eq!(talk.agent.view(talk.now).title, "[!] demo");
    talk.text("1");
    talk.pass(1000);
    assert_eq!(talk.last_printed(4)[..2], ["◇ Bash(rm -rf a)", "  └ (allowed once)"]);

    talk.prompt("!permission Bash rm -rf b ; !permission Bash rm c");
    talk.key(Key::Down);
    talk.key(ENTER);
    talk.pass(1);
    assert_eq!(talk.status(), "idle", "the second one is covered by the rule");
    assert_eq!(talk.last_printed(2)[0], "  └ (allowed by rule)");

    let before = talk.hooks().len();
    talk.prompt("!permission Write src/main.rs ; !say never");
    talk.key(Key::Esc);
    talk.pass(1000);
    assert_eq!(talk.last_printed(2), ["  └ (denied)", "✗ Interrupted"]);
    let after = &talk.hooks()[before..];
    assert_eq!(after, ["UserPromptSubmit", "PreToolUse", "PermissionRequest"], "a refusal fires nothing");
    let by: Vec<_> = talk.logged("dialog").iter().map(|line| line["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["digit", "enter", "esc"]);
}

#[test]
fn typing_a_prompt_into_a_dialog_answers_it() {
    let mut talk = Talk::new();
    talk.prompt("!permission Bash rm -rf /");
    talk.prompt("please stop");
    assert_eq!(talk.logged("dialog")[0], &json!({"dialog":"permission","choice":"Allow once","by":"enter"}));
    let into: Vec<_> = talk.logged("key").iter().map(|line| line["into"].as_str().unwrap()).collect();
    assert_eq!(into, ["box", "box", "permission", "permission"]);
}

#[test]
fn an_early_escape_puts_the_prompt_back() {
    let mut talk = Talk::new();
    talk.prompt("!think 5s");
    talk.pass(1000);
    talk.key(Key::Esc);
    assert_eq!(talk.screen(), ["▸ !think 5s", "  demo · ready"]);
    assert!(!talk.printed().iter().any(|line| line.contains("Interrupted")));
    assert_eq!(talk.hooks(), ["SessionStart", "UserPromptSubmit"]);
    talk.key(Key::CtrlU);
    assert_eq!(talk.screen(), ["▸", "  demo · ready"]);
}

#[test]
fn a_late_escape_interrupts_without_a_hook() {
    let mut talk = Talk::new();
    talk.prompt("!stream 5s");
    talk.pass(1000);
    talk.key(Key::Esc);
    assert_eq!(talk.last_printed(1), ["✗ Interrupted"]);
    assert_eq!(talk.hooks(), ["SessionStart", "UserPromptSubmit"]);
    let records = talk.records();
    assert_eq!(records[records.len() - 1]["outcome"], "interrupted");
    assert!(talk.printed().iter().any(|line| line.starts_with("◆ I read")), "what was said stays");
}

#[test]
fn prompts_queue_while_working_and_run_in_order() {
    let mut talk = Talk::new();
    talk.prompt("!think 1s ; !say first");
    talk.prompt("second");
    assert_eq!(talk.screen()[2], "  queued: second");
    talk.pass(5000);
    assert_eq!(talk.last_printed(2)[0], "◆ You said: second");
    let hooks = talk.hooks();
    assert_eq!(hooks, ["SessionStart", "UserPromptSubmit", "Stop", "UserPromptSubmit", "Stop"]);
}

#[test]
fn silence_and_stalling_look_as_they_should() {
    let mut talk = Talk::new();
    talk.prompt("!say hi ; !stall 3s ; !silent 3s ; !say bye");
    talk.pass(500);
    let (screen, title) = (talk.screen(), talk.agent.view(talk.now).title);
    assert_eq!(screen, ["▸", "  demo · esc to interrupt"]);
    talk.pass(1500);
    assert_eq!(talk.screen(), screen);
    assert_ne!(talk.agent.view(talk.now).title, title, "the title spins in a stall");
    talk.pass(1500);
    let (screen, title) = (talk.screen(), talk.agent.view(talk.now).title);
    talk.pass(2000);
    assert_eq!((talk.screen(), talk.agent.view(talk.now).title), (screen, title));
}

#[test]
fn errors_and_retries() {
    let mut talk = Talk::new();
    talk.prompt("!retry overloaded 2 3s ; !fail rate_limit slow down");
    assert_eq!(talk.screen()[1], "⣾ Retrying in 3s · attempt 1/2 (overloaded)");
    talk.pass(4000);
    assert!(talk.screen()[1].ends_with("Retrying in 2s · attempt 2/2 (overloaded)"), "{:?}", talk.screen());
    talk.pass(3000);
    assert_eq!(talk.last_printed(1), ["✗ API error: rate_limit: slow down"]);
    assert_eq!(talk.hooks().last(), Some(&"StopFailure"));
    assert_eq!(talk.status(), "idle");
    talk.prompt("!thnik 3s");
    assert_eq!(talk.last_printed(1), ["✗ API error: invalid_request: unknown step !thnik"]);
}

#[test]
fn a_hook_can_decide_instead_of_the_user() {
    let mut talk = Talk::with(Config { hook_decides: true, ..config() });
    let token = |talk: &Talk| {
        talk.effects.iter().rev().find_map(|effect| match effect {
            Effect::Hook(hook) => hook.decides,
            _ => None,
        })
    };
    talk.prompt("!permission Bash ls");
    assert_eq!(talk.screen()[1], "⣾ Asking the hook… (0s)");
    let decision = Some(json!({"decision": "deny", "message": "not today"}));
    talk.handle_event(ExternalEvent::Decided { token: token(&talk).unwrap(), decision });
    assert_eq!(talk.last_printed(2)[0], "  └ (denied by hook: not today)");
    assert_eq!(talk.logged("dialog")[0]["by"], "hook");

    talk.prompt("!permission Bash ls");
    talk.handle_event(ExternalEvent::Decided { token: token(&talk).unwrap(), decision: None });
    assert_eq!(talk.status(), "waiting", "a hook without an opinion leaves it to the user");
}

#[test]
fn ctrl_c_clears_interrupts_and_leaves() {
    let mut talk = Talk::new();
    talk.text("draft");
    talk.key(Key::CtrlC);
    assert_eq!(talk.screen()[0], "▸");
    talk.prompt("!say hello ; !think 9s");
    talk.pass(1000);
    talk.key(Key::CtrlC);
    assert_eq!(talk.last_printed(1), ["✗ Interrupted"]);
    talk.key(Key::CtrlC);
    assert_eq!(talk.screen(), ["▸", "  press ctrl-c again to exit"]);
    talk.pass(1100);
    assert_eq!(talk.screen(), ["▸", "  demo · ready"]);
    talk.key(Key::CtrlC);
    assert_eq!(talk.quit(), None);
    talk.key(Key::CtrlC);
    assert_eq!(talk.quit(), Some(0));
}

#[test]
fn enter_in_a_burst_is_a_line_break_unless_turned_off() {
    let mut talk = Talk::new();
    talk.text("long text");
    talk.key(Key::Enter { burst: true });
    assert_eq!(talk.status(), "idle");
    talk.key(ENTER);
    assert_eq!(talk.logged("fnv")[0]["text"], "long text\n");
    let mut talk = Talk::with(Config { burst: false, ..config() });
    talk.text("long text");
    talk.key(Key::Enter { burst: true });
    assert_eq!(talk.status(), "busy");
}

#[test]
fn start_up_dialogs_come_before_everything() {
    let mut talk = Talk::with(Config { ask_trust: true, dangerous: true, ..config() });
    assert_eq!(talk.status(), "", "nothing is published yet");
    assert!(talk.hooks().is_empty());
    assert_eq!(talk.screen()[0], " Do you trust this folder?");
    talk.key(ENTER);
    assert_eq!(talk.screen()[0], " Warning: permissions are off");
    talk.key(Key::Down);
    talk.key(ENTER);
    assert_eq!(talk.status(), "idle");
    talk.prompt("!permission Bash ls");
    assert_eq!(talk.last_printed(2)[0], "  └ (permissions are off)");

    let mut talk = Talk::with(Config { dangerous: true, ..config() });
    talk.key(ENTER);
    assert_eq!(talk.quit(), Some(1), "the default is to leave");
}

#[test]
fn a_new_conversation_has_a_new_id() {
    let mut talk = Talk::new();
    talk.prompt("/clear");
    assert!(talk.effects.iter().any(|e| matches!(e, Effect::Session(id) if id != "s1")));
    assert_eq!(talk.hooks(), ["SessionStart", "SessionEnd", "SessionStart"]);
}

#[test]
fn the_model_picker_is_a_dialog() {
    let mut talk = Talk::new();
    talk.prompt("/model");
    assert_eq!(talk.screen()[..2], [" Select model", " ▸ 1. demo-large"]);
    assert_eq!(talk.agent.status().unwrap().waiting_for, Some("dialog open"));
    talk.text("2");
    assert_eq!(talk.last_printed(1), ["model set to demo-small"]);
}

#[test]
fn background_tasks_show_in_the_footer_until_they_end() {
    let mut talk = Talk::new();
    talk.prompt("!background sleep 5");
    talk.pass(10);
    assert_eq!(talk.screen()[1], "  demo · ready · 1 background task");
    talk.handle_event(ExternalEvent::BackgroundEnded);
    assert_eq!(talk.screen()[1], "  demo · ready");
}

#[test]
fn notifications_come_late_and_once() {
    let mut talk = Talk::new();
    talk.prompt("!permission Bash ls");
    talk.pass(5900);
    assert_eq!(talk.hooks().last(), Some(&"PermissionRequest"));
    talk.pass(100_000);
    assert_eq!(talk.hooks().iter().filter(|event| **event == "Notification").count(), 1);
}

#[test]
fn scripts_replace_the_prompts_until_they_are_used_up() {
    let script = demo_agent::script::parse_script("!say one\n---\n!say two", false).unwrap();
    let mut talk = Talk::with(Config { script, ..config() });
    for expected in ["◆ one", "◆ two", "◆ You said: go"] {
        talk.prompt("go");
        talk.pass(2000);
        assert_eq!(talk.last_printed(2)[0], expected);
    }
}

#[test]
fn nothing_panics_at_any_size() {
    let prompts = ["!stream 1s", "!permission Bash x", "!ask H | Q? | A: why | B", "!plan a\\nb"];
    for prompt in prompts {
        let mut talk = Talk::new();
        talk.prompt(prompt);
        talk.pass(400);
        for cols in 1..50 {
            for rows in 1..16 {
                let view = talk.agent.view(talk.now);
                let live = live(&view, Size { cols, rows });
                assert!(live.rows.len() <= rows);
                assert!(!matches!(view.bottom, Bottom::Nothing));
            }
        }
    }
}
