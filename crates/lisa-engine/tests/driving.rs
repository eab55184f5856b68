//! Driving the demo agent on a real tmux: what is said to have happened has happened, exactly once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, demo, driving::*, until};
use lisa_engine::{
    api::{
        words::{Attention, Effect, ErrorKind, PromptKind, StateName, Status},
        *,
    },
    error::Kind,
    watch::Cancel,
};
use std::time::Duration;

#[test]
fn a_prompt_is_submitted_proven_and_its_turn_ends_once() {
    let lab = Lab::new();
    let engine = lab.engine();
    let spawned = engine.spawn(&demo(&lab, "a", None)).unwrap();
    assert_eq!(spawned.session.state, StateName::Ready, "{}", spawned.session.reason);
    let sent = send(&engine, "a", "!think 300ms ; !say All is well.");
    assert_eq!(sent.receipt.delivered, Delivery::Submitted);
    // Its own word, by whichever way it came first.
    let evidence = sent.receipt.evidence.unwrap_or_default();
    assert!(["hook", "transcript"].contains(&evidence.as_str()), "{evidence}");
    let turn = sent.receipt.turn.unwrap();
    let ended = wait(
        &engine,
        &WaitRequest { turn: Some(turn.clone()), since: Some(spawned.cursor), ..WaitRequest::default() },
    );
    let ends: Vec<&Event> = ended.events.iter().filter(|event| event.event == EventKind::TurnEnded).collect();
    assert_eq!(ends.len(), 1, "{:?}", ended.events);
    assert_eq!((ends[0].turn.as_deref(), ends[0].detail.as_str()), (Some(turn.as_str()), "finished"));
    assert_eq!(ends[0].data.as_ref().unwrap()["last_message"], "All is well.");
    let session = status(&engine, "a");
    assert_eq!((session.state, session.attention), (StateName::Ready, Attention::Delivered));
    assert_eq!(session.last_message.as_deref(), Some("All is well."));
    assert_eq!(prompts(&lab, "a"), ["!think 300ms ; !say All is well."]);
}

#[test]
fn a_long_message_is_whole_in_the_file_of_its_turn_and_cut_in_the_journal() {
    let lab = Lab::new();
    let engine = lab.engine();
    let spawned = engine.spawn(&demo(&lab, "a", None)).unwrap();
    let long = "many words ".repeat(600);
    let turn = send(&engine, "a", &format!("!say {long}")).receipt.turn;
    let ended = wait(&engine, &WaitRequest { turn, since: Some(spawned.cursor), ..WaitRequest::default() });
    let end = ended.events.iter().find(|event| event.event == EventKind::TurnEnded).unwrap();
    let data = end.data.as_ref().unwrap();
    let (told, length) = (data["last_message"].as_str().unwrap(), data["last_message_chars"].as_u64());
    assert_eq!((told.len(), length), (2_000, Some(long.trim_end().len() as u64)));
    let whole = std::fs::read_to_string(data["last_message_file"].as_str().unwrap()).unwrap();
    assert_eq!(whole, long.trim_end());
    // One that fits needs no file.
    let turn = send(&engine, "a", "!say short").receipt.turn;
    let ended = wait(&engine, &WaitRequest { turn, since: Some(ended.cursor), ..WaitRequest::default() });
    let end = ended.events.iter().find(|event| event.event == EventKind::TurnEnded).unwrap();
    assert!(!end.data.as_ref().unwrap().contains_key("last_message_file"), "{:?}", end.data);
}

