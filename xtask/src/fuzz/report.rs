//! What came of fuzzing.

use super::HOME;
use crate::context::Context;
use std::path::PathBuf;

/// What came of one target.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) target: String,
    /// How many inputs were run.
    pub(crate) inputs: u64,
    pub(super) per_second: u64,
    /// How many of them reach something that no other does.
    pub(super) corpus: u64,
    pub(crate) finding: Option<Finding>,
}

/// An input that a target fails on.
#[derive(Debug)]
pub(crate) struct Finding {
    /// What libFuzzer says.
    pub(super) why: String,
    /// Where it was saved.
    pub(super) input: Option<PathBuf>,
}

impl Finding {
    /// What failed, and how to see it again.
    pub(super) fn text(&self, context: &Context, target: &str) -> String {
        let why = if self.why.is_empty() { "the fuzzer died" } else { &self.why };
        match &self.input {
            None => format!("  {target}: {why}"),
            Some(input) => {
                let input = context.short(input);
                format!("  {target}: {why}\n  replay it: cargo xtask {HOME} {target} --replay {input}")
            }
        }
    }
}

impl Figures {
    /// One line for the log.
    pub(super) fn line(&self) -> String {
        let result = if self.finding.is_some() { "a finding" } else { "no finding" };
        format!("  {:14} {:>13} inputs, {result}", self.target, thousands(self.inputs))
    }
}

/// The table at the end of a run.
pub(super) fn table(all: &[Figures]) -> String {
    let mut text = format!("\n{:14} {:>13} {:>9} {:>7}  result\n", "target", "inputs", "inputs/s", "corpus");
    for Figures { target, inputs, per_second, corpus, finding } in all {
        let result = finding.as_ref().map_or("no finding", |_| "finding");
        let (inputs, per_second) = (thousands(*inputs), thousands(*per_second));
        text += &format!("{target:14} {inputs:>13} {per_second:>9} {corpus:>7}  {result}\n");
    }
    let total: u64 = all.iter().map(|figures| figures.inputs).sum();
    let findings = all.iter().filter(|figures| figures.finding.is_some()).count();
    text + &format!("{} inputs, {findings} findings\n", thousands(total))
}

/// A number with commas between thousands.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1_000, 12_345_678].map(thousands), ["0", "999", "1,000", "12,345,678"]);
    }

    #[test]
    fn the_last_line_is_the_sum() {
        let figures = |target: &str, finding| Figures {
            target: target.to_owned(),
            inputs: 1_500,
            per_second: 10,
            corpus: 3,
            finding,
        };
        let finding = Finding { why: String::new(), input: None };
        let text = table(&[figures("hooks", None), figures("screens", Some(finding))]);
        assert_eq!(text.lines().last(), Some("3,000 inputs, 1 findings"));
    }
}
