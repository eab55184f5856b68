//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// A scripted AI coding agent for demos and tests: it has the screen, dialogs, hooks and hazards of real agents, but no
/// model. It needs no network and no API key.
///
/// Type a prompt: the agent runs the steps written in it (see below).
#[derive(Debug, Parser)]
#[command(name = "lisa-demo-agent", version, after_help = crate::step::HELP, max_term_width = 110)]
pub struct Args {
    /// The first prompt, submitted as soon as the agent is ready (words are joined with spaces).
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,

    /// Read the first prompt from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub prompt_file: Option<PathBuf>,

    /// Run without a screen: take the prompt from the arguments or standard input, print the answer, and exit
    /// (0: done, 1: failed). Permissions are denied.
    #[arg(short = 'p', long)]
    pub exec: bool,

    /// File with the steps of the next turns, used instead of those in the prompts: TOML (`[[turn]]` with
    /// `steps = [..]`) if the name ends in .toml, else lines of steps with `---` between turns.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,

    /// The model name to show.
    #[arg(long, default_value = "demo-large")]
    pub model: String,

    /// Session id [default: random].
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    pub session_id: Option<String>,

    /// Resume this session; its turns are counted in the transcript.
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,

    /// Start-up delay before anything is drawn; input is kept meanwhile.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub boot_ms: u64,

    /// Ask at start-up whether the directory is trusted.
    #[arg(long)]
    pub ask_trust: bool,

    /// Ask at start-up to log in.
    #[arg(long)]
    pub ask_login: bool,

    /// Let start-up dialogs ignore every key.
    #[arg(long)]
    pub deaf: bool,

    /// Never ask for permission (after a start-up warning whose default is to exit).
    #[arg(long)]
    pub dangerous: bool,

    /// Use the alternate screen.
    #[arg(long)]
    pub alt_screen: bool,

    /// Don't set the terminal title.
    #[arg(long)]
    pub no_title: bool,

    /// Frames per second of the spinner; 0 disables the animation (seconds and title still change once a second).
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub spinner_hz: u32,

    /// Characters per second of an answer; 0 means all at once.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub stream_cps: u32,

    /// Let Enter at the end of a long unbracketed burst submit, instead of inserting a line break.
    #[arg(long)]
    pub no_burst: bool,

    /// A hook command that gets every event as JSON on standard input: a JSON list of arguments, or a shell command
    /// (repeatable).
    #[arg(long, visible_alias = "hooks", value_name = "CMD")]
    pub hook_command: Vec<String>,

    /// Hooks by event: a file with `{"hooks": {"Stop": CMD, "*": CMD}}`, or that JSON itself.
    #[arg(long, value_name = "FILE|JSON")]
    pub settings: Option<String>,

    /// Let the PermissionRequest hook decide by printing `{"decision": "allow"|"deny", "message": ..}`; if it prints
    /// nothing, the user is asked.
    #[arg(long)]
    pub hook_decides: bool,

    /// Run no hooks; overrides the other hook options.
    #[arg(long)]
    pub no_hooks: bool,

    /// Append the transcript to this file as JSON lines; `{session}` in the name is replaced by the session id.
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<String>,

    /// Publish the agent's state in this JSON file (removed on a clean exit).
    #[arg(long, value_name = "FILE")]
    pub state_file: Option<PathBuf>,

    /// Append every key, prompt and dialog answer to this file as JSON lines, for tests.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}