#[test]
fn a_prompt_is_told_once_with_its_options_also_where_the_agent_announces_it_before_it_is_drawn() {
    let lab = Lab::new();
    let engine = lab.engine();
    let spawned = engine.spawn(&demo(&lab, "a", None)).unwrap();
    let mut asked = Vec::new();
    for round in 0..10 {
        send(&engine, "a", &format!("!permission Bash ls {round} ; !say ok"));
        asked.push(wait_for(&engine, "a", "awaiting_permission").prompt.unwrap().id);
        answer(&engine, "a", "allow_once");
        wait_for(&engine, "a", "ready");
    }
    let all = WaitRequest {
        sessions: vec!["a".to_owned()],
        since: Some(spawned.cursor),
        until: Some("event".to_owned()),
        ..WaitRequest::default()
    };
    let events = wait(&engine, &all).events;
    let prompts: Vec<&Event> = events.iter().filter(|event| event.event == EventKind::Prompt).collect();
    let told = |event: &&Event| event.data.as_ref().unwrap()["prompt"].clone();
    let ids: Vec<String> =
        prompts.iter().map(|event| told(event)["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, asked, "{prompts:#?}");
    for event in prompts {
        assert_eq!(told(&event)["options"].as_array().unwrap().len(), 3, "{event:?}");
    }
}

#[test]
fn a_wait_for_every_session_hears_of_those_that_come_and_go_while_it_lasts() {
    let lab = Lab::new();
    let engine = lab.engine();
    let first = engine.spawn(&demo(&lab, "first", None)).unwrap();
    let event = |since: u64| WaitRequest {
        until: Some("event".to_owned()),
        since: Some(since),
        ..WaitRequest::default()
    };
    let mut cursor = wait(&engine, &event(first.cursor.saturating_sub(1))).cursor;
    let mut told: Vec<(String, EventKind)> = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = lab.engine();
            other.spawn(&demo(&lab, "second", None)).unwrap();
            other.kill(&KillRequest { session: "second".to_owned(), force: true }).unwrap();
        });
        while !told.contains(&("second".to_owned(), EventKind::Killed)) {
            let answer = wait(&engine, &event(cursor));
            assert!(!answer.timed_out, "{told:?}");
            cursor = answer.cursor;
            told.extend(answer.events.into_iter().map(|event| (event.session, event.event)));
        }
    });
    assert!(told.contains(&("second".to_owned(), EventKind::Spawned)), "{told:?}");
}

#[test]
fn a_prompt_of_a_megabyte_and_any_characters_arrives_byte_for_byte() {
    let lab = Lab::new();
    let engine = lab.engine();
    let mut text = "-dash 'q' \"d\" ; #{pane_id} $HOME \\ `x` 中文 🎉\tTab\n".repeat(19_000);
    text.truncate((1 << 20) - 16);
    while !text.is_char_boundary(text.len()) {
        text.pop();
    }
    // By the start, where it is too long for an argument, and by a send.
    let spawned = engine.spawn(&demo(&lab, "big", Some(&text))).unwrap();
    assert_eq!(spawned.receipt.unwrap().delivered, Delivery::Submitted);
    wait_for(&engine, "big", "ready");
    assert_eq!(send(&engine, "big", &text).receipt.delivered, Delivery::Submitted);
    wait_for(&engine, "big", "ready");
    assert!(prompts(&lab, "big") == [text.clone(), text], "what arrived is something else");
}

#[test]
fn a_permission_is_data_and_is_answered_by_its_effect() {
    let lab = Lab::new();
    let engine = lab.engine();
    // The option that is marked takes an Enter, any other its digit: one key each.
    for (name, choice, effect, key) in [
        ("once", "allow_once", Effect::AllowOnce, "enter"),
        ("always", "2", Effect::AllowAlways, "digit"),
        ("no", "Deny", Effect::Deny, "digit"),
    ] {
        engine.spawn(&demo(&lab, name, Some("!permission Bash rm -rf build ; !say gone"))).unwrap();
        let session = wait_for(&engine, name, "awaiting_permission");
        let prompt = session.prompt.unwrap();
        assert_eq!(
            (prompt.kind, prompt.tool.as_deref(), prompt.command.as_deref()),
            (PromptKind::Permission, Some("Bash"), Some("rm -rf build"))
        );
        assert_eq!(prompt.options.len(), 3);
        assert_eq!(session.attention, Attention::NeedsYou);
        let answered = answer(&engine, name, choice);
        assert_eq!(answered.effect, Some(effect));
        let log = answers(&lab, name);
        assert_eq!((log.len(), log[0]["by"].as_str()), (1, Some(key)), "{log:?}");
        wait_for(&engine, name, "waiting_input");
    }
}

