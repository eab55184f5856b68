//! `cargo xtask demo`: Lisa at work on scripted agents, without an account or a key.
//!
//! This file sets the stage (tmux, the programs, a private place); [`play`] runs the engine on it and shows what it
//! says in a [`table::Live`] table.

mod table;

use crate::{
    context::{Context, refuse_unknown},
    failure::{Failure, Result},
    progress::Progress,
    run::{self, Event},
    scratch::{self, Scratch},
    tools::{self, Release},
};
use std::{path::PathBuf, time::Duration};
use table::Live;

const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
/// The packages whose programs the demo runs.
const PACKAGES: &[&str] = &["lisa-mcp", "demo-agent"];

/// Everything that the demo needs, ready.
struct Stage {
    /// The folder of the programs that were built.
    programs: PathBuf,
    /// Where sessions keep their state and tmux its socket; gone at the end, with what runs there.
    scratch: Scratch,
}

/// `cargo xtask demo`.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    refuse_unknown(&words, &[])?;
    scratch::sweep(context);
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let programs = build(context)?;
    let stage = Stage { programs, scratch: Scratch::create(context, "demo")? };
    play(context, &stage, &mut Live::new(context.terminal))
}

/// Builds the programs, and says what cargo is at.
fn build(context: &Context) -> Result<PathBuf> {
    let mut cargo = context.cargo();
    cargo.args(["build", "--bins"]);
    for package in PACKAGES {
        cargo.args(["--package", package]);
    }
    let mut progress = Progress::start(context.terminal, "building Lisa");
    let mut said = Vec::new();
    let status = run::watch(context, cargo, BUILD_LIMIT, &mut |event| match event {
        Event::Line(line) => {
            progress.doing(line.trim());
            said.push(line.to_owned());
        }
        Event::Tick => progress.tick(),
    })?;
    if !status.success() {
        drop(progress);
        return Err(Failure::new(format!("Lisa does not build:\n{}", said.join("\n"))));
    }
    progress.finish("built Lisa");
    Ok(context.target.join("debug"))
}

/// Starts the agents on the stage and shows them until they are done.
fn play(context: &Context, stage: &Stage, live: &mut Live) -> Result<()> {
    context.go_on()?;
    live.say(&format!("programs: {}", context.short(&stage.programs)));
    live.say(&format!("a private place for the sessions: {}", context.short(stage.scratch.path())));
    live.draw(&[]);
    Err(Failure::new("the demo has no agents to show: no engine is connected to it"))
}
