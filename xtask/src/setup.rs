//! `cargo xtask setup`: what this machine lacks.

use crate::{
    context::Context,
    failure::{Failure, Result},
    tools::{Release, TOOLS, find},
};
use clap::builder::PossibleValuesParser;

/// The arguments of `setup`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// The tools to install (default: all)
    #[arg(value_name = "TOOL", value_parser = PossibleValuesParser::new(TOOLS.iter().map(|tool| tool.name)))]
    tools: Vec<String>,
    /// List the tools and their versions
    #[arg(long)]
    list: bool,
}

/// `cargo xtask setup`.
pub(crate) fn command(context: &Context, arguments: &Arguments) -> Result<()> {
    if arguments.list {
        for tool in TOOLS {
            println!("{:7} {:8} {}", tool.name, tool.wanted(), tool.what);
        }
        return Ok(());
    }
    let chosen = match arguments.tools.as_slice() {
        [] => TOOLS.iter().collect(),
        names => names.iter().map(|name| find(name)).collect::<Result<Vec<_>>>()?,
    };
    let mut missing = 0;
    for tool in chosen {
        match tool.ensure(context, Release::Pinned) {
            Ok(ready) => println!("{:7} {}  {}", ready.name, ready.version, context.short(&ready.program)),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => {
                missing += 1;
                println!("{:7} missing: {}", tool.name, failure.line());
            }
        }
    }
    if missing == 0 { Ok(()) } else { Err(Failure::Reported) }
}
