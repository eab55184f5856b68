//! Pages that are generated from the code are current.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

use lisa_engine::classify::rules::{RULES, as_markdown};
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
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.reason.as_str()).collect();
    assert_eq!(names.len(), RULES.len());
    for rule in RULES {
        assert!(rule.doc.ends_with('.'), "{}", rule.reason);
    }
}