#[test]
fn text_never_answers_a_dialog() {
    let lab = Lab::new();
    let engine = lab.engine();
    let dialogs: &[(&str, &str, &[&str])] = &[
        ("permission", "!permission Bash rm -rf build", &[]),
        ("write", "!permission Write src/main.rs", &[]),
        ("question", "!ask Db | Which database? | SQLite: one file | Postgres", &[]),
        ("multi", "!ask-multi What | Which of these? | Logs | Metrics | Traces", &[]),
        ("free", "!ask-free Name | What is it called? | Lisa | Bart", &[]),
        ("plan", "!plan Read the code\\nChange it", &[]),
        ("trust", "", &["--ask-trust"]),
        ("login", "", &["--ask-login"]),
        ("menu", "/model", &[]),
    ];
    for (name, prompt, args) in dialogs {
        let mut request = demo(&lab, name, Some(prompt).filter(|prompt| !prompt.is_empty()).copied());
        request.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        engine.spawn(&request).unwrap();
        assert!(
            until(SHORT, || status(&engine, name).prompt.is_some()),
            "{name}: {:?}",
            status(&engine, name)
        );
        let before = status(&engine, name).prompt.unwrap();
        for queue in [false, true] {
            let request = SendRequest {
                session: (*name).to_owned(),
                text: Some("go on 1 2 3".to_owned()),
                queue,
                replace_draft: true,
                ..SendRequest::default()
            };
            let sent = engine.send(&request).unwrap();
            assert_eq!(
                (sent.receipt.delivered, sent.receipt.refusal),
                (Delivery::Refused, Some(Refusal::PromptOpen)),
                "{name}"
            );
        }
        let keys = SendRequest {
            session: (*name).to_owned(),
            keys: vec!["Enter".to_owned()],
            ..SendRequest::default()
        };
        assert_eq!(engine.send(&keys).unwrap().receipt.refusal, Some(Refusal::PromptOpen), "{name}");
        assert_eq!(status(&engine, name).prompt.map(|prompt| prompt.id), Some(before.id), "{name}");
        assert_eq!(answers(&lab, name), Vec::<serde_json::Value>::new(), "{name} was answered");
        engine.kill(&KillRequest { session: (*name).to_owned(), force: true }).unwrap();
    }
}

/// A dialog that comes up between the look and the key must not get the key.
/// Somebody at the terminal answers first, and the next prompt is there already when the key comes.
#[test]
fn a_text_that_the_agent_would_run_as_a_shell_command_is_not_sent() {
    let lab = Lab::new();
    let agents = lab.config.config_dir.join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    let profile =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/demo.toml")).unwrap();
    let profile = profile.replace("[keys]\n", "[keys]\nshell = \"!\"\n");
    std::fs::write(agents.join("demo.toml"), profile).unwrap();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "shell", None)).unwrap();
    let request =
        SendRequest { session: "shell".into(), text: Some("!rm -rf /".into()), ..SendRequest::default() };
    let error = engine.send(&request).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
    assert!(error.hint().contains("space"), "{error}");
    for text in [" !say hello", "#1", "@file", "/etc/hosts is wrong"] {
        assert_eq!(send(&engine, "shell", text).receipt.delivered, Delivery::Submitted, "{text}");
        assert!(until(SHORT, || status(&engine, "shell").state == StateName::Ready));
    }
    assert_eq!(prompts(&lab, "shell"), [" !say hello", "#1", "@file", "/etc/hosts is wrong"]);
}

