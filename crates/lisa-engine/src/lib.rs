//! Lisa's engine: runs AI coding agents in tmux, knows what each is doing and why it thinks so, and drives them.

#[cfg(test)]
extern crate self as lisa_engine;

pub mod api;
pub mod classify;
pub mod config;
pub mod disk;
pub mod drive;
pub mod engine;
pub mod error;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod helper;
pub mod log;
pub mod observe;
pub mod process;
pub mod session;
pub mod tmux;
pub mod watch;
