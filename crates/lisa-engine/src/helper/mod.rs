//! What runs on the other side of tmux: small commands of Lisa's own binaries that panes and agents start.
//!
//! Every front end's binary answers to `<binary> helper …`, so that whichever one started a session can also be the
//! program that its pane and its hooks run. They are part of no public API.

pub(crate) mod hook;
pub mod launch;
mod log;
mod run;

use std::{ffi::OsString, process::ExitCode};

/// Runs a helper command: `launch FIFO`, `run FIFO DIR RUN_ID`, `log FILE`, `hook DIR`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let words: Vec<&std::path::Path> = args.iter().map(std::path::Path::new).collect();
    let outcome = match words.as_slice() {
        [verb, fifo] if verb.as_os_str() == "launch" => launch::main(fifo),
        [verb, fifo, dir, run_id] if verb.as_os_str() == "run" => {
            run::main(fifo, dir, &run_id.to_string_lossy())
        }
        [verb, file] if verb.as_os_str() == "log" => log::main(file),
        [verb, dir] if verb.as_os_str() == "hook" => Ok(hook::main(dir)),
        _ => Err("this is a helper of Lisa's and not meant to be called by hand".to_owned()),
    };
    match outcome {
        Ok(code) => code,
        Err(why) => {
            complain(&why);
            ExitCode::from(127)
        }
    }
}

/// Says what went wrong where the person who looks at the pane can read it.
fn complain(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "lisa: {why}");
}
