//! A home of its own for every group: tests see nothing of the user's sessions, settings and keys, and leave nothing.

use crate::{context::Context, failure::Result, scratch::Scratch, tools::Ready};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Directories below it, and the variables that name them.
const FOLDERS: &[(&str, &str)] = &[
    ("HOME", "h"),
    ("XDG_CONFIG_HOME", "h/.config"),
    ("XDG_STATE_HOME", "h/.local/state"),
    ("XDG_DATA_HOME", "h/.local/share"),
    ("XDG_CACHE_HOME", "h/.cache"),
    ("XDG_RUNTIME_DIR", "r"),
    ("TMPDIR", "t"),
    ("TMUX_TMPDIR", "s"),
    ("LISA_STATE_DIR", "l"),
    ("LISA_CONFIG_DIR", "c"),
];
/// Variables of the caller that no test may see: other sessions, and keys that cost money.
const HIDDEN: &[&str] = &["TMUX", "LISA_", "CLAUDE", "ANTHROPIC_", "CODEX_", "OPENAI_", "OPENCODE", "NU_"];

/// A private place for one group. It is removed with everything in it.
pub(super) struct Sandbox {
    scratch: Scratch,
}

impl Sandbox {
    pub(super) fn create(context: &Context, group: &str) -> Result<Self> {
        let scratch = Scratch::create(context, group)?;
        for (_, below) in FOLDERS {
            scratch.directory(below)?;
        }
        Ok(Self { scratch })
    }

    /// Makes a command live here, with the tools it needs first on PATH.
    pub(super) fn confine(&self, context: &Context, command: &mut Command, tools: &[Ready]) {
        let home = env::var_os("HOME").map(PathBuf::from);
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if HIDDEN.iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        for (name, below) in FOLDERS {
            command.env(name, self.scratch.path().join(below));
        }
        command.env("LISA_TMUX_SOCKET", self.scratch.path().join("s/lisa")).env("TERM", "xterm-256color");
        command.env("LANG", if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" });
        command.env("CARGO_TARGET_DIR", &context.target);
        // Cargo, rustup and npm keep their own things: they would otherwise look for them in the private home.
        let kept = [
            ("CARGO_HOME", ".cargo"),
            ("RUSTUP_HOME", ".rustup"),
            ("NPM_CONFIG_CACHE", ".npm"),
            ("NPM_CONFIG_USERCONFIG", ".npmrc"),
        ];
        for (name, below) in kept {
            if let (None, Some(home)) = (env::var_os(name), &home) {
                command.env(name, home.join(below));
            }
        }
        let mut path: Vec<PathBuf> =
            tools.iter().filter_map(Ready::directory).map(Path::to_path_buf).collect();
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        if let Ok(path) = env::join_paths(path) {
            command.env("PATH", path);
        }
        for tool in tools {
            command.env(variable(tool.name), &tool.program);
        }
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Ends what was left running here, removes the directory, and says what had been left.
    pub(super) fn end(self) -> Vec<String> {
        self.scratch.end_leftovers()
    }
}

/// The variable by which tests find a tool's program: `XTASK_NU`, `XTASK_CLAUDE`.
fn variable(tool: &str) -> String {
    format!("XTASK_{}", tool.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confined_command_sees_a_private_home_and_no_tmux() {
        let context = Context::new().unwrap();
        let sandbox = Sandbox::create(&context, "selftest").unwrap();
        let directory = sandbox.scratch.path().to_path_buf();
        let mut command = Command::new("sh");
        command.args(["-c", "echo $HOME; echo $LISA_STATE_DIR; echo ${TMUX-none}; echo $XTASK_NU"]);
        let nu = Ready { name: "nu", version: String::new(), program: "/opt/nu/bin/nu".into() };
        sandbox.confine(&context, &mut command, &[nu]);
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let expected = [directory.join("h"), directory.join("l"), "none".into(), "/opt/nu/bin/nu".into()];
        assert_eq!(output.lines().map(PathBuf::from).collect::<Vec<_>>(), expected);
        assert!(sandbox.end().is_empty());
        assert!(!directory.exists());
    }

    #[test]
    fn what_still_runs_in_a_sandbox_is_named_and_ended() {
        let context = Context::new().unwrap();
        let sandbox = Sandbox::create(&context, "selftest2").unwrap();
        let mut command = Command::new("sleep");
        command.arg("3600");
        sandbox.confine(&context, &mut command, &[]);
        let mut child = command.spawn().unwrap();
        let left = sandbox.end();
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(left.len(), 1, "{left:?}");
            assert!(left.iter().all(|one| one.contains("sleep 3600")), "{left:?}");
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
        }
    }
}
