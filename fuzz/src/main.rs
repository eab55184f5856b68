//! One libFuzzer program for every target: `FUZZ_TARGET` names the one to run; without it the targets are listed.
//!
//! `cargo xtask fuzz` builds it with coverage counters and runs it. Memory is counted by an allocator of its own,
//! because libFuzzer's limit for it needs a sanitizer, which needs a nightly compiler.

#![no_main]

mod memory;

use libfuzzer_sys::fuzz_target;
use lisa_engine::fuzz::Target;
use std::sync::LazyLock;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

static TARGET: LazyLock<&'static Target> = LazyLock::new(chosen);

fn targets() -> impl Iterator<Item = &'static Target> {
    lisa_engine::fuzz::TARGETS.iter().chain(lisa_mcp::fuzz::TARGETS)
}

fn chosen() -> &'static Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    match targets().find(|target| target.name == name) {
        Some(target) => target,
        None => {
            targets().for_each(|target| println!("{}\t{}", target.name, target.what));
            std::process::exit(if name.is_empty() { 0 } else { 2 });
        }
    }
}

fuzz_target!(init: LazyLock::force(&TARGET), |bytes: &[u8]| {
    memory::bounded(|| (TARGET.run)(bytes));
});
