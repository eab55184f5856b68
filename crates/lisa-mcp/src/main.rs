//! `lisa-mcp`: the MCP server and its subcommands.

use clap::Parser;
use lisa_engine::error::{Error, Result};
use lisa_mcp::{
    cli::{Cli, Command},
    commands, install, log, serve,
};
use std::{
    ffi::{OsStr, OsString},
    io,
    process::ExitCode,
};

fn main() -> ExitCode {
    // Before any other setup: agents block on these calls, so they must return within about a millisecond.
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    match first.as_deref().and_then(OsStr::to_str) {
        Some("helper") => return lisa_engine::helper::main(args),
        Some("hook") => {
            // A hook that fails could fail the agent, so errors are ignored.
            let _ = lisa_engine::helper::main(std::iter::once(OsString::from("hook")).chain(args));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let cli = Cli::parse();
    log::start(std::env::var("LISA_LOG").ok().as_deref().filter(|filter| !filter.is_empty()));
    match dispatch(&cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            log::notice(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn dispatch(cli: &Cli) -> Result<u8> {
    let mut out = io::stdout().lock();
    match &cli.command {
        None => {
            drop(out);
            serve::run(cli).map(|()| 0)
        }
        Some(Command::Doctor { trace }) => {
            let fine = commands::doctor(&serve::open_engine(&cli.policy)?, *trace, &mut out)
                .map_err(|error| Error::io("write", std::path::Path::new("standard output"), &error))?;
            Ok(u8::from(!fine))
        }
        Some(Command::Install(flags)) => install::run(flags, &mut out),
        Some(Command::Replay { file, full }) => {
            commands::replay(&serve::open_engine(&cli.policy)?, file.as_deref(), *full, &mut out).map(|()| 0)
        }
        Some(Command::Record { name, seconds }) => {
            let frames = commands::record(&serve::open_engine(&cli.policy)?, name, *seconds, &mut out)?;
            log::notice(&format!("{frames} frames recorded"));
            Ok(0)
        }
        // Handled in `main` before the command line is parsed; declared only for the help text.
        Some(Command::Hook { .. } | Command::Helper { .. }) => Ok(0),
    }
}
