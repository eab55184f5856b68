//! Dialogs as data, read from screens as agents draw them.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use lisa_engine::api::words::{DialogKind, Effect, Prompt, PromptKind};
use lisa_engine::classify::observation::Observation;
use lisa_engine::classify::profile::Profiles;
use lisa_engine::drive::choice::{Way, way};
use serde_json::json;
use support::{Session, With, blank, permission_screen};

const RULE: &str = "────────────────────────────────────────────────────────────────────────────────";

fn prompt(agent: &str, look: &Observation) -> Prompt {
    let outcome = Session::new(agent).look(look);
    outcome.verdict.state.prompt().cloned().unwrap_or_else(|| panic!("{:?}", outcome.verdict))
}

fn claude(dialog: &str) -> Prompt {
    prompt(
        "claude",
        &blank(1_000).title("✳ x").screen(&format!("❯ go\n\n● Let me ask.\n\n{RULE}\n{dialog}\n")),
    )
}

fn codex(dialog: &str) -> Prompt {
    prompt(
        "codex",
        &blank(1_000)
            .title("[ ! ] Action Required | x")
            .screen(&format!("› go\n\n• Running it\n\n\n{dialog}\n")),
    )
}

fn effects(prompt: &Prompt) -> Vec<Effect> {
    prompt.options.iter().map(|option| option.effect).collect()
}

#[test]
fn a_permission_has_its_tool_command_and_options() {
    let prompt = prompt("claude", &blank(1_000).title("✳ x").screen(&permission_screen("make all")));
    assert_eq!((prompt.kind, prompt.title.as_str()), (PromptKind::Permission, "Do you want to proceed?"));
    assert_eq!((prompt.tool.as_deref(), prompt.command.as_deref()), (Some("Bash"), Some("make all")));
    assert_eq!(effects(&prompt), [Effect::AllowOnce, Effect::AllowAlways, Effect::Deny]);
    assert!(prompt.options[0].selected && !prompt.options[1].selected && !prompt.truncated);
}

#[test]
fn a_permission_without_any_hint_is_a_permission() {
    let prompt = claude(
        " Fetch\n\n   https://example.com\n   Claude wants to fetch content from example.com\n\n Do you want to allow Claude to fetch this content?\n ❯ 1. Yes\n   2. Yes, and don't ask again for example.com\n   3. No, and tell Claude what to do differently (esc)",
    );
    assert_eq!(prompt.kind, PromptKind::Permission);
    assert_eq!(effects(&prompt), [Effect::AllowOnce, Effect::AllowAlways, Effect::Deny]);
}

