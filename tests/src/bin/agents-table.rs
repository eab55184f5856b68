//! Compares what the scenarios of this run have shown with what is published in `docs/agents.md`.
//!
//! It is not a test, because it needs what all of them have left behind: `cargo xtask test agents` runs it after them.
//! It ends with 1 where the two differ, and with 2 where not every scenario was played.
#![allow(clippy::print_stdout, reason = "it talks to whoever runs it")]

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use lisa_tests::{report, table};
use test_support::programs;

fn main() -> io::Result<ExitCode> {
    let played = report::scenarios();
    let page = table::page(&played);
    if report::only_reports() {
        fs::write(programs::target_dir().join("agents-latest.md"), page + &report::failures(&played))?;
        return Ok(ExitCode::SUCCESS);
    }
    if played.len() < table::whole() {
        println!("{} of {} scenarios were played", played.len(), table::whole());
        return Ok(ExitCode::from(2));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &page)?;
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    let difference = table::difference(table::compared(&published), table::compared(&page));
    if difference.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("docs/agents.md is not what this run has found; if that is right, update it with");
    println!("`UPDATE_EXPECT=1 cargo xtask test agents`:\n{difference}");
    Ok(ExitCode::FAILURE)
}
