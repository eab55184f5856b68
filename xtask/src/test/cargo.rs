//! Running cargo for a group, and keeping what it wrote.

use super::{
    AGENTS, LATEST, Plan,
    groups::{AGENTS_TABLE, Group},
    outcome::{Outcome, Reader},
    report,
    sandbox::Sandbox,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    run::{self, Event},
    tools::{Ready, Release},
};
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{self, Command},
    time::Duration,
};

/// How long one group may take, builds included: a test that hangs is a failure, not an endless night.
const LIMIT: Duration = Duration::from_secs(45 * 60);

/// The file in a group's sandbox that tests add their names to when they are skipped.
const SKIPPED: &str = "skipped";

/// One command that succeeds or fails as a whole.
pub(super) fn check(context: &Context, group: &Group, command: Command) -> Result<Outcome> {
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
pub(super) fn test(
    context: &Context,
    plan: &Plan,
    group: &Group,
    cargo: Command,
    tools: &[Ready],
) -> Result<Outcome> {
    let mut log = Log::create(context, group)?;
    let mut steps = vec![again(context, &cargo, &["--no-run"])];
    if !group.programs.is_empty() {
        let mut build = context.cargo();
        build.args(["build", "--workspace"]);
        for program in group.programs {
            build.args(["--bin", program]);
        }
        steps.insert(0, build);
    }
    for step in steps {
        if !build(context, group, step, &mut log)? {
            log.show(context);
            return Ok(Outcome::failed("it does not build".to_owned()));
        }
    }

    let sandbox = Sandbox::create(context, group.name)?;
    let newest = plan.release == Release::Latest && group.name == AGENTS;
    let confined = |command: &mut Command| {
        sandbox.confine(context, command, tools);
        command.envs(plan.env.iter().map(|(name, value)| (name, value)));
        command.env("LISA_TEST_SKIPPED", sandbox.file(SKIPPED));
        command.env("LISA_TESTS_RUN", process::id().to_string());
        if newest {
            // A scenario that a new agent breaks is news, not a failure: all are played, and the table says what came of
            // each.
            command.env("LISA_TESTS_AGENTS", "latest");
        }
    };
    if newest {
        let _ = fs::remove_file(context.target.join(LATEST));
    }
    let mut test = again(context, &cargo, &["--no-fail-fast", "--"]);
    test.args(&plan.filter);
    confined(&mut test);
    let mut outcome = watched(context, group, test, &mut log)?;
    let skipped = fs::read_to_string(sandbox.file(SKIPPED)).unwrap_or_default();
    skipped.lines().for_each(|test| outcome.skip(test));
    if group.name == AGENTS && plan.filter.is_empty() {
        let mut table = Command::new(context.target.join("debug").join(AGENTS_TABLE));
        confined(&mut table);
        agents_table(table, &mut outcome, &mut log)?;
    }
    let left = sandbox.end();
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

/// Runs tests, and reads what comes of them.
fn watched(context: &Context, group: &Group, test: Command, log: &mut Log) -> Result<Outcome> {
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
    })?;
    Ok(reader.into_outcome(status))
}

/// Compares what all scenarios together have shown with what is published; it counts as one test.
fn agents_table(mut command: Command, outcome: &mut Outcome, log: &mut Log) -> Result<()> {
    let output = run::output(&mut command)?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    said.lines().for_each(|line| log.line(line));
    match output.status.code() {
        Some(0) => outcome.passed += 1,
        Some(2) => outcome.add(&Outcome::skipped(said.trim().to_owned())),
        _ => outcome.fail("docs/agents.md is not what this run has found".to_owned()),
    }
    Ok(())
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
        let directory = context.target.join("xtask-logs");
        let path = directory.join(format!("{}.log", group.name));
        let file = fs::create_dir_all(&directory).and_then(|()| File::create(&path));
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
