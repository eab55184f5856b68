//! Turns and what can come between their beginning and their end.

use std::thread;

use crate::agents::AgentKind;
use crate::lab::PATIENCE;
use crate::model_server::{Asker, End, Exchange, Match, Reply, exchanges};
use crate::play::actor::A_WHILE;
use crate::play::{Stage, script};
use crate::truth::{Deed, Doing};

pub(super) fn prompt(stage: &mut Stage<'_>) {
    let words = "Some words of an answer that takes its time.";
    stage.lab.server.add_rule(Match::prompt("say something"), script::slowly(words, 2));
    let actor = stage.begin("say something");
    actor.asked("say something");
    actor.says(words);
}

pub(super) fn follow_up(stage: &mut Stage<'_>) {
    let server = &stage.lab.server;
    server.add_rule(Match::prompt("say more"), script::slowly("This is more.", 2));
    let actor = stage.actor();
    actor.converses("say more", "This is more.");
    let asked = actor.eyes.exchanges().into_iter().filter(|item| item.request.prompt == "say more").count();
    actor.check(asked == 1, "one prompt is asked once");
}

pub(super) fn tabs(stage: &mut Stage<'_>) {
    let text = "TABS\tbetween\twords\n\tand before them";
    stage.lab.server.add_rule(Match::prompt("TABS"), "Tabs.");
    let actor = stage.actor();
    actor.converses(text, "Tabs.");
    let asked = actor.asked(text);
    actor.check(asked.end.is_some(), "it arrived as it was sent");
}

/// Lines that differ, with letters of one to four bytes, and what looks like keys and markup.
fn long_text() -> String {
    let mut text = String::from("LONG");
    while text.len() < 50 * 1024 {
        let number = text.len();
        text += &format!("\n{number} line: äöü → 漢字 🦀 <tag> \\n ${{x}} `code` \"quoted\" C-c ;; #");
    }
    text
}

pub(super) fn long_prompt(stage: &mut Stage<'_>) {
    let text = long_text();
    stage.lab.server.add_rule(Match::prompt("LONG"), script::slowly("Read it all.", 2));
    let actor = stage.actor();
    actor.converses(&text, "Read it all.");
    let exchanges = actor.eyes.exchanges();
    let arrived = exchanges.iter().find(|item| item.request.prompt.starts_with("LONG"));
    let arrived = arrived.map(|item| item.request.prompt.as_str()).unwrap_or_default();
    let differ = arrived.bytes().zip(text.bytes()).position(|(one, other)| one != other);
    actor.check(
        arrived == text,
        &format!("{} bytes of {} arrived, other from {differ:?}", arrived.len(), text.len()),
    );
}

pub(super) fn interrupt(stage: &mut Stage<'_>) {
    let server = &stage.lab.server;
    server.add_rule(Match::prompt("go on for ever"), Reply::new().say("I begin.\n\nAnd then").hang());
    server.add_rule(Match::prompt("now something else"), script::slowly("Something else.", 2));
    let actor = stage.actor();
    actor.send("go on for ever");
    actor.asked("go on for ever");
    thread::sleep(A_WHILE);
    let done = actor.interrupt();
    actor.check(done.done == "interrupted", &format!("{done:?}"));
    actor.until("interrupted");
    let left = |item: &Exchange| item.end.is_some_and(|(_, end)| end == End::ClientLeft);
    let exchange = actor.asked("go on for ever");
    actor.check(left(&exchange), "the agent let its request go");
    thread::sleep(A_WHILE);
    actor.converses("now something else", "Something else.");
}

pub(super) fn api_failure(stage: &mut Stage<'_>) {
    let server = &stage.lab.server;
    let again = [Reply::error(500), script::slowly("At the second try.", 1)];
    server.add_rule(Match::prompt("try twice"), again.to_vec());
    server.add_rule(Match::prompt("try in vain"), Reply::error(400).message("Not like that."));
    server.add_rule(Match::prompt("try like this"), script::slowly("That was right.", 2));
    let actor = stage.actor();
    actor.converses("try twice", "At the second try.");
    let sent = actor.send("try in vain");
    actor.turn(&sent.turn.unwrap_or_default());
    let seen = actor.until("error");
    let kind = seen.error.map(|error| error.kind).unwrap_or_default();
    actor.check(kind == "invalid_request", &format!("the error is {kind:?}"));
    thread::sleep(A_WHILE);
    actor.converses("try like this", "That was right.");
}

pub(super) fn subagent(stage: &mut Stage<'_>) {
    let (server, kind) = (&stage.lab.server, stage.kind);
    server.add_rule(Match::prompt("TASK").from(Asker::Subagent), script::slowly("Nothing is there.", 3));
    let closing = Reply::new().hold("subagent").say("Both looked.");
    server
        .add_rule(Match::prompt("let somebody look"), [script::delegate(kind, "TASK look around"), closing]);
    let actor = stage.actor();
    let sent = actor.send("let somebody look");
    let over = |item: &Exchange| item.request.asker == Asker::Subagent && item.end.is_some();
    let looked = stage.lab.server.wait(PATIENCE, |events| exchanges(events).iter().any(over));
    stage.lab.server.release("subagent");
    let actor = stage.actor();
    actor.check(looked, "the subagent was asked");
    actor.turn(&sent.turn.unwrap_or_default());
    actor.says("Both looked.");
}

