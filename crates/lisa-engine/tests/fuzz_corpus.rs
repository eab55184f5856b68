//! The committed corpus and every past failure, run through their targets on an ordinary build.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

use lisa_engine::fuzz::TARGETS;
use std::{collections::BTreeSet, fs, path::Path};

/// The inputs of a target below a directory of the fuzzer; empty where there is none.
fn inputs(kind: &str, target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(kind).join(target);
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let read = entries.map(|entry| {
        (entry.path().display().to_string(), fs::read(entry.path()).expect("the input can be read"))
    });
    read.collect()
}

#[test]
fn every_input_of_the_corpus_and_every_past_failure_passes() {
    for target in TARGETS {
        for (path, bytes) in inputs("corpus", target.name).into_iter().chain(inputs("failures", target.name))
        {
            let passed = std::panic::catch_unwind(|| (target.run)(&bytes)).is_ok();
            assert!(passed, "{} fails on {path}", target.name);
        }
    }
}

#[test]
fn every_target_has_a_corpus_and_a_name_of_its_own() {
    let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), TARGETS.len());
    for target in TARGETS {
        assert!(!inputs("corpus", target.name).is_empty(), "fuzz/corpus/{} is empty", target.name);
    }
}

#[test]
fn inputs_that_are_nothing_or_nothing_but_one_byte_pass() {
    for target in TARGETS {
        (target.run)(&[]);
        for byte in 0..=u8::MAX {
            (target.run)(&[byte]);
            (target.run)(&[byte; 300]);
        }
    }
}