#[test]
fn what_is_cut_off_can_still_be_denied() {
    let lab = Lab::new();
    let engine = lab.engine();
    let mut request = demo(&lab, "small", Some("!permission Bash rm -rf build ; !say gone"));
    request.size = Some(Size { columns: 60, rows: 6 });
    engine.spawn(&request).unwrap();
    assert!(until(SHORT, || status(&engine, "small").prompt.is_some()), "{:?}", status(&engine, "small"));
    let answered = answer(&engine, "small", "deny");
    assert_eq!(answered.effect, Some(Effect::Deny));
    let log = answers(&lab, "small");
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(!log[0]["choice"].to_string().contains("Yes"), "{log:?}");
}

#[test]
fn the_gate_says_why_it_is_shut_and_what_to_do() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "busy", Some("!think 20s"))).unwrap();
    wait_for(&engine, "busy", "working");
    let sent = send(&engine, "busy", "more");
    assert_eq!(sent.receipt.refusal, Some(Refusal::Busy));
    assert_eq!(sent.next, Next::Overcome { refusal: Refusal::Busy });
    let queued = SendRequest {
        session: "busy".into(),
        text: Some("!say later".into()),
        queue: true,
        ..SendRequest::default()
    };
    assert_eq!(engine.send(&queued).unwrap().receipt.delivered, Delivery::Queued);

    engine.spawn(&demo(&lab, "draft", None)).unwrap();
    let typed = SendRequest {
        session: "draft".into(),
        keys: ["h", "a", "l", "f"].map(String::from).to_vec(),
        ..SendRequest::default()
    };
    engine.send(&typed).unwrap();
    let row = lab.pane("draft");
    let shown = |text: &[u8]| {
        let screen = lab.tmux().screens(&[&row.pane_id], false).unwrap().remove(0).unwrap();
        screen.windows(text.len()).any(|part| part == text)
    };
    assert!(until(SHORT, || shown(b"half")));
    assert!(until(SHORT, || send(&engine, "draft", "whole").receipt.refusal == Some(Refusal::DraftPresent)));
    let replaced = SendRequest {
        session: "draft".into(),
        text: Some("whole".into()),
        replace_draft: true,
        ..SendRequest::default()
    };
    assert_eq!(engine.send(&replaced).unwrap().receipt.delivered, Delivery::Submitted);
    assert_eq!(prompts(&lab, "draft"), ["whole"]);
    assert!(until(SHORT, || status(&engine, "draft").state == StateName::Ready));
    // One of several lines goes line by line, and nothing of it joins the prompt.
    let guard = lisa_engine::tmux::Guard::alive();
    lab.tmux().paste(&row.pane_id, b"one\n\ntwo\nthree", &guard).unwrap();
    assert!(until(SHORT, || shown(b"three")));
    assert!(until(SHORT, || send(&engine, "draft", "new").receipt.refusal == Some(Refusal::DraftPresent)));
    let replaced = SendRequest { text: Some("new".into()), ..replaced };
    assert_eq!(engine.send(&replaced).unwrap().receipt.delivered, Delivery::Submitted);
    assert_eq!(prompts(&lab, "draft"), ["whole", "new"]);

    engine.spawn(&demo(&lab, "dead", Some("!exit 3"))).unwrap();
    let session = wait_for(&engine, "dead", "exited");
    assert_eq!((session.status, session.exit.unwrap().code), (Status::Crashed, Some(3)));
    assert_eq!(send(&engine, "dead", "hello").receipt.refusal, Some(Refusal::PaneDead));
    assert_eq!(
        engine
            .send(&SendRequest { session: "nobody".into(), text: Some("x".into()), ..SendRequest::default() })
            .unwrap_err()
            .kind(),
        Kind::SessionNotFound
    );
}

