//! The plugin's program. It has two lives: Nushell starts it to serve commands, and Lisa starts it as
//! `nu_plugin_lisa helper …` to launch agents and take their hooks.

use nu_plugin::serve_plugin;
use nu_plugin_lisa::{LisaPlugin, Wire};
use std::{ffi::OsString, process::ExitCode};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Before anything of Nushell's is touched: a helper call must not wait for a plugin handshake.
    if args.first().is_some_and(|word| word == "helper") {
        return lisa_engine::helper::main(args.into_iter().skip(1));
    }
    // Nobody asked for what a shell would print between two prompts, unless they did.
    if let Some(filter) = std::env::var("LISA_LOG").ok().filter(|filter| !filter.is_empty()) {
        lisa_engine::log::start(&filter, "warn");
    }
    serve_plugin(&LisaPlugin, Wire);
    ExitCode::SUCCESS
}
