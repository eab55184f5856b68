//! What the developer tools share: where things are, running programs, progress, scratch directories, and the tools
//! that tests and benches need, each with its pinned version.
//!
//! It links nothing of Lisa's. `cargo xtask fmt`, `tidy` and `docs` must work while the engine does not compile.

// Progress is for whoever runs a command.
#![allow(clippy::print_stdout)]

pub mod arguments;
pub mod context;
pub mod failure;
pub mod progress;
pub mod recordings;
pub mod run;
pub mod scratch;
pub mod tools;
