//! Lisa's engine: runs AI coding agents in tmux, knows what each is doing and why it thinks so, and drives them.

pub mod api;
mod case;
pub mod config;
pub mod disk;
mod doctor;
pub mod drive;
pub mod engine;
pub mod error;
pub mod evidence;
pub mod explain;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod helper;
pub mod judge;
pub mod log;
pub mod memory;
pub mod observation;
pub mod observe;
pub mod process;
pub mod profile;
pub mod prompt;
pub mod recording;
pub mod resolve;
pub mod rules;
pub mod screen;
pub mod sensors;
pub mod session;
pub mod signals;
pub mod text;
pub mod tmux;
mod transcript;
pub mod watch;
pub mod words;

pub use resolve::{Outcome, Verdict, step};
