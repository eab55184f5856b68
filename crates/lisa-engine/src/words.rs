//! The public vocabulary: every word that Lisa says about a session, documented once, here.
//!
//! [`State`] owns its data (an exit has a code, a permission has its prompt); [`Status`] and [`Attention`] are
//! derived from it and never stored beside it, so the two can not drift apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a closed set of public words: serialised in snake_case, printable, and listable for completions.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
            schemars::JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vmeta])* $variant,)+ }

        impl $name {
            /// Every word of this set, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The word as it stands in JSON and in tables.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The value that a word names, if it is one of this set.
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

words! {
    /// What a session is doing, in one of eight coarse words.
    Status {
        /// Started moments ago; the agent has not shown that it can take input yet.
        JustStarted = "just_started",
        /// The agent works on its turn.
        InProgress = "in_progress",
        /// Nothing happens until somebody gives input: the turn is over, or a prompt is open.
        WaitingInput = "waiting_input",
        /// The process ended as it should.
        Completed = "completed",
        /// The process ended in failure, was killed, or its session is gone.
        Crashed = "crashed",
        /// Alive, but nothing moves and nothing is asked.
        Stuck = "stuck",
        /// Lisa could not look: what is known is too little for a verdict.
        Degraded = "degraded",
        /// There is no such session.
        NotFound = "not_found",
    }
}

words! {
    /// What a session is doing, in the finer words; each belongs to one status.
    StateName {
        /// The agent is starting.
        Starting = "starting",
        /// The agent works.
        Working = "working",
        /// The turn is over and the agent takes a new prompt.
        Ready = "ready",
        /// The agent asks whether it may use a tool.
        AwaitingPermission = "awaiting_permission",
        /// The agent asks a question with options.
        AwaitingQuestion = "awaiting_question",
        /// The agent shows a plan and asks whether to go on.
        AwaitingPlan = "awaiting_plan",
        /// Some other dialog is open: trust, API key, update, picker and the like.
        AwaitingDialog = "awaiting_dialog",
        /// Somebody stopped the turn.
        Interrupted = "interrupted",
        /// The turn failed and the agent gave up retrying.
        Error = "error",
        /// The process has ended.
        Exited = "exited",
        /// Nothing alive moves and nothing is asked.
        Stalled = "stalled",
        /// Lisa could not look.
        Unknown = "unknown",
    }
}

words! {
    /// Whether somebody should look at the session now.
    Attention {
        /// Leave it alone.
        Autonomous = "autonomous",
        /// It is blocked on an answer, has failed, or asked something.
        NeedsYou = "needs_you",
        /// Its work is there to look at: the turn is finished, a pull request is open, the process is done.
        Delivered = "delivered",
    }
}

words! {
    /// How sure the verdict is, from the authority of its evidence.
    Confidence {
        /// The process, the run's own completion, or the agent itself says so.
        Certain = "certain",
        /// The structure of the screen says so, or an agent's statement that nothing else confirms.
        Likely = "likely",
        /// Only timing says so.
        Guess = "guess",
    }
}

words! {
    /// What a working agent is busy with.
    Activity {
        /// Waiting for the model's first words.
        Thinking = "thinking",
        /// The answer is being written.
        Streaming = "streaming",
        /// A tool runs.
        Tool = "tool",
        /// Subagents work.
        Subagent = "subagent",
        /// The conversation is being compacted.
        Compacting = "compacting",
        /// The model's service failed and the agent tries again.
        Retrying = "retrying",
        /// The turn is over but background tasks still run.
        Background = "background",
    }
}

words! {
    /// Why a turn failed.
    ErrorKind {
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The model's service is overloaded.
        Overloaded = "overloaded",
        /// The service can not be reached, or the connection broke.
        Network = "network",
        /// The key or the login was refused.
        Auth = "auth",
        /// No credit, or a spending limit.
        Billing = "billing",
        /// The conversation does not fit the model's context.
        Context = "context",
        /// The service called the request invalid.
        InvalidRequest = "invalid_request",
        /// Any other failure of the service.
        Api = "api",
    }
}

impl ErrorKind {
    /// Whether sending the same prompt again may succeed without anybody changing anything.
    pub const fn recoverable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Network | Self::Api)
    }
}

words! {
    /// How a process came to its end.
    ExitKind {
        /// It ended on its own or on its user's word.
        UserInitiated = "user_initiated",
        /// It failed.
        Crash = "crash",
        /// A signal from outside ended it.
        Killed = "killed",
        /// A time limit ended it.
        Timeout = "timeout",
        /// Nothing says how.
        Unknown = "unknown",
    }
}

words! {
    /// The kinds of prompt an agent can be blocked on.
    PromptKind {
        /// May it use a tool?
        Permission = "permission",
        /// A question with options.
        Question = "question",
        /// A plan to approve.
        Plan = "plan",
        /// Any other dialog; `dialog` says which.
        Dialog = "dialog",
    }
}

