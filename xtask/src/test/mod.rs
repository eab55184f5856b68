//! `cargo xtask test`: every check there is, group by group, and one line at the end that says how many passed.

mod cargo;
mod groups;
mod outcome;
mod report;
mod sandbox;

use crate::{
    context::Context,
    failure::{Failure, Result},
    fuzz,
    progress::seconds,
    scratch, tidy,
    tools::{self, Release},
};
use clap::builder::PossibleValuesParser;
use groups::{GROUPS, Group, Work};
pub(crate) use groups::{TestFile, test_files};
use outcome::Outcome;
use std::{
    ffi::OsString,
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// How long each fuzz target runs: a minute for all of them.
const FUZZ_TIME: Duration = Duration::from_secs(3);

/// The arguments of `test`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// The groups to run (default: all)
    #[arg(value_name = "GROUP", value_parser = PossibleValuesParser::new(GROUPS.iter().map(|group| group.name)))]
    groups: Vec<String>,
    /// Which versions of the agents to run
    #[arg(long, value_enum, default_value_t)]
    agents: Release,
    /// List the groups
    #[arg(long)]
    list: bool,
    /// Only tests with one of these in their name, and options of Rust's test harness
    #[arg(last = true)]
    filter: Vec<String>,
}

/// What to run.
struct Plan {
    groups: Vec<&'static Group>,
    release: Release,
    filter: Vec<String>,
    /// Further variables for the tests.
    env: Vec<(&'static str, OsString)>,
}

/// The group that runs the real agents.
const AGENTS: &str = "agents";
/// Where tests of agents that nobody has recorded yet leave what they found.
const LATEST: &str = "agents-latest.md";

/// `cargo xtask test`.
pub(crate) fn command(context: &Context, arguments: &Arguments) -> Result<()> {
    if arguments.list {
        for group in GROUPS {
            println!("{:12} {}", group.name, group.what);
        }
        return Ok(());
    }
    run_plan(context, &plan(arguments))
}

fn plan(arguments: &Arguments) -> Plan {
    let asked = |group: &&Group| {
        arguments.groups.is_empty() || arguments.groups.iter().any(|name| name == group.name)
    };
    Plan {
        groups: GROUPS.iter().filter(asked).collect(),
        release: arguments.agents,
        filter: arguments.filter.clone(),
        env: Vec::new(),
    }
}

/// Plays the scenarios with real agents through the engine, one session for each, and has every session recorded below
/// a directory.
pub(crate) fn record(context: &Context, release: Release, directory: &Path) -> Result<()> {
    let plan = Plan {
        groups: GROUPS.iter().filter(|group| group.name == AGENTS).collect(),
        release,
        filter: vec!["through_the_engine".to_owned()],
        env: vec![("LISA_TESTS_RECORD", directory.into())],
    };
    run_plan(context, &plan)
}

fn run_plan(context: &Context, plan: &Plan) -> Result<()> {
    scratch::sweep(context);
    let mut done = Vec::new();
    for group in &plan.groups {
        println!("{:12} {}", group.name, group.what);
        let started = Instant::now();
        let mut outcome = run_group(context, plan, group).or_else(|failure| match failure {
            Failure::Interrupted => Err(failure),
            other => Ok(Outcome::failed(other.line())),
        })?;
        if context.strict {
            outcome.skips_are_failures();
        }
        println!("  {}, {}", outcome.line(), seconds(started.elapsed()));
        done.push((group.name, outcome, started.elapsed()));
    }
    print!("{}", report::summary(&done));
    if let (Release::Latest, Ok(found)) = (plan.release, fs::read_to_string(context.target.join(LATEST))) {
        println!("\n{found}\n{}", context.short(&context.target.join(LATEST)));
    }
    if done.iter().any(|(_, outcome, _)| outcome.failed > 0) { Err(Failure::Reported) } else { Ok(()) }
}

fn run_group(context: &Context, plan: &Plan, group: &Group) -> Result<Outcome> {
    let mut tools = Vec::new();
    for name in group.needs {
        match tools::find(name)?.ensure(context, plan.release) {
            Ok(ready) => tools.push(ready),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => return Ok(Outcome::skipped(failure.line())),
        }
    }
    let mut command = context.cargo();
    match group.work {
        Work::Tidy => return Ok(tidy::run(context)?.into()),
        Work::Check(arguments) => {
            command.args(arguments);
            return cargo::check(context, group, command);
        }
        Work::Fuzz => return fuzz_group(context, plan, group),
        Work::Unit => {
            command.args(["test", "--workspace", "--lib", "--bins"]);
        }
        Work::Files => {
            let files = test_files(&context.root)?;
            let mine: Vec<_> = files.iter().filter(|file| file.group == group.name).collect();
            if mine.is_empty() {
                return Ok(Outcome::skipped("it has no tests yet".to_owned()));
            }
            // By target name in the whole workspace, not by package: the choice of packages decides which features
            // the dependencies get, and a choice of their own for each group would build them again each time.
            command.args(["test", "--workspace"]);
            let chosen = mine.iter().filter(|file| file.may_have(&context.root, &plan.filter));
            let names: Vec<&str> = chosen.map(|file| file.name.as_str()).collect();
            if names.is_empty() {
                return Ok(Outcome::default());
            }
            for name in names {
                command.args(["--test", name]);
            }
        }
    }
    cargo::test(context, plan, group, command, &tools)
}

/// The corpora on an ordinary build, then some seconds of fuzzing for each target, which counts as one test.
fn fuzz_group(context: &Context, plan: &Plan, group: &Group) -> Result<Outcome> {
    let mut command = context.cargo();
    command.args(["test", "--workspace", "--features", "lisa-engine/fuzz,lisa-mcp/fuzz"]);
    let files = test_files(&context.root)?;
    for file in files.iter().filter(|file| file.group == group.name) {
        command.args(["--test", &file.name]);
    }
    let mut outcome = cargo::test(context, plan, group, command, &[])?;
    if let Err(failure) = fuzz::check_machine() {
        outcome.add(&Outcome::skipped(failure.line()));
        return Ok(outcome);
    }
    for figures in fuzz::every_target(context, FUZZ_TIME)? {
        match figures.finding {
            None => outcome.passed += 1,
            Some(_) => outcome.fail(format!("fuzz/failures/{} has an input that fails", figures.target)),
        }
    }
    Ok(outcome)
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

    fn read(line: &str) -> std::result::Result<Plan, String> {
        let words = std::iter::once("test").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| plan(&line.arguments)).map_err(|error| error.to_string())
    }

    #[test]
    fn groups_run_in_the_order_of_the_table_whatever_the_order_asked() {
        let plan = read("engine fmt --agents latest -- one two").ok().unwrap();
        assert_eq!(plan.groups.iter().map(|group| group.name).collect::<Vec<_>>(), ["fmt", "engine"]);
        assert_eq!((plan.release, plan.filter), (Release::Latest, vec!["one".to_owned(), "two".to_owned()]));
    }

    #[test]
    fn no_group_means_all_of_them() {
        assert_eq!(read("").ok().unwrap().groups.len(), GROUPS.len());
    }

    #[test]
    fn a_misspelt_group_or_flag_runs_nothing() {
        assert!(read("engin").err().unwrap().contains("'engine'"));
        assert!(read("--fast").is_err());
        assert!(read("--agents newest").is_err());
    }
}
