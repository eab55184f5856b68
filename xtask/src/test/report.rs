//! The table at the end of a run, and its last line.

use super::outcome::Outcome;
use crate::progress::seconds;
use std::time::Duration;

/// The table, what failed, and as the last line the sum of all groups.
pub(super) fn summary(done: &[(&str, Outcome, Duration)]) -> String {
    let mut text =
        format!("\n{:12} {:>7} {:>7} {:>7} {:>7}\n", "group", "passed", "failed", "skipped", "time");
    let mut sum = Outcome::default();
    for (name, outcome, took) in done {
        let Outcome { passed, failed, skipped, .. } = outcome;
        text += &format!("{name:12} {passed:7} {failed:7} {skipped:7} {:>7}\n", seconds(*took));
        sum.add(outcome);
    }
    for (name, outcome, _) in done {
        for note in &outcome.notes {
            text += &format!("{name}: {note}\n");
        }
    }
    text + &sum.line() + "\n"
}

/// Whether a line of a log helps somebody who looks for a failure.
pub(super) fn worth_showing(line: &str) -> bool {
    let noise =
        ["Compiling ", "Downloaded ", "Downloading ", "Checking ", "Fresh ", "Blocking ", "Finished "];
    let text = line.trim_start();
    let passed = line.starts_with("test ") && line.ends_with(" ... ok");
    !passed && !noise.iter().any(|word| text.starts_with(word) && line.starts_with("   "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_sum_and_nothing_else() {
        let passed = Outcome { passed: 40, ..Outcome::default() };
        let failed = Outcome::failed("src/lib.rs a::b".to_owned());
        let text = summary(&[("unit", passed, Duration::from_secs(2)), ("mcp", failed, Duration::ZERO)]);
        assert_eq!(text.lines().last(), Some("40 passed, 1 failed"));
        assert!(text.contains("mcp: src/lib.rs a::b"), "{text}");
    }

    #[test]
    fn skips_stand_in_the_last_line_only_if_there_are_any() {
        let skipped = Outcome::skipped("no npm".to_owned());
        assert!(summary(&[("nu", skipped, Duration::ZERO)]).ends_with("\n0 passed, 0 failed, 1 skipped\n"));
        assert!(summary(&[]).ends_with("\n0 passed, 0 failed\n"));
    }

    #[test]
    fn build_noise_is_left_out_of_a_failure() {
        assert!(!worth_showing("   Compiling serde v1.0.0"));
        assert!(!worth_showing("test a::b ... ok"));
        assert!(worth_showing("error: Compiling this is hard"));
        assert!(worth_showing("test a::b ... FAILED"));
    }
}
