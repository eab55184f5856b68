//! Lisa's engine: runs AI coding agents in tmux, knows what each is doing and why it thinks so, and drives them.

pub mod api;
pub mod config;
pub mod disk;
pub mod error;
pub mod helper;
pub mod observation;
pub mod process;
pub mod profile;
pub mod session;
pub mod tmux;
pub mod words;
