//! first look
#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]
use lisa_tests::agents::AgentKind;
use lisa_tests::lab::Lab;
use lisa_tests::model_server::{Pace, Reply, Scenario};

fn look(kind: AgentKind) {
    let scenario =
        Scenario::new().turn(Reply::new().say_paced(&"Some words. ".repeat(20), Pace::new(12, 150)));
    let Some(lab) = Lab::new(kind, scenario) else { return };
    let child = lab.child("first", Some("say something"));
    child.asked(1);
    let s = child.until("ready");
    eprintln!("{s:#?}");
    eprintln!("{}", child.explained());
    child.check();
}
#[test]
fn claude() {
    look(AgentKind::Claude)
}
#[test]
fn codex() {
    look(AgentKind::Codex)
}