/// Where there is no box to read, the only proof is that the program has read what was typed.
#[test]
fn a_program_without_a_box_proves_a_prompt_by_reading_it() {
    let lab = Lab::new();
    let engine = lab.engine();
    for (name, program, delivered, evidence) in [
        ("reads", "cat", Delivery::Queued, Some("read by its program")),
        ("deaf", "sleep 60", Delivery::Unconfirmed, None),
    ] {
        let script = format!("echo up; exec {program}");
        engine.spawn(&common::command(name, &["sh", "-c", &script])).unwrap();
        let mut receipt = None;
        let sent = until(SHORT, || {
            // Whether such a program is ready nobody can tell: it gets text only from who says that it may wait.
            let (session, text) = (name.to_owned(), Some("hello".to_owned()));
            let request = SendRequest { session, text, queue: true, ..SendRequest::default() };
            let sent = engine.send(&request).unwrap().receipt;
            let done = sent.delivered != Delivery::Refused;
            receipt = Some(sent);
            done
        });
        let receipt = receipt.unwrap();
        assert!(sent, "{name}: {receipt:?}");
        assert_eq!((receipt.delivered, receipt.evidence.as_deref()), (delivered, evidence), "{name}");
        let hint = receipt.hint.unwrap_or_default();
        assert_eq!(hint.contains("nothing confirms"), delivered == Delivery::Unconfirmed, "{hint}");
    }
    // Enter was pressed once: it is not certain that the first did nothing.
    let row = lab.pane("deaf");
    let ask = lisa_engine::tmux::Cmd::new("display-message").args(["-p", "-t", &row.pane_id, "#{pane_tty}"]);
    let terminal = lab.tmux().call(&[ask]).unwrap().unwrap().remove(0).unwrap();
    let terminal = String::from_utf8(terminal).unwrap();
    let unread = lisa_engine::process::unread(std::path::Path::new(terminal.trim())).unwrap();
    assert_eq!(unread, "hello\n".len() as u64);
}

#[test]
fn copy_mode_is_left_before_a_prompt_is_sent() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "copy", None)).unwrap();
    let row = lab.tmux().panes(false).unwrap().remove(0);
    lab.tmux().call(&[lisa_engine::tmux::Cmd::new("copy-mode").args(["-t", &row.pane_id])]).unwrap();
    assert_eq!(send(&engine, "copy", "!say seen").receipt.delivered, Delivery::Submitted);
    assert_eq!(prompts(&lab, "copy"), ["!say seen"]);
}

