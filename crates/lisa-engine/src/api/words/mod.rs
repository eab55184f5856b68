//! The public vocabulary: every word that Lisa uses about a session, documented once, here.
//!
//! [`State`] owns its data (an exit has a code, a permission has its prompt). [`Status`] and [`Attention`] are derived
//! from it and never stored next to it, so they can't drift apart.

/// Declares a closed set of public words: serialised in snake_case, printable, and listable for completions.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
            schemars::JsonSchema,
        )]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// All words, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The word, as in JSON and tables.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// Parses a word; `None` if it isn't one of these.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|w| w.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.as_str()) }
        }
    };
}

pub(crate) use words;

mod reason;
mod signals;
mod why;

pub use reason::Reason;
pub use signals::{SignalError, Signals, Todos};
pub use why::{EvidenceItem, FailedSignal, PassedOver};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// What a session is doing: one of eight coarse words.
    Status {
        /// Just started; the agent hasn't shown yet that it takes input.
        JustStarted = "just_started",
        /// The agent is working on its turn.
        InProgress = "in_progress",
        /// The agent needs input: its turn is over, or a prompt is open.
        WaitingInput = "waiting_input",
        /// The process ended normally.
        Completed = "completed",
        /// The process failed or was killed, or its session is gone.
        Crashed = "crashed",
        /// The agent is alive, but nothing moves and no prompt is open.
        Stuck = "stuck",
        /// Lisa couldn't observe enough to tell what the session is doing.
        Degraded = "degraded",
        /// There is no such session.
        NotFound = "not_found",
    }
}

words! {
    /// What a session is doing, in more detail; each state belongs to one status.
    StateName {
        /// The agent is starting up.
        Starting = "starting",
        /// The agent is working.
        Working = "working",
        /// The turn is over and the agent takes a new prompt.
        Ready = "ready",
        /// The agent asks for permission to use a tool.
        AwaitingPermission = "awaiting_permission",
        /// The agent asks a question with options.
        AwaitingQuestion = "awaiting_question",
        /// The agent shows a plan and asks whether to go ahead.
        AwaitingPlan = "awaiting_plan",
        /// Another dialog is open: trust, API key, update, picker and so on.
        AwaitingDialog = "awaiting_dialog",
        /// Somebody interrupted the turn.
        Interrupted = "interrupted",
        /// The turn failed and the agent gave up retrying.
        Error = "error",
        /// The process has ended.
        Exited = "exited",
        /// The agent is alive, but nothing moves and no prompt is open.
        Stalled = "stalled",
        /// Lisa couldn't observe enough to tell.
        Unknown = "unknown",
    }
}

words! {
    /// Whether somebody should look at the session now.
    Attention {
        /// No: leave it alone.
        Autonomous = "autonomous",
        /// Yes: it is blocked on an answer, has failed, or asked something.
        NeedsYou = "needs_you",
        /// Yes, it has a result: the turn is finished, a pull request is open, or the process is done.
        Delivered = "delivered",
    }
}

words! {
    /// How sure the verdict is; follows from who provided the evidence.
    Confidence {
        /// The process, the run's own completion, or the agent itself says so.
        Certain = "certain",
        /// The structure of the screen says so, or an unconfirmed statement of the agent.
        Likely = "likely",
        /// Only timing says so.
        Guess = "guess",
    }
}

words! {
    /// What a working agent is busy with.
    Activity {
        /// Waiting for the first words of the model.
        Thinking = "thinking",
        /// Writing the answer.
        Streaming = "streaming",
        /// Running a tool.
        Tool = "tool",
        /// Subagents are working.
        Subagent = "subagent",
        /// Compacting the conversation.
        Compacting = "compacting",
        /// The model's API failed and the agent is retrying.
        Retrying = "retrying",
        /// The turn is over but background tasks are still running.
        Background = "background",
    }
}

words! {
    /// Why a turn failed.
    ErrorKind {
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The model's API is overloaded.
        Overloaded = "overloaded",
        /// The API can't be reached, or the connection broke.
        Network = "network",
        /// The API key or the login was rejected.
        Auth = "auth",
        /// Out of credit, or at a spending limit.
        Billing = "billing",
        /// The conversation exceeds the model's context window.
        Context = "context",
        /// The API rejected the request as invalid.
        InvalidRequest = "invalid_request",
        /// Any other API failure.
        Api = "api",
    }
}