words! {
    /// Which dialog a prompt of kind `dialog` is.
    DialogKind {
        /// Is this folder to be trusted?
        Trust = "trust",
        /// Is the API key in the environment to be used?
        ApiKey = "api_key",
        /// The warning before permissions are bypassed.
        Bypass = "bypass",
        /// A newer version is offered.
        Update = "update",
        /// A newer model is offered.
        Migration = "migration",
        /// Hooks want to be reviewed.
        HookReview = "hook_review",
        /// Nobody is logged in.
        Login = "login",
        /// A list to pick one entry from, such as conversations to resume.
        Picker = "picker",
        /// A menu of the agent itself, such as settings or models.
        Menu = "menu",
        /// A tool server asks for input.
        Elicitation = "elicitation",
    }
}

words! {
    /// What choosing an option does.
    Effect {
        /// Allow this once.
        AllowOnce = "allow_once",
        /// Allow this and everything like it.
        AllowAlways = "allow_always",
        /// Refuse.
        Deny = "deny",
        /// Choose this answer.
        Choose = "choose",
        /// Leave the agent.
        Exit = "exit",
        /// Anything else.
        Other = "other",
    }
}

/// Something an agent asks, as data. It is answered by option, and only while its `id` is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Fingerprint of what is asked; an answer is given only while the open prompt still has it.
    pub id: String,
    /// What kind of prompt this is.
    pub kind: PromptKind,
    /// Which dialog it is, where `kind` is `dialog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<DialogKind>,
    /// The line that asks.
    pub title: String,
    /// What is shown beside the question: the command, the diff, the plan, the warning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The tool that permission is asked for, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The command that permission is asked for, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The file that permission is asked for, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What can be chosen.
    pub options: Vec<PromptOption>,
    /// Whether several options may be chosen.
    #[serde(default)]
    pub multi: bool,
    /// Whether an answer in free text is taken.
    #[serde(default)]
    pub free_text: bool,
    /// Whether part of the dialog does not fit the pane, so that options may be missing here.
    #[serde(default)]
    pub truncated: bool,
    /// In a form of several questions: which one is shown (from 1) and how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<PromptStep>,
}

/// Where in a form of several questions the open one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptStep {
    /// The question that is shown, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// One thing that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptOption {
    /// What to give as `choice`: the option's number, or its letter.
    pub key: String,
    /// The option as it reads on the screen.
    pub label: String,
    /// Whether the agent's cursor stands on it.
    #[serde(default)]
    pub selected: bool,
    /// In a multi-select prompt: whether it is ticked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<bool>,
    /// What choosing it does.
    pub effect: Effect,
}

/// Why a turn failed, in the agent's own words where it has any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// Whether trying again may help.
    pub recoverable: bool,
    /// The agent's message.
    pub message: String,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exit {
    /// The exit code; absent while nobody knows it, never 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How it came to its end.
    pub kind: ExitKind,
}

impl Exit {
    /// The status that an exit amounts to: `completed` only when the code is known to be 0 or the user ended it.
    pub fn status(&self) -> Status {
        match self {
            Self { signal: None, code: Some(0), .. } => Status::Completed,
            Self { kind: ExitKind::UserInitiated, signal: None, code: None } => Status::Completed,
            _ => Status::Crashed,
        }
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
        /// The tool that runs, where known.
        tool: Option<String>,
    },
    /// See [`StateName::Ready`].
    Ready {
        /// The agent's last message, where it is known.
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
        failed: Vec<String>,
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

    /// The coarse status that this state belongs to.
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

    /// The open prompt, where the session is blocked on one.
    pub const fn prompt(&self) -> Option<&Prompt> {
        match self {
            Self::AwaitingPermission { prompt }
            | Self::AwaitingQuestion { prompt }
            | Self::AwaitingPlan { prompt }
            | Self::AwaitingDialog { prompt } => Some(prompt),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub const fn prompt_mut(&mut self) -> Option<&mut Prompt> {
        match self {
            Self::AwaitingPermission { prompt }
            | Self::AwaitingQuestion { prompt }
            | Self::AwaitingPlan { prompt }
            | Self::AwaitingDialog { prompt } => Some(prompt),
            _ => None,
        }
    }

    /// The state that an open prompt amounts to.
    pub fn awaiting(prompt: Prompt) -> Self {
        match prompt.kind {
            PromptKind::Permission => Self::AwaitingPermission { prompt },
            PromptKind::Question => Self::AwaitingQuestion { prompt },
            PromptKind::Plan => Self::AwaitingPlan { prompt },
            PromptKind::Dialog => Self::AwaitingDialog { prompt },
        }
    }
}
