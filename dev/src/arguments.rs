//! The arguments of the commands that another program runs: `cargo xtask` checks them before it builds that program.

use crate::tools::Release;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The benches, each with the question that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// what does one look at N sessions cost?
    Sweep,
    /// how long after a change does a waiting caller know?
    React,
    /// how long does nobody watch when the observer dies or hangs?
    Takeover,
    /// what do processes that watch N agents use?
    Resident,
    /// what do starting and ending a session cost beside N others?
    Spawn,
    /// what do thousands of sessions that ended long ago cost?
    Stale,
    /// how long does a proven prompt take, by its size?
    Send,
    /// is anything submitted or lost that somebody types meanwhile?
    Typing,
    /// what does the MCP server add to a call?
    Mcp,
    /// what does the Nushell plugin add to a command?
    Nu,
    /// does everything hold when many use one tmux server at once?
    Soak,
}

impl Bench {
    /// Every bench, in the order in which they run.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// What it is called on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The question that it answers.
    pub fn what(self) -> String {
        self.to_possible_value()
            .and_then(|value| value.get_help().map(ToString::to_string))
            .unwrap_or_default()
    }
}

/// The arguments of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArguments {
    /// The benches to run (default: all)
    #[arg(value_name = "NAME")]
    pub names: Vec<Bench>,
    /// How many sessions to look at, one measurement for each
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "1,10,100", value_parser = count)]
    pub sessions: Vec<usize>,
    /// How long a soak lasts
    #[arg(long, value_name = "N", default_value = "1", value_parser = minutes)]
    pub minutes: f64,
    /// List the benches
    #[arg(long)]
    pub list: bool,
}

impl BenchArguments {
    /// The benches that are asked for, in their own order.
    pub fn chosen(&self) -> Vec<Bench> {
        let asked = |bench: &Bench| self.names.is_empty() || self.names.contains(bench);
        Bench::all().iter().copied().filter(asked).collect()
    }
}

/// The arguments of `record`.
#[derive(Debug, Clone, Args)]
pub struct RecordArguments {
    /// The directory for the recordings (default: `target/recordings`)
    pub directory: Option<PathBuf>,
    /// Which versions of the agents to record
    #[arg(long, value_enum, default_value_t)]
    pub agents: Release,
}

fn count(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "expected numbers such as `1,10,100`".to_owned())
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|minutes| (0.05..=10_000.0).contains(minutes));
    minutes.ok_or_else(|| "expected a number such as `10`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: BenchArguments,
    }

    fn read(line: &str) -> Option<BenchArguments> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Line::try_parse_from(words).ok().map(|line| line.arguments)
    }

    #[test]
    fn session_counts_are_numbers_above_zero() {
        assert_eq!(read("sweep").unwrap().sessions, [1, 10, 100]);
        assert_eq!(read("sweep --sessions 2,30").unwrap().sessions, [2, 30]);
        for wrong in ["--sessions", "--sessions x", "--sessions 0", "swep", "--quick"] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_soak_lasts_one_minute_by_default() {
        let minutes = |line: &str| read(line).map(|arguments| arguments.minutes);
        assert_eq!(minutes("soak"), Some(1.0));
        assert_eq!(minutes("soak --minutes 2.5 --sessions 3"), Some(2.5));
        for wrong in ["soak --minutes", "soak --minutes x", "soak --minutes 0", "soak --minutes=-1"] {
            assert_eq!(minutes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn benches_run_in_their_own_order_and_every_one_says_what_it_measures() {
        assert_eq!(read("soak sweep").unwrap().chosen(), [Bench::Sweep, Bench::Soak]);
        assert_eq!(read("").unwrap().chosen(), Bench::all());
        assert!(Bench::all().iter().all(|bench| bench.what().ends_with('?')));
    }
}
