//! The plugin in a real Nushell, with real sessions of the demo agent.
//!
//! Nushell is taken from `XTASK_NU` or `LISA_TEST_NU`, or installed once below `target/tools`. Each test has a state folder, a
//! home and a tmux server of its own; nothing of the user's is touched.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that can not go on fails")]

mod examples;
mod pipelines;
mod registered;
mod stage;
mod terminal;
mod typed;
