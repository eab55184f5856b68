//! A turn: the steps from a prompt until the agent is ready again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::agent::Now;
use crate::screen::Entry;
use crate::step::{Step, ToolUse};

/// The redraw interval of a streaming answer.
const STREAM_FRAME: Duration = Duration::from_millis(40);
/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All steps were run.
    Finished,
    /// An error ended it.
    Failed,
    /// It was stopped: interrupt, declined permission, cancelled question.
    Stopped,
}

/// The running turn.
#[derive(Debug)]
pub struct Turn {
    /// The whole prompt.
    pub prompt: String,
    /// The prompt as the screen echoes it.
    pub echo: Entry,
    /// When it started.
    pub started: Now,
    /// Whether there is output in the transcript, so that the prompt can no longer be withdrawn.
    pub visible: bool,
    pub(crate) steps: VecDeque<Step>,
    pub(crate) doing: TurnActivity,
    pub(crate) step_started: Now,
    pub(crate) last_message: String,
    pub(crate) answered_chars: usize,
}

#[derive(Debug)]
pub(crate) enum TurnActivity {
    /// Between two steps.
    Next,
    /// A step that only takes time.
    Wait { until: Now, step: Step, look: StatusDisplay },
    /// Streaming an answer.
    Stream(Stream),
    /// Waiting for the next attempt.
    Retry { kind: String, attempt: u32, of: u32, delay: Duration, until: Now },
    /// A dialog is open.
    Dialog(Step),
    /// A hook decides instead of the user.
    Deciding { step: Step, token: u64 },
    /// A real command is running.
    Command { tool: ToolUse, token: u64 },
    /// The process is about to exit, or hangs with its last screen.
    Gone,
}

#[derive(Debug)]
pub(crate) enum StatusDisplay {
    /// A status line.
    Status(String),
    /// No status line; only the title is animated.
    Still,
    /// No change since the start of the step.
    Frozen,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) text: String,
    cps: u32,
    since: Now,
    /// Bytes and characters written so far.
    pub(crate) shown: usize,
    chars: u64,
    /// The start of the unfinished line.
    line: usize,
}

impl Stream {
    pub(crate) fn new(text: String, cps: u32, since: Now) -> Self {
        Self { text, cps, since, shown: 0, chars: 0, line: 0 }
    }

    /// Streams up to the current time. Returns the completed lines.
    pub(crate) fn grow(&mut self, now: Now) -> Vec<Entry> {
        let due = match self.cps {
            0 => u64::MAX,
            cps => now.saturating_sub(self.since).as_millis() as u64 * u64::from(cps) / 1000,
        };
        let wanted = usize::try_from(due.saturating_sub(self.chars)).unwrap_or(usize::MAX);
        let rest = &self.text[self.shown..];
        let step = rest.char_indices().nth(wanted).map_or(rest.len(), |(at, _)| at);
        self.shown += step;
        self.chars = due.max(self.chars);
        let mut lines = Vec::new();
        while let Some(end) = self.text[self.line..self.shown].find('\n') {
            lines.push(self.entry(self.line + end));
            self.line += end + 1;
        }
        lines
    }

    fn entry(&self, end: usize) -> Entry {
        Entry::Answer { first: self.line == 0, line: self.text[self.line..end].to_owned() }
    }

    pub(crate) fn finished(&self) -> bool {
        self.shown == self.text.len()
    }

    /// The unfinished line, if any of it is written.
    pub(crate) fn open(&self) -> Option<Entry> {
        (self.shown > self.line).then(|| self.entry(self.shown))
    }
}

impl Turn {
    /// When the next timed change happens.
    #[must_use]
    pub fn due(&self, now: Now) -> Option<Now> {
        match &self.doing {
            TurnActivity::Next => Some(now),
            TurnActivity::Wait { until, .. } | TurnActivity::Retry { until, .. } => Some(*until),
            TurnActivity::Stream(_) => Some(now + STREAM_FRAME),
            TurnActivity::Dialog(_)
            | TurnActivity::Deciding { .. }
            | TurnActivity::Command { .. }
            | TurnActivity::Gone => None,
        }
    }

    /// Whether spinner and title are animated.
    #[must_use]
    pub fn moves(&self) -> bool {
        !matches!(
            &self.doing,
            TurnActivity::Wait { look: StatusDisplay::Frozen, .. }
                | TurnActivity::Dialog(_)
                | TurnActivity::Gone
        )
    }

    /// The time shown on the screen, which stops in a silent step.
    #[must_use]
    pub fn visible_time(&self, now: Now) -> Now {
        match &self.doing {
            TurnActivity::Wait { look: StatusDisplay::Frozen, .. } | TurnActivity::Gone => self.step_started,
            _ => now,
        }
    }

    /// The status line without its spinner; `None` while streaming an answer or while a dialog is open.
    #[must_use]
    pub fn label(&self, now: Now) -> Option<String> {
        let seconds = self.visible_time(now).saturating_sub(self.started).as_secs();
        let verb = match &self.doing {
            TurnActivity::Next
            | TurnActivity::Wait { look: StatusDisplay::Frozen, .. }
            | TurnActivity::Gone => "Thinking",
            TurnActivity::Wait { look: StatusDisplay::Status(verb), .. } => verb,
            TurnActivity::Deciding { .. } => "Asking the hook",
            TurnActivity::Command { .. } => "Running Bash",
            TurnActivity::Retry { kind, attempt, of, until, .. } => {
                let left = until.saturating_sub(now).as_millis().div_ceil(1000);
                return Some(format!("Retrying in {left}s · attempt {attempt}/{of} ({kind})"));
            }
            TurnActivity::Wait { look: StatusDisplay::Still, .. }
            | TurnActivity::Stream(_)
            | TurnActivity::Dialog(_) => return None,
        };
        Some(format!("{verb}… ({seconds}s)"))
    }

    /// The unfinished line of a streaming answer.
    #[must_use]
    pub fn open_line(&self) -> Option<Entry> {
        match &self.doing {
            TurnActivity::Stream(stream) => stream.open(),
            _ => None,
        }
    }

    pub(crate) fn wait(&mut self, now: Now, time: Duration, step: Step, look: StatusDisplay) {
        self.doing = TurnActivity::Wait { until: now + time, step, look };
    }
}
