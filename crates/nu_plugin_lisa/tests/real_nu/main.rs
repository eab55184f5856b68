//! The plugin in a real Nushell, with real sessions of the demo agent.
//!
//! Nushell is the one in `LISA_TEST_NU` or the pinned one, installed once below `target/tools`. Each test has a state
//! directory, a home and a tmux server of its own; nothing of the user's is touched.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod examples;
mod pipelines;
mod registered;
mod sandbox;
mod terminal;
mod typed;
