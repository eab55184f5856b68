//! The steps of a turn, and their help text.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::questions::Question;

/// The step language as printed by `--help`.
pub const HELP: &str = "\
STEPS (lines of a prompt or of a script that start with `!`; several on one line: `!think 1s ; !say hi`)
  !think 2s                        work with a spinner in the status line
  !say TEXT                        stream an answer (\\n in TEXT is a line break)
  !stream 3s                       stream filler text for that long
  !stall 5s                        freeze the screen in mid-answer; only the title spins
  !silent 5s                       work without any change, not even in the title
  !tool NAME \"ARG\" 2s [OUTPUT]     pretend to run a tool; quotes are needed when ARG has spaces
  !run COMMAND                     really run a shell command and show its output
  !permission NAME ARG             ask for permission to use a tool
  !ask H | Q? | A: why | B         ask one question with header H; `: why` describes an option
  !ask-multi H | Q? | A | B        ... several options may be ticked
  !ask-free H | Q? | A | B         ... with a free-text entry `Other…`
  !ask-many JSON                   several: [{\"header\",\"question\",\"options\":[..],\"multi\",\"free\"}, ..]
  !plan TEXT                       show a plan and ask whether to proceed
  !subagent NAME 2s                run a subagent
  !background COMMAND              start a real child process that outlives the turn
  !todo [x] a / [ ] b              print a checklist
  !compact 1s                      compact the conversation
  !retry KIND 3 1s                 fail 3 times, waiting 1s before each new attempt, then go on
  !fail KIND MESSAGE               end the turn with an error
                                   KIND: rate_limit overloaded network auth billing context
                                         invalid_request api
  !commit                          really run `git commit --allow-empty` here
  !pr                              say that a pull request was opened
  !env NAME / !argv / !cwd         print a variable, the arguments as JSON, the directory
  !hash                            print length and FNV-1a-64 hash of the prompt
  !exit N                          exit with this code
  !crash                           abort (SIGABRT), leaving terminal and files as they are
  !hang [hard]                     ignore everything but signals; hard: ignore SIGTERM too
A prompt without steps is answered with `You said: ...` after 300ms.";

/// The kinds of API errors.
pub const ERROR_KINDS: &[&str] =
    &["rate_limit", "overloaded", "network", "auth", "billing", "context", "invalid_request", "api"];

/// A step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Work behind a spinner.
    Think(Duration),
    /// Stream this answer.
    Say(String),
    /// Stream filler text for this long.
    Stream(Duration),
    /// Freeze the screen in the middle of an answer.
    Stall(Duration),
    /// Work without any change on the screen or in the title.
    Silent(Duration),
    /// Pretend to run a tool.
    Tool(ToolRun),
    /// Really run a shell command as a tool.
    Run(String),
    /// Ask for permission to use a tool.
    Permission(ToolUse),
    /// Ask one or several questions.
    Ask(Vec<Question>),
    /// Ask for approval of a plan.
    Plan(String),
    /// Run a subagent.
    Subagent {
        /// The subagent's type.
        name: String,
        /// How long it runs.
        time: Duration,
    },
    /// Start a child process that outlives the turn.
    Background(String),
    /// Print a checklist: whether each item is ticked, and its text.
    Todo(Vec<(bool, String)>),
    /// Compact the conversation.
    Compact(Duration),
    /// Fail several times with a delay, then continue.
    Retry {
        /// What failed.
        kind: String,
        /// The number of failed attempts.
        attempts: u32,
        /// The delay before each attempt.
        delay: Duration,
    },
    /// End the turn with an error.
    Fail {
        /// What failed.
        kind: String,
        /// The error message.
        message: String,
    },
    /// Make an empty commit in the working directory.
    Commit,
    /// Say that a pull request was opened.
    PullRequest,
    /// Print an environment variable.
    Env(String),
    /// Print the process's arguments.
    Argv,
    /// Print the working directory.
    Cwd,
    /// Print length and hash of the prompt.
    Hash,
    /// Exit with this code.
    Exit(i32),
    /// Abort.
    Crash,
    /// Stop reacting.
    Hang {
        /// Whether to ignore SIGTERM too.
        hard: bool,
    },
}

/// A tool and its argument.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// `Bash`, `Write`, ...
    pub name: String,
    /// The command, file or address.
    pub arg: String,
}

impl ToolUse {
    /// The `tool_input` object that hooks and transcript carry.
    #[must_use]
    pub fn input(&self) -> Value {
        let key = match self.name.as_str() {
            "Bash" => "command",
            "Write" | "Edit" | "Read" => "file_path",
            "WebFetch" => "url",
            "Task" => "prompt",
            _ => "input",
        };
        serde_json::json!({ key: self.arg })
    }

    /// The rule that "always allow" adds: a program for Bash, the exact argument otherwise.
    #[must_use]
    pub fn rule(&self) -> String {
        match self.name.as_str() {
            "Bash" => format!("Bash({}:*)", self.arg.split_whitespace().next().unwrap_or("")),
            name => format!("{name}({})", self.arg),
        }
    }
}

impl fmt::Display for ToolUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.arg)
    }
}

/// A simulated run of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRun {
    /// The tool.
    pub tool: ToolUse,
    /// The duration.
    pub time: Duration,
    /// The output.
    pub output: String,
}
