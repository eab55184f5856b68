//! What place, colour and shape say where the words are not known.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use lisa_engine::api::words::{ErrorKind, State, StateName, Status};
use lisa_engine::classify::observation::{Observation, Reading};
use serde_json::json;
use support::{Session, With, blank, conversation, idle_screen, working_screen};

// ---- something stands where the input box was ----------------------------------------------------------------------

const PAGER: &str = "/ D I F F / / / / / / / / / / /\nNo changes detected.\n~\n~\n~\n q close\n";

/// A session of the first agent that is up and idle.
fn idle_session() -> Session {
    let mut session = Session::new("claude");
    for at in [1_000, 4_000] {
        session.look(&idle(at));
    }
    assert_eq!(session.memory.verdict.as_ref().map(|verdict| verdict.state.name()), Some(StateName::Ready));
    session
}

fn idle(at: i64) -> Observation {
    blank(at).title("✳ x").native(json!({"status": "idle"})).screen(&idle_screen())
}

#[test]
fn what_covers_the_input_box_of_an_idle_agent_is_a_dialog_although_nobody_knows_it() {
    let mut session = idle_session();
    let says = |session: &mut Session, look: Observation| session.look(&look).verdict;
    let first = says(&mut session, idle(5_000).screen(PAGER));
    assert_eq!(first.state.name(), StateName::Ready, "a screen that is drawn anew has no box for a moment");
    let stood = says(&mut session, idle(5_600).screen(PAGER));
    assert_eq!((stood.state.name(), stood.reason.as_str()), (StateName::AwaitingDialog, "input_covered"));
    let prompt = stood.state.prompt().expect("a prompt");
    let keys: Vec<&str> = prompt.options.iter().map(|option| option.key.as_str()).collect();
    assert!(prompt.truncated && keys == ["esc"] && prompt.title.contains("D I F F"), "{prompt:?}");
    let scrolled = says(&mut session, idle(5_900).screen(&PAGER.replace("No", "Some")));
    assert_eq!(scrolled.state.name(), StateName::AwaitingDialog);
    assert_eq!(says(&mut session, idle(6_200)).state.name(), StateName::Ready);
}

#[test]
fn the_first_look_after_a_while_takes_what_covers_the_box_for_what_has_stood() {
    let mut session = idle_session();
    let verdict = session.look(&idle(60_000).screen(PAGER)).verdict;
    assert_eq!(verdict.reason.as_str(), "input_covered");
}

#[test]
fn a_running_turn_is_no_dialog_although_its_input_box_is_gone() {
    let mut session = idle_session();
    let look = |at: i64| blank(at).title("⠂ x").native(json!({"status": "busy"})).screen(PAGER);
    for at in [5_000, 6_000, 9_000] {
        assert_eq!(session.look(&look(at)).verdict.status(), Status::InProgress);
    }
}

#[test]
fn a_screen_that_keeps_changing_covers_nothing() {
    let mut session = idle_session();
    for (at, mark) in [(5_000, "✶"), (5_400, "✻"), (5_800, "✽"), (6_200, "✢")] {
        let screen = format!("●\n{mark} Ionizing…\n     Done\n");
        assert_ne!(session.look(&idle(at).screen(&screen)).verdict.reason.as_str(), "input_covered");
    }
}

#[test]
fn a_box_that_was_never_there_is_not_covered() {
    let mut session = Session::new("claude");
    let look = |at: i64| blank(at).title("✳ x").native(json!({"status": "idle"})).screen(PAGER);
    for at in [1_000, 4_000, 60_000] {
        assert_ne!(session.look(&look(at)).verdict.reason.as_str(), "input_covered", "as for screen readers");
    }
}

#[test]
fn the_cursor_of_copy_mode_tells_nothing_about_the_box() {
    let mut session = Session::new("codex");
    let screen =
        "• Done\n\n  Worked for 2s • 21:39\n\n› Ask Codex to do anything\n\n  GPT-6 default · /home/dev\n";
    let look = |at: i64, in_mode: bool| {
        blank(at).title("host").screen(screen).pane(|pane| {
            pane.cursor_visible = !in_mode;
            pane.cursor = (2, 4);
            pane.in_mode = in_mode;
        })
    };
    for at in [1_000, 2_000, 9_000] {
        session.look(&look(at, false));
    }
    for at in [10_000, 11_000, 30_000] {
        assert_ne!(session.look(&look(at, true)).verdict.reason.as_str(), "input_covered");
    }
}

