//! Lisa for Nushell: sessions as tables, actions in pipelines, the journal as a stream.
//!
//! Each command is a file in [`commands`] and a line in [`LisaPlugin::commands`]. It parses its arguments, makes one
//! `lisa_engine::api` request, and converts the response to values. Commands make no decisions. Shared modules:
//!
//! | module | contents |
//! |---|---|
//! | `context` | the engine, opened with the caller's directory and environment |
//! | `settings` | `$env.config.plugins.lisa`; flags override it |
//! | `names` | session names from arguments or pipeline input |
//! | `signature` | shared parts of signatures |
//! | `columns`, `convert` | output columns with their types, and the conversion of responses to values |
//! | `next_step` | the engine's next step as text, with command names |
//! | `errors` | engine errors as `LabeledError` with code and help |
//! | `interrupt` | cancellation of blocking calls: Ctrl-C, killed jobs, exited shells |
//! | `encoder` | the plugin protocol's encoder, which notices dropped streams |
//! | `complete` | tab completion of session names, agents and prompt options |
//!
//! The plugin keeps no state between calls, because Nushell may stop it at any time. All state is in tmux and on disk.

#![allow(clippy::result_large_err, reason = "the derived conversions return Nushell's own error type")]

mod columns;
mod commands;
mod complete;
mod context;
mod convert;
mod encoder;
mod errors;
mod interrupt;
mod names;
mod next_step;
#[cfg(test)]
mod samples;
mod settings;
mod signature;
mod until;

use commands::{agent, session};
use nu_plugin::{Plugin, PluginCommand};

pub use encoder::StreamTrackingEncoder;

/// The plugin. Creating it has no side effects, because Nushell also starts the program only for its signatures.
#[derive(Debug, Default, Clone, Copy)]
pub struct LisaPlugin;

impl Plugin for LisaPlugin {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn commands(&self) -> Vec<Box<dyn PluginCommand<Plugin = Self>>> {
        vec![
            Box::new(commands::Lisa),
            Box::new(commands::Doctor),
            Box::new(commands::Watch),
            Box::new(commands::Record),
            Box::new(commands::Replay),
            Box::new(commands::Cleanup),
            Box::new(agent::Agent),
            Box::new(agent::List),
            Box::new(agent::BuildCmd),
            Box::new(session::Session),
            Box::new(session::Name),
            Box::new(session::Spawn),
            Box::new(session::Send),
            Box::new(session::Answer),
            Box::new(session::Status),
            Box::new(session::Explain),
            Box::new(session::Monitor),
            Box::new(session::Capture),
            Box::new(session::List),
            Box::new(session::Tree),
            Box::new(session::Exists),
            Box::new(session::Attach),
            Box::new(session::Interrupt),
            Box::new(session::Resume),
            Box::new(session::Kill),
            Box::new(session::KillAll),
        ]
    }
}
