//! `cargo xtask bench`: a table for people, and as the last line one JSON object with the same figures.

mod client;
mod herd;
mod mcp;
mod nu;
mod react;
mod report;
mod resident;
mod send;
mod soak;
mod spawn;
mod stale;
mod stats;
mod sweep;
mod takeover;
mod trial;
mod typing;
mod usage;
mod watcher;

use crate::{
    context::{Context, refuse_unknown},
    failure::{Failure, Result},
    run, scratch,
    stage::Programs,
};
use report::Report;
use std::{os::unix::process::CommandExt, process::Command};

/// The programs that sessions run, as they would ship.
const PROGRAMS: Programs =
    Programs { packages: &["lisa-engine", "demo-agent"], helper: &["lisa-helper"], release: true };

/// One measurement.
struct Bench {
    name: &'static str,
    /// The question that it answers.
    what: &'static str,
    /// How it is answered; none where the part to be measured is not connected.
    run: Option<fn(&Context, &Options) -> Result<Report>>,
}

const BENCHES: &[Bench] = &[
    Bench { name: "sweep", what: "what does one look at N sessions cost?", run: Some(sweep::run) },
    Bench {
        name: "react",
        what: "how long after a change does a waiting caller know?",
        run: Some(react::run),
    },
    Bench {
        name: "takeover",
        what: "how long does nobody watch when the observer dies or hangs?",
        run: Some(takeover::run),
    },
    Bench { name: "resident", what: "what do processes that watch N agents use?", run: Some(resident::run) },
    Bench {
        name: "spawn",
        what: "what do starting and ending a session cost beside N others?",
        run: Some(spawn::run),
    },
    Bench {
        name: "stale",
        what: "what do thousands of sessions that ended long ago cost?",
        run: Some(stale::run),
    },
    Bench { name: "send", what: "how long does a proven prompt take, by its size?", run: Some(send::run) },
    Bench {
        name: "typing",
        what: "is anything submitted or lost that somebody types meanwhile?",
        run: Some(typing::run),
    },
    Bench { name: "mcp", what: "what does the MCP server add to a call?", run: Some(mcp::run) },
    Bench { name: "nu", what: "what does the Nushell plugin add to a command?", run: Some(nu::run) },
    Bench {
        name: "soak",
        what: "does everything hold when many use one tmux server at once?",
        run: Some(soak::run),
    },
];

/// What the command line may change.
struct Options {
    /// How many sessions to look at, one measurement for each.
    sessions: Vec<usize>,
    /// How long a soak lasts.
    minutes: f64,
}

/// `cargo xtask bench`.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<()> {
    if let Some(watched) = watcher::be(arguments) {
        return watched;
    }
    let (names, options) = read(arguments)?;
    if names.contains(&"--list") {
        for bench in BENCHES {
            let note = if bench.run.is_some() { "" } else { " (not connected)" };
            println!("{:8} {}{note}", bench.name, bench.what);
        }
        return Ok(());
    }
    if cfg!(debug_assertions) {
        return in_release(context, arguments);
    }
    if let Ok(wanted) = std::env::var("LISA_LOG") {
        // What the engine does meanwhile; the figures are then those of an engine that writes it down.
        lisa_engine::log::start(&wanted, "warn");
    }
    scratch::sweep(context);
    let mut chosen = Vec::new();
    for bench in BENCHES {
        match bench.run {
            Some(run) if names.is_empty() || names.contains(&bench.name) => chosen.push((bench, run)),
            None if names.contains(&bench.name) => {
                return Err(Failure::new(format!("the bench `{}` measures nothing yet", bench.name)));
            }
            _ => {}
        }
    }
    for (bench, run) in chosen {
        println!("{}: {}", bench.name, bench.what);
        let report = run(context, &options)?;
        print!("{}", report.table());
        println!("{}", report.json(bench.name));
    }
    Ok(())
}

/// Builds this program as it would ship and goes on in it: figures of a debug build mislead.
fn in_release(context: &Context, arguments: &[String]) -> Result<()> {
    let mut cargo = context.cargo();
    cargo.args(["build", "--release", "--package", "xtask"]);
    run::through(context, cargo, run::BUILD_LIMIT, "building what is measured, optimised")?;
    let program = context.target.join("release/xtask");
    let error = Command::new(&program).arg("bench").args(arguments).exec();
    Err(Failure::io("run", &program, &error))
}

fn read(arguments: &[String]) -> Result<(Vec<&str>, Options)> {
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut options = Options { sessions: vec![1, 10, 100], minutes: 1.0 };
    if let Some(list) = take_value(&mut words, "--sessions") {
        let counts = list.and_then(|list| list.split(',').map(|n| n.parse().ok()).collect());
        let wrong = || Failure::new("`--sessions` takes numbers, such as `1,10,100`");
        options.sessions = counts.filter(|list: &Vec<usize>| !list.contains(&0)).ok_or_else(wrong)?;
    }
    if let Some(minutes) = take_value(&mut words, "--minutes") {
        let minutes = minutes.and_then(|minutes| minutes.parse().ok());
        let wrong = || Failure::new("`--minutes` takes a number, such as `10`");
        options.minutes = minutes.filter(|minutes| (0.05..=10_000.0).contains(minutes)).ok_or_else(wrong)?;
    }
    refuse_unknown(&words, &["--sessions", "--minutes", "--list"])?;
    let known = |word: &&&str| **word == "--list" || BENCHES.iter().any(|bench| bench.name == **word);
    if let Some(unknown) = words.iter().find(|word| !known(word)) {
        return Err(Failure::new(format!("there is no bench `{unknown}`"))
            .hint("`cargo xtask bench --list` lists them"));
    }
    Ok((words, options))
}

/// Takes a flag and its value out of the words; `Some(None)` where the value is missing.
fn take_value<'a>(words: &mut Vec<&'a str>, flag: &str) -> Option<Option<&'a str>> {
    let at = words.iter().position(|word| *word == flag)?;
    let value = words.get(at + 1).copied();
    words.drain(at..words.len().min(at + 2));
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_counts_are_numbers_above_zero() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(read(&words("sweep --sessions 2,30")).ok().unwrap().1.sessions, [2, 30]);
        for wrong in ["--sessions", "--sessions x", "--sessions 0", "swep", "--quick"] {
            assert!(read(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_soak_lasts_a_minute_or_as_long_as_is_said() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let minutes = |line: &str| read(&words(line)).ok().map(|(_, options)| options.minutes);
        assert_eq!(minutes("soak"), Some(1.0));
        assert_eq!(minutes("soak --minutes 2.5 --sessions 3"), Some(2.5));
        for wrong in ["soak --minutes", "soak --minutes x", "soak --minutes 0", "soak --minutes -1"] {
            assert_eq!(minutes(wrong), None, "{wrong}");
        }
    }
}
