//! Real agents as children: each answers a prompt on a scripted model, and what Lisa says of it is compared with the
//! model server's own log.

use lisa_tests::{
    agents::AgentKind,
    lab::Lab,
    model_server::{Pace, Reply, Scenario},
};

fn answers_a_prompt(kind: AgentKind) {
    let words = "Some words. ".repeat(20);
    let scenario = Scenario::new().turn(Reply::new().say_paced(&words, Pace::new(12, 150)));
    let Some(lab) = Lab::new(kind, scenario) else { return };
    let child = lab.child("first", Some("say something"));
    child.asked(1);
    child.until("ready");
    child.check();
}

#[test]
fn claude_answers_a_prompt_and_is_never_called_ready_before() {
    answers_a_prompt(AgentKind::Claude);
}

#[test]
fn codex_answers_a_prompt_and_is_never_called_ready_before() {
    answers_a_prompt(AgentKind::Codex);
}