impl ErrorKind {
    /// Whether a retry of the same prompt may succeed without anybody changing anything.
    pub const fn recoverable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Network | Self::Api)
    }
}

words! {
    /// How a process ended.
    ExitKind {
        /// It exited by itself, or its user ended it.
        UserInitiated = "user_initiated",
        /// It failed.
        Crash = "crash",
        /// A signal from outside killed it.
        Killed = "killed",
        /// It hit a time limit.
        Timeout = "timeout",
        /// Unknown.
        Unknown = "unknown",
    }
}

words! {
    /// The kinds of prompts an agent can be blocked on.
    PromptKind {
        /// Asks for permission to use a tool.
        Permission = "permission",
        /// Asks a question with options.
        Question = "question",
        /// Asks to approve a plan.
        Plan = "plan",
        /// Any other dialog; `dialog` says which.
        Dialog = "dialog",
    }
}

words! {
    /// Which dialog a prompt of kind `dialog` is.
    DialogKind {
        /// Asks whether to trust this directory.
        Trust = "trust",
        /// Asks whether to use the API key in the environment.
        ApiKey = "api_key",
        /// The warning before permissions are bypassed.
        Bypass = "bypass",
        /// Offers a newer version of the agent.
        Update = "update",
        /// Offers a newer model.
        Migration = "migration",
        /// Asks to review hooks.
        HookReview = "hook_review",
        /// Asks to log in.
        Login = "login",
        /// A list to pick one entry from, for example a conversation to resume.
        Picker = "picker",
        /// A menu of the agent itself, for example settings or models.
        Menu = "menu",
        /// A tool server (MCP) asks for input.
        Elicitation = "elicitation",
    }
}

words! {
    /// What choosing an option does.
    Effect {
        /// Allow this once.
        AllowOnce = "allow_once",
        /// Allow this and everything like it from now on.
        AllowAlways = "allow_always",
        /// Deny.
        Deny = "deny",
        /// Choose this answer.
        Choose = "choose",
        /// Exit the agent.
        Exit = "exit",
        /// Anything else.
        Other = "other",
    }
}

/// A question of the agent, as data. Answer it by option; an answer is only typed while the prompt's `id` is still the
/// same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Fingerprint of the question; an answer is only given while the open prompt has the same one.
    pub id: String,
    /// What kind of prompt this is.
    pub kind: PromptKind,
    /// Which dialog it is, if `kind` is `dialog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<DialogKind>,
    /// The question.
    pub title: String,
    /// What is shown with the question: the command, the diff, the plan, the warning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The tool that the agent asks permission for, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The command that the agent asks permission for, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The file that the agent asks permission for, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The options to choose from.
    pub options: Vec<PromptOption>,
    /// Whether several options may be chosen.
    #[serde(default)]
    pub multi: bool,
    /// Whether it accepts an answer in free text.
    #[serde(default)]
    pub free_text: bool,
    /// Whether the dialog doesn't fit into the pane, so that options may be missing here.
    #[serde(default)]
    pub truncated: bool,
    /// The position in a form of several questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<PromptStep>,
    /// Whether the agent itself says something else than its screen shows: another command (`command` is the agent's,
    /// `body` the screen's), or that nothing is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disagrees: bool,
}

/// The position in a form of several questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptStep {
    /// The number of the question shown, from 1.
    pub number: u32,
    /// How many questions there are.
    pub of: u32,
}

/// One option of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptOption {
    /// What to pass as `choice`: the option's number or letter.
    pub key: String,
    /// The option's text on the screen.
    pub label: String,
    /// Whether the agent's cursor is on it.
    #[serde(default)]
    pub selected: bool,
    /// In a multi-select prompt: whether it is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<bool>,
    /// What choosing it does.
    pub effect: Effect,
}

/// Why a turn failed, in the agent's own words if it gave any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// Whether a retry may help.
    pub recoverable: bool,
    /// The agent's message.
    pub message: String,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exit {
    /// The exit code; absent while unknown, never 0 as a placeholder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that killed it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How it came to its end.
    pub kind: ExitKind,
}

impl Exit {
    /// The status for this exit: `completed` only if the code is known to be 0 or the user ended it.
    pub fn status(&self) -> Status {
        let fine = self.signal.is_none() && self.code == Some(0);
        if fine || self.kind == ExitKind::UserInitiated { Status::Completed } else { Status::Crashed }
    }
}

