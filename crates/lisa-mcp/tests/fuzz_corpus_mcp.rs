//! Runs the fuzz corpus and past failures of the server's targets in a normal build.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

use lisa_mcp::fuzz::TARGETS;
use std::{fs, path::Path};

#[test]
fn the_corpus_and_all_past_failures_pass() {
    for target in TARGETS {
        let mut inputs = 0;
        for kind in ["corpus", "failures"] {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(kind).join(target.name);
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                let bytes = fs::read(entry.path()).expect("the input can be read");
                let passed = std::panic::catch_unwind(|| (target.run)(&bytes)).is_ok();
                assert!(passed, "{} fails on {}", target.name, entry.path().display());
                inputs += 1;
            }
        }
        assert!(inputs > 0, "fuzz/corpus/{} is empty", target.name);
    }
}
