//! What came of a group, read from the lines that `cargo test` prints.
//!
//! The test harness's JSON (`--format json`) is unstable, and nextest's too. So its text is read, here and nowhere else.
//! Which tests were skipped is not in it: a test that lacks something passes, and says so in a file (`test_support::skip`).

use std::process::ExitStatus;

/// What came of a group.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) passed: u32,
    pub(super) failed: u32,
    pub(super) skipped: u32,
    /// What failed or was skipped, a line each.
    pub(super) notes: Vec<String>,
}

impl Outcome {
    pub(super) fn failed(why: String) -> Self {
        Self { failed: 1, notes: vec![why], ..Self::default() }
    }

    pub(super) fn skipped(why: String) -> Self {
        Self { skipped: 1, notes: vec![format!("skipped: {why}")], ..Self::default() }
    }

    pub(super) fn fail(&mut self, why: String) {
        self.failed += 1;
        self.notes.push(why);
    }

    /// A test that the harness counts as passed has shown nothing; `test` is its name, with the reason.
    pub(super) fn skip(&mut self, test: &str) {
        self.passed = self.passed.saturating_sub(1);
        self.skipped += 1;
        self.notes.push(format!("skipped: {test}"));
    }

    /// What a version of an agent breaks that nobody has recorded yet is something to know, and no failure of the tests.
    pub(super) fn failures_are_news(&mut self) -> Vec<String> {
        self.failed = 0;
        std::mem::take(&mut self.notes)
    }

    /// On a build server nothing may be left out: a check that did not run has shown nothing.
    pub(super) fn skips_are_failures(&mut self) {
        self.failed += self.skipped;
        self.skipped = 0;
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.notes.extend_from_slice(&other.notes);
    }

    /// `3 passed, 0 failed`, and what was skipped if anything was.
    pub(super) fn line(&self) -> String {
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        format!("{} passed, {} failed{skipped}", self.passed, self.failed)
    }
}

impl From<crate::tidy::Findings> for Outcome {
    fn from(findings: crate::tidy::Findings) -> Self {
        let failed = u32::try_from(findings.broken.len()).unwrap_or(u32::MAX);
        Self { passed: findings.kept, failed, skipped: 0, notes: findings.broken }
    }
}

/// Reads the output of `cargo test` line by line.
#[derive(Default)]
pub(super) struct Reader {
    outcome: Outcome,
    file: String,
    doing: String,
}

impl Reader {
    /// Takes a line; gives back a line for people when it ends a test program.
    pub(super) fn line(&mut self, line: &str) -> Option<String> {
        if let Some(file) = running(line) {
            file.clone_into(&mut self.file);
            self.doing = self.file.clone();
        } else if let Some(counts) = result(line) {
            self.outcome.add(&counts);
            // A program without tests is not worth a line.
            return (counts != Outcome::default()).then(|| format!("{:34} {}", self.file, counts.line()));
        } else if let Some(test) = line.strip_prefix("test ") {
            self.doing = format!("{}  {test}", self.file);
            if let Some(name) = test.strip_suffix(" ... FAILED") {
                self.outcome.notes.push(format!("{} {name}", self.file));
            }
        }
        None
    }

    /// What runs just now.
    pub(super) fn doing(&self) -> &str {
        &self.doing
    }

    /// The whole, once cargo has ended. Whatever the lines say, a cargo that fails is a failure: a test program that
    /// dies prints no result.
    pub(super) fn into_outcome(mut self, status: ExitStatus) -> Outcome {
        if !status.success() && self.outcome.failed == 0 {
            self.outcome.fail(format!("cargo ended with {status}"));
        }
        self.outcome
    }
}

/// `tests/tmux.rs` from `     Running tests/tmux.rs (target/debug/deps/tmux-0a1b)`.
fn running(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("Running ")?;
    let (file, program) = rest.split_once(" (")?;
    program.ends_with(')').then_some(file.strip_prefix("unittests ").unwrap_or(file))
}

/// The counts of `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s`.
fn result(line: &str) -> Option<Outcome> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word: &str| {
        let part = counts.split("; ").find_map(|part| part.strip_suffix(word))?;
        part.trim().parse::<u32>().ok()
    };
    Some(Outcome {
        passed: count("passed")?,
        failed: count("failed")?,
        skipped: count("ignored")?,
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn what_the_newest_agents_break_is_told_and_fails_nothing() {
        let mut outcome = Outcome { passed: 3, ..Outcome::default() };
        outcome.fail("tests/models.rs retries".to_owned());
        assert_eq!(outcome.failures_are_news(), ["tests/models.rs retries"]);
        assert_eq!((outcome.passed, outcome.failed, outcome.notes), (3, 0, Vec::new()));
    }

    const OUTPUT: &str = "\
   Compiling lisa-engine v0.1.0
    Finished `test` profile in 1.2s
     Running unittests src/lib.rs (target/debug/deps/lisa_engine-0a)
running 2 tests
test words::tests::a ... ok
test words::tests::b ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/tmux.rs (target/debug/deps/tmux-0b)
running 0 tests
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.00s
     Running tests/look.rs (target/debug/deps/look-0c)
test result: ok. 11 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 1.50s";

    fn read(output: &str, code: i32) -> (Vec<String>, Outcome) {
        let mut reader = Reader::default();
        let lines = output.lines().filter_map(|line| reader.line(line)).collect();
        (lines, reader.into_outcome(ExitStatus::from_raw(code << 8)))
    }

    #[test]
    fn counts_add_up_over_test_programs_and_empty_ones_stay_silent() {
        let (lines, outcome) = read(OUTPUT, 101);
        assert_eq!(outcome.line(), "12 passed, 1 failed, 2 skipped");
        assert_eq!(outcome.notes, ["src/lib.rs words::tests::b"]);
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().any(|line| line.starts_with("tests/look.rs ")), "{lines:?}");
    }

    #[test]
    fn a_cargo_that_fails_without_a_failed_test_is_a_failure() {
        let (_, outcome) = read("error: could not compile", 101);
        assert_eq!((outcome.passed, outcome.failed), (0, 1));
        assert_eq!(read("", 0).1.line(), "0 passed, 0 failed");
    }

    #[test]
    fn what_a_test_prints_is_not_taken_for_a_result() {
        assert_eq!(result("  test result: ok. 3 passed; 0 failed; 0 ignored"), None);
        assert_eq!(result("test result: who knows"), None);
        assert_eq!(running("Running late (again"), None);
    }

    #[test]
    fn a_test_that_skips_has_not_passed() {
        let (_, mut outcome) = read(OUTPUT, 0);
        outcome.skip("converses: no claude from npm");
        assert_eq!(outcome.line(), "11 passed, 1 failed, 3 skipped");
        assert_eq!(outcome.notes.last().map(String::as_str), Some("skipped: converses: no claude from npm"));
    }

    #[test]
    fn on_a_build_server_a_skip_is_a_failure() {
        let mut outcome = Outcome::skipped("no nu".to_owned());
        outcome.skips_are_failures();
        assert_eq!(outcome.line(), "0 passed, 1 failed");
    }
}