// ---- how a turn ended ------------------------------------------------------------------------------------------------

#[test]
fn that_a_turn_is_over_does_not_talk_over_how_it_ended() {
    let mut session = idle_session();
    session.look(&idle(5_000).hook(json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"})));
    let failed = json!({"hook_event_name": "StopFailure", "session_id": "s", "error": "server_error", "last_assistant_message": "API Error: 500"});
    session.look(&idle(8_000).hook(failed));
    let over = json!({"type": "system", "subtype": "turn_duration", "sessionId": "s"});
    let verdict = session.look(&idle(8_400).transcript(over.clone())).verdict;
    assert_eq!(verdict.state.name(), StateName::Error, "another channel only says that it is over");

    // The next turn's end is its own.
    session.look(&idle(20_000).hook(json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"})));
    let verdict = session.look(&idle(25_000).transcript(over)).verdict;
    assert_eq!(verdict.state.name(), StateName::Ready);
}

/// The screen after a turn whose last block has this first line, with its mark and its words in these colours.
fn ended(mark: &str, mark_colour: u8, words: &str, words_colour: u8, head: &str) -> Observation {
    let block = format!("{head}{mark} {words}\n\n✻ Baked for 2s");
    let plain = conversation(&format!("❯ go\n{block}"), "? for shortcuts · ← for agents");
    let painted =
        format!("\u{1b}[38;5;{mark_colour}m{mark}\u{1b}[39m \u{1b}[38;5;{words_colour}m{words}\u{1b}[39m");
    let ansi = plain.replace(&format!("{mark} {words}"), &painted);
    let mut look = blank(5_000).title("✳ x").screen(&plain);
    look.screen_ansi = Reading::Seen(ansi.as_str().into());
    look
}

fn state(look: &Observation) -> State {
    let mut session = idle_session();
    session.look(look).verdict.state
}

const YELLOW: u8 = 220;
const ROSE: u8 = 211;
const WHITE: u8 = 231;
const GREY: u8 = 246;

#[test]
fn words_in_a_warning_colour_are_a_failure_whatever_they_are() {
    let failed = state(&ended("●", YELLOW, "Please run /login · API Error: 403 No.", YELLOW, "\n"));
    assert!(matches!(&failed, State::Error { failure } if failure.kind == ErrorKind::Auth), "{failed:?}");
    let refused = state(&ended("  ⎿ ", GREY, "Context limit reached · /compact to go on", ROSE, ""));
    assert!(
        matches!(&refused, State::Error { failure } if failure.kind == ErrorKind::Context),
        "{refused:?}"
    );
    assert_eq!(state(&ended("●", YELLOW, "Etwas ging schief", YELLOW, "\n")).name(), StateName::Error);
}

#[test]
fn the_same_words_in_the_agent_s_own_colour_are_its_words() {
    for look in [
        ended("●", WHITE, "Please run /login · API Error: 403 No.", WHITE, "\n"),
        // Of a tool that failed the mark is red, and what it said, below its call.
        ended("●", ROSE, "Bash(make)", WHITE, "\n"),
        ended("  ⎿ ", GREY, "Error: it says no", ROSE, "\n● Bash(make)\n"),
    ] {
        assert_eq!(state(&look).name(), StateName::Ready, "{:?}", look.screen.seen());
    }
    let mut colourless = ended("●", WHITE, "Etwas ging schief", WHITE, "\n");
    colourless.screen_ansi = Reading::Absent;
    assert_eq!(state(&colourless).name(), StateName::Ready);
}

#[test]
fn a_turn_that_runs_is_not_failed_by_a_colour() {
    let mut look = ended("●", YELLOW, "Etwas ging schief", YELLOW, "\n").title("⠂ x");
    look.native = Reading::Seen(json!({"status": "busy"}));
    assert_eq!(state(&look).name(), StateName::Working);
    let mut session = idle_session();
    assert_eq!(
        session.look(&blank(9_000).title("⠂ x").screen(&working_screen())).verdict.status(),
        Status::InProgress
    );
}
