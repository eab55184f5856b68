//! What agents ask, and how it is answered.

use std::fs;
use std::time::Duration;

use lisa_engine::api::View;

use crate::agents::AgentKind;
use crate::model_server::{Match, Reply};
use crate::play::{Actor, Stage, script};
use crate::truth::{Deed, Doing};

/// How long a switch of the mode may take to show, how long it must hold, and how often it is tried.
const SWITCH: Duration = Duration::from_secs(5);
const HOLDS: Duration = Duration::from_millis(500);
const SWITCHES_MAX: usize = 4;

/// Has the agent ask whether it may make this pipe; the answer, and whether it made it.
fn permission(stage: &mut Stage<'_>, prompt: &str, pipe: &str, choice: &str, deed: Deed) -> bool {
    let command = format!("mkfifo {pipe}");
    let replies = [script::command(stage.kind, &command), script::slowly("Made it.", 2)];
    stage.lab.server.add_rule(Match::prompt(prompt), replies);
    let actor = stage.actor();
    let sent = actor.send(prompt);
    let asked = actor.blocked("awaiting_permission");
    let right = asked.kind == "permission" && asked.command.as_deref() == Some(command.as_str());
    actor.check(right, &format!("it asks about {command:?}: {asked:?}"));
    let refused = actor.offer("this must not be typed into a dialog");
    actor.check(refused.refusal.as_deref() == Some("prompt_open"), &format!("the gate is shut: {refused:?}"));
    let answered = actor.answer(&asked, choice, deed);
    let effect = answered.effect.map(|effect| effect.as_str());
    actor.check(effect == Some(choice), &format!("the answer was {choice}: {answered:?}"));
    actor.turn(&sent.turn.unwrap_or_default());
    match deed {
        Deed::Answered => actor.says("Made it."),
        _ => actor.until("interrupted"),
    };
    stage.lab.home.project().join(pipe).exists()
}

pub(super) fn permission_yes(stage: &mut Stage<'_>) {
    let made = permission(stage, "make it once", "once", "allow_once", Deed::Answered);
    stage.actor().check(made, "the command has run");
}

pub(super) fn permission_no(stage: &mut Stage<'_>) {
    let made = permission(stage, "make it never", "never", "deny", Deed::Declined);
    std::thread::sleep(crate::play::actor::A_WHILE);
    stage.actor().check(!made, "the command has not run");
}

pub(super) fn permission_always(stage: &mut Stage<'_>) {
    let pipe = stage.lab.home.project().join("always");
    let made = permission(stage, "make it always", "always", "allow_always", Deed::Answered);
    stage.actor().check(made, "the command has run");
    fs::remove_file(&pipe).unwrap();
    let again = [script::command(stage.kind, "mkfifo always"), script::slowly("Made it again.", 2)];
    stage.lab.server.add_rule(Match::prompt("once more"), again);
    stage.actor().converses("once more", "Made it again.");
    stage.actor().check(pipe.exists(), "the command has run without a question");
}

pub(super) fn question(stage: &mut Stage<'_>) {
    let replies = [script::question(stage.kind), script::slowly("As you like.", 2)];
    stage.lab.server.add_rule(Match::prompt("export it"), replies);
    let kind = stage.kind;
    let actor = stage.actor();
    if kind == AgentKind::Codex {
        // It asks questions only where it plans.
        plan_mode(actor, true);
    }
    let sent = actor.send("export it");
    let asked = actor.blocked("awaiting_question");
    let labels: Vec<&str> = asked.options.iter().map(|option| option.label.as_str()).collect();
    actor.check(labels.starts_with(&["JSON", "CSV"]), &format!("the options are {labels:?}"));
    let answered = actor.answer(&asked, "CSV", Deed::Answered);
    actor.check(answered.answered == ["CSV"], &format!("{answered:?}"));
    actor.turn(&sent.turn.unwrap_or_default());
    actor.says("As you like.");
    let exchanges = actor.eyes.exchanges();
    let told = exchanges.iter().rfind(|item| item.request.prompt == "export it");
    let told = told.map(|item| item.request.results.join("\n")).unwrap_or_default();
    actor.check(told.contains("CSV") && !told.contains("JSON"), &format!("the model was told {told:?}"));
    if kind == AgentKind::Codex {
        plan_mode(actor, false);
    }
}

/// Has Codex plan, or do what it is told again.
///
/// What is switched in its first moments Codex takes back itself, when it has read its settings: it says that it plans,
/// and then does not. So whoever wants a mode looks whether it holds, as a person would.
fn plan_mode(actor: &Actor<'_>, on: bool) {
    actor.until("ready");
    let shows = || actor.read(View::Screen).contains("Plan mode (shift+tab") == on;
    for _ in 0..SWITCHES_MAX {
        actor.keys(&["BTab"]);
        if crate::lab::until(SWITCH, shows) {
            std::thread::sleep(HOLDS);
            if shows() {
                return;
            }
        }
    }
    actor.check(false, "the mode has changed");
}

pub(super) fn plan(stage: &mut Stage<'_>) {
    let mut replies = script::plan(stage.kind);
    let mut request = stage.lab.request(stage.name(), None);
    match stage.kind {
        AgentKind::Claude => {
            replies.push(script::slowly("I mended it.", 2));
            request.args = vec!["--permission-mode".to_owned(), "plan".to_owned()];
        }
        AgentKind::Codex => {
            stage.lab.server.add_rule(Match::prompt("Implement the plan"), script::slowly("I mended it.", 2));
        }
    }
    stage.lab.server.add_rule(Match::prompt("plan the repair"), replies);
    let actor = stage.enter(&request);
    if stage.kind == AgentKind::Codex {
        plan_mode(&actor, true);
    }
    actor.send("plan the repair");
    if stage.kind == AgentKind::Codex {
        // Its plan is a text, and the question comes after the turn.
        let over = || actor.asked("plan the repair").end.map(|(at, _)| at);
        actor.check(crate::lab::until(crate::lab::PATIENCE, || over().is_some()), "the model made a plan");
        actor.eyes.did_at(over().unwrap_or_default() + 1, Deed::Known(Doing::Blocked));
    }
    let asked = actor.blocked("awaiting_plan");
    let go = asked.options.iter().find(|option| option.effect.is_some_and(|it| it.as_str() == "allow_once"));
    let go = go.map(|option| option.label.clone()).unwrap_or_default();
    actor.answer(&asked, &go, Deed::Answered);
    actor.says("I mended it.");
    stage.leave(&actor);
}

pub(super) fn trust(stage: &mut Stage<'_>) {
    let directory = stage.lab.home.path().canonicalize().unwrap().join("stranger");
    crate::agents::empty_repository(&directory).unwrap();
    stage.lab.server.add_rule(Match::prompt("look at this"), Reply::text("I looked."));
    let mut request = stage.lab.request(stage.name(), Some("look at this"));
    request.cwd = Some(directory.display().to_string());
    let actor = stage.enter(&request);
    let asked = actor.blocked("awaiting_dialog");
    actor.check(asked.dialog.as_deref() == Some("trust"), &format!("it asks about trust: {asked:?}"));
    let early = actor.eyes.exchanges().iter().any(|item| item.request.prompt == "look at this");
    actor.check(!early, "nothing reaches the model before the answer");
    actor.answer(&asked, "allow_once", Deed::Meddled);
    actor.asked("look at this");
    actor.says("I looked.");
    stage.leave(&actor);
}
