//! `cargo xtask test`: every check there is, group by group, and one line at the end that says how many passed.

mod groups;
mod outcome;
mod report;
mod sandbox;

use crate::{
    context::{Context, refuse_unknown},
    failure::{Failure, Result},
    fuzz,
    progress::{Progress, seconds},
    run::{self, Event},
    scratch, tidy,
    tools::{self, Ready, Release},
};
use groups::{GROUPS, Group, Work};
pub(crate) use groups::{TestFile, test_files};
use outcome::{Outcome, Reader};
use sandbox::Sandbox;
use std::{
    ffi::OsString,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// How long one group may take, builds included: a test that hangs is a failure, not an endless night.
const LIMIT: Duration = Duration::from_secs(45 * 60);

/// How long each fuzz target runs: a minute for all of them.
const FUZZ_TIME: Duration = Duration::from_secs(3);

/// What to run.
struct Plan {
    groups: Vec<&'static Group>,
    release: Release,
    filter: Vec<String>,
    /// Only this test file of the group; all of them if none is named.
    only: Option<&'static str>,
    /// Further variables for the tests.
    env: Vec<(&'static str, OsString)>,
}

/// The group that runs the real agents.
const AGENTS: &str = "agents";
/// Where tests of agents that nobody has recorded yet leave what they found.
const LATEST: &str = "agents-latest.md";

/// `cargo xtask test`.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<()> {
    if arguments.iter().any(|word| word == "--list") {
        for group in GROUPS {
            println!("{:12} {}", group.name, group.what);
        }
        return Ok(());
    }
    run_plan(context, &plan(arguments)?)
}

fn plan(arguments: &[String]) -> Result<Plan> {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let filter = arguments.get(end + 1..).unwrap_or_default().to_vec();
    let mut words: Vec<&str> = arguments.iter().take(end).map(String::as_str).collect();
    let release = Release::taken_from(&mut words)?;
    refuse_unknown(&words, &["--agents", "--list"])?;
    if let Some(unknown) = words.iter().find(|word| !GROUPS.iter().any(|group| group.name == **word)) {
        return Err(Failure::new(format!("there is no group `{unknown}`"))
            .hint("`cargo xtask test --list` lists them"));
    }
    let groups = GROUPS.iter().filter(|group| words.is_empty() || words.contains(&group.name)).collect();
    Ok(Plan { groups, release, filter, only: None, env: Vec::new() })
}

/// Plays the scenarios with real agents through the engine, one session for each, and has every session recorded below
/// a folder.
pub(crate) fn record(context: &Context, release: Release, folder: &Path) -> Result<()> {
    let plan = Plan {
        groups: GROUPS.iter().filter(|group| group.name == AGENTS).collect(),
        release,
        filter: vec!["through_the_engine".to_owned()],
        only: Some("agents_children"),
        env: vec![("LISA_TESTS_RECORD", folder.into())],
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
    let mut cargo = context.cargo();
    match group.work {
        Work::Tidy => return Ok(tidy::run(context)?.into()),
        Work::Check(arguments) => {
            cargo.args(arguments);
            return check(context, group, cargo);
        }
        Work::Fuzz => return fuzz_group(context, plan, group),
        Work::Unit => {
            cargo.args(["test", "--workspace", "--lib", "--bins"]);
        }
        Work::Files => {
            let files = test_files(&context.root)?;
            let mine: Vec<_> = files.iter().filter(|file| file.group == group.name).collect();
            if mine.is_empty() {
                return Ok(Outcome::skipped("it has no tests yet".to_owned()));
            }
            // By target name in the whole workspace, not by package: the choice of packages decides which features
            // the dependencies get, and a choice of their own for each group would build them again each time.
            cargo.args(["test", "--workspace"]);
            for file in mine.iter().filter(|file| plan.only.is_none_or(|only| only == file.name)) {
                cargo.args(["--test", &file.name]);
            }
        }
    }
    cargo_test(context, plan, group, cargo, &tools)
}

/// The corpora on an ordinary build, then some seconds of fuzzing for each target, which counts as one test.
fn fuzz_group(context: &Context, plan: &Plan, group: &Group) -> Result<Outcome> {
    let mut cargo = context.cargo();
    cargo.args(["test", "--workspace", "--features", "lisa-engine/fuzz,lisa-mcp/fuzz"]);
    let files = test_files(&context.root)?;
    for file in files.iter().filter(|file| file.group == group.name) {
        cargo.args(["--test", &file.name]);
    }
    let mut outcome = cargo_test(context, plan, group, cargo, &[])?;
    if let Err(failure) = fuzz::check_machine() {
        outcome.add(&Outcome::skipped(String::new()));
        outcome.notes.push(format!("skipped: {}", failure.line()));
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

/// One command that succeeds or fails as a whole.
fn check(context: &Context, group: &Group, command: Command) -> Result<Outcome> {
    let mut log = Log::create(context, group)?;
    let mut progress = Progress::start(context.terminal, format!("  {}", group.name));
    let status = run::watch(context, command, LIMIT, &mut |event| match event {
        Event::Line(line) => {
            log.line(line);
            progress.doing(line.trim());
        }
        Event::Tick => progress.tick(),
    })?;
    drop(progress);
    if status.success() {
        return Ok(Outcome { passed: 1, ..Outcome::default() });
    }
    log.show(context);
    Ok(Outcome::failed(format!("cargo ended with {status}")))
}

/// `cargo test`, built first with the caller's environment, then run with a private one.
fn cargo_test(
    context: &Context,
    plan: &Plan,
    group: &Group,
    cargo: Command,
    tools: &[Ready],
) -> Result<Outcome> {
    let mut log = Log::create(context, group)?;
    let mut steps = vec![again(context, &cargo, &["--no-run"])];
    if group.binaries {
        let mut build = context.cargo();
        build.args(["build", "--workspace", "--bins"]);
        steps.insert(0, build);
    }
    for step in steps {
        if !build(context, group, step, &mut log)? {
            log.show(context);
            return Ok(Outcome::failed("it does not build".to_owned()));
        }
    }

    let sandbox = Sandbox::create(context, group.name)?;
    let mut test = again(context, &cargo, &["--no-fail-fast", "--"]);
    test.args(&plan.filter);
    sandbox.confine(context, &mut test, tools);
    test.envs(plan.env.iter().map(|(name, value)| (name, value)));
    let newest = plan.release == Release::Latest && group.name == AGENTS;
    if newest {
        // A scenario that a new agent breaks is news, not a failure: all are played, and the table says what came of
        // each.
        test.env("LISA_TESTS_AGENTS", "latest");
        let _ = fs::remove_file(context.target.join(LATEST));
    }
    let mut reader = Reader::default();
    let mut progress = Progress::start(context.terminal, format!("  {} tests", group.name));
    let status = run::watch(context, test, LIMIT, &mut |event| match event {
        Event::Line(line) => {
            log.line(line);
            if let Some(file) = reader.line(line) {
                progress.say(&format!("  {file}"));
            }
            progress.doing(reader.doing());
        }
        Event::Tick => progress.tick(),
    });
    drop(progress);
    let left = sandbox.end();
    let mut outcome = reader.into_outcome(status?);
    if newest && outcome.failed > 0 {
        log.show(context);
        tell_as_news(&context.target.join(LATEST), outcome.failures_are_news())?;
    }
    if !left.is_empty() {
        outcome.fail(format!("left behind: {}", left.join(", ")));
    }
    if outcome.failed > 0 {
        log.show(context);
    }
    Ok(outcome)
}

/// Adds to what was found of the newest agents the tests that fail with them.
fn tell_as_news(path: &Path, failed: Vec<String>) -> Result<()> {
    let lines: String = failed.iter().map(|test| format!("- {test}\n")).collect();
    let found = fs::read_to_string(path).unwrap_or_default();
    let text = format!("{found}\n## Tests that fail with these versions\n\n{lines}");
    fs::write(path, text).map_err(|error| Failure::io("write", path, &error))
}

fn build(context: &Context, group: &Group, command: Command, log: &mut Log) -> Result<bool> {
    let mut progress = Progress::start(context.terminal, format!("  {} builds", group.name));
    let status = run::watch(context, command, LIMIT, &mut |event| match event {
        Event::Line(line) => {
            log.line(line);
            progress.doing(line.trim());
        }
        Event::Tick => progress.tick(),
    })?;
    Ok(status.success())
}

/// The same cargo command once more, with more arguments.
fn again(context: &Context, command: &Command, more: &[&str]) -> Command {
    let mut copy = context.cargo();
    copy.args(command.get_args()).args(more);
    copy
}

/// Everything that a group's programs wrote.
struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn create(context: &Context, group: &Group) -> Result<Self> {
        let folder = context.target.join("xtask-logs");
        let path = folder.join(format!("{}.log", group.name));
        let file = fs::create_dir_all(&folder).and_then(|()| File::create(&path));
        file.map(|file| Self { file, path: path.clone() })
            .map_err(|error| Failure::io("create", &path, &error))
    }

    fn line(&mut self, line: &str) {
        // A full disk fails the build soon enough.
        let _ = writeln!(self.file, "{line}");
    }

    fn show(&self, context: &Context) {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        for line in text.lines().filter(|line| report::worth_showing(line)) {
            println!("  | {line}");
        }
        println!("  | the whole of it is in {}", context.short(Path::new(&self.path)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn groups_run_in_the_order_of_the_table_whatever_the_order_asked() {
        let plan = plan(&words("engine fmt --agents latest -- one two")).ok().unwrap();
        assert_eq!(plan.groups.iter().map(|group| group.name).collect::<Vec<_>>(), ["fmt", "engine"]);
        assert_eq!((plan.release, plan.filter), (Release::Latest, words("one two")));
    }

    #[test]
    fn no_group_means_all_of_them() {
        assert_eq!(plan(&[]).ok().unwrap().groups.len(), GROUPS.len());
    }

    #[test]
    fn a_misspelt_group_or_flag_runs_nothing() {
        assert!(plan(&words("engin")).err().unwrap().line().contains("no group `engin`"));
        assert!(plan(&words("--fast")).err().unwrap().line().contains("no flag"));
        assert!(plan(&words("--agents newest")).is_err());
    }
}
