//! What happens between a look and a key, or in two processes at once: one wins, the other is told, nothing is pressed
//! that was not meant.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, demo, driving::*, until};
use lisa_engine::{
    api::{words::StateName, *},
    engine::Engine,
    error::Kind,
};
use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    sync::{Arc, Mutex},
    time::Duration,
};

/// An engine in whose lab something happens once, just before a tmux command that contains `before` reaches the server.
/// It talks to the server through a socket in front of the real one.
fn disturbed(lab: &Lab, before: &str, happens: &str) -> Engine {
    let front = lab.path().join(format!("front-{}", uuid::Uuid::new_v4().simple()));
    let listener = UnixListener::bind(&front).unwrap();
    let real = lab.socket();
    let script = format!("T='tmux -S {}'; {happens}", real.display());
    let happens = Arc::new(Mutex::new(Some((before.to_owned(), script))));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&real).unwrap();
            let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_server, &mut to_client);
                let _ = to_client.shutdown(std::net::Shutdown::Both);
            });
            let happens = Arc::clone(&happens);
            std::thread::spawn(move || forward(client, server, &happens));
        }
    });
    let mut caller = lab.caller();
    let front = ("LISA_TMUX_SOCKET".into(), front.into_os_string());
    let pairs = lab.env.iter().map(|(k, v)| (k.clone(), v.clone())).chain([front]);
    caller.env = lisa_engine::config::Environment::from_pairs(pairs);
    Engine::open(caller).unwrap()
}

/// What a client says, with what is to happen before a word of it.
fn forward(mut client: UnixStream, mut server: UnixStream, happens: &Mutex<Option<(String, String)>>) {
    let mut chunk = vec![0; 65536];
    while let Ok(read @ 1..) = client.read(&mut chunk) {
        let said = String::from_utf8_lossy(&chunk[..read]).into_owned();
        let now = happens.lock().unwrap().take_if(|(before, _)| said.contains(before.as_str()));
        if let Some((_, script)) = now {
            assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
        }
        if server.write_all(&chunk[..read]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
}

/// Waits, in the words of a shell, until a session shows a text.
fn until_shown(session: &str, text: &str) -> String {
    format!("until $T capture-pane -p -t ={session}: | grep -q '{text}'; do sleep 0.02; done")
}

#[test]
fn a_dialog_that_comes_up_just_before_the_enter_is_not_answered() {
    let lab = Lab::new();
    let (flag, waits) = (lab.path().join("now"), lab.path().join("waits"));
    std::fs::write(&waits, format!("until test -e {}; do sleep 0.02; done", flag.display())).unwrap();
    let script = format!("!run sh {} ; !permission Bash rm -rf build", waits.display());
    lab.engine().spawn(&demo(&lab, "late", Some(&script))).unwrap();
    assert!(until(SHORT, || status(&lab.engine(), "late").state == StateName::Working));
    let comes_up = format!("touch {}; {}", flag.display(), until_shown("late", " 1[.] "));
    let request = SendRequest {
        session: "late".to_owned(),
        text: Some("go on".to_owned()),
        queue: true,
        ..SendRequest::default()
    };
    let receipt = disturbed(&lab, "Enter", &comes_up).send(&request).unwrap().receipt;
    assert_eq!((receipt.delivered, receipt.refusal), (Delivery::Refused, Some(Refusal::PromptOpen)));
    assert!(receipt.hint.unwrap().contains("not submitted"));
    assert_eq!(answers(&lab, "late"), Vec::<serde_json::Value>::new());
    assert_eq!(status(&lab.engine(), "late").state, StateName::AwaitingPermission);
}

#[test]
fn a_menu_that_somebody_opens_just_before_the_paste_gets_nothing() {
    let lab = Lab::new();
    lab.engine().spawn(&demo(&lab, "menu", None)).unwrap();
    let opens = format!("$T send-keys -t =menu: /model Enter; {}", until_shown("menu", " 1[.] "));
    let engine = disturbed(&lab, "paste-buffer", &opens);
    let receipt = send(&engine, "menu", "2").receipt;
    assert_eq!(receipt.refusal, Some(Refusal::PromptOpen), "{receipt:?}");
    assert!(!receipt.hint.unwrap().contains("not submitted"), "nothing was pasted");
    assert_eq!(answers(&lab, "menu"), Vec::<serde_json::Value>::new());
}

#[test]
fn an_answer_never_hits_the_prompt_that_came_after_the_one_that_was_read() {
    let lab = Lab::new();
    let engine = lab.engine();
    let script = "!permission Bash one ; !permission Bash two ; !say done";
    engine.spawn(&demo(&lab, "swap", Some(script))).unwrap();
    let first = wait_for(&engine, "swap", "awaiting_permission").prompt.unwrap();
    let somebody = format!("$T send-keys -t =swap: 1; {}", until_shown("swap", "^ *two$"));
    let request = AnswerRequest {
        session: "swap".into(),
        choice: Some("allow_always".into()),
        prompt_id: Some(first.id),
        ..AnswerRequest::default()
    };
    let error = disturbed(&lab, "send-keys", &somebody).answer(&request).unwrap_err();
    assert_eq!(error.kind(), Kind::PromptChanged, "{error}");
    let log = answers(&lab, "swap");
    assert_eq!(log.len(), 1, "only the person's own answer: {log:?}");
    assert_eq!(status(&engine, "swap").prompt.unwrap().command.as_deref(), Some("two"));
}

#[test]
fn an_answer_to_a_prompt_that_is_gone_presses_nothing() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine
        .spawn(&demo(&lab, "race", Some("!permission Bash one ; !permission Bash two ; !say done")))
        .unwrap();
    let first = wait_for(&engine, "race", "awaiting_permission").prompt.unwrap();
    answer(&engine, "race", "allow_once");
    assert!(until(SHORT, || status(&engine, "race").prompt.is_some_and(|prompt| prompt.id != first.id)));
    let late = AnswerRequest {
        session: "race".into(),
        choice: Some("allow_once".into()),
        prompt_id: Some(first.id),
        ..AnswerRequest::default()
    };
    assert_eq!(engine.answer(&late).unwrap_err().kind(), Kind::PromptChanged);
    assert_eq!(answers(&lab, "race").len(), 1);
    // Two who answer the same prompt: one wins, the other is told.
    let id = status(&engine, "race").prompt.unwrap().id;
    let both = AnswerRequest { prompt_id: Some(id), ..late };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..2)
            .map(|_| {
                let (other, both) = (lab.engine(), both.clone());
                scope.spawn(move || other.answer(&both).map_err(|error| error.kind()))
            })
            .collect();
        tries.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    let told = outcomes.into_iter().find_map(Result::err).unwrap();
    assert!(matches!(told, Kind::NoPrompt | Kind::PromptChanged), "{told:?}");
    assert_eq!(answers(&lab, "race").len(), 2);
}

