//! What the Nushell plugin adds: a list of N sessions beside what a shell could do without it, and how fast the journal
//! comes through `lisa watch`. One Nushell measures all of it from the inside, with the plugin warm.

use super::{
    Options,
    report::{Column, Report},
    stats::Samples,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    run,
    scratch::Scratch,
    tools::{self, Release},
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const COLUMNS: &[Column] = &[
    Column { name: "command", unit: "" },
    Column { name: "rows", unit: "" },
    Column { name: "runs", unit: "" },
    Column { name: "wall p50", unit: "ms" },
    Column { name: "wall p99", unit: "ms" },
    Column { name: "rows per second", unit: "" },
];

/// What is run: each returns as many rows as there are sessions, except the call that only asks.
const COMMANDS: &[(&str, &str)] = &[
    ("ls", "ls $directory | length"),
    (
        "tmux ls | lines | parse",
        "^tmux -S $socket ls | lines | parse '{name}: {rest}' | where name starts-with bench | length",
    ),
    ("lisa session exists", "if (lisa session exists bench-1) { $sessions } else { 0 }"),
    ("lisa session list", "lisa session list | length"),
];

const LIST: &str = "lisa session list";
/// How many events the journal holds when it is followed.
const EVENTS: u64 = 10_000;
const RUN_LIMIT: Duration = Duration::from_secs(10 * 60);

pub(super) fn run(context: &Context, options: &Options) -> Result<Report> {
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let nu = tools::find("nu")?.ensure(context, Release::Pinned)?.program;
    let plugin = build(context)?;
    let mut report = Report::new(COLUMNS);
    for &sessions in &options.sessions {
        let bench =
            Bench { nu: &nu, plugin: &plugin, scratch: Scratch::create(context, &format!("nu{sessions}"))? };
        bench.start(context, sessions)?;
        let mut shell = None;
        for (name, wall) in bench.commands(context, sessions)? {
            let p50 = wall.p50();
            match (name, shell, p50) {
                (_, None, p50) => shell = p50,
                (LIST, Some(ls), Some(list)) => {
                    report.ratio(format!("longer than ls, {sessions} sessions"), list, ls)
                }
                _ => {}
            }
            report.row(vec![
                name.into(),
                sessions.into(),
                wall.len().into(),
                p50.into(),
                wall.p99().into(),
                None.into(),
            ]);
        }
        if Some(&sessions) == options.sessions.last() {
            let wall = bench.watch(context)?;
            let each = wall.p50().map(|ms| EVENTS as f64 / ms * 1000.0);
            let rows = usize::try_from(EVENTS).unwrap_or(usize::MAX);
            report.row(vec![
                "lisa watch --since 0".into(),
                rows.into(),
                wall.len().into(),
                wall.p50().into(),
                wall.p99().into(),
                each.into(),
            ]);
        }
    }
    Ok(report)
}

/// Builds the plugin as it would ship.
fn build(context: &Context) -> Result<PathBuf> {
    let mut cargo = context.cargo();
    cargo.args(["build", "--release", "--package", "nu_plugin_lisa"]);
    run::through(context, cargo, run::BUILD_LIMIT, "  building the plugin, optimised")?;
    Ok(context.target.join("release/nu_plugin_lisa"))
}

/// A private Lisa, and a Nushell to look at it with.
struct Bench<'a> {
    nu: &'a Path,
    plugin: &'a Path,
    scratch: Scratch,
}

