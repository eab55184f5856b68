//! Lisa's engine: runs AI coding agents in tmux, knows what each is doing and why it thinks so, and drives them.

pub mod api;
pub mod config;
pub mod engine;
pub mod error;
pub mod observation;
pub mod profile;
pub mod words;
