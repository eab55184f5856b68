//! Every recording is a test: put a file into `tests/recordings/<agent>-<version>/`, and it is scored here.
//!
//! A file may miss frames only as far as `known_misses.txt` says, with the reason; a file that gets better than that
//! must be taken off the list, so that the list stays honest.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

use lisa_engine::classify::profile::Profiles;
use lisa_engine::classify::recording::Timeline;
use lisa_engine::observe::plain;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use test_support::accuracy::{self, Score, Totals};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Recording, frames with the wrong state at most, and why.
fn known_misses() -> BTreeMap<String, u32> {
    let text =
        std::fs::read_to_string(root().join("tests/recordings/known_misses.txt")).expect("the list is there");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let mut parts = line.split_whitespace();
            let name = parts.next().expect("a recording");
            let frames = parts.next().and_then(|count| count.parse().ok()).expect("a count of frames");
            assert!(parts.next().is_some(), "{name} must say why it is missed");
            (name.to_owned(), frames)
        })
        .collect()
}

fn score_all() -> Vec<(String, String, Score)> {
    let profiles = Profiles::shipped();
    let files = accuracy::recordings(&root().join("tests/recordings"));
    assert!(files.len() > 100, "the recordings are gone");
    let next = Mutex::new(files.into_iter());
    let scored = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(path) = next.lock().expect("a lock").next() else { break };
                    let (timeline, score) = accuracy::score_file(&profiles, &path)
                        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    assert!(timeline.skipped.is_empty(), "{}: {:?}", path.display(), timeline.skipped);
                    let directory = path
                        .parent()
                        .and_then(Path::file_name)
                        .expect("a directory")
                        .to_string_lossy()
                        .into_owned();
                    let file = path.file_name().expect("a name").to_string_lossy().replace(".jsonl.gz", "");
                    scored.lock().expect("a lock").push((directory, file, score));
                }
            });
        }
    });
    let mut scored = scored.into_inner().expect("a lock");
    scored.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    scored
}

/// Lisa captures a screen once, with its escapes; these were captured twice, by tmux itself.
#[test]
fn a_screen_without_its_escapes_is_what_tmux_captures_without_them() {
    let mut compared = 0;
    for path in accuracy::recordings(&root().join("tests/recordings")) {
        let file = std::fs::File::open(&path).expect("a recording can be read");
        let timeline = Timeline::read(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for row in timeline.rows {
            let (Some(screen), Some(ansi)) = (row.screen, row.ansi) else { continue };
            assert_eq!(plain(&ansi), screen.trim_end_matches('\n'), "{} at {} ms", path.display(), row.t);
            compared += 1;
        }
    }
    assert!(compared > 1_000, "the recordings have both of {compared} screens only");
}

#[test]
fn recordings_are_judged_as_they_were_and_the_published_figures_are_current() {
    let mut known = known_misses();
    let mut by_version: BTreeMap<String, Totals> = BTreeMap::new();
    let mut all = Totals::default();
    let mut faults = Vec::new();
    for (directory, file, score) in score_all() {
        let name = format!("{directory}/{file}");
        let allowed = known.remove(&name).unwrap_or(0);
        let missed = score.frames - score.state;
        if missed != allowed {
            faults.push(format!("{name}: {missed} frames are wrong, {allowed} are known: {:?}", score.wrong));
        }
        if score.false_ready > 0 || score.missed_block > 0 {
            faults.push(format!(
                "{name}: called ready while working, or working while asking: {:?}",
                score.wrong
            ));
        }
        by_version.entry(directory.replacen('-', " ", 1)).or_default().add(score.clone());
        all.add(score);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(known.is_empty(), "listed, but not there: {known:?}");
    assert!(all.mean(|score| score.status) >= 99.8 && all.mean(|score| score.state) >= 99.7);
    assert!(all.sum(|score| score.flicker) <= 3);
    assert!(all.lag(95).is_some_and(|lag| lag <= 800));

    let page = accuracy::page(&by_version);
    let path = root().join("docs/accuracy.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(root().join("docs")).expect("a directory for documents");
        std::fs::write(&path, &page).expect("the page is written");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == page, "docs/accuracy.md is out of date: run this test with UPDATE_EXPECT=1");
}
