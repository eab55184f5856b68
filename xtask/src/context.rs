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
pub(crate) struct Context {
    /// The workspace's folder.
    pub(crate) root: PathBuf,
    /// Cargo's build directory.
    pub(crate) target: PathBuf,
    /// Whether standard output is a terminal, where a line can be drawn over.
    pub(crate) terminal: bool,
    /// Whether a build server runs this: there, what is skipped has failed.
    pub(crate) strict: bool,
    interrupted: Arc<AtomicBool>,
}

impl Context {
    /// Finds the workspace and starts to listen for Ctrl-C.
    pub(crate) fn new() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().unwrap_or(manifest).to_path_buf();
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the second signal finds the flag raised by the first and ends the process.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
                .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
                .map_err(|error| Failure::new(format!("could not listen for Ctrl-C: {error}")))?;
        }
        let strict = env::var("CI").is_ok_and(|ci| !matches!(ci.as_str(), "" | "0" | "false"));
        Ok(Self { root, target, terminal: std::io::stdout().is_terminal(), strict, interrupted })
    }

    /// The same, but as strict as a build server.
    pub(crate) fn strictly(&self) -> Self {
        Self {
            root: self.root.clone(),
            target: self.target.clone(),
            terminal: self.terminal,
            strict: true,
            interrupted: Arc::clone(&self.interrupted),
        }
    }

    /// Where tools are installed.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// Fails once somebody has asked to stop.
    pub(crate) fn go_on(&self) -> Result<()> {
        if self.interrupted.load(Ordering::SeqCst) { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// Cargo in the workspace's folder, without what the cargo that runs this very program left in the environment.
    pub(crate) fn cargo(&self) -> Command {
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

    /// A path as a person in the workspace's folder would write it.
    pub(crate) fn short<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

/// Reads the flags of a command line: everything that is not one of `known` is an error that names them.
pub(crate) fn refuse_unknown(arguments: &[&str], known: &[&str]) -> Result<()> {
    match arguments.iter().find(|word| word.starts_with('-') && !known.contains(word)) {
        None => Ok(()),
        Some(word) => {
            Err(Failure::new(format!("`{word}` is no flag of this command")).hint(if known.is_empty() {
                "it takes none".to_owned()
            } else {
                format!("it takes {}", known.join(", "))
            }))
        }
    }
}
