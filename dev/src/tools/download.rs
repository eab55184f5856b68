//! Downloads, which fail now and then for a reason that is gone a moment later.

use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::{Progress, seconds},
    run::{self, Event},
};
use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// How long one attempt may take.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// How long to wait before each further attempt.
const PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30)];
/// How much of what a failed attempt wrote is shown.
const LINES_SHOWN: usize = 12;

/// A package manager at work.
pub(super) struct Download<'a> {
    context: &'a Context,
    doing: String,
    pauses: &'a [Duration],
}

impl<'a> Download<'a> {
    /// A download that is called this while it goes on.
    pub(super) fn new(context: &'a Context, doing: impl Into<String>) -> Self {
        Self { context, doing: doing.into(), pauses: &PAUSES }
    }

    /// Runs the command that `make` gives, anew for each attempt, until one succeeds, and gives back what it wrote.
    /// `done` is what to say then.
    pub(super) fn run(&self, done: Option<&str>, make: impl Fn() -> Command) -> Result<Vec<String>> {
        let mut pauses = self.pauses.iter();
        loop {
            let mut progress = Progress::start(self.context.terminal, self.doing.as_str());
            let mut said = Vec::new();
            let status = run::watch(self.context, make(), LIMIT, &mut |event| match event {
                Event::Line(line) => said.push(line.to_owned()),
                Event::Tick => progress.tick(),
            })?;
            if status.success() {
                if let Some(done) = done {
                    progress.finish(done);
                }
                return Ok(said);
            }
            let Some(pause) = pauses.next() else {
                let attempts = self.pauses.len() + 1;
                let doing = &self.doing;
                return Err(Failure::new(format!(
                    "{doing} failed {attempts} times, at last with {status}:\n{}",
                    reason(&said)
                )));
            };
            progress.say(&format!("  {status}, once more in {}:\n{}", seconds(*pause), reason(&said)));
            self.wait(*pause, &mut progress)?;
        }
    }

    fn wait(&self, pause: Duration, progress: &mut Progress) -> Result<()> {
        let started = Instant::now();
        while let Some(left) = pause.checked_sub(started.elapsed()) {
            self.context.go_on()?;
            progress.tick();
            thread::sleep(left.min(Duration::from_millis(100)));
        }
        self.context.go_on()
    }
}

/// What a package manager says of its failure, without the empty lines and the place of its log, which goes away with
/// the machine.
fn reason(said: &[String]) -> String {
    let kept = said.iter().map(|line| line.trim_end()).filter(|line| {
        let text = line.trim_start_matches("npm error").trim();
        !text.is_empty() && !text.starts_with("A complete log of this run")
    });
    let lines: Vec<_> = kept.map(|line| format!("    {line}")).collect();
    if lines.is_empty() {
        return "    it said nothing of use".to_owned();
    }
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    /// A package manager that fails until it was run `good` times, and counts its runs.
    fn manager(directory: &Path, good: u32) -> Command {
        let count = directory.join("count");
        let script = format!(
            "echo run >>{count}; runs=$(wc -l <{count})
             if [ $runs -ge {good} ]; then echo installed; exit 0; fi
             echo 'npm error code ECONNRESET' >&2
             echo 'npm error A complete log of this run can be found in: /somewhere' >&2
             exit 1",
            count = count.display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        command
    }

    fn runs(directory: &Path) -> usize {
        fs::read_to_string(directory.join("count")).unwrap().lines().count()
    }

    #[test]
    fn a_download_that_fails_is_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let context = Context::deaf();
        let download = Download { pauses: &[Duration::ZERO; 3], ..Download::new(&context, "installing it") };
        let said = download.run(None, || manager(directory.path(), 3)).unwrap();
        assert_eq!(said, ["installed"]);
        assert_eq!(runs(directory.path()), 3);
    }

    #[test]
    fn a_download_that_never_works_ends_with_what_the_package_manager_said() {
        let directory = tempfile::tempdir().unwrap();
        let context = Context::deaf();
        let download = Download { pauses: &[Duration::ZERO; 2], ..Download::new(&context, "installing it") };
        let failure = download.run(None, || manager(directory.path(), 9)).unwrap_err().line();
        assert_eq!(runs(directory.path()), 3);
        let expected =
            "installing it failed 3 times, at last with exit status: 1:\n    npm error code ECONNRESET";
        assert_eq!(failure, expected);
    }

    #[test]
    fn a_package_manager_that_is_not_there_is_not_tried_again() {
        let context = Context::deaf();
        let download =
            Download { pauses: &[Duration::from_secs(600)], ..Download::new(&context, "installing it") };
        let failure = download.run(None, || Command::new("no-such-program-here")).unwrap_err().line();
        assert_eq!(failure, "`no-such-program-here` is not installed");
    }
}
