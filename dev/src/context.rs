//! What every command needs to know: where things are, and whether somebody wants it to stop.

use crate::failure::{Failure, Result};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};
use std::{
    env,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Where things are, and whether to go on.
pub struct Context {
    /// The workspace's directory.
    pub root: PathBuf,
    /// Cargo's build directory.
    pub target: PathBuf,
    /// Whether standard output is a terminal, where a line can be drawn over.
    pub terminal: bool,
    /// Whether a build server runs this: there, what is skipped has failed.
    pub strict: bool,
    interrupted: Arc<AtomicBool>,
}

impl Context {
    /// Finds the workspace and starts to listen for Ctrl-C.
    pub fn new() -> Result<Self> {
        let context = Self::deaf();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the second signal finds the flag raised by the first and ends the process.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&context.interrupted))
                .and_then(|_| flag::register(signal, Arc::clone(&context.interrupted)))
                .map_err(|error| Failure::new(format!("could not listen for Ctrl-C: {error}")))?;
        }
        Ok(context)
    }

    /// Finds the workspace and leaves signals alone: for tests, where Ctrl-C ends the process at once.
    pub fn deaf() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().unwrap_or(manifest).to_path_buf();
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        Self {
            root,
            target,
            terminal: std::io::stdout().is_terminal(),
            strict: on_build_server(),
            interrupted: Arc::new(AtomicBool::new(false)),
        }
    }

    /// The same, but as strict as a build server.
    pub fn strictly(&self) -> Self {
        Self {
            root: self.root.clone(),
            target: self.target.clone(),
            terminal: self.terminal,
            strict: true,
            interrupted: Arc::clone(&self.interrupted),
        }
    }

    /// Where tools are installed.
    pub fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// Fails once somebody has asked to stop.
    pub fn go_on(&self) -> Result<()> {
        if self.interrupted.load(Ordering::SeqCst) { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// Cargo in the workspace's directory, without what the cargo that runs this very program left in the environment.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .current_dir(&self.root)
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_TERM_PROGRESS_WHEN", "never");
        if self.strict {
            command.env("CI", "true");
        }
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// A path as a person in the workspace's directory would write it.
    pub fn short<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

/// Whether `CI` says that a build server runs this. There, a test that is skipped has failed.
pub fn on_build_server() -> bool {
    env::var("CI").is_ok_and(|ci| !matches!(ci.as_str(), "" | "0" | "false"))
}
