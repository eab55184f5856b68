//! The plugin executable. Nushell starts it to serve commands, and Lisa starts it as `nu_plugin_lisa helper …` to
//! launch agents and to receive their hooks.

use nu_plugin::serve_plugin;
use nu_plugin_lisa::{LisaPlugin, StreamTrackingEncoder};
use std::{ffi::OsString, process::ExitCode};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Before the plugin handshake, which a helper call must not wait for.
    if args.first().is_some_and(|word| word == "helper") {
        return lisa_engine::helper::main(args.into_iter().skip(1));
    }
    // Log only on request: the output would appear between shell prompts.
    if let Some(filter) = std::env::var("LISA_LOG").ok().filter(|filter| !filter.is_empty()) {
        lisa_engine::log::start(&filter, "warn");
    }
    serve_plugin(&LisaPlugin, StreamTrackingEncoder);
    ExitCode::SUCCESS
}