pub(super) fn background(stage: &mut Stage<'_>) {
    let (server, kind) = (&stage.lab.server, stage.kind);
    let start = script::background(kind, "sleep 6; echo slept");
    server.add_rule(Match::prompt("begin it"), [start, Reply::text("It has begun.")]);
    server.add_rule(Match::prompt("<task-notification>"), "It is over.");
    let actor = stage.actor();
    let sent = actor.send("begin it");
    actor.turn(&sent.turn.unwrap_or_default());
    actor.says("It has begun.");
    thread::sleep(A_WHILE);
    let seen = actor.status();
    actor.check(seen.status.as_str() == "waiting_input", &format!("a shell is no turn: {seen:?}"));
    if kind == AgentKind::Claude {
        // It hears of the end by itself, and begins a turn.
        let told =
            |item: &Exchange| item.request.prompt.contains("<task-notification>") && item.end.is_some();
        let told = stage.lab.server.wait(PATIENCE, |events| exchanges(events).iter().any(told));
        let actor = stage.actor();
        actor.check(told, "the agent told its model of the end");
        // It was ready before, too: only its words tell that this turn is over.
        let over = || actor.status().last_message.as_deref() == Some("It is over.");
        actor.check(crate::lab::until(PATIENCE, over), "the agent says that it is over");
    } else {
        thread::sleep(std::time::Duration::from_secs(6));
    }
}

pub(super) fn clear(stage: &mut Stage<'_>) {
    stage.lab.server.add_rule(Match::prompt("who are you"), script::slowly("Somebody new.", 2));
    stage.lab.server.add_rule(Match::prompt("before that"), "Before.");
    let command = if stage.kind == AgentKind::Claude { "/clear" } else { "/new" };
    let kind = stage.kind;
    let actor = stage.actor();
    actor.converses("before that", "Before.");
    let before = actor.status().agent_session_id;
    actor.eyes.did(Deed::Meddled);
    actor.send(command);
    if kind == AgentKind::Codex {
        // It asks where, in a directory that is a repository.
        let asked = actor.blocked("awaiting_dialog");
        actor.answer(&asked, "1", Deed::Meddled);
    }
    let actor = stage.actor();
    actor.until("ready");
    actor.converses("who are you", "Somebody new.");
    let exchange = actor.asked("who are you");
    actor.check(
        exchange.request.said == ["who are you"],
        &format!("it remembers {:?}", exchange.request.said),
    );
    let after = actor.status().agent_session_id;
    actor
        .check(after.is_some() && after != before, &format!("the conversation was {before:?}, is {after:?}"));
}

pub(super) fn compaction(stage: &mut Stage<'_>) {
    let server = &stage.lab.server;
    server.add_rule(Match::prompt("remember this"), "I will.");
    server.add_rule(Match::prompt("and this"), "That too.");
    server.add_rule(Match::prompt("what was it"), script::slowly("This.", 2));
    let summary = Reply::new().hold("compaction").say("They asked me to remember this.");
    let aside = |text: &str| Match::prompt(text).from(Asker::Auxiliary);
    for text in ["Respond with TEXT ONLY", "CONTEXT CHECKPOINT COMPACTION"] {
        server.add_rule(aside(text), summary.clone());
    }
    let actor = stage.actor();
    actor.converses("remember this", "I will.");
    // Of a single exchange Claude may say that it is not enough to be summed up.
    actor.converses("and this", "That too.");
    actor.eyes.did(Deed::Meddled);
    actor.send("/compact");
    let summing = |item: &&Exchange| {
        item.request.asker == Asker::Auxiliary && item.source.is_some_and(|source| source.is_rule())
    };
    let began = |events: &[_]| exchanges(events).iter().find(summing).map(|item| item.asked_ms);
    let seen = stage.lab.server.wait(PATIENCE, |events| began(events).is_some());
    let at = began(&stage.lab.server.log()).unwrap_or_default();
    let actor = stage.actor();
    actor.check(seen, "the agent asked for a summary");
    actor.eyes.did_at(at, Deed::Known(Doing::Working));
    thread::sleep(A_WHILE);
    let busy = actor.status();
    actor.check(busy.activity.as_deref() == Some("compacting"), &format!("it compacts: {busy:?}"));
    stage.lab.server.release("compaction");
    let over = |item: &Exchange| summing(&item) && item.end.is_some();
    stage.lab.server.wait(PATIENCE, |events| exchanges(events).iter().any(over));
    let actor = stage.actor();
    actor.is_known(Doing::Ready);
    actor.until("ready");
    thread::sleep(A_WHILE);
    actor.converses("what was it", "This.");
}