#[test]
fn questions_are_answered_by_label_in_words_and_page_by_page() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine
        .spawn(&demo(&lab, "one", Some("!ask Db | Which database? | SQLite: one file | Postgres")))
        .unwrap();
    wait_for(&engine, "one", "awaiting_question");
    assert_eq!(answer(&engine, "one", "postgres").answered, ["Postgres"]);
    assert_eq!(answers(&lab, "one")[0]["choice"][0]["Db"][0], "Postgres");

    engine.spawn(&demo(&lab, "words", Some("!ask-free Name | What is it called? | Lisa | Bart"))).unwrap();
    wait_for(&engine, "words", "awaiting_question");
    let request =
        AnswerRequest { session: "words".into(), text: Some("Maggie S".into()), ..AnswerRequest::default() };
    engine.answer(&request).unwrap();
    assert_eq!(answers(&lab, "words")[0]["choice"][0]["Name"][0], "Maggie S");

    let many = r#"!ask-many [{"header":"Db","question":"Which db?","options":["A","B"]},{"header":"Auth","question":"Which auth?","options":["X","Y"]}]"#;
    engine.spawn(&demo(&lab, "form", Some(many))).unwrap();
    wait_for(&engine, "form", "awaiting_question");
    let request = AnswerRequest {
        session: "form".into(),
        choices: vec!["B".into(), "Y".into()],
        ..AnswerRequest::default()
    };
    engine.answer(&request).unwrap();
    assert_eq!(answers(&lab, "form")[0]["choice"].to_string(), r#"[{"Db":["B"]},{"Auth":["Y"]}]"#);

    engine
        .spawn(&demo(&lab, "multi", Some("!ask-multi What | Which of these? | Logs | Metrics | Traces")))
        .unwrap();
    wait_for(&engine, "multi", "awaiting_question");
    let request = AnswerRequest {
        session: "multi".into(),
        choices: vec!["Logs".into(), "Traces".into()],
        ..AnswerRequest::default()
    };
    engine.answer(&request).unwrap();
    assert_eq!(answers(&lab, "multi")[0]["choice"].to_string(), r#"[{"What":["Logs","Traces"]}]"#);
}

#[test]
fn an_interrupt_stops_the_turn_and_clears_what_came_back() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "stop", None)).unwrap();
    let cursor = engine.cursor().unwrap();
    let turn = send(&engine, "stop", "!think 30s").receipt.turn.unwrap();
    wait_for(&engine, "stop", "working");
    let stopped = engine.interrupt(&by_name("stop")).unwrap();
    assert_eq!(stopped.action.done, "interrupted");
    let events = wait(
        &engine,
        &WaitRequest { turn: Some(turn.clone()), since: Some(cursor), ..WaitRequest::default() },
    )
    .events;
    let ends: Vec<&str> = events
        .iter()
        .filter(|event| event.event == EventKind::TurnEnded && event.turn.as_ref() == Some(&turn))
        .map(|event| event.detail.as_str())
        .collect();
    assert_eq!(ends, ["interrupted"], "{events:?}");
    assert_eq!(send(&engine, "stop", "!say hello").receipt.delivered, Delivery::Submitted);
    wait_for(&engine, "stop", "ready");
    assert_eq!(prompts(&lab, "stop"), ["!think 30s", "!say hello"]);
    assert_eq!(engine.interrupt(&by_name("stop")).unwrap().action.done, "not_working");
}

#[test]
fn start_up_dialogs_are_answered_only_with_the_callers_word() {
    let lab = Lab::new();
    let engine = lab.engine();
    let ask = |name: &str, trust| {
        let mut request = demo(&lab, name, None);
        request.args.push("--ask-trust".to_owned());
        request.trust = trust;
        engine.spawn(&request).unwrap().session.state
    };
    assert_eq!(ask("untold", false), StateName::AwaitingDialog);
    assert_eq!(answers(&lab, "untold"), Vec::<serde_json::Value>::new());
    assert_eq!(ask("told", true), StateName::Ready);
    assert_eq!(answers(&lab, "told")[0]["choice"], "Yes, trust it");
    let mut request = demo(&lab, "bypass", None);
    request.dangerous = true;
    assert_eq!(engine.spawn(&request).unwrap().session.state, StateName::Ready);
    assert_eq!(answers(&lab, "bypass")[0]["choice"], "Yes, I accept");
}

#[test]
fn a_start_up_dialog_that_ignores_its_key_is_answered_once_and_left_open() {
    let lab = Lab::new();
    let engine = lab.engine();
    let mut request = demo(&lab, "deaf", None);
    request.args.extend(["--ask-trust", "--deaf"].map(str::to_owned));
    (request.trust, request.wait_ready_s) = (true, Some(1.0));
    let began = std::time::Instant::now();
    assert_eq!(engine.spawn(&request).unwrap().session.state, StateName::AwaitingDialog);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let events = common::check::journal(&lab).into_iter().map(|(_, event)| event.event);
    assert_eq!(events.filter(|event| *event == EventKind::Answer).count(), 1);
}

