//! Lisa for Nushell: sessions as tables, actions as pipelines, the journal as a stream.
//!
//! A command is one file below [`commands`] and one line in [`LisaPlugin::commands`]. It reads its arguments, makes
//! one request of `lisa_engine::api`, and turns the response into values; it decides nothing. What commands share:
//!
//! | module | what it holds |
//! |---|---|
//! | `caller` | the engine, opened for whoever typed the command: their folder, their environment |
//! | `settings` | `$env.config.plugins.lisa`, and how flags override it |
//! | `names` | which sessions a command is about: arguments or pipeline input |
//! | `signature` | the shape of commands over names, and of their completions |
//! | `types`, `convert` | what comes out, declared and made |
//! | `speak` | the engine's advice in the words of this shell |
//! | `errors` | engine errors as labelled errors with a code and a help text |
//! | `interrupt` | how a blocking call ends: Ctrl-C, or a shell that is gone |
//! | `wire` | the protocol with the shell, and which streams nobody reads any more |
//! | `complete` | session names, agents and the options of a prompt, looked up while somebody types |
//!
//! The plugin keeps no state between calls: Nushell may stop it at any time, and what is true stands in tmux and on
//! disk.

#![allow(clippy::result_large_err, reason = "the derived conversions return Nushell's own error as it is")]

mod caller;
mod commands;
mod complete;
mod convert;
mod errors;
mod interrupt;
mod names;
mod settings;
mod signature;
mod speak;
mod types;
mod until;
mod wire;

use commands::{agent, session};
use nu_plugin::{Plugin, PluginCommand};

pub use wire::Wire;

/// The plugin. Making one does nothing: Nushell starts the program just to ask for its signatures.
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
