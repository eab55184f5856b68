//! Lisa's engine: runs AI coding agents in tmux, knows what each is doing and why it thinks so, and drives them.

mod case;
pub mod evidence;
pub mod explain;
pub mod memory;
pub mod observation;
pub mod profile;
pub mod prompt;
pub mod recording;
pub mod resolve;
pub mod rules;
pub mod screen;
pub mod sensors;
pub mod signals;
pub mod words;

pub use resolve::{Outcome, Verdict, step};