#[test]
fn one_answer_to_two_equal_prompts_in_a_row_answers_one() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "equal", None)).unwrap();
    for round in 0..10 {
        let before = answers(&lab, "equal").len();
        send(&engine, "equal", "!permission Bash ls ; !permission Bash ls ; !say done");
        let first = wait_for(&engine, "equal", "awaiting_permission").prompt.unwrap();
        let request = AnswerRequest {
            session: "equal".into(),
            choice: Some("allow_once".into()),
            prompt_id: Some(first.id.clone()),
            ..AnswerRequest::default()
        };
        assert_eq!(engine.answer(&request).unwrap().prompt_id, first.id);
        // Longer than any second key would have taken.
        std::thread::sleep(Duration::from_millis(1_800));
        assert_eq!(answers(&lab, "equal").len(), before + 1, "round {round}");
        let second = status(&engine, "equal").prompt.unwrap();
        assert_eq!(second.command, first.command);
        assert_ne!(second.id, first.id);
        assert_eq!(engine.answer(&request).unwrap_err().kind(), Kind::PromptChanged);
        answer(&engine, "equal", "allow_once");
        wait_for(&engine, "equal", "ready");
        assert_eq!(answers(&lab, "equal").len(), before + 2);
    }
}

/// No hook tells of a dialog at the start, and a look once a second would find it half a second late.
#[test]
fn a_dialog_at_the_start_is_known_at_once() {
    let lab = Lab::new();
    let engine = lab.engine();
    let mut late: Vec<Duration> = Vec::new();
    for round in 0..6 {
        let name = format!("start-{round}");
        let mut request = demo(&lab, &name, None);
        request.args.extend(["--ask-trust", "--boot-ms"].map(String::from));
        request.args.push((900 + 130 * round).to_string());
        request.wait_ready_s = None;
        engine.spawn(&request).unwrap();
        let pane = lab.pane(&name).pane_id;
        let waiter = std::thread::spawn({
            let (engine, name) = (engine.clone(), name.clone());
            move || {
                wait_for(&engine, &name, "awaiting_dialog");
                std::time::Instant::now()
            }
        });
        let shows = || lab.tmux().screens(&[&pane], false).unwrap()[0].as_ref().unwrap().len() > 100;
        assert!(until(SHORT, shows));
        let shown = std::time::Instant::now();
        late.push(waiter.join().unwrap().saturating_duration_since(shown));
        engine.kill(&KillRequest { session: name, force: true }).unwrap();
    }
    let quick = late.iter().filter(|late| **late < Duration::from_millis(250)).count();
    assert!(quick >= 5, "{late:?}");
}

#[test]
fn two_who_resume_a_session_make_one_of_it_and_one_who_fails_leaves_it_as_it_was() {
    let lab = Lab::with(&[("LISA_MAX_SESSIONS", "2")]);
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "back", Some("!exit 3"))).unwrap();
    let before = wait_for(&engine, "back", "exited");
    let request = ResumeRequest { session: "back".into(), ..ResumeRequest::default() };
    let mut caller = lab.caller();
    caller.helper = vec!["/nonexistent/helper".to_owned()];
    let error = Engine::open(caller).unwrap().resume(&request).unwrap_err();
    assert!(matches!(error.kind(), Kind::LaunchFailed | Kind::AgentMissing), "{error}");
    let after = status(&engine, "back");
    assert_eq!((after.state, after.run_id), (StateName::Exited, before.run_id), "{}", after.reason);

    // Whatever held the places: a resumed session takes one as well.
    for name in ["one", "two"] {
        engine.spawn(&demo(&lab, name, None)).unwrap();
    }
    assert_eq!(engine.resume(&request).unwrap_err().kind(), Kind::SessionLimit);
    engine.kill(&KillRequest { session: "one".into(), force: true }).unwrap();

    let done: Vec<String> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..2)
            .map(|_| {
                let (other, request) = (lab.engine(), &request);
                scope.spawn(move || other.resume(request).unwrap().action.done)
            })
            .collect();
        tries.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    assert!(done.contains(&"resumed".to_owned()) && done.contains(&"already_running".to_owned()), "{done:?}");
    wait_for(&engine, "back", "ready");
}
