//! What the scenarios of this run have shown is what is published. It runs after them: cargo takes test programs by name.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "whatever fails here fails the test")]

use std::fs;
use std::path::Path;

use lisa_tests::{programs, report, table};

#[test]
fn the_table_of_agents_is_as_published() {
    let played = report::scenarios();
    let page = table::page(&played);
    if report::only_reports() {
        let path = programs::target_dir().join("agents-latest.md");
        fs::write(&path, page + &report::failures(&played)).unwrap();
        return;
    }
    if played.len() < table::whole() {
        eprintln!("skipped: {} of {} scenarios were played in this run", played.len(), table::whole());
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    let difference = table::difference(table::compared(&published), table::compared(&page));
    assert!(
        difference.is_empty(),
        "docs/agents.md is not what this run has found; if that is right, update it with \
         `UPDATE_EXPECT=1 cargo xtask test agents`:\n{difference}"
    );
}
