//! The committed corpus and every past failure of the server's targets, on an ordinary build.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails loudly")]

use lisa_mcp::fuzz::TARGETS;
use std::{fs, path::Path};

#[test]
fn every_input_of_the_corpus_and_every_past_failure_passes() {
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
