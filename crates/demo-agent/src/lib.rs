//! A scripted stand-in for an AI coding agent.
//!
//! It has the screen, the dialogs, the hooks and, above all, the hazards of the real ones, so that what
//! supervises agents can be shown and tested without a network or a key.
//!
//! ```text
//! bytes ─► input ─► agent (turn, dialog, questions) ─► effects ─► world (log, hooks, processes)
//!                     │ view                              └─────► transcript on the screen
//!                     └─► screen ─► paint ─► terminal
//! ```
//! `agent` (with `turn`, `steps`, `asking`, `view`), `dialog`, `questions`, `screen`, `script`, `input` and
//! `draft` do no input or output and get the time as an argument. `app` (terminal) and `exec` (no terminal)
//! drive them.

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
pub mod start;
pub mod step;
mod steps;
pub mod text;
pub mod turn;
mod view;
pub mod world;
