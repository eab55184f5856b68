//! `cargo xtask fuzz`: coverage-guided fuzzing of every parser of foreign bytes, on the stable toolchain.
//!
//! The targets are one list in `lisa_engine::fuzz` (and one in `lisa_mcp::fuzz`). The package in `fuzz/` makes one
//! libFuzzer program of them; it is built with coverage counters, which the compiler inserts without a sanitizer.

mod build;
mod page;
mod report;
mod target;

use crate::{
    context::{Context, refuse_unknown},
    failure::{Failure, Result},
    scratch::{self, Scratch},
};
use build::Fuzzer;
pub(crate) use report::Figures;
use std::{fs, path::Path, time::Duration};

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

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    targets: Vec<String>,
    amount: Amount,
    /// Whether the figures go into the documentation.
    write: bool,
    /// Only this input is run.
    replay: Option<String>,
    list: bool,
}

/// `cargo xtask fuzz`.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<()> {
    let options = read(arguments)?;
    let fuzzer = Fuzzer::build(context)?;
    let known = fuzzer.targets();
    if options.list {
        known.iter().for_each(|target| println!("{:14} {}", target.name, target.what));
        return Ok(());
    }
    if let Some(unknown) =
        options.targets.iter().find(|name| known.iter().all(|target| target.name != **name))
    {
        return Err(Failure::new(format!("there is no target `{unknown}`"))
            .hint("`cargo xtask fuzz --list` lists them"));
    }
    if let Some(input) = &options.replay {
        let [target] = options.targets.as_slice() else {
            return Err(
                Failure::new("`--replay` takes one target").hint("name the target that the input is for")
            );
        };
        return fuzzer.replay(context, target, Path::new(input));
    }
    if options.write && !options.targets.is_empty() {
        return Err(
            Failure::new("`--write` needs figures of every target").hint("leave the names of targets out")
        );
    }
    let figures = fuzz(context, &fuzzer, &options.targets, options.amount)?;
    print!("{}", report::table(&figures));
    if options.write {
        page::write(context, &fuzzer, &figures, arguments)?;
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

fn read(arguments: &[String]) -> Result<Options> {
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut number = |flag: &str| -> Result<Option<u64>> {
        let Some(at) = words.iter().position(|word| *word == flag) else { return Ok(None) };
        let value = words.get(at + 1).and_then(|value| value.replace('_', "").parse().ok());
        words.drain(at..words.len().min(at + 2));
        let wrong = || Failure::new(format!("`{flag}` takes a whole number above 0"));
        value.filter(|number| *number > 0).map(Some).ok_or_else(wrong)
    };
    let amount = match (number("--seconds")?, number("--inputs")?) {
        (Some(_), Some(_)) => return Err(Failure::new("give either `--seconds` or `--inputs`")),
        (Some(seconds), None) => Amount::Time(Duration::from_secs(seconds)),
        (None, Some(inputs)) => Amount::Inputs(inputs),
        (None, None) => Amount::Time(Duration::from_secs(5)),
    };
    let mut replay = None;
    if let Some(at) = words.iter().position(|word| *word == "--replay") {
        let input = words.get(at + 1).ok_or_else(|| Failure::new("`--replay` takes the path of an input"))?;
        replay = Some((*input).to_owned());
        words.drain(at..at + 2);
    }
    refuse_unknown(&words, &["--seconds", "--inputs", "--replay", "--write", "--list"])?;
    Ok(Options {
        targets: words.iter().filter(|word| !word.starts_with('-')).map(|word| (*word).to_owned()).collect(),
        amount,
        write: words.contains(&"--write"),
        replay,
        list: words.contains(&"--list"),
    })
}

/// Makes a directory with its parents.
fn make(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Failure::io("create", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options> {
        read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn five_seconds_a_target_unless_a_time_or_a_number_is_given() {
        assert_eq!(options("").unwrap().amount, Amount::Time(Duration::from_secs(5)));
        let given = options("screens --seconds 60 hooks --write").unwrap();
        assert_eq!((given.amount, given.write), (Amount::Time(Duration::from_secs(60)), true));
        assert_eq!(given.targets, ["screens", "hooks"]);
        assert_eq!(options("--inputs 1_000_000").unwrap().amount, Amount::Inputs(1_000_000));
    }

    #[test]
    fn a_wrong_amount_or_flag_runs_nothing() {
        for wrong in
            ["--seconds", "--seconds 0", "--inputs x", "--seconds 1 --inputs 1", "--replay", "--fast"]
        {
            assert!(options(wrong).is_err(), "{wrong}");
        }
    }
}
