//! What a run of the real agents leaves for people: how fast Lisa saw each change, and what works with which agent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::agents::AgentKind;
use crate::programs;
use crate::truth::{Delay, Lie};

/// Where the figures are.
pub fn path() -> PathBuf {
    programs::target_dir().join("agents-report.json")
}

/// Writes the figures of one session into the report and shows them.
pub fn note(kind: &AgentKind, session: &str, delays: &[Delay], lies: &[Lie]) {
    let name = format!("{} {} {session}", kind.command(), kind.version());
    let words: Vec<String> = delays
        .iter()
        .map(|delay| {
            let to = serde_json::to_value(delay.to).unwrap_or_default();
            let to = to.as_str().unwrap_or_default().to_owned();
            delay.ms.map_or(format!("{to} never"), |ms| format!("{to} {ms} ms"))
        })
        .collect();
    // A test's own output; there is nowhere to report a failure to write it.
    let _ = writeln!(io::stderr(), "{name}: {}", words.join(", "));
    let _ = change(|report| {
        report.insert(name, json!({"delays": delays, "lies": lies}));
    });
}

/// Changes the report; several test programs may do so at once.
fn change(with: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    fs::create_dir_all(programs::target_dir())?;
    let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path())?;
    File::lock(&file)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let mut report: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    with(&mut report);
    report.sort_keys();
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(serde_json::to_string_pretty(&report)?.as_bytes())
}
