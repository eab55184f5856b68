//! A scripted AI coding agent for demos and tests.
//!
//! It has the screen, dialogs, hooks and especially the hazards of real agents, so that a supervisor can be demonstrated
//! and tested without a network or an API key.
//!
//! ```text
//! bytes ─► input ─► agent (turn, dialog, questions) ─► effects ─► side_effects (log, hooks, processes)
//!                     │ view                              └─────► transcript on the screen
//!                     └─► screen ─► paint ─► terminal
//! ```
//! `agent` (with `turn`, `steps`, `asking`, `view`), `dialog`, `questions`, `screen`, `script`, `input` and `draft` do no
//! IO and get the time as an argument. `app` (terminal) and `exec` (no terminal) drive them.

pub mod agent;
pub mod app;
pub mod args;
mod asking;
pub mod dialog;
pub mod draft;
pub mod effect;
pub mod exec;
pub mod hooks;
pub mod input;
pub mod log;
pub mod paint;
pub mod questions;
pub mod screen;
pub mod script;
pub mod side_effects;
pub mod start;
pub mod step;
mod steps;
pub mod text;
pub mod turn;
mod view;
