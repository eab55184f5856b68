//! What the tests of several crates share.

#![allow(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

pub mod accuracy;
pub mod operations;
pub mod place;
pub mod programs;
pub mod skip;
pub mod tools;

use std::{
    thread,
    time::{Duration, Instant},
};

/// Waits until something holds; false if it does not within the limit.
pub fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}
