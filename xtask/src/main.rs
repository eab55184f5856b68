//! The developer commands of the workspace; `cargo xtask help` lists them.
//!
//! Nothing here is part of Lisa. It sets a machine up, runs every check there is, measures, and shows Lisa at work.

// The one crate whose job is to talk to whoever runs it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod ci;
mod context;
mod demo;
mod docs;
mod failure;
mod fuzz;
mod progress;
mod record;
mod run;
mod scratch;
mod stage;
mod test;
mod tidy;
mod tools;

use context::Context;
use failure::{Failure, Result};
use std::process::ExitCode;

/// One developer command.
struct Command {
    name: &'static str,
    arguments: &'static str,
    what: &'static str,
    run: fn(&Context, &[String]) -> Result<()>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "demo",
        arguments: "",
        what: "build Lisa and watch it run a few scripted agents: no account, no key",
        run: demo::command,
    },
    Command {
        name: "test",
        arguments: "[GROUP…] [--agents latest] [--list] [-- FILTER…]",
        what: "run every check, or the groups named, and say how many passed",
        run: test::command,
    },
    Command {
        name: "bench",
        arguments: "[NAME…] [--sessions N,N,…] [--minutes N] [--list]",
        what: "measure; a table for people, then one line of JSON",
        run: bench::command,
    },
    Command {
        name: "fuzz",
        arguments: "[TARGET…] [--seconds N | --inputs N] [--replay FILE] [--write] [--list]",
        what: "feed every parser of foreign bytes with inputs that reach new code, 5 s each",
        run: fuzz::command,
    },
    Command {
        name: "record",
        arguments: "[FOLDER] [--agents latest]",
        what: "record the real agents in every scenario, with the truth, and score the recordings",
        run: record::command,
    },
    Command {
        name: "setup",
        arguments: "[TOOL…] [--list]",
        what: "install what this machine lacks: tmux, nu, node and the pinned agents",
        run: tools::command,
    },
    Command {
        name: "docs",
        arguments: "[--check]",
        what: "write the generated parts of the documentation",
        run: docs::command,
    },
    Command {
        name: "ci",
        arguments: "[--list]",
        what: "run what the build server runs, as strictly as it does",
        run: ci::command,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(text) = failure.text() {
                eprintln!("{text}");
            }
            failure.exit_code()
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let name = arguments.first().map_or("help", String::as_str);
    if matches!(name, "help" | "--help" | "-h") {
        print!("{}", help());
        return Ok(());
    }
    let command = COMMANDS.iter().find(|command| command.name == name).ok_or_else(|| {
        Failure::new(format!("there is no command `{name}`")).hint("`cargo xtask help` lists them")
    })?;
    let rest = arguments.get(1..).unwrap_or_default();
    if rest.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h") {
        println!("cargo xtask {} {}\n  {}", command.name, command.arguments, command.what);
        return Ok(());
    }
    (command.run)(&Context::new()?, rest)
}

fn help() -> String {
    let mut text = String::from("cargo xtask COMMAND\n\n");
    for command in COMMANDS {
        text += &format!("  {:6} {}\n         {}\n", command.name, command.arguments, command.what);
    }
    text
}
