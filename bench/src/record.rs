//! Scores of recordings: `cargo xtask record` has just made them, with the truth that the scripted model knows.
//!
//! Each is replayed and scored by the rules of the published figures. Where the repository has a recording of the same
//! scenario, the two are compared.

use crate::{
    context::Context,
    failure::{Failure, Result},
};
use lisa_dev::recordings;
use lisa_engine::classify::{
    profile::Profiles,
    recording::{Timeline, replay::replay},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use test_support::accuracy::{self, Score};

/// Recordings that are tests.
const COMMITTED: &str = "tests/recordings";

/// Prints the report.
pub(crate) fn command(context: &Context, directory: &Path) -> Result<()> {
    print!("{}", report(context, directory)?);
    Ok(())
}

/// What a recording says of each state of truth: the verdicts, each by its rule.
type Verdicts = BTreeMap<String, BTreeSet<String>>;

fn scored(profiles: &Profiles, path: &Path) -> Result<(Score, Verdicts)> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path.display()));
    let (timeline, score) = accuracy::score_file(profiles, path).map_err(|error| failed(&error))?;
    Ok((score, verdicts(profiles, &timeline)))
}

fn verdicts(profiles: &Profiles, timeline: &Timeline) -> Verdicts {
    let mut found = Verdicts::new();
    let Some(profile) = profiles.get(&timeline.header.agent) else { return found };
    for (t, outcome) in replay(&profile, timeline) {
        let settled = |from: i64, to: i64| from + accuracy::TOLERANCE_MS <= t && t < to - accuracy::LEAD_MS;
        let truth = timeline.header.truth.iter().find(|truth| settled(truth.t0, truth.t1));
        if let Some(truth) = truth.filter(|truth| truth.label != "uncertain") {
            let state = outcome.verdict.state.name();
            found
                .entry(truth.label.clone())
                .or_default()
                .insert(format!("{state} by {}", outcome.verdict.reason));
        }
    }
    found
}

/// The report: a row for each recording, and what is said in it that is not said in the one of the same name.
fn report(context: &Context, directory: &Path) -> Result<String> {
    let profiles = Profiles::shipped();
    let mut text = format!(
        "\n{:44} {:>6} {:>8} {:>8} {:>6} {:>7}  before\n",
        "recording", "frames", "status", "state", "false", "missed"
    );
    let (mut frames, mut right, mut news) = (0, 0, String::new());
    let files = recordings::plain(directory);
    for path in &files {
        let name = path.strip_prefix(directory).unwrap_or(path).with_extension("").display().to_string();
        let (score, said) = scored(&profiles, path)?;
        let committed = context.root.join(COMMITTED).join(format!("{name}.jsonl.gz"));
        let before = committed.is_file().then(|| scored(&profiles, &committed)).transpose()?;
        let old = before.as_ref().map_or_else(|| "none".to_owned(), |(old, _)| share(old.state, old.frames));
        text += &format!(
            "{name:44} {:6} {:>8} {:>8} {:6} {:7}  {old}\n",
            score.frames,
            share(score.status, score.frames),
            share(score.state, score.frames),
            score.false_ready,
            score.missed_block,
        );
        for (t, label, _, state, reason) in score.wrong.iter().take(3) {
            text += &format!("    wrong at {t} ms: {label} was called {state} by {reason}\n");
        }
        if let Some((_, old)) = before {
            news += &changes(&name, &old, &said);
        }
        frames += score.frames;
        right += score.state;
    }
    text += &format!(
        "{} recordings, {} of {frames} frames with the right state\n",
        files.len(),
        share(right, frames)
    );
    if !news.is_empty() {
        text +=
            &format!("\nverdicts that the recordings of the same name in {COMMITTED} do not have:\n{news}");
    }
    text += &format!("{}\n", context.short(directory));
    Ok(text)
}

fn changes(name: &str, old: &Verdicts, new: &Verdicts) -> String {
    let mut text = String::new();
    for (label, said) in new {
        let Some(known) = old.get(label) else { continue };
        let fresh: Vec<&str> = said.difference(known).map(String::as_str).collect();
        if !fresh.is_empty() {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            text += &format!("  {name}: {label} is {} (was {})\n", fresh.join(", "), known.join(", "));
        }
    }
    text
}

fn share(part: u32, whole: u32) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.2} %", 100.0 * f64::from(part) / f64::from(whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_anew_of_the_same_truth_is_a_change() {
        let of = |pairs: &[(&str, &str)]| {
            let mut all = Verdicts::new();
            for (label, verdict) in pairs {
                all.entry((*label).to_owned()).or_default().insert((*verdict).to_owned());
            }
            all
        };
        let old = of(&[("working", "working by title_working"), ("idle", "ready by idle")]);
        let new =
            of(&[("working", "working by event_working"), ("idle", "ready by idle"), ("error_api", "x")]);
        let text = changes("claude/x", &old, &new);
        assert_eq!(text, "  claude/x: working is working by event_working (was working by title_working)\n");
        assert_eq!(changes("claude/x", &old, &old), "");
    }
}
