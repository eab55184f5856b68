//! Running one target, and reading what libFuzzer says.

use super::{
    Amount, HOME,
    build::Fuzzer,
    make,
    report::{Figures, Finding, thousands},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    run::{self, Event},
};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The longest input, in bytes: what a message, a row or a small file has.
const LONGEST: u32 = 4 << 10;
/// Targets whose inputs are longer: several screens, several lines of a transcript.
const LONGER: &[(&str, u32)] = &[
    ("hook_file", 16 << 10),
    ("hooks", 16 << 10),
    ("recordings", 16 << 10),
    ("records", 8 << 10),
    ("screens", 16 << 10),
    ("transcripts", 16 << 10),
];
/// How long a target may take to load its corpus and to end, beside its time.
const BESIDE: Duration = Duration::from_secs(300);
/// How long a number of inputs may take.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Where the parts of a target are.
struct Places {
    /// What is committed.
    corpus: PathBuf,
    /// What earlier runs on this machine have found beside it.
    found: PathBuf,
    failures: PathBuf,
    dictionary: PathBuf,
}

impl Places {
    fn of(context: &Context, target: &str) -> Result<Self> {
        let home = context.root.join(HOME);
        let places = Self {
            corpus: home.join("corpus").join(target),
            found: context.target.join("fuzz/corpus").join(target),
            failures: home.join("failures").join(target),
            dictionary: home.join("dict").join(format!("{target}.dict")),
        };
        for path in [&places.corpus, &places.found, &places.failures] {
            make(path)?;
        }
        Ok(places)
    }

    /// Leaves no empty directories in the repository.
    fn tidy(&self) {
        for path in [&self.corpus, &self.failures] {
            let _ = fs::remove_dir(path);
        }
    }
}

/// Fuzzes one target.
pub(super) fn run(
    context: &Context,
    fuzzer: &Fuzzer,
    target: &str,
    amount: Amount,
    scratch: &Path,
) -> Result<Figures> {
    let places = Places::of(context, target)?;
    let longest = LONGER.iter().find(|(name, _)| *name == target).map_or(LONGEST, |(_, longest)| *longest);
    let mut command = fuzzer.command(target);
    command.env("TMPDIR", scratch);
    command.args(["-print_final_stats=1", &format!("-max_len={longest}")]);
    command.arg(format!("-artifact_prefix={}/", places.failures.display()));
    if places.dictionary.is_file() {
        command.arg(format!("-dict={}", places.dictionary.display()));
    }
    let limit = match amount {
        Amount::Time(time) => {
            command.arg(format!("-max_total_time={}", time.as_secs()));
            time + BESIDE
        }
        Amount::Inputs(inputs) => {
            command.arg(format!("-runs={inputs}"));
            DAY
        }
    };
    // New inputs go to the first directory.
    command.args([&places.found, &places.corpus, &places.failures]);
    let mut said = Said::default();
    let mut progress = Progress::start(context.terminal, format!("  {target:14}"));
    let status = run::watch(context, command, limit, &mut |event| match event {
        Event::Line(line) => {
            said.line(line);
            progress.doing(&said.doing());
        }
        Event::Tick => progress.tick(),
    })?;
    let figures = said.figures(target, status.success());
    places.tidy();
    if let Some(finding) = &figures.finding {
        progress.say(&finding.text(context, target));
    }
    if figures.inputs == 0 && figures.finding.is_none() {
        return Err(Failure::new(format!("the fuzzer did not run {target}: {status}")));
    }
    progress.finish(&figures.line());
    Ok(figures)
}

/// What libFuzzer has said so far.
#[derive(Debug, Default)]
struct Said {
    inputs: u64,
    per_second: u64,
    corpus: u64,
    why: Vec<String>,
    saved: Option<PathBuf>,
}

impl Said {
    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix('#') {
            self.status(rest);
        } else if let Some(number) = line.strip_prefix("stat::number_of_executed_units:") {
            self.inputs = number.trim().parse().unwrap_or(self.inputs);
        } else if let Some(number) = line.strip_prefix("stat::average_exec_per_sec:") {
            self.per_second = number.trim().parse().unwrap_or(self.per_second);
        } else if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.saved = Some(PathBuf::from(path.trim()));
        } else if line.contains("panicked at ") || line.contains("ERROR: libFuzzer: ") {
            self.why.push(line.trim().to_owned());
        } else if self.why.last().is_some_and(|last| last.contains("panicked at ")) {
            // The message is on the line after the place.
            self.why.push(line.trim().to_owned());
        }
    }

    /// `1234\tNEW    cov: 151 ft: 679 corp: 131/27Kb lim: 4096 exec/s: 8947 rss: 36Mb …`
    fn status(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        self.inputs = words.next().and_then(|number| number.parse().ok()).unwrap_or(self.inputs);
        while let Some(word) = words.next() {
            let number = |text: &str| text.split('/').next().and_then(|number| number.parse().ok());
            match word {
                "corp:" => self.corpus = words.next().and_then(number).unwrap_or(self.corpus),
                "exec/s:" => self.per_second = words.next().and_then(number).unwrap_or(self.per_second),
                _ => {}
            }
        }
    }

    fn doing(&self) -> String {
        format!("{} inputs, {} in the corpus", thousands(self.inputs), self.corpus)
    }

    fn figures(self, target: &str, success: bool) -> Figures {
        let why = self.why.join(": ");
        let finding = (!success).then_some(Finding { why, input: self.saved });
        Figures {
            target: target.to_owned(),
            inputs: self.inputs,
            per_second: self.per_second,
            corpus: self.corpus,
            finding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(output: &str, success: bool) -> Figures {
        let mut said = Said::default();
        output.lines().for_each(|line| said.line(line));
        said.figures("hooks", success)
    }

    #[test]
    fn a_run_without_a_finding_has_its_figures_from_the_last_lines() {
        let output = "INFO: seed corpus: files: 8\n#9\tINITED cov: 1 ft: 2 corp: 8/1Kb exec/s: 0 rss: 30Mb\n\
                      #984203\tDONE   cov: 151 ft: 679 corp: 131/27Kb lim: 4096 exec/s: 89473 rss: 36Mb\n\
                      stat::number_of_executed_units: 984203\nstat::average_exec_per_sec:     89473";
        let figures = said(output, true);
        assert_eq!((figures.inputs, figures.per_second, figures.corpus), (984_203, 89_473, 131));
        assert!(figures.finding.is_none());
    }

    #[test]
    fn a_finding_has_its_place_its_message_and_its_input() {
        let output = "thread '<unnamed>' (7) panicked at src/a.rs:1:2:\nattempt to add with overflow\nstack backtrace:\n\
                      ==7== ERROR: libFuzzer: deadly signal\n\
                      artifact_prefix='x/'; Test unit written to x/crash-0a1b\nstat::number_of_executed_units: 75";
        let figures = said(output, false);
        let finding = figures.finding.unwrap();
        assert_eq!(finding.input.as_deref(), Some(Path::new("x/crash-0a1b")));
        assert!(
            finding.why.contains("src/a.rs:1:2") && finding.why.contains("add with overflow"),
            "{finding:?}"
        );
        assert!(!finding.why.contains("backtrace"), "{finding:?}");
    }
}
