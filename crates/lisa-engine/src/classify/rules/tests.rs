//! An example for each row of the table: the looks after which it decides.

use super::{Gives, RULES};
use crate::{
    api::words::{Mode, Reason},
    classify::{
        observation::{At, Done, Observation, Reading},
        resolve::Outcome,
        testing::*,
    },
};
use serde_json::{Value, json};

fn hook(name: &str) -> Value {
    json!({
        "hook_event_name": name, "session_id": "s", "tool_name": "Bash", "tool_use_id": "t",
        "tool_input": {"command": "make"},
    })
}

/// The outcome of the last of these looks.
fn after(agent: &str, looks: impl IntoIterator<Item = Observation>) -> Outcome {
    let mut session = Session::new(agent);
    looks.into_iter().map(|look| session.look(&look)).last().expect("at least one look")
}

/// A look at an agent that is up and idle.
fn idle(at: i64) -> Observation {
    blank(at).title("✳ x").native(json!({"status": "idle"})).screen(&idle_screen())
}

fn with(mut look: Observation, change: impl FnOnce(&mut Observation)) -> Observation {
    change(&mut look);
    look
}

fn unread() -> Reading<std::sync::Arc<str>> {
    Reading::Unavailable { why: "no answer".to_owned() }
}

/// Looks after which the row with this reason decides.
fn example(reason: Reason) -> Outcome {
    let working = |at| blank(at).title("⠂ x").screen(&working_screen());
    let pager = "a page of text\n~\n~\n:\n";
    match reason {
        Reason::ServerDied => after(
            "claude",
            [with(blank(1_000), |look| {
                (look.pane, look.server_died) = (Reading::Absent, true);
            })],
        ),
        Reason::PaneDead => after("claude", [blank(1_000).pane(|pane| pane.dead = true)]),
        Reason::RunDone => after(
            "claude",
            [with(blank(1_000), |look| {
                let done = Done { run_id: "run".to_owned(), code: Some(0), signal: None, at: At(900) };
                look.done = Reading::Seen(done);
            })],
        ),
        Reason::AgentGone => {
            let shell = blank(2_000).process("bash").pane(|pane| pane.command = "bash".to_owned());
            after("claude", [idle(1_000).process("claude"), shell])
        }
        Reason::AgentSuspended => {
            let look = blank(5_000).process("claude").pane(|pane| pane.command = "bash".to_owned());
            after(
                "claude",
                [with(look, |look| {
                    if let Reading::Seen(procs) = &mut look.procs {
                        procs[0].stopped = true;
                    }
                })],
            )
        }
        Reason::PaneUnreadable => after(
            "claude",
            [with(blank(1_000), |look| {
                look.pane = Reading::Unavailable { why: "no answer".to_owned() };
            })],
        ),
        Reason::DialogShown => after("claude", [blank(1_000).screen(&permission_screen("make"))]),
        Reason::NativeAsking => {
            let waiting = json!({"status": "waiting", "waitingFor": "permission prompt"});
            after("claude", [with(blank(1_000).native(waiting), |look| look.screen = unread())])
        }
        Reason::TitleAsking => after("codex", [blank(1_000).title("[ ! ] Action Required | x")]),
        Reason::EventAsking => after("claude", [blank(1_000).hook(hook("PermissionRequest"))]),
        Reason::FinishedWithBackground => {
            let stop = json!({
                "hook_event_name": "Stop", "session_id": "s", "background_tasks": [{"id": "1", "type": "shell"}],
            });
            let over = |at| blank(at).title("⠂ x").screen(&idle_screen());
            let begun = over(1_000).hook(hook("UserPromptSubmit"));
            after("claude", [begun, over(2_000).hook(stop), over(5_000)])
        }
        Reason::Frozen => after("claude", [working(1_000), working(62_000)]),
        Reason::TitleWorking => after("claude", [working(1_000)]),
        Reason::NativeWorking => after("claude", [blank(1_000).native(json!({"status": "busy"}))]),
        Reason::EventWorking => after("claude", [blank(1_000).hook(hook("UserPromptSubmit"))]),
        Reason::ScreenWorking => after("claude", [blank(1_000).screen(&working_screen())]),
        Reason::JustSent => after(
            "claude",
            [
                idle(1_000),
                idle(4_000),
                with(idle(5_000), |look| {
                    look.prompt_sent_at = Some(At(4_950));
                }),
            ],
        ),
        Reason::Settling => {
            after("claude", [working(1_000), blank(1_100).title("✳ x").screen(&idle_screen())])
        }
        Reason::ExecRunning => after(
            "generic",
            [with(blank(5_000).process("make"), |look| {
                look.mode = Mode::Exec;
            })],
        ),
        Reason::InputCovered => after("claude", [idle(1_000), idle(4_000), idle(60_000).screen(pager)]),
        Reason::TurnFailed => {
            let failed =
                json!({"hook_event_name": "StopFailure", "session_id": "s", "error": "billing_error"});
            after("claude", [blank(1_000).hook(failed)])
        }
        Reason::TurnInterrupted => {
            let screen =
                conversation("❯ go\n  ⎿  Interrupted · What should Claude do instead?", "? for shortcuts");
            let stopped = |at| blank(at).title("✳ x").screen(&screen);
            after("claude", [working(1_000), stopped(2_000), stopped(5_000)])
        }
        Reason::TurnOver => after("claude", [blank(1_000).hook(hook("Stop"))]),
        Reason::PromptPending => {
            let fresh = conversation("Welcome", "? for shortcuts · ← for agents");
            let look = |at| {
                with(blank(at).screen(&fresh).title("✳ Claude Code"), |look| {
                    look.prompt_sent_at = Some(look.spawned_at);
                })
            };
            after("claude", [look(2_000), look(4_500)])
        }
        Reason::Idle => after("claude", [idle(1_000), idle(4_000)]),
        Reason::InputReady => {
            let shown = |at| blank(at).screen(&idle_screen());
            after("claude", [shown(1_000), shown(5_000)])
        }
        Reason::PlainOutput => {
            let text = |at| blank(at).process("claude").screen("one\ntwo\nthree\n");
            after("claude", [text(1_000), text(4_000)])
        }
        Reason::Starting => after("claude", [blank(1_000)]),
        Reason::SignalsFailed => after("claude", [with(blank(100_000), |look| look.screen = unread())]),
        Reason::NothingMoves => {
            let still = |at| blank(at).process("tool").screen("working on it\n");
            after("generic", [still(1_000), still(400_000)])
        }
        Reason::AgentAlive => after("generic", [blank(100_000).process("tool")]),
        Reason::NothingKnown => after("claude", [blank(1_000), blank(100_000)]),
        other => panic!("there is no example for {other}"),
    }
}

#[test]
fn every_row_decides_its_example_and_gives_the_state_that_it_names() {
    for rule in RULES {
        let outcome = example(rule.reason);
        let state = &outcome.verdict.state;
        assert_eq!(outcome.verdict.reason, rule.reason, "{:#?}", outcome.evidence);
        match rule.gives {
            Gives::State(name) => assert_eq!(state.name(), name, "{}", rule.reason),
            Gives::Awaiting => assert!(state.prompt().is_some(), "{}: {state:?}", rule.reason),
        }
    }
}

#[test]
fn every_row_that_was_passed_over_says_why_in_words() {
    let outcome = example(Reason::NothingKnown);
    assert_eq!(outcome.passed_over.len() + 1, RULES.len());
    assert!(outcome.passed_over.iter().all(|(_, why)| why.contains(' ')), "{:?}", outcome.passed_over);
}
