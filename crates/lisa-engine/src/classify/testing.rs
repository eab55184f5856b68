//! Looks and sessions for tests, in a few words.

#![allow(dead_code)]

use lisa_engine::classify::memory::Memory;
use lisa_engine::classify::profile::{Profile, Profiles};
use lisa_engine::classify::{Outcome, step};
use lisa_engine::{
    api::words::Mode,
    classify::observation::{At, Line, Observation, Pane, Proc, Reading},
};
use serde_json::Value;
use std::sync::Arc;

static PROFILES: Profiles = Profiles::shipped();

pub(crate) fn profile(id: &str) -> Arc<Profile> {
    PROFILES.get(id).expect("a profile that ships")
}

/// A session that is looked at, look after look.
pub(crate) struct Session {
    pub(crate) profile: Arc<Profile>,
    pub(crate) memory: Memory,
}

impl Session {
    pub(crate) fn new(agent: &str) -> Self {
        Self { profile: profile(agent), memory: Memory::default() }
    }

    pub(crate) fn look(&mut self, obs: &Observation) -> Outcome {
        let outcome = step(&self.profile, self.memory.clone(), obs);
        self.memory = outcome.memory.clone();
        outcome
    }

    /// The status and the reason after one look.
    pub(crate) fn says(&mut self, obs: &Observation) -> (String, String) {
        let outcome = self.look(obs);
        (outcome.verdict.status().to_string(), outcome.verdict.reason.to_string())
    }
}

/// A look at a live pane that shows nothing, with nothing else to read.
pub(crate) fn blank(at: i64) -> Observation {
    Observation {
        pane: Reading::Seen(pane("vm")),
        ..Observation::none(At(at), At(0), "run", Mode::Interactive)
    }
}

pub(crate) fn pane(title: &str) -> Pane {
    Pane {
        dead: false,
        exit_status: None,
        exit_signal: None,
        command: "agent".to_owned(),
        pid: 100,
        cursor: (2, 0),
        cursor_visible: false,
        alternate: false,
        in_mode: false,
        history: 0,
        activity: At(0),
        size: (120, 40),
        inputs: 0,
        title: title.to_owned(),
    }
}

/// Changes to a look, one after the other.
pub(crate) trait With: Sized {
    fn title(self, title: &str) -> Self;
    fn screen(self, text: &str) -> Self;
    fn native(self, file: Value) -> Self;
    fn hook(self, payload: Value) -> Self;
    fn transcript(self, line: Value) -> Self;
    fn process(self, name: &str) -> Self;
    fn pane(self, change: impl FnOnce(&mut Pane)) -> Self;
}

impl With for Observation {
    fn title(self, title: &str) -> Self {
        self.pane(|pane| pane.title = title.to_owned())
    }

    fn screen(mut self, text: &str) -> Self {
        self.screen = Reading::Seen(text.into());
        self
    }

    fn native(mut self, file: Value) -> Self {
        self.native = Reading::Seen(file);
        self
    }

    fn hook(mut self, payload: Value) -> Self {
        let at = self.at;
        self.feeds.hook.lines.push(Line { at, payload: Ok(payload) });
        self
    }

    fn transcript(mut self, line: Value) -> Self {
        let at = self.at;
        self.feeds.transcript.lines.push(Line { at, payload: Ok(line) });
        self
    }

    fn process(mut self, name: &str) -> Self {
        let proc =
            Proc { pid: 100, ppid: 1, name: name.to_owned(), zombie: false, stopped: false, cpu_ms: 0 };
        self.procs = Reading::Seen(vec![proc]);
        self
    }

    fn pane(mut self, change: impl FnOnce(&mut Pane)) -> Self {
        if let Reading::Seen(pane) = &mut self.pane {
            change(pane);
        }
        self
    }
}

const RULE: &str = "────────────────────────────────────────────────────────────────────────────────";

/// A screen of the first agent: a conversation, the empty input box, a footer.
pub(crate) fn conversation(text: &str, footer: &str) -> String {
    format!("{text}\n\n{RULE}\n❯\u{a0}\n{RULE}\n  {footer}\n")
}

pub(crate) fn idle_screen() -> String {
    conversation("❯ go\n\n● All of it is done.\n\n✻ Baked for 2s", "? for shortcuts · ← for agents")
}

pub(crate) fn working_screen() -> String {
    conversation("❯ go\n\n✻ Perusing… (3s · ↓ 2 tokens)", "esc to interrupt · ← for agents")
}

/// A permission dialog in its place.
pub(crate) fn permission_screen(command: &str) -> String {
    format!(
        "❯ go\n\n● Bash({command})\n  ⎿  Waiting…\n\n{RULE}\n Bash command\n\n   {command}\n   Run it\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and always allow access to x/ from this project\n   3. No\n\n Esc to cancel · Tab to amend\n"
    )
}
