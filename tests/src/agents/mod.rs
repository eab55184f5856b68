//! The real agents, at the versions that the profiles were recorded with.
//!
//! They come from npm into a directory of the build directory, once, and are started as the native programs they
//! are: no node is needed to run them, and nothing of the user's own installation is touched.

mod home;

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub use home::{AgentHome, HomeOptions, McpServer, empty_repository};
use test_support::{skip::skip, tools};

/// An agent that tests can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

impl AgentKind {
    /// Every agent.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    /// The name of the command.
    pub fn command(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The version that is pinned.
    pub fn version(self) -> String {
        tools::pinned(self.command())
    }
}

/// An installed agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Which one.
    pub kind: AgentKind,
    /// Its program.
    pub program: PathBuf,
}

impl Agent {
    /// The pinned agent, or the one that `cargo xtask test --agents latest` has installed. Where it cannot be had, there
    /// is none, and the test is skipped.
    pub fn for_test(kind: AgentKind) -> Option<Self> {
        Self::named(kind, kind.command())
    }

    /// Claude Code in a newer version than the pinned one, whose interactive mode takes a long call as a task.
    pub fn with_tasks() -> Option<Self> {
        Self::named(AgentKind::Claude, "claude-with-tasks")
    }

    fn named(kind: AgentKind, tool: &str) -> Option<Self> {
        let program = tools::program(tool);
        program.map(|program| Self { kind, program }).map_err(|why| skip(&why)).ok()
    }

    /// The version the program gives for itself: `2.1.197 (Claude Code)`, `codex-cli 0.166.0`.
    pub fn version(&self) -> io::Result<String> {
        let output = Command::new(&self.program).arg("--version").stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version =
            text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        version
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other(format!("no version in {:?}, {}", text.trim(), output.status)))
    }

    /// A command for the agent that sees the home's environment and nothing else, in the home's project.
    pub fn command(&self, home: &AgentHome) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(home.env()).current_dir(home.project()).stdin(Stdio::null());
        command
    }
}
