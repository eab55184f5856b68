//! Lisa's MCP server: the engine's operations as tools, resources and tasks.
//!
//! Everything here translates between `lisa_engine::api` and the protocol, and decides nothing. The way of a call:
//! `stdio` or [`http`] takes it in, `rpc` reads it or says what is wrong with it, [`args`] checks it against the tool's
//! schema, a method in `tools` runs the engine on a blocking thread, [`fit`] keeps the answer below what parents pass on,
//! [`failure`] turns an error into a tool error.
//!
//! What is deliberately absent: state of its own (a restart loses nothing: waits are named by their ids), prints to
//! standard output (it belongs to the protocol), and anything about a particular agent.

pub mod args;
pub mod cli;
pub mod commands;
pub mod failure;
pub mod fit;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod http;
pub mod install;
pub mod log;
pub mod next;
pub mod prompts;
pub mod resources;
mod rpc;
pub mod schema;
pub mod serve;
pub mod server;
mod stdio;
pub mod subscriptions;
pub mod tasks;
pub mod token;
mod tools;
