//! A person types into the box that Lisa sends a prompt through: neither gets the other's words.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Lab, demo, driving::*, until};
use lisa_engine::{api::*, engine::Engine, tmux::Cmd};
use std::{
    io::Write,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

const ROUNDS: u64 = 60;

/// Types into a session as anybody could who is not Lisa.
fn type_keys(lab: &Lab, name: &str, keys: &[&str]) {
    let mut tmux = Command::new("tmux");
    tmux.arg("-S").arg(lab.socket()).args(["send-keys", "-t", &format!("={name}:")]).args(keys);
    assert!(tmux.status().unwrap().success());
}

/// A person whose terminal is attached to a session. Leaves when dropped.
struct Person {
    child: Child,
    keyboard: ChildStdin,
}

impl Person {
    fn attached_to(lab: &Lab, name: &str) -> Self {
        let attach = format!("tmux -u -S {} attach-session -t ={name}", lab.socket().display());
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &attach, "/dev/null"]).env("TERM", "xterm-256color");
        script.env_remove("TMUX").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = script.spawn().unwrap();
        let keyboard = child.stdin.take().unwrap();
        let clients = || {
            let replies = lab.tmux().call(&[Cmd::new("list-clients")]).unwrap().unwrap();
            !replies[0].as_ref().unwrap().is_empty()
        };
        assert!(until(SHORT, clients), "nobody attached");
        Self { child, keyboard }
    }

    fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
        self.keyboard.flush().unwrap();
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // The terminal goes with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn draft(engine: &Engine, name: &str) -> Option<String> {
    let signals = engine.look(&by_name(name)).unwrap().signals.unwrap();
    signals.get("draft").and_then(|draft| draft.as_str().map(str::to_owned))
}

/// A number that differs from round to round but not from run to run.
fn scattered(round: u64, below: u64) -> u64 {
    round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407).rotate_left(29)
        % below
}

#[test]
fn what_another_program_types_while_a_prompt_is_sent_is_neither_submitted_with_it_nor_lost() {
    let lab = Lab::new();
    lab.engine().spawn(&demo(&lab, "shared", None)).unwrap();
    share(&lab, ROUNDS, || type_keys(&lab, "shared", &["zq"]));
}

#[test]
fn what_a_person_in_a_terminal_types_while_a_prompt_is_sent_is_neither_submitted_with_it_nor_lost() {
    let lab = Lab::new();
    lab.engine().spawn(&demo(&lab, "shared", None)).unwrap();
    let mut person = Person::attached_to(&lab, "shared");
    share(&lab, ROUNDS / 2, move || person.press(b"zq"));
}

/// How long a send takes that nobody disturbs, in milliseconds.
fn millis_of_a_send(engine: &Engine, name: &str) -> u64 {
    wait_for(engine, name, "ready");
    let began = std::time::Instant::now();
    assert_eq!(send(engine, name, "prompt of nobody else").receipt.delivered, Delivery::Submitted);
    let took = u64::try_from(began.elapsed().as_millis()).unwrap();
    wait_for(engine, name, "ready");
    took
}

/// Sends prompts, into each of which somebody types a few letters.
fn share(lab: &Lab, rounds: u64, mut types: impl FnMut()) {
    let engine = lab.engine();
    let (mut mixed, mut lost, mut refused) = (Vec::new(), Vec::new(), 0);
    // On a busy machine a send takes longer, so what is typed within it comes later as well.
    let within = millis_of_a_send(&engine, "shared").saturating_mul(2).max(30);
    for round in 0..rounds {
        let text = format!("prompt number {round}");
        let before = prompts(lab, "shared").len();
        let receipt = match round % 5 {
            // Well before and well after, so that both are seen however fast the machine is.
            0 => {
                types();
                assert!(until(SHORT, || draft(&engine, "shared").as_deref() == Some("zq")));
                send(&engine, "shared", &text).receipt
            }
            1 => {
                let receipt = send(&engine, "shared", &text).receipt;
                types();
                receipt
            }
            _ => std::thread::scope(|scope| {
                let sent = scope.spawn(|| send(&engine, "shared", &text).receipt);
                std::thread::sleep(Duration::from_millis(scattered(round, within)));
                types();
                sent.join().unwrap()
            }),
        };
        let got = prompts(lab, "shared").split_off(before);
        match receipt.delivered {
            Delivery::Submitted if got == [text.clone()] => {}
            Delivery::Refused if got.is_empty() => refused += 1,
            _ => mixed.push((round, got, receipt)),
        }
        if !until(Duration::from_secs(3), || draft(&engine, "shared").as_deref() == Some("zq")) {
            lost.push((round, draft(&engine, "shared")));
        }
        type_keys(lab, "shared", &["C-u"]);
        assert!(until(SHORT, || draft(&engine, "shared").is_none()));
        wait_for(&engine, "shared", "ready");
    }
    assert!(mixed.is_empty() && lost.is_empty(), "mixed: {mixed:?}\nlost: {lost:?}");
    assert!(refused > 0 && refused < rounds, "{refused} of {rounds} were refused");
}

#[test]
fn what_somebody_types_is_counted_and_what_lisa_types_is_told_from_it() {
    let lab = Lab::new();
    let engine = lab.engine();
    engine.spawn(&demo(&lab, "counted", None)).unwrap();
    // What is typed into another is another's.
    engine.spawn(&demo(&lab, "other", None)).unwrap();
    type_keys(&lab, "other", &["b"]);
    let count = || lab.pane("counted").pane.inputs;
    let before = count();
    for typed in 1..=3 {
        type_keys(&lab, "counted", &["a"]);
        assert_eq!(count(), before + typed);
    }
    type_keys(&lab, "counted", &["C-u"]);
    assert!(until(SHORT, || draft(&engine, "counted").is_none()));
    // The prompt and its Enter.
    assert_eq!(send(&engine, "counted", "!say hi").receipt.delivered, Delivery::Submitted);
    assert_eq!(count(), before + 6);
    wait_for(&engine, "counted", "ready");
    let began = std::time::Instant::now();
    assert_eq!(send(&engine, "counted", "!say hi").receipt.delivered, Delivery::Submitted);
    assert!(began.elapsed() < Duration::from_secs(5));
}
