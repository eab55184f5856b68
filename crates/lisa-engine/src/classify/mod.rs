//! Classification: everything between an observation and a verdict, as pure functions.
//!
//! Nothing here reads a file, asks a clock or starts a process, or uses another room of the engine except `api`. So a
//! recording replays exactly, and any past verdict can be reproduced.

mod case;
pub mod channel;
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
#[cfg(test)]
mod testing;
pub mod text;

pub use resolve::{Outcome, Verdict, step};
