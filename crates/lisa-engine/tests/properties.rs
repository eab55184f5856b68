//! What must hold for any sequence of looks and any text on the screen.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use lisa_engine::api::words::{StateName, Status};
use lisa_engine::classify::observation::Observation;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{Session, With, blank, conversation, idle_screen, permission_screen, working_screen};

/// Lines that look like something, when somebody only writes about them.
const QUOTED: &[&str] = &[
    "Do you want to proceed?",
    "❯ 1. Yes",
    "  2. Yes, and always allow access to x/ from this project",
    "3. No",
    "Esc to cancel · Tab to amend · ctrl+e to explain",
    "Enter to select · ↑/↓ to navigate · Esc to cancel",
    "✻ Perusing… (3s · ↓ 2 tokens)",
    "✻ Baked for 12s",
    "⎿  Interrupted · What should Claude do instead?",
    "● API Error: 500 Internal server error.",
    "API Error: 429 rate limit",
    "■ Conversation interrupted - use /feedback if something went wrong",
    "• Working (12s • esc to interrupt)",
    "› 1. Yes, proceed (y)",
    "Press enter to confirm or esc to cancel",
    "Would you like to run the following command?",
    "esc to interrupt · ← for agents",
    "? for shortcuts",
    "────────────────────────────────────────",
    "Done",
    "✓ all good",
    "__LISA_EXEC_DONE__:0",
    "Pane is dead (status 0)",
    "[ ! ] Action Required",
    "△ Permission required",
    "panic: FATAL SIGSEGV",
];

fn prose() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => proptest::sample::select(QUOTED).prop_map(str::to_owned),
        1 => "[ -~]{0,60}",
    ];
    // What an agent writes below the first line of a message stands two columns in.
    prop::collection::vec((2_usize..7, line), 1..8).prop_map(|lines| {
        lines.into_iter().map(|(indent, line)| format!("{}{line}\n", " ".repeat(indent))).collect()
    })
}

fn with_prose(screen: &str, prose: &str, before: &str) -> String {
    screen.replacen(before, &format!("● Here is what it said:\n{prose}\n{before}"), 1)
}

