//! Evidence: a claim, who makes it, when it was seen, and the quote that proves it.

use crate::observation::At;
use crate::words::{Activity, Confidence, Failure, Prompt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who makes a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// tmux, about the pane.
    Pane,
    /// The processes below the pane.
    Process,
    /// The run's done file.
    DoneFile,
    /// The marker that a run prints at its end.
    ExecMarker,
    /// The agent's hooks.
    Hook,
    /// The agent's notifications.
    Notify,
    /// The state file that the agent keeps.
    Native,
    /// The agent's terminal title.
    Title,
    /// The agent's transcript.
    Transcript,
    /// The structure of the screen.
    Screen,
    /// What Lisa itself has typed.
    Sent,
    /// Output age, CPU, heartbeat, the session's age.
    Timing,
}

impl Source {
    /// The source's public word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pane => "pane",
            Self::Process => "process",
            Self::DoneFile => "done_file",
            Self::ExecMarker => "exec_marker",
            Self::Hook => "hook",
            Self::Notify => "notify",
            Self::Native => "native",
            Self::Title => "title",
            Self::Transcript => "transcript",
            Self::Screen => "screen",
            Self::Sent => "sent",
            Self::Timing => "timing",
        }
    }

    /// How much the source is worth, from 1 (strongest) to 5.
    pub const fn authority(self) -> u8 {
        match self {
            Self::Pane | Self::Process => 1,
            Self::DoneFile | Self::ExecMarker => 2,
            Self::Hook | Self::Notify | Self::Native | Self::Title | Self::Transcript => 3,
            Self::Screen => 4,
            Self::Sent | Self::Timing => 5,
        }
    }

    /// How sure a verdict is that rests on this source.
    pub const fn confidence(self) -> Confidence {
        match self.authority() {
            1..=3 => Confidence::Certain,
            4 => Confidence::Likely,
            _ => Confidence::Guess,
        }
    }
}

/// What is claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Claim {
    /// The tmux server that the pane was in has died.
    ServerDied,
    /// The pane's process has ended.
    PaneDead {
        /// Its exit code, where tmux knows it.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// The agent's process is gone and something else sits in its pane.
    AgentGone {
        /// Whether it said goodbye.
        clean: bool,
    },
    /// The agent is stopped and a shell is in front of it.
    AgentSuspended,
    /// The agent's process is there.
    AgentAlive,
    /// The run has written that it is over.
    RunDone {
        /// The exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// A turn runs.
    Working {
        /// What the agent is busy with.
        activity: Activity,
        /// The tool that runs, where known.
        tool: Option<String>,
    },
    /// No turn runs.
    TurnOver {
        /// Whether background work goes on.
        background: bool,
    },
    /// The turn failed for good.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// Somebody stopped the turn.
    Interrupted,
    /// Something is asked; what exactly is known elsewhere.
    Asking {
        /// As much of the prompt as the source knows.
        prompt: Option<Prompt>,
    },
    /// A dialog stands where dialogs stand.
    Dialog {
        /// The dialog.
        prompt: Prompt,
    },
    /// The input box is shown.
    InputShown {
        /// Text in it that was not sent.
        draft: Option<String>,
    },
    /// Something that the profile does not know stands where the input box was.
    Covered {
        /// As much as can be said about it.
        prompt: Prompt,
    },
    /// A prompt was submitted moments ago.
    Sent,
    /// Plain text, without any structure that the profile knows.
    PlainText,
    /// The agent has come up far enough to take a prompt.
    Up,
    /// Something about the session moves: output, CPU, heartbeat.
    Moving,
    /// Nothing about the session has moved for longer than it should.
    Still,
    /// The session was started moments ago.
    Young,
    /// Something could not be read.
    Unreadable {
        /// The name of the signal's error field.
        signal: String,
    },
}

impl Claim {
    /// The claim's word, without its data.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::ServerDied => "server_died",
            Self::PaneDead { .. } => "pane_dead",
            Self::AgentGone { .. } => "agent_gone",
            Self::AgentSuspended => "agent_suspended",
            Self::AgentAlive => "agent_alive",
            Self::RunDone { .. } => "run_done",
            Self::Working { .. } => "working",
            Self::TurnOver { .. } => "turn_over",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
            Self::Asking { .. } => "asking",
            Self::Dialog { .. } => "dialog",
            Self::InputShown { .. } => "input_shown",
            Self::Covered { .. } => "covered",
            Self::Sent => "sent",
            Self::PlainText => "plain_text",
            Self::Up => "up",
            Self::Moving => "moving",
            Self::Still => "still",
            Self::Young => "young",
            Self::Unreadable { .. } => "unreadable",
        }
    }
}

/// A claim with its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What is claimed.
    #[serde(flatten)]
    pub claim: Claim,
    /// Who claims it.
    pub source: Source,
    /// How much the source is worth, from 1 (strongest) to 5.
    pub authority: u8,
    /// When it was said; for what is read anew at every look, since when it has said so.
    pub since: At,
    /// The words that prove it.
    pub quote: String,
}

impl Evidence {
    /// A claim of this source.
    pub fn new(source: Source, since: At, claim: Claim, quote: impl Into<String>) -> Self {
        let quote: String = quote.into();
        Self { claim, source, authority: source.authority(), since, quote: shorten(&quote, 160) }
    }
}

/// A text cut to so many characters.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    let mut chars = text.char_indices();
    match chars.nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
