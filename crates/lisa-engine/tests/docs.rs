//! Pages that are generated from the code are current.

// A test that can not go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

use lisa_engine::rules::{RULES, as_markdown};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_page_of_rules_is_current() {
    let page = format!(
        "# How a verdict is reached\n\nOne table, read from top to bottom; the first row that holds decides. \
         This page is generated: `UPDATE_EXPECT=1 cargo test -p lisa-engine --test docs`.\n\n{}",
        as_markdown()
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &page).expect("the page is written");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == page, "docs/rules.md is out of date: run this test with UPDATE_EXPECT=1");
}

#[test]
fn every_rule_has_a_name_of_its_own_and_a_sentence() {
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    for rule in RULES {
        assert!(rule.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", rule.name);
        assert!(rule.doc.ends_with('.') && !rule.gives.is_empty(), "{}", rule.name);
    }
}

#[test]
fn no_agent_is_known_by_name_in_the_code() {
    fn visit(dir: &Path, faults: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("the sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, faults);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (at, line) in code.lines().enumerate() {
                let line = line.to_lowercase();
                let comment = line.trim_start().starts_with("//");
                let named = ["claude", "codex", "opencode"].iter().any(|name| line.contains(name));
                if named && !comment && !line.contains("include_str!") {
                    faults.push(format!("{}:{}", path.display(), at + 1));
                }
            }
        }
    }
    let mut faults = Vec::new();
    for module in ["sensors", "screen", "prompt", "memory", "profile", "recording"] {
        visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(module), &mut faults);
    }
    for file in ["rules.rs", "resolve.rs", "case.rs", "explain.rs", "evidence.rs", "signals.rs"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
        let text = std::fs::read_to_string(&path).expect("the source").to_lowercase();
        if ["claude", "codex", "opencode"].iter().any(|name| text.contains(name)) {
            faults.push(path.display().to_string());
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
}
