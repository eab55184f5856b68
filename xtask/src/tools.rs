//! What a machine needs beside Rust, git and npm: one table, and one way to come by each.
//!
//! The agents are pinned to the versions that the profiles were recorded with. They and the rest from npm live in the
//! build directory, so that `cargo clean` removes them and nothing of the user's own installation is touched.

mod npm;
mod tmux;

use crate::{
    context::{Context, refuse_unknown},
    failure::{Failure, Result},
};
use std::path::{Path, PathBuf};

/// One thing that tests, benches or the demo need.
pub(crate) struct Tool {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) what: &'static str,
    source: Source,
}

/// Where a tool comes from.
enum Source {
    /// The system's own package manager.
    System,
    /// The npm registry.
    Npm(Npm),
}

/// A package that brings a native program for this platform.
struct Npm {
    /// The package; `{platform}` stands for `linux-x64` and the like.
    package: &'static str,
    /// The version that is asked for.
    version: &'static str,
    /// Where the program is below `node_modules`, with `{platform}`, and `*` for one folder of any name.
    program: &'static str,
    /// About how much room it takes, for somebody who waits for it.
    size: &'static str,
}

/// Every tool there is.
pub(crate) const TOOLS: &[Tool] = &[
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
        source: Source::Npm(Npm {
            package: "@anthropic-ai/claude-code",
            version: "2.1.197",
            program: "@anthropic-ai/claude-code-{platform}/claude",
            size: "240 MB",
        }),
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

/// Which version of an agent to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The one that the profiles were recorded with.
    Pinned,
    /// The newest that npm has.
    Latest,
}

impl Release {
    /// Takes `--agents pinned|latest` out of a command line; without it, the pinned ones are meant.
    pub(crate) fn taken_from(words: &mut Vec<&str>) -> Result<Self> {
        let Some(at) = words.iter().position(|word| *word == "--agents") else { return Ok(Self::Pinned) };
        let release = match words.get(at + 1) {
            Some(&"latest") => Self::Latest,
            Some(&"pinned") => Self::Pinned,
            _ => return Err(Failure::new("`--agents` takes `latest` or `pinned`")),
        };
        words.drain(at..at + 2);
        Ok(release)
    }
}

/// A tool that is there.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    pub(crate) program: PathBuf,
}

/// `cargo xtask setup`.
pub(crate) fn command(context: &Context, arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    refuse_unknown(&words, &["--list"])?;
    if words.contains(&"--list") {
        for tool in TOOLS {
            println!("{:7} {:8} {}", tool.name, tool.wanted(), tool.what);
        }
        return Ok(());
    }
    let chosen = if words.is_empty() {
        TOOLS.iter().collect()
    } else {
        words.iter().map(|name| find(name)).collect::<Result<Vec<_>>>()?
    };
    let mut missing = 0;
    for tool in chosen {
        match tool.ensure(context, Release::Pinned) {
            Ok(ready) => println!("{:7} {}  {}", ready.name, ready.version, context.short(&ready.program)),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => {
                missing += 1;
                println!("{:7} missing: {}", tool.name, failure.line());
            }
        }
    }
    if missing == 0 { Ok(()) } else { Err(Failure::Reported) }
}

/// The tool of this name.
pub(crate) fn find(name: &str) -> Result<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        Failure::new(format!("there is no tool `{name}`")).hint(format!("there are {}", names.join(", ")))
    })
}

impl Tool {
    /// Makes sure that the tool is there, and installs it if it is not.
    pub(crate) fn ensure(&self, context: &Context, release: Release) -> Result<Ready> {
        match &self.source {
            Source::System => tmux::ensure(context, self.name),
            Source::Npm(package) => {
                let latest = release == Release::Latest && self.is_agent();
                npm::ensure(context, self.name, package, latest)
            }
        }
    }

    /// The version that is asked for, as a person would write it.
    fn wanted(&self) -> String {
        match &self.source {
            Source::System => format!(">= {}", tmux::MINIMUM),
            Source::Npm(package) => package.version.to_owned(),
        }
    }

    fn is_agent(&self) -> bool {
        matches!(self.name, "claude" | "codex")
    }
}

impl Ready {
    /// The folder to put on PATH.
    pub(crate) fn folder(&self) -> Option<&Path> {
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
}
