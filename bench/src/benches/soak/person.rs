//! Somebody at a terminal: attaches to agents' sessions, splits windows, scrolls, renames, detaches. The terminal is a
//! pane of another private tmux server.

use super::{
    super::trial::{Dice, pause},
    Log,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    run,
    stage::Stage,
};
use lisa_engine::{
    config::{Environment, Socket},
    engine::Engine,
    tmux::{Cmd, Tmux},
};
use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

/// The key that begins a command to tmux.
const PREFIX: &str = "C-b";
/// What a person does: the word under which it is counted, and the keys, each pressed a moment after the one before.
const HABITS: &[(&str, &[&[&str]])] = &[
    ("people split a window", &[&[PREFIX, "\""]]),
    ("people split a window", &[&[PREFIX, "%"]]),
    ("people scrolled", &[&[PREFIX, "["], &["PPage"], &["PPage"], &["NPage"], &["q"]]),
    ("people renamed a window", &[&[PREFIX, ","], &["C-u"], &["m", "i", "n", "e"], &["Enter"]]),
];
const DETACH: &[&str] = &[PREFIX, "d"];
/// How long somebody takes to attach or to detach.
const GLANCE: Duration = Duration::from_secs(3);

/// One person.
pub(super) struct Person<'a> {
    context: &'a Context,
    stage: &'a Stage,
    log: &'a Log,
    /// The server whose panes are the person's terminals.
    desk: PathBuf,
    /// The server that the person looks at.
    tmux: Tmux,
    dice: Dice,
}

impl<'a> Person<'a> {
    pub(super) fn new(context: &'a Context, stage: &'a Stage, log: &'a Log, number: usize) -> Result<Self> {
        let tmux = Tmux::new(Socket::Path(stage.socket()), &Environment::of_this_process())?;
        let desk = stage.file(&format!("desk{number}"));
        let person = Self { context, stage, log, desk, tmux, dice: Dice::new(number as u64 + 1) };
        person.at_desk(&["new-session", "-d", "-s", "desk", "-x", "200", "-y", "50", "sleep 86400"])?;
        Ok(person)
    }

    /// Looks at one session after the other until a moment, never at the one that is left alone.
    pub(super) fn run(mut self, end: Instant, not: &str) -> Result<()> {
        let engine = Engine::open(self.stage.caller())?;
        while Instant::now() < end {
            let names: Vec<String> = engine.names()?.into_iter().filter(|name| name != not).collect();
            let pick = usize::try_from(self.dice.below(names.len() as u64)).unwrap_or(0);
            match names.get(pick) {
                Some(name) => self.visit(name)?,
                None => self.wait_a_moment()?,
            }
        }
        // The person goes, with every terminal.
        let _ = self.at_desk(&["kill-server"]);
        Ok(())
    }

    /// Attaches, does a thing or two, and detaches. The session may end at any moment meanwhile.
    fn visit(&mut self, name: &str) -> Result<()> {
        let socket = self.stage.socket();
        let attach = format!("exec tmux -u -S '{}' attach-session -t '={name}'", socket.display());
        let pane = self.at_desk(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "desk:", &attach])?;
        let pane = pane.trim().to_owned();
        if !self.until(|person| person.clients(name) > 0)? {
            return Ok(());
        }
        self.log.count("people attached");
        for _ in 0..=self.dice.below(2) {
            let habit = usize::try_from(self.dice.below(HABITS.len() as u64)).unwrap_or(0);
            let Some((what, steps)) = HABITS.get(habit) else { continue };
            if steps.iter().all(|keys| self.press(&pane, keys)) {
                self.log.count(what);
            }
            self.wait_a_moment()?;
        }
        if self.press(&pane, DETACH) && self.until(|person| person.clients(name) == 0)? {
            self.log.count("people detached");
        }
        // Who did not get out closes the terminal.
        let _ = self.at_desk(&["kill-pane", "-t", &pane]);
        Ok(())
    }

    /// Presses keys, one command of tmux's at once; says whether the terminal was still there.
    fn press(&mut self, pane: &str, keys: &[&str]) -> bool {
        let pressed = self.at_desk(&[&["send-keys", "-t", pane], keys].concat()).is_ok();
        pressed && self.wait_a_moment().is_ok()
    }

    fn wait_a_moment(&mut self) -> Result<()> {
        pause(self.context, Duration::from_millis(20 + self.dice.below(180)))
    }

    fn until(&mut self, holds: impl Fn(&Self) -> bool) -> Result<bool> {
        let began = Instant::now();
        while !holds(self) {
            if began.elapsed() > GLANCE {
                return Ok(false);
            }
            pause(self.context, Duration::from_millis(20))?;
        }
        Ok(true)
    }

    /// How many clients are attached to a session.
    fn clients(&self, name: &str) -> usize {
        let list = Cmd::new("list-clients").args(["-F", "x", "-t"]).arg(format!("={name}:"));
        let replies = self.tmux.call(&[list]).ok().flatten().unwrap_or_default();
        let printed = replies.into_iter().next().and_then(|reply| reply.ok()).unwrap_or_default();
        printed.iter().filter(|byte| **byte == b'x').count()
    }

    /// A command on the server whose panes are the terminals.
    fn at_desk(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.env_clear().envs(self.stage.caller().env.iter()).env("TERM", "xterm-256color");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.desk).args(arguments);
        let output = run::output(&mut command)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("tmux {}: {}", arguments.first().unwrap_or(&""), said.trim())))
    }
}