#[test]
fn what_the_hook_says_completes_what_the_screen_shows() {
    let hook = json!({"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "make all\nmake test"}});
    let plain = prompt("claude", &blank(1_000).title("✳ x").screen(&permission_screen("make all")));
    let told = prompt("claude", &blank(1_000).title("✳ x").screen(&permission_screen("make all")).hook(hook));
    assert_eq!(told.command.as_deref(), Some("make all\nmake test"));
    assert_ne!(plain.id, told.id, "another command is another prompt");
}

/// A background child can paint over the row with the command, and the agent runs what it announced.
#[test]
fn a_permission_names_the_command_that_the_agent_announced_and_says_that_the_screen_disagrees() {
    let hook = json!({"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "rm -rf /precious"}});
    let look = || blank(1_000).title("✳ x").screen(&permission_screen("ls -l"));
    let (plain, told) = (prompt("claude", &look()), prompt("claude", &look().hook(hook)));
    assert_eq!(told.command.as_deref(), Some("rm -rf /precious"));
    assert!(told.disagrees && told.body.contains("ls -l"), "{told:?}");
    assert!(!plain.disagrees);
    assert_ne!(plain.id, told.id, "an answer to what was shown is none to what is asked");
}

#[test]
fn an_announcement_that_was_answered_is_not_about_the_next_dialog() {
    let asked = |tool: &str, command: &str| json!({"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": tool, "tool_input": {"command": command}});
    let called = |id: &str, command: &str| json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": command}});
    let mut session = Session::new("claude");
    let dialog = |at: i64, command: &str| blank(at).screen(&permission_screen(command));
    session.look(&dialog(1_000, "ls").hook(called("a", "ls")).hook(asked("Bash", "ls")));
    // The transcript knows that the call has returned; its hook is still on the way.
    let returned = json!({"type": "user", "sessionId": "s", "message": {"content": [{"type": "tool_result", "tool_use_id": "a"}]}});
    let next = session.look(&dialog(2_000, "rm -r build").transcript(returned)).verdict.state;
    let prompt = next.prompt().expect("a prompt");
    assert_eq!((prompt.command.as_deref(), prompt.disagrees), (Some("rm -r build"), false));
    // Of several that are open, the one that is shown is asked.
    let both = dialog(3_000, "rm -r build").hook(asked("Bash", "rm -r build")).hook(asked("Bash", "make"));
    let state = session.look(&both).verdict.state;
    assert_eq!(state.prompt().map(|prompt| prompt.disagrees), Some(false));
}

#[test]
fn a_hook_that_comes_after_the_dialog_and_tells_nothing_new_does_not_rename_it() {
    let look = || blank(1_000).title("✳ x");
    let hook = json!({"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "make all"}});
    let plain = prompt("claude", &look().screen(&permission_screen("make all")));
    let told = prompt("claude", &look().screen(&permission_screen("make all")).hook(hook));
    assert_eq!((told.tool.as_deref(), told.command.as_deref()), (Some("Bash"), Some("make all")));
    assert_eq!(plain.id, told.id, "who read it before the hook came means the same prompt");
}

#[test]
fn the_fingerprint_keeps_still_while_the_cursor_moves_and_changes_with_the_question() {
    let screen = permission_screen("make");
    let moved = screen.replace(" ❯ 1. Yes", "   1. Yes").replace("   3. No", " ❯ 3. No");
    let at = |screen: &str| prompt("claude", &blank(1_000).title("✳ x").screen(screen));
    assert_eq!(at(&screen).id, at(&moved).id);
    assert!(at(&moved).options[2].selected);
    assert_ne!(at(&screen).id, at(&permission_screen("make clean")).id);
}

#[test]
fn a_question_with_several_tabs_says_which_one_is_open() {
    let prompt = claude(
        "←  ☒ Database  ☐ Errors  ✔ Submit  →\n\nHow should errors be reported?\n\n❯ 1. Exceptions\n     Raise\n  2. Result codes\n     Return codes\n  3. Type something.\n\nEnter to select · Tab/Arrow keys to navigate · Esc to cancel",
    );
    assert_eq!(
        (prompt.kind, prompt.title.as_str()),
        (PromptKind::Question, "How should errors be reported?")
    );
    assert_eq!(prompt.step.map(|step| (step.number, step.of)), Some((2, 2)));
    assert_eq!(prompt.options[1].label, "Result codes");
    assert!(prompt.free_text && !prompt.multi);
}

#[test]
fn a_list_to_tick_is_a_question_with_several_answers() {
    let prompt = claude(
        " ☐ Features\n\nWhich features?\n\n❯ 1. [ ] Logging\n  2. [✔] Tracing\n  3. [ ] Metrics\n\nEnter to select · ↑/↓ to navigate · Esc to cancel",
    );
    assert!(prompt.multi);
    assert_eq!(
        prompt.options.iter().map(|option| option.checked).collect::<Vec<_>>(),
        [Some(false), Some(true), Some(false)]
    );
    assert_eq!(prompt.options[1].label, "Tracing");
}

#[test]
fn a_list_that_goes_on_beyond_the_screen_is_truncated() {
    let prompt = claude(
        " ☐ Database\n\nWhich one?\n\n❯ 1. One\n  2. Two\n↓ 3. Three\n  5. Chat about this\n\nEnter to select · ↑/↓ to navigate · Esc to cancel",
    );
    assert!(prompt.truncated);
}

#[test]
fn dialogs_at_the_start_are_known_by_name() {
    let cases = [
        (
            "  Accessing workspace:\n\n  /home/me/x\n\n  ❯ 1. Yes, I trust this folder\n    2. No, exit\n\n  Enter to confirm · Esc to cancel",
            DialogKind::Trust,
        ),
        (
            "  Detected a custom API key in your environment\n\n  Do you want to use this API key?\n\n    1. Yes\n  ❯ 2. No (recommended)\n\n  Enter to confirm · Esc to cancel",
            DialogKind::ApiKey,
        ),
        (
            "  WARNING: Claude Code running in Bypass Permissions mode\n\n  ❯ 1. No, exit\n    2. Yes, I accept\n\n  Enter to confirm · Esc to cancel",
            DialogKind::Bypass,
        ),
        (
            "  Resume session\n\n  ❯ A title\n    7 seconds ago\n\n    Type to search · Esc to cancel",
            DialogKind::Picker,
        ),
    ];
    for (dialog, kind) in cases {
        let screen = format!("\n{RULE}\n{dialog}\n");
        let prompt = prompt("claude", &blank(5_000).screen(&screen));
        assert_eq!((prompt.kind, prompt.dialog), (PromptKind::Dialog, Some(kind)), "{dialog}");
    }
}

/// As Claude Code 2.1.325 asks it: a digit is not offered, so none may be pressed.
#[test]
fn options_without_numbers_have_letters_and_are_reached_by_arrows() {
    let prompt = claude(
        " Accessing workspace:\n\n /home/me/stranger\n\n Quick safety check: Is this a project you created or one you trust? (Like your own code.)\n\n Claude Code'll be able to read, edit, and execute files here.\n\n Security guide\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm · Esc to cancel",
    );
    assert_eq!((prompt.kind, prompt.dialog), (PromptKind::Dialog, Some(DialogKind::Trust)));
    let options = prompt.options.iter();
    let options: Vec<_> = options
        .map(|option| (option.key.as_str(), option.label.as_str(), option.selected, option.effect))
        .collect();
    assert_eq!(
        options,
        [("a", "No, exit", true, Effect::Exit), ("b", "Yes, I trust this folder", false, Effect::AllowOnce)]
    );
    assert!(!prompt.truncated);
    let profile = Profiles::shipped().get("claude").expect("claude");
    assert_eq!(way(&prompt.options[1], &profile.keys), Way::Arrows("Up", "Down"));
}

#[test]
fn a_dialog_that_nobody_knows_is_still_a_dialog() {
    let prompt =
        claude("  Something new of tomorrow\n\n  ❯ Alpha\n    Beta\n\n  Enter to apply · Esc to close");
    assert_eq!((prompt.kind, prompt.dialog), (PromptKind::Dialog, Some(DialogKind::Menu)));
    assert_eq!(prompt.title, "Something new of tomorrow");
}

#[test]
fn approvals_and_plans_of_another_agent_are_read_by_its_own_grammar() {
    let approval = codex(
        "  Would you like to run the following command?\n\n  Environment: local\n\n  $ curl http://x.invalid\n\n› 1. Yes, proceed (y)\n  2. Yes, and don't ask again for commands that start with `curl` (p)\n  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel",
    );
    assert_eq!(
        (approval.kind, approval.command.as_deref()),
        (PromptKind::Permission, Some("curl http://x.invalid"))
    );
    assert_eq!(effects(&approval), [Effect::AllowOnce, Effect::AllowAlways, Effect::Deny]);
    let plan = codex(
        "  Implement this plan?\n\n› 1. Yes, implement this plan\n  2. No, stay in Plan mode\n\n  enter select · esc back",
    );
    assert_eq!(plan.kind, PromptKind::Plan);
    let update = codex(
        "  Update available! 0.166.0 -> 0.167.0\n\n› 1. Update now (runs `npm install -g @openai/codex`)\n  2. Skip\n\n  Press enter to continue",
    );
    assert_eq!(update.dialog, Some(DialogKind::Update));
    let hooks = codex(
        "  Hooks need review\n  14 hooks are new or changed.\n\n› 1. Review hooks\n  2. Trust all and continue\n  3. Continue without trusting\n\n  enter select · esc skip",
    );
    assert_eq!(hooks.dialog, Some(DialogKind::HookReview));
}

#[test]
fn options_in_a_row_are_options() {
    let screen = "  ┃\n  ┃  △ Permission required\n  ┃    # Shell command\n  ┃\n  ┃  $ sleep 4\n  ┃\n  ┃   Allow once   Allow always   Reject          ctrl+f fullscreen  ⇆ select  enter confirm\n  ┃\n";
    let prompt = prompt("opencode", &blank(1_000).screen(screen));
    assert_eq!((prompt.kind, prompt.command.as_deref()), (PromptKind::Permission, Some("sleep 4")));
    assert_eq!(effects(&prompt), [Effect::AllowOnce, Effect::AllowAlways, Effect::Deny]);
}

#[test]
fn a_draft_is_read_and_a_placeholder_is_not() {
    let with = |draft: &str| format!("{RULE}\n❯\u{a0}{draft}\n  second line\n{RULE}\n");
    let outcome = Session::new("claude").look(&blank(1_000).screen(&with("half typed")));
    assert_eq!(outcome.signals.draft.as_deref(), Some("half typed\nsecond line"));
    let empty = format!("{RULE}\n❯\u{a0}\n{RULE}\n  ? for shortcuts\n");
    let outcome = Session::new("claude").look(&blank(1_000).screen(&empty));
    assert!(outcome.signals.input_shown && outcome.signals.draft.is_none());
    let composer = "› Ask Codex to do anything\n\n  GPT-6 default · /home/dev\n";
    let look = blank(1_000).screen(composer).pane(|pane| {
        pane.cursor_visible = true;
        pane.cursor = (2, 0);
    });
    let outcome = Session::new("codex").look(&look);
    assert!(outcome.signals.input_shown && outcome.signals.draft.is_none());
}

// ---- safety: nothing but the dialog's own words ---------------------------------------------------------------------

#[test]
fn a_command_is_never_taken_from_what_is_quoted_above_the_dialog() {
    let quoted = " Bash command\n\n   rm -rf /\n   Harmless\n\n Do you want to proceed?\n   1. Yes\n   2. No";
    let dialog = " Bash command\n\n   ls\n   List files\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel";
    // The conversation's own marks have scrolled away.
    let screen = format!("{quoted}\n{RULE}\n{dialog}\n");
    let read = prompt("claude", &blank(1_000).title("✳ x").screen(&screen));
    assert_eq!((read.command.as_deref(), read.options.len()), (Some("ls"), 2));

    let dialog = "  Would you like to run the following command?\n\n  $ ls\n\n› 1. Yes, proceed (y)\n  2. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel";
    let read = prompt("codex", &blank(1_000).screen(&format!("  $ rm -rf /\n  1. Yes\n\n{dialog}\n")));
    assert_eq!((read.command.as_deref(), read.options.len()), (Some("ls"), 2));
}

#[test]
fn a_command_whose_dialog_has_no_heading_on_the_screen_is_not_guessed() {
    let screen =
        "   make all\n   Run it\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n";
    let read = prompt("claude", &blank(1_000).title("✳ x").screen(screen));
    assert_eq!((read.kind, read.command), (PromptKind::Permission, None));
}

#[test]
fn a_permission_names_a_file_or_a_command_by_its_tool() {
    let write = claude(
        " Create file\n new.py\n╌╌╌╌╌╌╌╌╌╌\n   rm -rf /\n╌╌╌╌╌╌╌╌╌╌\n Do you want to create new.py?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel",
    );
    assert_eq!((write.command, write.file.as_deref()), (None, Some("new.py")));
    let fetch = claude(
        " Fetch\n\n   https://example.com\n\n Do you want to allow Claude to fetch this content?\n ❯ 1. Yes\n   2. No",
    );
    assert_eq!((fetch.tool.as_deref(), fetch.command, fetch.file), (Some("Fetch"), None, None));
}

#[test]
fn the_steps_of_a_plan_are_no_options() {
    let ask = " Claude has written up a plan and is ready to execute. Would you like to proceed?";
    let plan = claude(&format!(
        " Ready to code?\n\n 1. Read\n 2. Write\n\n{ask}\n\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
    ));
    assert_eq!(plan.options.iter().map(|option| option.label.as_str()).collect::<Vec<_>>(), ["Yes", "No"]);
    let cut = claude(&format!(" Ready to code?\n\n 1. Read\n 2. Write\n\n{ask}\n\n Esc to cancel"));
    assert!(cut.options.is_empty() && cut.truncated, "{cut:?}");
}

#[test]
fn a_list_without_its_marked_option_is_truncated() {
    let read = claude(
        " Bash command\n\n   ls\n\n Do you want to proceed?\n   1. Yes\n   2. Yes, and don't ask again\n\n Esc to cancel",
    );
    assert!(read.truncated);
    let counted = claude(
        "Permission Required: Bash command\n\n   ls\n\nDo you want to proceed?\n1. Yes\n2. No\nEnter selection [1-2], or Escape to cancel: 1",
    );
    assert!(!counted.truncated, "{counted:?}");
    let missing = claude(
        "Permission Required: Bash command\n\n   ls\n\nDo you want to proceed?\n1. Yes\nEnter selection [1-3], or Escape to cancel: 1",
    );
    assert!(missing.truncated);
}

#[test]
fn the_fingerprint_keeps_still_while_an_answer_is_typed() {
    let question = |last: &str| {
        claude(&format!(
            " ☐ Database\n\nWhich one?\n\n  1. One\n  2. Two\n❯ 3. {last}\n\nEnter to select · ↑/↓ to navigate · Esc to cancel"
        ))
    };
    assert_eq!(question("Type something.").id, question("MariaDB").id);
    assert_eq!(question("Type something.").id, question("MariaDB please").id);
    let demo = |typed: &str| {
        let screen = format!(
            "> go\n{RULE}\n ? Name\n What shall it be called?\n\n   1. lisa\n ▸ 2. Other…\n{typed}\n enter to submit · esc to go back\n"
        );
        prompt("demo", &blank(1_000).title("[!] demo").screen(&screen)).id
    };
    assert_eq!(demo(""), demo("      > bart\n"));
    assert_eq!(demo("      > b\n"), demo("      > bart\n"));
}

#[test]
fn a_dialog_that_nobody_knows_is_named_by_what_the_agent_says() {
    let ask = json!({"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Paint", "tool_input": {}});
    let screen = format!(
        "❯ go\n\n● Paint(wall)\n\n{RULE}\n Paint\n\n May the wall be painted?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n"
    );
    let look = |at: i64| blank(at).title("✳ x").screen(&screen);
    assert_eq!(prompt("claude", &look(1_000)).dialog, Some(DialogKind::Menu));
    let told = prompt("claude", &look(1_000).hook(ask.clone()));
    assert_eq!((told.kind, told.dialog, told.tool.as_deref()), (PromptKind::Permission, None, Some("Paint")));
    assert_eq!(effects(&told), [Effect::AllowOnce, Effect::Deny]);

    // Once the input box was back, what was asked is answered, though no hook says so: this is another dialog.
    let mut session = Session::new("claude");
    session.look(&look(1_000).hook(ask));
    session.look(&blank(9_000).title("✳ x").screen(&support::idle_screen()));
    let state = session.look(&look(12_000)).verdict.state;
    assert_eq!(state.prompt().map(|prompt| prompt.kind), Some(PromptKind::Dialog));
}

#[test]
fn a_tool_that_waits_makes_an_unknown_dialog_its_own_where_the_title_asks() {
    let dialog = "› go\n\n• Running it\n\n\n  Something of tomorrow\n\n› 1. Aye\n  2. Nay\n\n  enter select · esc back\n";
    let call = |name: &str| json!({"type": "response_item", "payload": {"type": "function_call", "name": name, "call_id": "c"}});
    let look = |title: &str| blank(1_000).title(title).screen(dialog);
    let asked = |tool: &str| prompt("codex", &look("[ ! ] Action Required | x").transcript(call(tool)));
    assert_eq!(asked("exec_command").kind, PromptKind::Permission);
    assert_eq!(asked("request_user_input").kind, PromptKind::Question);
    // A title that does not ask, or no tool that could: a menu that somebody has opened.
    assert_eq!(prompt("codex", &look("x").transcript(call("exec_command"))).dialog, Some(DialogKind::Menu));
    assert_eq!(prompt("codex", &look("[ ! ] Action Required | x")).dialog, Some(DialogKind::Menu));
}

#[test]
fn a_marked_row_without_a_number_is_enough_for_a_dialog() {
    let prompt = claude("  Résumé\n\n  ❯ Une séance\n    il y a 7 secondes\n\n    Échap pour annuler");
    assert_eq!((prompt.kind, prompt.dialog), (PromptKind::Dialog, Some(DialogKind::Menu)));
}

#[test]
fn a_dialog_whose_first_lines_are_above_the_screen_is_truncated() {
    let dialog = "   make all\n   make test\n   Run it\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n";
    assert!(prompt("claude", &blank(1_000).title("✳ x").screen(dialog)).truncated);
    let whole = format!("{RULE}\n Bash command\n\n{dialog}");
    assert!(!prompt("claude", &blank(1_000).title("✳ x").screen(&whole)).truncated);
    let folded = codex(
        "  Would you like to run the following command?\n\n  $ echo 1\n  [… 51 lines] ^a view all\n\n› 1. Yes, proceed (y)\n  2. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel",
    );
    assert!(folded.truncated);
}

#[test]
fn a_yes_that_holds_for_longer_is_never_called_once() {
    let read = claude(
        " Read file\n\n  Read(/etc/hostname)\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, allow reading from etc/ during this session\n   3. No\n\n Esc to cancel",
    );
    assert_eq!(effects(&read), [Effect::AllowOnce, Effect::AllowAlways, Effect::Deny]);
    let tool = codex(
        "  Field 1/1\n  Allow the lab MCP server to run tool \"ping\"?\n\n  › 1. Allow                   Run the tool and continue\n    2. Allow for this session  Run the tool and remember this choice for this session\n    3. Always allow            Run the tool and remember this choice for future tool calls\n    4. Cancel                  Cancel this tool call\n\n  enter to submit | esc to cancel",
    );
    assert_eq!(tool.kind, PromptKind::Permission);
    assert_eq!(effects(&tool), [Effect::AllowOnce, Effect::AllowAlways, Effect::AllowAlways, Effect::Deny]);
}
