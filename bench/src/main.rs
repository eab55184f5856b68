//! What runs the engine for developers: the benches, the demo, and the scores of recordings.
//!
//! `cargo xtask bench`, `demo` and `record` build it and run it.

// A program whose job is to talk to whoever runs it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod benches;
mod demo;
mod failure;
mod record;
mod stage;

use clap::{Parser, Subcommand};
use failure::Result;
use lisa_dev::{
    arguments::BenchArguments,
    context::{self, Context},
    progress, run, scratch, tools,
};
use std::{path::PathBuf, process::ExitCode};

#[derive(Debug, Parser)]
#[command(about = "Benches, the demo, and the scores of recordings")]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure; a table for people, then one line of JSON
    Bench(BenchArguments),
    /// Watch Lisa run a few scripted agents: no account, no key
    Demo,
    /// Score the recordings below a directory, and compare them with those in `tests/recordings`
    Record {
        /// The directory
        directory: PathBuf,
    },
    /// Be a process that does nothing but watch, for the benches
    #[command(hide = true)]
    Watch {
        /// Print the cursor of each event, from the journal's beginning on
        #[arg(long)]
        follow: bool,
        /// The helper that panes and hooks run
        helper: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run_command(Line::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(text) = failure.0.text() {
                eprintln!("{text}");
            }
            failure.0.exit_code()
        }
    }
}

fn run_command(command: Command) -> Result<()> {
    let context = Context::new()?;
    match command {
        Command::Bench(arguments) => benches::command(&context, &arguments),
        Command::Demo => demo::command(&context),
        Command::Record { directory } => record::command(&context, &directory),
        Command::Watch { follow, helper } => benches::watch(follow, &helper),
    }
}
