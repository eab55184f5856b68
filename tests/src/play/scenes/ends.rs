//! Ends: an exit, a kill, a run to completion; and what comes after.

use std::process::Command;
use std::thread;

use lisa_engine::api::View;
use lisa_engine::api::words::Mode;

use crate::agents::AgentKind;
use crate::model_server::{Match, Reply};
use crate::play::actor::A_WHILE;
use crate::play::{Actor, Stage, script};
use crate::truth::Deed;

/// Tells the agent to leave.
fn leave(kind: AgentKind, actor: &Actor<'_>) {
    let word = if kind == AgentKind::Claude { "/exit" } else { "/quit" };
    actor.eyes.did(Deed::Meddled);
    actor.offer(word);
    let seen = actor.until("exited");
    actor.eyes.did(Deed::Ended);
    let exit = seen.exit.clone();
    let code = exit.as_ref().and_then(|exit| exit.code);
    actor.check(seen.status.as_str() == "completed" && code == Some(0), &format!("it left: {seen:?}"));
}

pub(super) fn exit(stage: &mut Stage<'_>) {
    let kind = stage.kind;
    stage.lab.server.add_rule(Match::prompt("the last word"), "The last word.");
    let actor = stage.actor();
    actor.converses("the last word", "The last word.");
    leave(kind, actor);
    thread::sleep(A_WHILE);
    let refused = actor.offer("are you there");
    actor.check(refused.refusal.as_deref() == Some("pane_dead"), &format!("nobody is there: {refused:?}"));
}

pub(super) fn resume(stage: &mut Stage<'_>) {
    let kind = stage.kind;
    stage.lab.server.add_rule(Match::prompt("the last word"), "The last word.");
    stage.lab.server.add_rule(Match::prompt("as we said"), script::slowly("So we did.", 2));
    stage.lab.server.add_rule(Match::prompt("and then"), script::slowly("That is all.", 2));
    let actor = stage.actor();
    if actor.status().state.as_str() != "exited" {
        actor.converses("the last word", "The last word.");
        leave(kind, actor);
    }
    let done = actor.resume(Some("as we said"));
    actor.check(done.done == "resumed", &format!("{done:?}"));
    let exchange = actor.asked("as we said");
    let remembers = exchange.request.said.iter().any(|said| said == "the last word");
    actor.check(remembers, &format!("it remembers what was said before: {:?}", exchange.request.said));
    actor.says("So we did.");
    actor.converses("and then", "That is all.");
}

pub(super) fn kill_9(stage: &mut Stage<'_>) {
    let server = &stage.lab.server;
    server.add_rule(Match::prompt("work until the end"), Reply::new().say("I begin.").hang());
    let actor = stage.actor();
    actor.send("work until the end");
    actor.asked("work until the end");
    thread::sleep(A_WHILE);
    let pid = actor.status().pid.unwrap_or_else(|| panic!("Lisa knows no process"));
    actor.eyes.did(Deed::Ended);
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    actor.check(killed.success(), "the process was there to kill");
    let seen = actor.until("exited");
    let signal = seen.exit.as_ref().and_then(|exit| exit.signal);
    actor.check(seen.status.as_str() == "crashed" && signal == Some(9), &format!("it was killed: {seen:?}"));
    thread::sleep(A_WHILE);
    stage.retire();
}

/// Runs a prompt to completion; the session when it has ended.
fn run<'a>(stage: &Stage<'a>, prompt: &str) -> Actor<'a> {
    let mut request = stage.lab.request(stage.name(), Some(prompt));
    request.mode = Mode::Exec;
    let actor = stage.enter(&request);
    let exchange = actor.asked(prompt);
    let over = |item: &crate::model_server::Exchange| item.end.map(|(at, _)| at);
    let ended = crate::lab::until(crate::lab::PATIENCE, || over(&actor.asked(prompt)).is_some());
    actor.check(ended, &format!("the model answered: {exchange:?}"));
    // What the program does between the model's last word and its own end is not for the model's log to tell.
    actor.eyes.did_at(over(&actor.asked(prompt)).unwrap_or_default() + 1, Deed::Meddled);
    actor.until("exited");
    actor.eyes.did(Deed::Ended);
    thread::sleep(A_WHILE);
    actor
}

pub(super) fn exec(stage: &mut Stage<'_>) {
    stage.lab.server.add_rule(Match::prompt("run it"), script::slowly("It ran.", 2));
    let actor = run(stage, "run it");
    let seen = actor.status();
    let code = seen.exit.as_ref().and_then(|exit| exit.code);
    actor.check(seen.status.as_str() == "completed" && code == Some(0), &format!("it succeeded: {seen:?}"));
    let output = actor.read(View::Output);
    actor.check(output.contains("It ran."), &format!("the output is kept: {output}"));
    stage.leave(&actor);
}

pub(super) fn exec_failure(stage: &mut Stage<'_>) {
    stage.lab.server.add_rule(Match::prompt("run in vain"), Reply::error(400).message("Not like that."));
    let actor = run(stage, "run in vain");
    let seen = actor.status();
    let code = seen.exit.as_ref().and_then(|exit| exit.code);
    actor.check(seen.status.as_str() == "crashed" && code == Some(1), &format!("it failed: {seen:?}"));
    let output = actor.read(View::Output);
    actor.check(output.contains("Not like that."), &format!("the reason is kept: {output}"));
    stage.leave(&actor);
}

pub(super) fn two_at_once(stage: &mut Stage<'_>) {
    let (server, kind) = (&stage.lab.server, stage.kind);
    let asks = [script::command(kind, "mkfifo left"), script::slowly("Left is done.", 2)];
    server.add_rule(Match::prompt("LEFT"), asks);
    server.add_rule(Match::prompt("RIGHT"), script::slowly("Right is done.", 4));
    server.add_rule(Match::prompt("and you").in_conversation("RIGHT"), script::slowly("Right again.", 2));
    let left = stage.enter(&stage.lab.request("left", Some("LEFT go")));
    left.eyes.only("LEFT");
    // Two first starts in a fresh home break each other's database: the second waits for the first.
    left.asked("LEFT go");
    let right = stage.enter(&stage.lab.request("right", Some("RIGHT go")));
    right.eyes.only("RIGHT");
    let asked = left.blocked("awaiting_permission");
    right.says("Right is done.");
    left.check(left.status().state.as_str() == "awaiting_permission", "one's answer is not the other's");
    right.converses("and you", "Right again.");
    left.answer(&asked, "allow_once", Deed::Answered);
    left.says("Left is done.");
    thread::sleep(A_WHILE);
    let message = right.status().last_message;
    right.check(message.as_deref() == Some("Right again."), &format!("it said {message:?}"));
    stage.leave(&left);
    stage.leave(&right);
}
