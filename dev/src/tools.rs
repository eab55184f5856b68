//! What a machine needs beside Rust, git and npm: one table of tools with their versions, and one way to get each.
//!
//! This is the only place that pins a version. The agents are pinned to the versions that the profiles were recorded
//! with. Everything from npm and PyPI lives in the build directory, so that `cargo clean` removes it and nothing of the
//! user's own installation is touched.

mod download;
mod npm;
mod python;
mod stamp;
mod tmux;

use crate::{
    context::Context,
    failure::{Failure, Result},
};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// One thing that tests, benches or the demo need.
pub struct Tool {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is for.
    pub what: &'static str,
    source: Source,
}

/// Where a tool comes from.
enum Source {
    /// The system's own package manager.
    System,
    /// The npm registry: a native program for this platform.
    Npm(Npm),
    /// The npm registry: a script or a library, which runs on `node`.
    Script(Npm),
    /// PyPI: a package in a virtual environment of its own; the tool is that environment's Python.
    Python {
        /// The package.
        package: &'static str,
        /// The version that is asked for.
        version: &'static str,
    },
}

/// A package from npm.
struct Npm {
    /// The package; `{platform}` stands for `linux-x64` and the like.
    package: &'static str,
    /// The version that is asked for.
    version: &'static str,
    /// Where the program is below `node_modules`, with `{platform}`, and `*` for one directory of any name.
    program: &'static str,
    /// About how much room it takes, for somebody who waits for it.
    size: &'static str,
}

/// What `cargo xtask setup` installs.
pub const TOOLS: &[Tool] = &[
    Tool { name: "tmux", what: "the terminal server that Lisa runs agents in", source: Source::System },
    Tool {
        name: "nu",
        what: "the shell that the plugin is for",
        source: Source::Npm(Npm {
            package: "nushell",
            version: "0.115.1",
            program: "@nushell/{platform}/bin/nu",
            size: "70 MB",
        }),
    },
    Tool {
        name: "node",
        what: "what the MCP conformance suites run on",
        source: Source::Npm(Npm {
            package: "node-{platform}",
            version: "22",
            program: "node-{platform}/bin/node",
            size: "190 MB",
        }),
    },
    Tool {
        name: "claude",
        what: "Claude Code, which tests run against a scripted model",
        source: Source::Npm(CLAUDE),
    },
    Tool {
        name: "codex",
        what: "Codex, which tests run against a scripted model",
        source: Source::Npm(Npm {
            package: "@openai/codex",
            version: "0.166.0",
            program: "@openai/codex-{platform}/vendor/*/bin/codex",
            size: "440 MB",
        }),
    },
];

const CLAUDE: Npm = Npm {
    package: "@anthropic-ai/claude-code",
    version: "2.1.197",
    program: "@anthropic-ai/claude-code-{platform}/claude",
    size: "240 MB",
};

/// What single tests install when they run.
pub const SUITES: &[Tool] = &[
    Tool {
        name: "claude-with-tasks",
        what: "a Claude Code that moves long tool calls into the background",
        source: Source::Npm(Npm { version: "2.1.325", ..CLAUDE }),
    },
    Tool {
        name: "conformance-2025",
        what: "the conformance suite of MCP 2025-11-25",
        source: Source::Script(Npm {
            package: "@modelcontextprotocol/conformance",
            version: "0.1.16",
            program: ".bin/conformance",
            size: "60 MB",
        }),
    },
    Tool {
        name: "conformance-2026",
        what: "the conformance suite of MCP 2026-07-28",
        source: Source::Script(Npm {
            package: "@modelcontextprotocol/conformance",
            version: "0.2.0-alpha.12",
            program: ".bin/conformance",
            size: "60 MB",
        }),
    },
    Tool {
        name: "inspector",
        what: "the MCP inspector",
        source: Source::Script(Npm {
            package: "@modelcontextprotocol/inspector",
            version: "2.12.0",
            program: ".bin/mcp-inspector",
            size: "120 MB",
        }),
    },
    Tool {
        name: "sdk-typescript",
        what: "MCP's client for TypeScript",
        source: Source::Script(Npm {
            package: "@modelcontextprotocol/client",
            version: "2.4.0",
            program: "@modelcontextprotocol/client/package.json",
            size: "20 MB",
        }),
    },
    Tool {
        name: "sdk-python",
        what: "MCP's client for Python",
        source: Source::Python { package: "mcp", version: "2.3.0" },
    },
];

/// Which version of an agent to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Release {
    /// the version that the profiles were recorded with
    #[default]
    Pinned,
    /// the newest version that npm has
    Latest,
}

/// A tool that is there.
#[derive(Debug, Clone)]
pub struct Ready {
    /// What it is called on the command line.
    pub name: &'static str,
    /// The version that it gives for itself.
    pub version: String,
    /// The program; of a library, a file in it.
    pub program: PathBuf,
}

/// The tool of this name.
pub fn find(name: &str) -> Result<&'static Tool> {
    TOOLS.iter().chain(SUITES).find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        Failure::new(format!("there is no tool `{name}`")).hint(format!("there are {}", names.join(", ")))
    })
}

impl Tool {
    /// Makes sure that the tool is there, and installs it if it is not.
    pub fn ensure(&self, context: &Context, release: Release) -> Result<Ready> {
        match &self.source {
            Source::System => tmux::ensure(context, self.name),
            Source::Npm(package) => {
                let latest = release == Release::Latest && self.is_agent();
                npm::ensure(context, self.name, package, latest)
            }
            Source::Script(package) => npm::ensure_script(context, self.name, package),
            Source::Python { package, version } => python::ensure(context, self.name, package, version),
        }
    }

    /// The version that is asked for, as a person would write it.
    pub fn wanted(&self) -> String {
        match &self.source {
            Source::System => format!(">= {}", tmux::MINIMUM),
            Source::Npm(package) | Source::Script(package) => package.version.to_owned(),
            Source::Python { version, .. } => (*version).to_owned(),
        }
    }

    fn is_agent(&self) -> bool {
        matches!(self.name, "claude" | "codex")
    }
}

impl Ready {
    /// The directory to put on PATH.
    pub fn directory(&self) -> Option<&Path> {
        self.program.parent()
    }
}

/// The first word of a text that begins like a version: `2.1.197 (Claude Code)`, `codex-cli 0.166.0`, `v22.1.0`.
fn version_in(text: &str) -> Option<&str> {
    let numbers = text.split_whitespace().map(|word| word.trim_start_matches('v'));
    numbers.into_iter().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_say_of_themselves() {
        assert_eq!(version_in("2.1.197 (Claude Code)\n"), Some("2.1.197"));
        assert_eq!(version_in("codex-cli 0.166.0"), Some("0.166.0"));
        assert_eq!(version_in("v22.23.1"), Some("22.23.1"));
        assert_eq!(version_in("tmux: command not found"), None);
    }

    #[test]
    fn an_unknown_tool_lists_the_known_ones() {
        let failure = find("emacs").err().unwrap().line();
        assert!(failure.contains("there are tmux, nu, node, claude, codex"), "{failure}");
    }

    #[test]
    fn nushell_is_the_version_that_the_plugin_is_built_for() {
        let manifest = std::fs::read_to_string(Context::deaf().root.join("Cargo.toml")).unwrap();
        let pinned = format!("nu-protocol = {{ version = \"={}\"", find("nu").unwrap().wanted());
        assert!(manifest.contains(&pinned), "{pinned}");
    }
}