#[test]
fn a_prompt_that_a_dialog_holds_back_is_queued_and_taken_up_after_the_answer() {
    let lab = Lab::new();
    let engine = lab.engine();
    let mut request = demo(&lab, "held", Some("!say hello"));
    request.args.push("--ask-trust".to_owned());
    let receipt = engine.spawn(&request).unwrap().receipt.unwrap();
    assert_eq!((receipt.delivered, receipt.hint.is_some()), (Delivery::Queued, true), "{receipt:?}");
    assert_eq!(prompts(&lab, "held"), Vec::<String>::new());
    answer(&engine, "held", "1");
    let request = WaitRequest {
        sessions: vec!["held".to_owned()],
        turn: receipt.turn,
        timeout_s: Some(20.0),
        ..WaitRequest::default()
    };
    assert!(!wait(&engine, &request).timed_out);
    assert_eq!(prompts(&lab, "held"), ["!say hello"]);
}

#[test]
fn a_policy_decides_without_keys_and_says_so() {
    let lab = Lab::new();
    let engine = lab.engine();
    let mut request = demo(
        &lab,
        "policy",
        Some("!permission Bash git status ; !permission Bash rm -rf / ; !permission Write x ; !say end"),
    );
    request.policy =
        Some(PermissionPolicy { allow: vec!["Bash(git *)".into()], deny: vec!["Bash(rm *)".into()] });
    let cursor = engine.cursor().unwrap();
    engine.spawn(&request).unwrap();
    wait_for(&engine, "policy", "awaiting_permission");
    assert_eq!(status(&engine, "policy").prompt.unwrap().tool.as_deref(), Some("Write"));
    let events =
        wait(&engine, &WaitRequest { since: Some(cursor), timeout_s: Some(0.0), ..WaitRequest::default() })
            .events;
    let decided: Vec<&str> = events
        .iter()
        .filter(|event| event.event == EventKind::Policy)
        .map(|event| event.detail.as_str())
        .collect();
    assert_eq!(decided, ["allowed Bash git status by Bash(git *)", "denied Bash rm -rf / by Bash(rm *)"]);
}

#[test]
fn a_failed_turn_names_its_kind() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "fails", Some("!think 100ms ; !fail rate_limit Too many requests"))).unwrap();
    let session = wait_for(&engine, "fails", "error");
    let failure = session.error.unwrap();
    assert_eq!((failure.kind, failure.recoverable), (ErrorKind::RateLimit, true));
    assert_eq!(session.attention, Attention::NeedsYou);
}

#[test]
fn a_wait_is_woken_for_any_or_all_and_can_be_cancelled() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "quick", Some("!think 400ms ; !say one"))).unwrap();
    engine.spawn(&demo(&lab, "slow", Some("!think 2500ms ; !say two"))).unwrap();
    let both = |mode| WaitRequest {
        sessions: vec!["quick".into(), "slow".into()],
        mode,
        timeout_s: Some(15.0),
        ..WaitRequest::default()
    };
    wait(&engine, &both(WaitMode::Any));
    assert_eq!(status(&engine, "slow").state, StateName::Working, "any comes first");
    let all = wait(&engine, &both(WaitMode::All));
    assert!(!all.timed_out && all.sessions.len() == 2);
    engine.spawn(&demo(&lab, "long", Some("!think 60s"))).unwrap();
    let cancel = Cancel::default();
    let request =
        WaitRequest { sessions: vec!["long".into()], timeout_s: Some(30.0), ..WaitRequest::default() };
    let waiter = std::thread::spawn({
        let (engine, cancel) = (engine.clone(), cancel.clone());
        move || engine.wait(&request, &cancel, &mut |_| {}).unwrap_err().kind()
    });
    std::thread::sleep(Duration::from_millis(200));
    cancel.cancel();
    assert_eq!(waiter.join().unwrap(), Kind::Cancelled);
    assert_eq!(status(&engine, "long").state, StateName::Working, "a wait never touches the session");
    let unknown = WaitRequest { sessions: vec!["lnog".into()], ..WaitRequest::default() };
    assert!(engine.wait(&unknown, &Cancel::default(), &mut |_| {}).unwrap_err().hint().contains("long"));
}
