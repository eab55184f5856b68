//! Tests that cannot run here, for lack of a tool or of a right.

use lisa_dev::context::on_build_server;
use std::{
    env,
    fmt::Display,
    fs::OpenOptions,
    io::{self, Write},
    thread,
};

/// The file in which `cargo xtask test` finds the tests that were skipped.
const FILE: &str = "LISA_TEST_SKIPPED";

/// Says why the test that calls this is skipped; it then returns. `cargo xtask test` counts it as skipped, although
/// Rust's test harness counts it as passed. On a build server (`CI` is set) the test fails: there, a check that did not
/// run has shown nothing.
///
/// # Panics
/// On a build server.
#[track_caller]
pub fn skip(why: &dyn Display) {
    assert!(!on_build_server(), "with CI set nothing may be skipped: {why}");
    let thread = thread::current();
    let line = format!("{}: {}", thread.name().unwrap_or("a test"), one_line(&why.to_string()));
    // Not by a macro, whose output is captured, and in one write, so that it does not run into what others print.
    let _ = io::stderr().write_all(format!("skipped: {line}\n").as_bytes());
    if let Some(path) = env::var_os(FILE) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // In one write: other tests append to it at the same time.
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value, or the reason why the test is skipped.
#[macro_export]
macro_rules! needs {
    ($tool:expr) => {
        match $tool {
            Ok(tool) => tool,
            Err(why) => {
                $crate::skip::skip(&why);
                return;
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(one_line("npm install ended:\n  no network\n"), "npm install ended: no network");
    }
}
