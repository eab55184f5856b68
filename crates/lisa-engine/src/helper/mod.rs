//! What runs on the other side of tmux: small subcommands of Lisa's own binaries that panes and agents start.
//!
//! Every front end's binary has `<binary> helper …`, so whichever one started a session is also the program that its
//! pane and its hooks run. They aren't part of a public API.

pub(crate) mod hook;
mod launch;
mod log;
mod run;

use crate::tmux::pane::marked;
use std::{ffi::OsString, process::ExitCode};

/// Runs a helper command: `launch FIFO MARK`, `run FIFO DIR MARK`, `log FILE`, `hook DIR`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let words: Vec<&std::path::Path> = args.iter().map(std::path::Path::new).collect();
    let outcome = match words.as_slice() {
        // The mark is for whoever lists the panes (see `tmux::pane`).
        [verb, fifo, _] if verb.as_os_str() == "launch" => launch::main(fifo),
        [verb, fifo, dir, mark] if verb.as_os_str() == "run" => {
            run::main(fifo, dir, marked(&mark.to_string_lossy()).unwrap_or_default())
        }
        [verb, file] if verb.as_os_str() == "log" => log::main(file),
        [verb, dir] if verb.as_os_str() == "hook" => Ok(hook::main(dir)),
        _ => Err("this is an internal helper of Lisa and not meant to be called by hand".to_owned()),
    };
    match outcome {
        Ok(code) => code,
        Err(why) => {
            report_error(&why);
            ExitCode::from(127)
        }
    }
}

/// Prints an error where a person who looks at the pane can read it.
fn report_error(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "lisa: {why}");
}
