//! `lisa-demo-agent`: see [`demo_agent`] and `--help`.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use demo_agent::{args::Args, start};

fn main() -> ExitCode {
    match start::run(Args::parse()) {
        Ok(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "lisa-demo-agent: {message}");
            ExitCode::FAILURE
        }
    }
}