impl Bench<'_> {
    /// Starts the sessions, and makes a directory with as many files for `ls` to list.
    fn start(&self, context: &Context, sessions: usize) -> Result<()> {
        let files = self.scratch.directory("files")?;
        for number in 1..=sessions {
            let file = files.join(number.to_string());
            fs::write(&file, "").map_err(|error| Failure::io("write", &file, &error))?;
        }
        let start =
            "1..$sessions | each {|i| lisa session spawn generic sleep 86400 --name $'bench-($i)' } | length";
        let script = format!("let sessions = {sessions}; {start}");
        run::through(context, self.shell(&script), RUN_LIMIT, &format!("  starting {sessions} sessions"))?;
        Ok(())
    }

    /// Every command again and again, in turns, so that a busy moment of the machine hits all of them alike.
    fn commands(&self, context: &Context, sessions: usize) -> Result<Vec<(&'static str, Samples)>> {
        let socket = self.scratch.path().join("tmux");
        let files = self.scratch.path().join("files");
        let once = COMMANDS.iter().enumerate().map(|(at, (_, source))| {
            format!("let began = (date now); let rows = ({source}); print $'{at} ((date now) - $began | into int) ($rows)'")
        });
        let script = format!(
            "let sessions = {sessions}; let socket = '{}'; let directory = '{}'
             let end = (date now) + 8sec
             for turn in 0..300 {{ if $turn > 10 and (date now) > $end {{ break }}\n{}\n}}",
            socket.display(),
            files.display(),
            once.collect::<Vec<_>>().join("\n"),
        );
        let said =
            run::through(context, self.shell(&script), RUN_LIMIT, &format!("  listing {sessions} sessions"))?;
        let mut samples: Vec<_> = COMMANDS.iter().map(|(name, _)| (*name, Samples::default())).collect();
        // The first turn warms everything up.
        for line in said.iter().skip(COMMANDS.len()) {
            let (at, took, rows) = figures(line)?;
            if rows != sessions {
                return Err(Failure::new(format!("`{}` saw {rows} of {sessions}", COMMANDS[at].0)));
            }
            samples[at].1.add(took);
        }
        Ok(samples)
    }

    /// Reads a long journal from its beginning.
    fn watch(&self, context: &Context) -> Result<Samples> {
        self.fill_journal()?;
        let script = format!(
            "for turn in 0..4 {{ let began = (date now); let rows = (lisa watch --since 0 | first {EVENTS} | length)
             print $'0 ((date now) - $began | into int) ($rows)' }}"
        );
        let mut samples = Samples::default();
        for line in
            run::through(context, self.shell(&script), RUN_LIMIT, "  following the journal")?.iter().skip(1)
        {
            samples.add(figures(line)?.1);
        }
        Ok(samples)
    }

    /// Repeats the journal's last event until there are enough, each with the next cursor and an id of its own.
    fn fill_journal(&self) -> Result<()> {
        let journal = self.scratch.path().join("state/journal");
        let segments = fs::read_dir(&journal).map_err(|error| Failure::io("read", &journal, &error))?;
        let mut segments: Vec<PathBuf> = segments.flatten().map(|entry| entry.path()).collect();
        segments.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        segments.sort();
        let path = segments.pop().ok_or_else(|| Failure::new("the journal is empty"))?;
        let mut text = fs::read_to_string(&path).map_err(|error| Failure::io("read", &path, &error))?;
        let wrong = || Failure::new("the journal's last line is no event");
        let mut event: Value =
            text.lines().last().and_then(|line| serde_json::from_str(line).ok()).ok_or_else(wrong)?;
        for cursor in event["cursor"].as_u64().ok_or_else(wrong)? + 1..=EVENTS {
            event["cursor"] = cursor.into();
            event["id"] = format!("bench-{cursor}").into();
            text += &format!("{event}\n");
        }
        fs::write(&path, text).map_err(|error| Failure::io("write", &path, &error))
    }

    /// Nushell with the plugin and nothing else, in a private home.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new(self.nu);
        command.args(["-n", "--plugins", &format!("[{}]", self.plugin.display()), "-c", script]);
        let below = |name: &str| self.scratch.path().join(name);
        command
            .current_dir(self.scratch.path())
            .env_remove("TMUX")
            .env("HOME", self.scratch.path())
            .env("LISA_STATE_DIR", below("state"))
            .env("LISA_CONFIG_DIR", below("config"))
            .env("LISA_TMUX_SOCKET", below("tmux"))
            .env("LISA_MAX_SESSIONS", "1000");
        command
    }
}

/// A line of figures: which command, how many nanoseconds, how many rows.
fn figures(line: &str) -> Result<(usize, Duration, usize)> {
    let mut words = line.split_whitespace();
    let mut next = || words.next().and_then(|word| word.parse::<u64>().ok());
    match (next(), next(), next()) {
        (Some(at), Some(nanos), Some(rows)) if at < COMMANDS.len() as u64 => {
            Ok((at as usize, Duration::from_nanos(nanos), rows as usize))
        }
        _ => Err(Failure::new(format!("Nushell said something else than figures: {line}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_anything_else_is_an_error() {
        assert_eq!(figures("1 2500000 10").unwrap(), (1, Duration::from_micros(2500), 10));
        for wrong in ["", "1 2", "9 1 1", "Error: x y"] {
            assert!(figures(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_list_is_one_of_the_commands() {
        assert!(COMMANDS.iter().any(|(name, _)| *name == LIST));
    }
}