fn verdicts(title: Option<&str>, native: Option<&str>, screen: &str) -> Vec<(Status, StateName, String)> {
    let mut session = Session::new("claude");
    let look = |at: i64| {
        let mut look = blank(at).screen(screen);
        if let Some(title) = title {
            look = look.title(title);
        }
        if let Some(native) = native {
            look = look.native(json!({ "status": native }));
        }
        look
    };
    [1_000, 4_000, 9_000, 70_000]
        .map(|at| {
            let verdict = session.look(&look(at)).verdict;
            (verdict.status(), verdict.state.name(), verdict.reason.to_string())
        })
        .to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn prose_that_quotes_a_screen_never_changes_the_verdict(prose in prose(), titled: bool, busy: bool) {
        let native = |word| if busy { Some(word) } else { None };
        let cases = [
            (idle_screen(), "✻ Baked for 2s", "✳ x", native("idle")),
            (working_screen(), "✻ Perusing…", "⠂ x", native("busy")),
            (permission_screen("make"), "● Bash(make)", "✳ x", native("waiting")),
        ];
        for (screen, before, title, native) in cases {
            let title = titled.then_some(title);
            let plain = with_prose(&screen, "  It said nothing.\n", before);
            let quoting = with_prose(&screen, &prose, before);
            let expected = verdicts(title, native, &plain);
            prop_assert!(!matches!(expected[3].1, StateName::Starting | StateName::Unknown), "{expected:?}");
            prop_assert_eq!(expected, verdicts(title, native, &quoting), "{}", quoting);
        }
    }

    #[test]
    fn text_alone_never_ends_or_fails_a_session_that_says_it_works(lines in prop::collection::vec("[^\\p{C}]{0,40}", 0..30), quotes in prop::collection::vec(proptest::sample::select(QUOTED), 0..6)) {
        let text = format!("{}\n{}", lines.join("\n"), quotes.join("\n"));
        for agent in ["claude", "codex", "opencode", "generic"] {
            let mut session = Session::new(agent);
            let mut look = blank(5_000).screen(&text).process(agent);
            if agent != "opencode" && agent != "generic" {
                look = look.title("⠂ busy");
            }
            let verdict = session.look(&look).verdict;
            prop_assert!(!matches!(verdict.status(), Status::Completed | Status::Crashed), "{verdict:?}");
            if agent == "claude" || agent == "codex" {
                prop_assert!(verdict.state.name() != StateName::Error && verdict.state.name() != StateName::Ready, "{verdict:?}");
            }
        }
    }

    #[test]
    fn nothing_makes_a_session_ready_while_it_says_that_it_works(looks in prop::collection::vec(any_look(), 1..25)) {
        let mut session = Session::new("claude");
        let mut at = 0;
        for (gap, look) in looks {
            at += gap;
            let mut look = look;
            look.at = lisa_engine::classify::observation::At(at);
            for line in look.feeds.all_mut().into_iter().flat_map(|feed| &mut feed.lines) {
                line.at = look.at;
            }
            let outcome = session.look(&look);
            let title = look.pane.seen().map(|pane| pane.title.clone()).unwrap_or_default();
            let ready = outcome.verdict.state.name() == StateName::Ready;
            let says_working = title.starts_with('⠂') && outcome.verdict.reason.as_str() != "finished_with_background";
            prop_assert!(!(ready && says_working), "ready by {} under {title:?}", outcome.verdict.reason);
            let busy = look.native.seen().is_some_and(|file| file["status"] == "busy") && !title.starts_with('✳');
            prop_assert!(!(ready && busy && outcome.verdict.reason.as_str() != "finished_with_background"), "ready by {}", outcome.verdict.reason);
            // What is stored must be what was meant.
            let stored = serde_json::to_string(&session.memory).expect("memory is stored");
            prop_assert_eq!(&serde_json::from_str::<lisa_engine::classify::memory::Memory>(&stored).expect("memory is read"), &session.memory);
        }
    }

    #[test]
    fn no_bytes_on_a_screen_or_in_a_line_can_break_a_look(text in "\\PC{0,400}", ansi in "[\\x1b\\[0-9;mA-Za-z❯›┃ \n]{0,400}", line in any_value()) {
        for agent in ["claude", "codex", "opencode", "demo", "generic"] {
            let mut look = blank(3_000).screen(&text).hook(line.clone()).transcript(line.clone()).native(line.clone());
            look.screen_ansi = lisa_engine::classify::observation::Reading::Seen(ansi.as_str().into());
            Session::new(agent).look(&look);
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z_ {}\\[\\]\":,]{0,20}".prop_map(Value::from),
        proptest::sample::select(vec!["assistant", "user", "Stop", "PreToolUse", "event_msg", "busy"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let key = proptest::sample::select(vec![
            "type",
            "message",
            "content",
            "payload",
            "hook_event_name",
            "status",
            "tool_input",
            "error",
            "session_id",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

fn any_look() -> impl Strategy<Value = (i64, Observation)> {
    let title = proptest::sample::select(vec!["⠂ x", "✳ x", "vm"]);
    let native = proptest::sample::select(vec!["busy", "idle", "shell", "waiting", ""]);
    let events = vec![
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PermissionRequest",
        "Stop",
        "StopFailure",
        "MessageDisplay",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "Nonsense",
    ];
    let hooks = prop::collection::vec(proptest::sample::select(events), 0..3);
    let screen = proptest::sample::select(vec![
        idle_screen(),
        working_screen(),
        permission_screen("make"),
        conversation("❯ go\n  ⎿  Interrupted · What should Claude do instead?", "? for shortcuts"),
        conversation("❯ go\n\n● Half a sentence", ""),
        String::new(),
    ]);
    (0_i64..90_000, title, native, hooks, screen, prop::bool::weighted(0.2)).prop_map(
        |(gap, title, native, hooks, screen, told)| {
            let mut look = blank(0).title(title).screen(&screen).process("claude");
            if !native.is_empty() {
                look = look.native(json!({ "status": native }));
            }
            for name in hooks {
                look = look.hook(
                    json!({"hook_event_name": name, "session_id": "s", "agent_id": "a", "tool_use_id": "t"}),
                );
            }
            if told {
                look =
                    look.transcript(json!({"type": "system", "subtype": "turn_duration", "sessionId": "s"}));
            }
            (gap, look)
        },
    )
}
