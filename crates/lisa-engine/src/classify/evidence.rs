//! Evidence: a claim, its source, when it was seen, and a quote that proves it.

use crate::api::words::{Activity, Confidence, Failure, Prompt, SignalError, words};
use crate::classify::observation::At;
use serde::{Deserialize, Serialize};

words! {
    /// The source of a claim.
    Source {
        /// tmux's information about the pane.
        Pane = "pane",
        /// The process tree of the pane.
        Process = "process",
        /// The run's done file.
        DoneFile = "done_file",
        /// The marker that an exec run prints at its end.
        ExecMarker = "exec_marker",
        /// The agent's hooks.
        Hook = "hook",
        /// The agent's notifications.
        Notify = "notify",
        /// The agent's own state file.
        Native = "native",
        /// The agent's terminal title.
        Title = "title",
        /// The agent's transcript.
        Transcript = "transcript",
        /// The structure of the screen.
        Screen = "screen",
        /// What Lisa typed.
        Sent = "sent",
        /// Age of output, CPU time, heartbeat, age of the session.
        Timing = "timing",
    }
}

impl Source {
    /// The authority of this source, from 1 (strongest) to 5.
    pub const fn authority(self) -> u8 {
        match self {
            Self::Pane | Self::Process => 1,
            Self::DoneFile | Self::ExecMarker => 2,
            Self::Hook | Self::Notify | Self::Native | Self::Title | Self::Transcript => 3,
            Self::Screen => 4,
            Self::Sent | Self::Timing => 5,
        }
    }

    /// How sure a verdict from this source is.
    pub const fn confidence(self) -> Confidence {
        match self.authority() {
            1..=3 => Confidence::Certain,
            4 => Confidence::Likely,
            _ => Confidence::Guess,
        }
    }
}

words! {
    /// The kind of a claim, without its data.
    ClaimKind {
        /// The pane's tmux server died.
        ServerDied = "server_died",
        /// The pane's process has ended.
        PaneDead = "pane_dead",
        /// The agent's process is gone and another program runs in its pane.
        AgentGone = "agent_gone",
        /// The agent is suspended and a shell is in the foreground.
        AgentSuspended = "agent_suspended",
        /// The agent's process is alive.
        AgentAlive = "agent_alive",
        /// The run has reported that it is over.
        RunDone = "run_done",
        /// A turn is running.
        Working = "working",
        /// No turn is running.
        TurnOver = "turn_over",
        /// The turn failed for good.
        Failed = "failed",
        /// Somebody interrupted the turn.
        Interrupted = "interrupted",
        /// A prompt is open; its details are known elsewhere.
        Asking = "asking",
        /// The screen shows a dialog in the place for dialogs.
        Dialog = "dialog",
        /// The screen shows the input box.
        InputShown = "input_shown",
        /// Something unknown to the profile is in the place of the input box.
        Covered = "covered",
        /// A prompt was just submitted.
        Sent = "sent",
        /// The screen shows plain text without any structure that the profile knows.
        PlainText = "plain_text",
        /// The agent is up and takes a prompt.
        Up = "up",
        /// The screen shows that no turn is running, but not whether there was one.
        Idle = "idle",
        /// Something moves: output, CPU time, heartbeat.
        Moving = "moving",
        /// Nothing has moved for too long.
        Still = "still",
        /// The session was just started.
        Young = "young",
        /// Something couldn't be read.
        Unreadable = "unreadable",
    }
}

/// A claim with its data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Claim {
    /// The pane's tmux server died.
    ServerDied,
    /// The pane's process has ended.
    PaneDead {
        /// Its exit code, if tmux knows it.
        code: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
    /// The agent's process is gone and another program runs in its pane.
    AgentGone {
        /// Whether it exited in an orderly way.
        clean: bool,
    },
    /// The agent is suspended and a shell is in the foreground.
    AgentSuspended,
    /// The agent's process is alive.
    AgentAlive,
    /// The run has reported that it is over.
    RunDone {
        /// The exit code.
        code: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
    /// A turn is running.
    Working {
        /// What the agent is doing.
        activity: Activity,
        /// The running tool, if known.
        tool: Option<String>,
    },
    /// No turn is running.
    TurnOver {
        /// Whether background work continues.
        background: bool,
    },
    /// The turn failed for good.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// Somebody interrupted the turn.
    Interrupted,
    /// A prompt is open; its details are known elsewhere.
    Asking {
        /// What the source knows about the prompt.
        prompt: Option<Prompt>,
    },
    /// The screen shows a dialog in the place for dialogs.
    Dialog {
        /// The dialog.
        prompt: Prompt,
    },
    /// The screen shows the input box.
    InputShown {
        /// Unsent text in it.
        draft: Option<String>,
    },
    /// Something unknown to the profile is in the place of the input box.
    Covered {
        /// What can be said about it.
        prompt: Prompt,
    },
    /// A prompt was just submitted.
    Sent,
    /// The screen shows plain text without any structure that the profile knows.
    PlainText,
    /// The agent is up and takes a prompt.
    Up,
    /// The screen shows that no turn is running, but not whether there was one.
    Idle,
    /// Something moves: output, CPU time, heartbeat.
    Moving,
    /// Nothing has moved for too long.
    Still,
    /// The session was just started.
    Young,
    /// Something couldn't be read.
    Unreadable {
        /// Which signal.
        signal: SignalError,
    },
}

impl Claim {
    /// The kind of this claim.
    pub const fn kind(&self) -> ClaimKind {
        match self {
            Self::ServerDied => ClaimKind::ServerDied,
            Self::PaneDead { .. } => ClaimKind::PaneDead,
            Self::AgentGone { .. } => ClaimKind::AgentGone,
            Self::AgentSuspended => ClaimKind::AgentSuspended,
            Self::AgentAlive => ClaimKind::AgentAlive,
            Self::RunDone { .. } => ClaimKind::RunDone,
            Self::Working { .. } => ClaimKind::Working,
            Self::TurnOver { .. } => ClaimKind::TurnOver,
            Self::Failed { .. } => ClaimKind::Failed,
            Self::Interrupted => ClaimKind::Interrupted,
            Self::Asking { .. } => ClaimKind::Asking,
            Self::Dialog { .. } => ClaimKind::Dialog,
            Self::InputShown { .. } => ClaimKind::InputShown,
            Self::Covered { .. } => ClaimKind::Covered,
            Self::Sent => ClaimKind::Sent,
            Self::PlainText => ClaimKind::PlainText,
            Self::Up => ClaimKind::Up,
            Self::Idle => ClaimKind::Idle,
            Self::Moving => ClaimKind::Moving,
            Self::Still => ClaimKind::Still,
            Self::Young => ClaimKind::Young,
            Self::Unreadable { .. } => ClaimKind::Unreadable,
        }
    }
}

/// A claim with its source and proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What is claimed.
    #[serde(flatten)]
    pub claim: Claim,
    /// Who claims it.
    pub source: Source,
    /// The authority of the source, from 1 (strongest) to 5.
    pub authority: u8,
    /// When the claim was made; for live channels, when it was first made without a break.
    pub since: At,
    /// The text that proves it.
    pub quote: String,
}

impl Evidence {
    /// A claim of this source.
    pub fn new(source: Source, since: At, claim: Claim, quote: impl Into<String>) -> Self {
        let quote: String = quote.into();
        Self { claim, source, authority: source.authority(), since, quote: shorten(&quote, 160) }
    }
}

/// Truncates text to a number of characters.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    let mut chars = text.char_indices();
    match chars.nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
