//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{ffi::OsString, path::PathBuf};

const ABOUT: &str = "Drive AI coding agents in tmux from another agent, over MCP.";

const LONG_ABOUT: &str = "\
Drive AI coding agents in tmux from another agent, over MCP.

Without a subcommand it's an MCP server on standard input and output, started by a client such as Claude Code or \
Codex. Agents run in a private tmux server and keep running after the client and the server exit.";

const AFTER: &str = "\
Set it up:
  lisa-mcp install --client claude     register with Claude Code (this project)
  lisa-mcp install --client codex      register with Codex
  lisa-mcp doctor                      check tmux, agents and the state directory

Over HTTP:
  lisa-mcp --http 127.0.0.1:7457       serve http://127.0.0.1:7457/mcp; the path of the bearer token file is
                                       printed to standard error

Environment:
  LISA_STATE_DIR     directory for sessions and the journal  ($XDG_STATE_HOME/lisa)
  LISA_CONFIG_DIR    directory of config.toml and agents/    ($XDG_CONFIG_HOME/lisa)
  LISA_TMUX_SOCKET   name or path of the private tmux server (lisa)
  LISA_MAX_SESSIONS  maximum number of live sessions         (64)
  LISA_MAX_DEPTH     maximum nesting of sessions             (3)
  LISA_MCP_TOKEN     bearer token for --http
  LISA_LOG           log filter, such as lisa_engine=debug   (warn)

To watch an agent: tmux -L lisa attach -t NAME";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "lisa-mcp",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = AFTER,
    max_term_width = 110,
    subcommand_help_heading = "Subcommands"
)]
pub struct Cli {
    /// HTTP options.
    #[command(flatten)]
    pub http: HttpFlags,
    /// Restrictions on parents.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// The subcommand; without one, the program runs the MCP server.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// HTTP options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpFlags {
    /// Serve over HTTP at this address (`127.0.0.1:7457`, or a port) instead of standard input and output
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// File with the bearer token, mode 600 (default: LISA_MCP_TOKEN, or a generated token in the state directory)
    #[arg(long, value_name = "FILE", requires = "http")]
    pub token_file: Option<PathBuf>,
    /// Accept requests without a token (loopback only)
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub no_auth: bool,
    /// Allow an address that other machines can reach
    #[arg(long, requires = "http")]
    pub allow_remote: bool,
    /// Additional Host header to accept besides loopback names (repeatable)
    #[arg(long, value_name = "HOST", requires = "http")]
    pub allow_host: Vec<String>,
    /// Origin of a web page that may connect, such as http://localhost:6274 (default: none; repeatable)
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allow_origin: Vec<String>,
}

/// Restrictions on parents, in addition to config.toml.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Restrictions on parents (in addition to config.toml)")]
pub struct PolicyFlags {
    /// Allow only this agent (repeatable)
    #[arg(long, value_name = "AGENT")]
    pub allow_agent: Vec<String>,
    /// Allow sessions only in this directory and below (repeatable)
    #[arg(long, value_name = "DIR")]
    pub allow_root: Vec<PathBuf>,
    /// Reject this agent argument (repeatable)
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub deny_flag: Vec<String>,
    /// Reject flags that disable an agent's safety checks
    #[arg(long)]
    pub no_dangerous: bool,
    /// Maximum number of live sessions
    #[arg(long, value_name = "N")]
    pub max_sessions: Option<u32>,
    /// Maximum nesting of sessions that start sessions
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u32>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check tmux, the agents and the state directory; exit status 1 if something required is missing
    Doctor {
        /// Print a text for a bug report instead: versions, checks, and the log of one look at every session
        #[arg(long)]
        trace: bool,
    },
    /// Register this server with a client by running the client's own command
    Install(InstallFlags),
    /// Print the verdict on each frame of a recording, one JSON line each
    Replay {
        /// The recording, plain or gzip (default: standard input)
        file: Option<PathBuf>,
        /// Print everything known about each frame, not only the verdict
        #[arg(long)]
        full: bool,
    },
    /// Record a live session to standard output as a lisa-recording/1 timeline, with secrets masked
    Record {
        /// The session's name
        name: String,
        /// Stop after this many seconds (default: when the session ends)
        #[arg(long, value_name = "N")]
        seconds: Option<u64>,
    },
    /// Called by agents' hooks: reads the event from standard input and always exits with 0
    Hook {
        /// Passed through unchanged
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Lisa's internal helper processes
    #[command(hide = true)]
    Helper {
        /// Passed through unchanged
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// Options of `install`.
#[derive(Debug, Clone, Args)]
pub struct InstallFlags {
    /// The client to register with
    #[arg(long, value_enum)]
    pub client: Client,
    /// Scope of the registration (default: `project` for claude, `user` for codex)
    #[arg(long, value_enum)]
    pub scope: Option<Scope>,
    /// Name of this server in the client
    #[arg(long, default_value = "lisa")]
    pub name: String,
    /// Only print the command, don't run it
    #[arg(long)]
    pub dry_run: bool,
    /// Options to start this server with, after `--`
    #[arg(last = true)]
    pub options: Vec<String>,
}

/// A supported MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
}

/// Scope of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Only you, in this directory
    Local,
    /// Everybody who works in this directory
    Project,
    /// You, everywhere
    User,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_accepts_the_command_line() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_shows_setup_and_environment_variables() {
        let help = Cli::command().render_long_help().to_string();
        for part in
            ["install --client claude", "--http", "LISA_MCP_TOKEN", "--allow-agent", "doctor", "tmux -L lisa"]
        {
            assert!(help.contains(part), "{part} is missing:\n{help}");
        }
        assert!(!help.contains("helper"), "helper is hidden");
    }

    #[test]
    fn deny_flag_takes_a_value_that_starts_with_dashes() {
        let cli = Cli::parse_from(["lisa-mcp", "--deny-flag", "--yolo", "--max-sessions", "3"]);
        assert_eq!(cli.policy.deny_flag, ["--yolo"]);
        assert_eq!(cli.policy.max_sessions, Some(3));
    }
}