/// What a session is doing, with the data that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// See [`StateName::Starting`].
    Starting,
    /// See [`StateName::Working`].
    Working {
        /// What it is busy with.
        activity: Activity,
        /// The running tool, if known.
        tool: Option<String>,
    },
    /// See [`StateName::Ready`].
    Ready {
        /// The agent's last message, if known.
        last_message: Option<String>,
        /// Whether that message ends in a question.
        asks: bool,
    },
    /// See [`StateName::AwaitingPermission`].
    AwaitingPermission {
        /// What is asked.
        prompt: Prompt,
    },
    /// See [`StateName::AwaitingQuestion`].
    AwaitingQuestion {
        /// What is asked.
        prompt: Prompt,
    },
    /// See [`StateName::AwaitingPlan`].
    AwaitingPlan {
        /// What is asked.
        prompt: Prompt,
    },
    /// See [`StateName::AwaitingDialog`].
    AwaitingDialog {
        /// What is asked.
        prompt: Prompt,
    },
    /// See [`StateName::Interrupted`].
    Interrupted,
    /// See [`StateName::Error`].
    Error {
        /// What failed.
        failure: Failure,
    },
    /// See [`StateName::Exited`].
    Exited {
        /// How it ended.
        exit: Exit,
    },
    /// See [`StateName::Stalled`].
    Stalled {
        /// What was expected to happen.
        expected: String,
    },
    /// See [`StateName::Unknown`].
    Unknown {
        /// The signals that failed.
        failed: Vec<SignalError>,
    },
}

impl State {
    /// The state's public word.
    pub const fn name(&self) -> StateName {
        match self {
            Self::Starting => StateName::Starting,
            Self::Working { .. } => StateName::Working,
            Self::Ready { .. } => StateName::Ready,
            Self::AwaitingPermission { .. } => StateName::AwaitingPermission,
            Self::AwaitingQuestion { .. } => StateName::AwaitingQuestion,
            Self::AwaitingPlan { .. } => StateName::AwaitingPlan,
            Self::AwaitingDialog { .. } => StateName::AwaitingDialog,
            Self::Interrupted => StateName::Interrupted,
            Self::Error { .. } => StateName::Error,
            Self::Exited { .. } => StateName::Exited,
            Self::Stalled { .. } => StateName::Stalled,
            Self::Unknown { .. } => StateName::Unknown,
        }
    }

    /// The status that this state belongs to.
    pub fn status(&self) -> Status {
        match self {
            Self::Starting => Status::JustStarted,
            Self::Working { .. } => Status::InProgress,
            Self::Ready { .. }
            | Self::AwaitingPermission { .. }
            | Self::AwaitingQuestion { .. }
            | Self::AwaitingPlan { .. }
            | Self::AwaitingDialog { .. }
            | Self::Interrupted
            | Self::Error { .. } => Status::WaitingInput,
            Self::Exited { exit } => exit.status(),
            Self::Stalled { .. } => Status::Stuck,
            Self::Unknown { .. } => Status::Degraded,
        }
    }

    /// The open prompt, if the session is blocked on one.
    pub const fn prompt(&self) -> Option<&Prompt> {
        match self {
            Self::AwaitingPermission { prompt }
            | Self::AwaitingQuestion { prompt }
            | Self::AwaitingPlan { prompt }
            | Self::AwaitingDialog { prompt } => Some(prompt),
            _ => None,
        }
    }

    /// The open prompt, mutable.
    pub const fn prompt_mut(&mut self) -> Option<&mut Prompt> {
        match self {
            Self::AwaitingPermission { prompt }
            | Self::AwaitingQuestion { prompt }
            | Self::AwaitingPlan { prompt }
            | Self::AwaitingDialog { prompt } => Some(prompt),
            _ => None,
        }
    }

    /// The state for an open prompt.
    pub fn awaiting(prompt: Prompt) -> Self {
        match prompt.kind {
            PromptKind::Permission => Self::AwaitingPermission { prompt },
            PromptKind::Question => Self::AwaitingQuestion { prompt },
            PromptKind::Plan => Self::AwaitingPlan { prompt },
            PromptKind::Dialog => Self::AwaitingDialog { prompt },
        }
    }
}
words! {
    /// How a session runs its agent.
    #[derive(Default)]
    Mode {
        /// A terminal session that takes one prompt after another.
        #[default]
        Interactive = "interactive",
        /// Runs one prompt to completion.
        Exec = "exec",
    }
}
