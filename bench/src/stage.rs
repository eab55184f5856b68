//! A private place for Lisa to run in: its own state, tmux server and home, and the programs that were built for it.
//!
//! Nothing here sees the user's sessions, and nothing of it is left when it is dropped.

use crate::{context::Context, failure::Result, run, scratch::Scratch};
use lisa_engine::{api::SpawnRequest, config::Environment, engine::Engine, watch::Caller};
use std::{
    env,
    path::{Path, PathBuf},
};

/// Programs to build before the curtain rises.
pub(crate) struct Programs {
    /// The packages whose programs are needed.
    pub(crate) packages: &'static [&'static str],
    /// The one that panes and hooks run, with what comes before its own arguments.
    pub(crate) helper: &'static [&'static str],
    /// Whether they are built as they would ship.
    pub(crate) release: bool,
}

/// A private place, and how to call the engine in it.
pub(crate) struct Stage {
    caller: Caller,
    /// Ends what runs here, and removes it.
    scratch: Scratch,
}

impl Stage {
    /// Builds the programs and makes the place.
    pub(crate) fn set(context: &Context, label: &str, programs: &Programs) -> Result<Self> {
        let directory = build(context, programs)?;
        let scratch = Scratch::create(context, label)?;
        let home = scratch.directory("h")?;
        let helper = programs.helper.iter().enumerate().map(|(at, word)| match at {
            0 => directory.join(word).display().to_string(),
            _ => (*word).to_owned(),
        });
        let caller =
            Caller { env: environment(&scratch, &home), cwd: home, helper: helper.collect(), policy: None };
        Ok(Self { caller, scratch })
    }

    /// Who calls the engine here.
    pub(crate) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// The engine of a process that stays.
    pub(crate) fn engine(&self) -> Result<Engine> {
        Ok(Engine::open_resident(self.caller())?)
    }

    /// The socket of the private tmux server.
    pub(crate) fn socket(&self) -> PathBuf {
        self.scratch.path().join("tmux")
    }

    /// A file in the private place.
    pub(crate) fn file(&self, below: &str) -> PathBuf {
        self.scratch.path().join(below)
    }

    /// A file in a session's own directory.
    pub(crate) fn session_file(&self, session: &str, name: &str) -> PathBuf {
        self.file("l").join("sessions").join(session).join(name)
    }
}

/// A request for a demo agent.
pub(crate) fn demo_agent(name: &str) -> SpawnRequest {
    SpawnRequest {
        agent: "demo".to_owned(),
        name: Some(name.to_owned()),
        wait_ready_s: Some(20.0),
        ..SpawnRequest::default()
    }
}

fn environment(scratch: &Scratch, home: &Path) -> Environment {
    let below = |name: &str| scratch.path().join(name).into_os_string();
    Environment::from_pairs([
        ("PATH", env::var_os("PATH").unwrap_or_default()),
        ("HOME", home.as_os_str().to_owned()),
        ("LANG", if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" }.into()),
        ("LISA_STATE_DIR", below("l")),
        ("LISA_CONFIG_DIR", below("c")),
        ("LISA_TMUX_SOCKET", below("tmux")),
        ("LISA_MAX_SESSIONS", "2000".into()),
    ])
}

/// Builds the programs, says what cargo is at, and gives back the directory they are in.
fn build(context: &Context, programs: &Programs) -> Result<PathBuf> {
    let mut cargo = context.cargo();
    cargo.args(["build", "--bins"]);
    for package in programs.packages {
        cargo.args(["--package", package]);
    }
    if programs.release {
        cargo.arg("--release");
    }
    run::through(context, cargo, run::BUILD_LIMIT, "building Lisa")?;
    Ok(context.target.join(if programs.release { "release" } else { "debug" }))
}
