//! Lisa's MCP server: the engine's operations as tools, resources and tasks.
//!
//! This crate translates between `lisa_engine::api` and the protocol and makes no decisions. The path of a tool call:
//! `stdio` or [`http`] receives it, `rpc` parses it or returns a JSON-RPC error, [`args`] validates the arguments against
//! the tool's schema, a method in `tools` runs the engine on a blocking thread, [`truncate`] limits the size of the
//! result, and [`tool_error`] turns an engine error into a tool error.
//!
//! Deliberately absent: in-memory state (a wait task is a file, so a restart loses nothing), prints to standard output
//! (it belongs to the protocol), and anything specific to one agent.

pub mod args;
pub mod cli;
pub mod commands;
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
pub mod tool_error;
mod tools;
pub mod truncate;
