//! The plugin's program. It has two lives: Nushell starts it to serve commands, and Lisa starts it as
//! `nu_plugin_lisa helper …` to launch agents and take their hooks.

use nu_plugin::{MsgPackSerializer, serve_plugin};
use nu_plugin_lisa::LisaPlugin;
use std::{ffi::OsString, io::Write, process::ExitCode};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Before anything of Nushell's is touched: a helper call must not wait for a plugin handshake.
    if args.first().is_some_and(|word| word == "helper") {
        return helper(&args[1..]);
    }
    serve_plugin(&LisaPlugin, MsgPackSerializer);
    ExitCode::SUCCESS
}

/// DISPATCH POINT: hand `args` to `lisa_engine::helper::main` as soon as the engine has it, and return its code.
fn helper(args: &[OsString]) -> ExitCode {
    let verb = args.first().map(|verb| verb.display().to_string()).unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "nu_plugin_lisa: helper `{verb}` is not part of this build");
    ExitCode::from(2)
}
