//! Scenarios with real agents: each is written once, and played by every agent through every front end.
//!
//! Most scenes share one session, one after the other, because an agent's start is what costs most. A scene that fails
//! takes its session with it, and the next begins a fresh one: one failure hides no other. Every scene ends up in the
//! report as data; only then does the test fail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

mod actor;
mod scenes;
mod script;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use test_support::{needs, tools};

use crate::agents::AgentKind;
use crate::hands::{Hands, Through};
use crate::lab::{Judgement, Lab, LabOptions};
use crate::model_server::Scenario;
use crate::record;
use crate::report::{self, Outcome, Played};

pub use actor::Actor;
pub use scenes::{ALONE, CONVERSATION, PAIR};

/// One scenario.
pub struct Scene {
    /// Its name in reports and recordings.
    pub id: &'static str,
    /// What works when it is played to its end.
    pub what: &'static str,
    /// Agents that have nothing of the kind.
    pub not_offered: &'static [AgentKind],
    /// What the recordings of it are called that were made by hand, of Claude Code and of Codex; empty for none.
    pub recorded_as: [&'static str; 2],
    /// How recordings call it when the agent waits for an answer in it.
    pub asks: &'static str,
    /// How recordings call it when the agent's process ends in it.
    pub ends: &'static str,
    /// Plays it.
    pub play: fn(&mut Stage<'_>),
}

/// Where scenes are played.
pub struct Stage<'a> {
    /// The lab.
    pub lab: &'a Lab,
    /// The agent.
    pub kind: AgentKind,
    hands: &'a dyn Hands,
    scene: &'static Scene,
    actor: Option<Actor<'a>>,
    judged: Judgement,
}

impl Scene {
    /// What a session is called that plays it, and its recording.
    pub fn name(&self, kind: AgentKind) -> &'static str {
        let [claude, codex] = self.recorded_as;
        let known = if kind == AgentKind::Claude { claude } else { codex };
        if record::asked() && !known.is_empty() { known } else { self.id }
    }
}

impl<'a> Stage<'a> {
    /// What a session is called that plays this scene.
    pub fn name(&self) -> &'static str {
        self.scene.name(self.kind)
    }

    /// The session that scenes share; a fresh one, without a prompt, if none runs.
    pub fn actor(&mut self) -> &Actor<'a> {
        if self.actor.is_none() {
            let request = self.lab.request(self.name(), None);
            self.actor = Some(self.enter(&request));
        }
        self.actor.as_ref().unwrap()
    }

    /// Whether scenes share a session already.
    pub fn has_actor(&self) -> bool {
        self.actor.is_some()
    }

    /// Starts the session that the following scenes share.
    pub fn begin(&mut self, prompt: &str) -> &Actor<'a> {
        self.retire();
        let request = self.lab.request(self.name(), Some(prompt));
        self.actor = Some(self.enter(&request));
        self.actor.as_ref().unwrap()
    }

    /// Starts a session for this scene alone.
    pub fn enter(&self, request: &lisa_engine::api::SpawnRequest) -> Actor<'a> {
        Actor::spawn(self.lab, self.hands, self.scene, request)
    }

    /// Ends a session and compares what was said of it with the truth.
    pub fn leave(&mut self, actor: &Actor<'a>) {
        let judged = actor.judge();
        self.judged.truth.extend(judged.truth);
        self.judged.lies.extend(judged.lies);
        self.judged.delays.extend(judged.delays);
        actor.kill();
    }

    /// Ends the session that scenes share.
    pub fn retire(&mut self) {
        if let Some(actor) = self.actor.take() {
            self.leave(&actor);
        }
    }
}

/// Plays scenes with an agent through a front end; fails when all are played if one of them did not work.
pub fn play(kind: AgentKind, through: Through, scenes: &'static [Scene], agents: usize) {
    let options = LabOptions { agents, ..LabOptions::default() };
    if through == Through::Nu {
        needs!(tools::program("nu"));
    }
    let Some(lab) = Lab::with(kind, Scenario::new(), options) else { return };
    let hands = through.hands(&lab);
    let Some(first) = scenes.first() else { return };
    let mut stage = Stage {
        lab: &lab,
        kind,
        hands: hands.as_ref(),
        scene: first,
        actor: None,
        judged: Judgement::default(),
    };
    let mut played = Vec::new();
    for scene in scenes {
        stage.scene = scene;
        let mut one = Played::new(&lab, through, scene);
        if scene.not_offered.contains(&kind) {
            one.outcome = Outcome::NotOffered;
            played.push(one);
            continue;
        }
        if let Some(actor) = &stage.actor {
            actor.scene(scene);
        }
        let began = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| (scene.play)(&mut stage)));
        one.seconds = began.elapsed().as_secs_f64();
        match done {
            Ok(()) if record::asked() => stage.retire(),
            Ok(()) => {}
            Err(panic) => {
                one.fail(&said(panic.as_ref()));
                // What the scene left behind would spoil the next. A session that cannot be ended has failed with it.
                let _ = catch_unwind(AssertUnwindSafe(|| stage.retire()));
            }
        }
        played.push(one);
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| stage.retire())) {
        played.last_mut().unwrap().fail(&said(panic.as_ref()));
    }
    for one in &mut played {
        one.judge(&stage.judged);
    }
    report::played(&played);
    let failed: Vec<String> = played.iter().filter_map(Played::failure).collect();
    assert!(failed.is_empty() || report::only_reports(), "{}", failed.join("\n"));
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
