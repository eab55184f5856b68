//! The developer commands of the workspace; `cargo xtask help` lists them.
//!
//! Nothing here is part of Lisa, and nothing here links it. What needs the engine is in `lisa-bench`, which these
//! commands build and run.

// A program whose job is to talk to whoever runs it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod ci;
mod docs;
mod fuzz;
mod setup;
mod test;
mod tidy;

use clap::{CommandFactory, Parser, Subcommand};
use lisa_dev::{
    arguments::{BenchArguments, RecordArguments},
    context::{self, Context},
    failure::{self, Result},
    progress, run, scratch, tools,
};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", about = "The developer commands of the workspace")]
struct Line {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build Lisa and watch it run a few scripted agents: no account, no key
    Demo,
    /// Run every check, or the groups named, and say how many passed
    Test(test::Arguments),
    /// Measure; a table for people, then one line of JSON
    Bench(BenchArguments),
    /// Feed every parser of foreign bytes with inputs that reach new code, 5 s each
    Fuzz(fuzz::Arguments),
    /// Record the real agents in every scenario, with the truth, and score the recordings
    Record(RecordArguments),
    /// Install what this machine lacks: tmux, nu, node and the pinned agents
    Setup(setup::Arguments),
    /// Write the generated parts of the documentation
    Docs(docs::Arguments),
    /// Run what the build server runs, as strictly as it does
    Ci(ci::Arguments),
}

fn main() -> ExitCode {
    let line = match Line::try_parse() {
        Ok(line) => line,
        Err(error) => {
            // A terminal that went away is noticed elsewhere.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    match run_command(line.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(text) = failure.text() {
                eprintln!("{text}");
            }
            failure.exit_code()
        }
    }
}

fn run_command(command: Option<Command>) -> Result<()> {
    let Some(command) = command else {
        print!("{}", Line::command().render_help());
        return Ok(());
    };
    let context = Context::new()?;
    match command {
        Command::Demo => bench::demo(&context),
        Command::Test(arguments) => test::command(&context, &arguments),
        Command::Bench(arguments) => bench::bench(&context, &arguments),
        Command::Fuzz(arguments) => fuzz::command(&context, &arguments),
        Command::Record(arguments) => bench::record(&context, &arguments),
        Command::Setup(arguments) => setup::command(&context, &arguments),
        Command::Docs(arguments) => docs::command(&context, &arguments),
        Command::Ci(arguments) => ci::command(&context, &arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Line::command().debug_assert();
    }
}
