//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{ffi::OsString, path::PathBuf};

const ABOUT: &str = "Drive AI coding agents in tmux from another agent, over MCP.";

const LONG_ABOUT: &str = "\
Drive AI coding agents in tmux from another agent, over MCP.

Without a sub-command it is an MCP server on standard input and output: a client such as Claude Code or Codex starts \
it. The agents it starts run in a private tmux server and go on when client and server end.";

const AFTER: &str = "\
Set it up:
  lisa-mcp install --client claude     register with Claude Code (this project)
  lisa-mcp install --client codex      register with Codex
  lisa-mcp doctor                      check tmux, agents and the state folder

Over HTTP:
  lisa-mcp --http 127.0.0.1:7457       serves http://127.0.0.1:7457/mcp; the bearer token's file is named on
                                       standard error

Environment:
  LISA_STATE_DIR     where sessions and the journal are kept   ($XDG_STATE_HOME/lisa)
  LISA_CONFIG_DIR    config.toml and your own agents/*.toml    ($XDG_CONFIG_HOME/lisa)
  LISA_TMUX_SOCKET   name or path of the private tmux server   (lisa)
  LISA_MAX_SESSIONS  how many sessions may live at once        (64)
  LISA_MAX_DEPTH     how deep sessions may start sessions      (3)
  LISA_MCP_TOKEN     bearer token for --http
  LISA_LOG           what is logged to standard error          (warn; such as info, or lisa_engine=debug)

To see what an agent does: tmux -L lisa attach -t NAME";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "lisa-mcp",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = AFTER,
    max_term_width = 110,
    subcommand_help_heading = "Sub-commands"
)]
pub struct Cli {
    /// How the server is reached.
    #[command(flatten)]
    pub http: HttpFlags,
    /// What parents may do.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// What to do instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// How the server is reached over HTTP.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpFlags {
    /// Serve over HTTP at this address (`127.0.0.1:7457`, or a port) instead of standard input and output
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// File with the bearer token (yours alone: mode 600); else LISA_MCP_TOKEN, else one is made and kept
    #[arg(long, value_name = "FILE", requires = "http")]
    pub token_file: Option<PathBuf>,
    /// Take requests without a token; on loopback only
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub no_auth: bool,
    /// Listen on an address that other machines can reach
    #[arg(long, requires = "http")]
    pub allow_remote: bool,
    /// Host name that requests may use, beside loopback (repeatable)
    #[arg(long, value_name = "HOST", requires = "http")]
    pub allow_host: Vec<String>,
    /// Origin of a web page that may connect, such as http://localhost:6274; none may otherwise (repeatable)
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allow_origin: Vec<String>,
}

/// What parents may do; each narrows what config.toml allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "What parents may do (each narrows what config.toml allows)")]
pub struct PolicyFlags {
    /// Start only this agent (repeatable)
    #[arg(long, value_name = "AGENT")]
    pub allow_agent: Vec<String>,
    /// Start sessions only below this folder (repeatable)
    #[arg(long, value_name = "FOLDER")]
    pub allow_root: Vec<PathBuf>,
    /// Refuse this argument for agents (repeatable)
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub deny_flag: Vec<String>,
    /// Refuse whatever switches an agent's own safety off
    #[arg(long)]
    pub no_dangerous: bool,
    /// How many sessions may live at once
    #[arg(long, value_name = "N")]
    pub max_sessions: Option<u32>,
    /// How deep sessions may start sessions
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u32>,
}

/// What to do instead of serving.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check tmux, the agents and the state folder; exit status 1 if something needed is missing
    Doctor,
    /// Register this server with a client, by the client's own command
    Install(InstallFlags),
    /// Print the verdict on each frame of a recording, one JSON line each
    Replay {
        /// The recording, plain or gzip; standard input unless said
        file: Option<PathBuf>,
        /// Everything that is known about each frame, not only the verdict
        #[arg(long)]
        full: bool,
    },
    /// Record a live session as a lisa-recording/1 timeline on standard output, secrets masked
    Record {
        /// The session's name
        name: String,
        /// Stop after this many seconds; when the session ends unless said
        #[arg(long, value_name = "N")]
        seconds: Option<u64>,
    },
    /// What agents' hooks call; takes the event on standard input and never fails the agent
    Hook {
        /// Passed on as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Lisa's own helper processes
    #[command(hide = true)]
    Helper {
        /// Passed on as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// How to register with a client.
#[derive(Debug, Clone, Args)]
pub struct InstallFlags {
    /// The client
    #[arg(long, value_enum)]
    pub client: Client,
    /// Where it applies: `project` unless said for claude, `user` for codex
    #[arg(long, value_enum)]
    pub scope: Option<Scope>,
    /// What the client shall call this server
    #[arg(long, default_value = "lisa")]
    pub name: String,
    /// Only print what would be run
    #[arg(long)]
    pub dry_run: bool,
    /// Options that the client shall start this server with, after `--`
    #[arg(last = true)]
    pub options: Vec<String>,
}

/// A client that the server can be registered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
}

/// Where a registration applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// You, in this folder
    Local,
    /// Everybody who works in this folder
    Project,
    /// You, everywhere
    User,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_says_how_to_set_it_up_and_names_the_environment() {
        let help = Cli::command().render_long_help().to_string();
        for part in
            ["install --client claude", "--http", "LISA_MCP_TOKEN", "--allow-agent", "doctor", "tmux -L lisa"]
        {
            assert!(help.contains(part), "{part} is missing:\n{help}");
        }
        assert!(!help.contains("helper"), "helpers are nobody's business");
    }

    #[test]
    fn a_flag_can_be_denied_although_it_looks_like_one() {
        let cli = Cli::parse_from(["lisa-mcp", "--deny-flag", "--yolo", "--max-sessions", "3"]);
        assert_eq!(cli.policy.deny_flag, ["--yolo"]);
        assert_eq!(cli.policy.max_sessions, Some(3));
    }
}
