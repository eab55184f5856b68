//! `cargo xtask fuzz`: coverage-guided fuzzing of every parser of foreign bytes, on the stable toolchain.
//!
//! The targets are one list in `lisa_engine::fuzz` (and one in `lisa_mcp::fuzz`). The package in `fuzz/` makes one
//! libFuzzer program of them; it is built with coverage counters, which the compiler inserts without a sanitizer.

mod build;
mod page;
mod report;
mod target;

use crate::{
    context::Context,
    failure::{Failure, Result},
    scratch::{self, Scratch},
};
use build::Fuzzer;
pub(crate) use report::Figures;
use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The directory of the fuzzer: its package, corpora, dictionaries and failures.
const HOME: &str = "fuzz";

/// How much is run of each target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// As many inputs as this time allows.
    Time(Duration),
    /// So many inputs.
    Inputs(u64),
}

/// The arguments of `fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The targets to fuzz (default: all)
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long each target runs (default: 5)
    #[arg(long, value_name = "N", conflicts_with = "inputs", value_parser = above_zero)]
    seconds: Option<u64>,
    /// How many inputs each target gets, instead of a time
    #[arg(long, value_name = "N", value_parser = above_zero)]
    inputs: Option<u64>,
    /// Run only this input, for one target
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Write the figures into the documentation
    #[arg(long)]
    write: bool,
    /// List the targets
    #[arg(long)]
    list: bool,
}

impl Arguments {
    fn amount(&self) -> Amount {
        match self.inputs {
            Some(inputs) => Amount::Inputs(inputs),
            None => Amount::Time(Duration::from_secs(self.seconds.unwrap_or(5))),
        }
    }
}

fn above_zero(text: &str) -> std::result::Result<u64, String> {
    let number = text.replace('_', "").parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number above 0".to_owned())
}

/// `cargo xtask fuzz`.
pub(crate) fn command(context: &Context, arguments: &Arguments) -> Result<()> {
    let fuzzer = Fuzzer::build(context)?;
    let known = fuzzer.targets();
    if arguments.list {
        known.iter().for_each(|target| println!("{:14} {}", target.name, target.what));
        return Ok(());
    }
    if let Some(unknown) =
        arguments.targets.iter().find(|name| known.iter().all(|target| target.name != **name))
    {
        return Err(Failure::new(format!("there is no target `{unknown}`"))
            .hint("`cargo xtask fuzz --list` lists them"));
    }
    if let Some(input) = &arguments.replay {
        let [target] = arguments.targets.as_slice() else {
            return Err(
                Failure::new("`--replay` takes one target").hint("name the target that the input is for")
            );
        };
        return fuzzer.replay(context, target, input);
    }
    if arguments.write && !arguments.targets.is_empty() {
        return Err(
            Failure::new("`--write` needs figures of every target").hint("leave the names of targets out")
        );
    }
    let figures = fuzz(context, &fuzzer, &arguments.targets, arguments.amount())?;
    print!("{}", report::table(&figures));
    if arguments.write {
        let line: Vec<String> = env::args().skip(2).collect();
        page::write(context, &fuzzer, &figures, &line)?;
    }
    if figures.iter().any(|target| target.finding.is_some()) { Err(Failure::Reported) } else { Ok(()) }
}

/// Fuzzes targets one after the other; all of them if none is named.
fn fuzz(context: &Context, fuzzer: &Fuzzer, names: &[String], amount: Amount) -> Result<Vec<Figures>> {
    scratch::sweep(context);
    let scratch = Scratch::create(context, "fuzz")?;
    let chosen = fuzzer.targets().iter().filter(|target| names.is_empty() || names.contains(&target.name));
    chosen.map(|target| target::run(context, fuzzer, &target.name, amount, scratch.path())).collect()
}

/// Fuzzes every target for a moment, for the tests.
pub(crate) fn every_target(context: &Context, time: Duration) -> Result<Vec<Figures>> {
    fuzz(context, &Fuzzer::build(context)?, &[], Amount::Time(time))
}

/// Fails where nothing can be fuzzed on this machine, and says what to install.
pub(crate) fn check_machine() -> Result<()> {
    build::check_compiler()
}

/// Makes a directory with its parents.
fn make(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Failure::io("create", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn read(line: &str) -> Option<Arguments> {
        let words = std::iter::once("fuzz").chain(line.split_whitespace());
        Line::try_parse_from(words).ok().map(|line| line.arguments)
    }

    #[test]
    fn five_seconds_a_target_unless_a_time_or_a_number_is_given() {
        assert_eq!(read("").unwrap().amount(), Amount::Time(Duration::from_secs(5)));
        let given = read("screens --seconds 60 hooks --write").unwrap();
        assert_eq!((given.amount(), given.write), (Amount::Time(Duration::from_secs(60)), true));
        assert_eq!(given.targets, ["screens", "hooks"]);
        assert_eq!(read("--inputs 1_000_000").unwrap().amount(), Amount::Inputs(1_000_000));
    }

    #[test]
    fn a_wrong_amount_or_flag_runs_nothing() {
        for wrong in
            ["--seconds", "--seconds 0", "--inputs x", "--seconds 1 --inputs 1", "--replay", "--fast"]
        {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
