//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// A scripted stand-in for an AI coding agent: same kind of screen, dialogs, hooks and hazards, no model behind
/// it. It needs no network and no key.
///
/// Type a prompt; the steps written in it (see below) are what the agent does.
#[derive(Debug, Parser)]
#[command(name = "lisa-demo-agent", version, after_help = crate::step::HELP, max_term_width = 110)]
pub struct Args {
    /// The first prompt, submitted as soon as the agent is ready (words are joined by a space).
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,

    /// Read the first prompt from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub prompt_file: Option<PathBuf>,

    /// No screen: take the prompt from the arguments or standard input, print the answer, exit
    /// (0 done, 1 failed). Permissions are denied.
    #[arg(short = 'p', long)]
    pub exec: bool,

    /// Steps of the coming turns, instead of those in the prompts: TOML (`[[turn]]` with `steps = [..]`) if the
    /// name ends in .toml, else lines of steps with `---` between turns.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,

    /// The model's name, for show.
    #[arg(long, default_value = "demo-large")]
    pub model: String,

    /// Id of the session [default: random].
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    pub session_id: Option<String>,

    /// Go on with this session; its turns are counted in the transcript.
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,

    /// Time before anything is drawn; what is typed meanwhile is kept.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub boot_ms: u64,

    /// Ask at the start whether the folder is trusted.
    #[arg(long)]
    pub ask_trust: bool,

    /// Ask at the start to log in.
    #[arg(long)]
    pub ask_login: bool,

    /// Never ask for permission (after a warning at the start whose default is to leave).
    #[arg(long)]
    pub dangerous: bool,

    /// Use the alternate screen.
    #[arg(long)]
    pub alt_screen: bool,

    /// Do not set the terminal's title.
    #[arg(long)]
    pub no_title: bool,

    /// Frames per second of the spinner; 0 stands still (seconds and title go on once a second).
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub spinner_hz: u32,

    /// Characters per second of an answer; 0 is all at once.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub stream_cps: u32,

    /// Enter at the end of a long unbracketed burst submits, instead of being taken for a line break.
    #[arg(long)]
    pub no_burst: bool,

    /// A command told of every event, as JSON on its input: a JSON list of arguments, or a line for the shell.
    /// May be repeated.
    #[arg(long, visible_alias = "hooks", value_name = "CMD")]
    pub hook_command: Vec<String>,

    /// Hooks by event: `{"hooks": {"Stop": CMD, "*": CMD}}` in a file, or that JSON itself.
    #[arg(long, value_name = "FILE|JSON")]
    pub settings: Option<String>,

    /// The hook for PermissionRequest may decide, by printing
    /// `{"decision": "allow"|"deny", "message": ..}`; if it prints nothing the user is asked.
    #[arg(long)]
    pub hook_decides: bool,

    /// Run no hooks, whatever else is said.
    #[arg(long)]
    pub no_hooks: bool,

    /// Append what happens to a file of JSON lines; `{session}` in the name stands for the session's id.
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<String>,

    /// Publish the own state in this JSON file (removed on a clean exit).
    #[arg(long, value_name = "FILE")]
    pub state_file: Option<PathBuf>,

    /// Append every key, prompt and dialog answer to a file of JSON lines, for tests.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}
