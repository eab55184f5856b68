//! `cargo xtask bench`, `demo` and `record`: what needs the engine is a program of its own, built here and run.

use crate::{
    context::Context,
    failure::{Failure, Result},
    run, test,
};
use lisa_dev::{
    arguments::{Bench, BenchArguments, RecordArguments},
    recordings,
};
use std::{
    env, fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

/// `cargo xtask bench`: figures of a debug build mislead, so it is built as it would ship.
pub(crate) fn bench(context: &Context, arguments: &BenchArguments) -> Result<()> {
    if arguments.list {
        for bench in Bench::all() {
            println!("{:8} {}", bench.name(), bench.what());
        }
        return Ok(());
    }
    let program = build(context, "building what is measured, optimised", &["--release"])?;
    // The words as they were given: this program has only checked them.
    become_it(&program, Command::new(&program).args(env::args_os().skip(1)))
}

/// `cargo xtask demo`.
pub(crate) fn demo(context: &Context) -> Result<()> {
    let program = build(context, "building the demo", &[])?;
    become_it(&program, Command::new(&program).arg("demo"))
}

/// `cargo xtask record`: a new version of an agent is this command away from new data.
///
/// The scenarios of the end-to-end tests are played with the real agents, one session for each. What Lisa observes is
/// written down with the truth that the scripted model knows; then the recordings are scored.
pub(crate) fn record(context: &Context, arguments: &RecordArguments) -> Result<()> {
    let directory = match &arguments.directory {
        None => context.target.join("recordings"),
        Some(directory) => {
            std::path::absolute(directory).map_err(|error| Failure::io("find", directory, &error))?
        }
    };
    fs::create_dir_all(&directory).map_err(|error| Failure::io("create", &directory, &error))?;
    for old in recordings::plain(&directory) {
        fs::remove_file(&old).map_err(|error| Failure::io("remove", &old, &error))?;
    }
    let program = build(context, "building what scores recordings, optimised", &["--release"])?;
    // A scenario that fails leaves a recording all the same, and that is the one worth looking at.
    let played = test::record(context, arguments.agents, &directory);
    let scored = run::output(Command::new(&program).arg("record").arg(&directory))?;
    print!("{}", String::from_utf8_lossy(&scored.stdout));
    if !scored.status.success() {
        return Err(Failure::new(String::from_utf8_lossy(&scored.stderr).trim().to_owned()));
    }
    played
}

/// Builds `lisa-bench`, and says where it is.
fn build(context: &Context, doing: &str, flags: &[&str]) -> Result<PathBuf> {
    let mut cargo = context.cargo();
    cargo.args(["build", "--package", "lisa-bench"]).args(flags);
    run::through(context, cargo, run::BUILD_LIMIT, doing)?;
    let profile = if flags.contains(&"--release") { "release" } else { "debug" };
    Ok(context.target.join(profile).join("lisa-bench"))
}

/// Goes on as another program, with this one's terminal and process id.
fn become_it(program: &Path, command: &mut Command) -> Result<()> {
    let error = command.exec();
    Err(Failure::io("run", program, &error))
}
