//! A turn: the steps between a prompt and the moment the agent is ready again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::agent::Now;
use crate::screen::Entry;
use crate::step::{Step, ToolUse};

/// How often a growing answer is drawn.
const STREAM_FRAME: Duration = Duration::from_millis(40);
/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was done.
    Finished,
    /// An error ended it.
    Failed,
    /// Somebody stopped it: interrupt, declined permission, cancelled question.
    Stopped,
}

/// The turn that is running.
#[derive(Debug)]
pub struct Turn {
    /// The whole prompt.
    pub prompt: String,
    /// The prompt as the screen echoes it.
    pub echo: Entry,
    /// When it began.
    pub started: Now,
    /// Something of it is in the transcript, so it cannot be taken back any more.
    pub visible: bool,
    pub(crate) steps: VecDeque<Step>,
    pub(crate) doing: Doing,
    pub(crate) step_started: Now,
    pub(crate) last_message: String,
    pub(crate) answered_chars: usize,
}

#[derive(Debug)]
pub(crate) enum Doing {
    /// Between two steps.
    Next,
    /// A step that only takes time.
    Wait { until: Now, step: Step, look: Look },
    /// An answer is being written.
    Stream(Stream),
    /// Waiting for the next attempt.
    Retry { kind: String, attempt: u32, of: u32, delay: Duration, until: Now },
    /// A dialog is open.
    Dialog(Step),
    /// A hook is being asked instead of the user.
    Deciding { step: Step, token: u64 },
    /// A real command runs.
    Command { tool: ToolUse, token: u64 },
    /// The process is about to end, or hangs with the last thing it showed.
    Gone,
}

#[derive(Debug)]
pub(crate) enum Look {
    /// A status line.
    Status(String),
    /// No status line; the title goes on.
    Still,
    /// Everything as it was when the step began.
    Frozen,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) text: String,
    cps: u32,
    since: Now,
    /// Bytes and characters that are out.
    pub(crate) shown: usize,
    chars: u64,
    /// Where the unfinished line begins.
    line: usize,
}

impl Stream {
    pub(crate) fn new(text: String, cps: u32, since: Now) -> Self {
        Self { text, cps, since, shown: 0, chars: 0, line: 0 }
    }

    /// Grows to where it should be, and hands over the lines that are complete.
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

    /// The unfinished line, if anything of it is out.
    pub(crate) fn open(&self) -> Option<Entry> {
        (self.shown > self.line).then(|| self.entry(self.shown))
    }
}

impl Turn {
    /// When the next thing happens by itself.
    #[must_use]
    pub fn due(&self, now: Now) -> Option<Now> {
        match &self.doing {
            Doing::Next => Some(now),
            Doing::Wait { until, .. } | Doing::Retry { until, .. } => Some(*until),
            Doing::Stream(_) => Some(now + STREAM_FRAME),
            Doing::Dialog(_) | Doing::Deciding { .. } | Doing::Command { .. } | Doing::Gone => None,
        }
    }

    /// Whether spinner and title move.
    #[must_use]
    pub fn moves(&self) -> bool {
        !matches!(&self.doing, Doing::Wait { look: Look::Frozen, .. } | Doing::Dialog(_) | Doing::Gone)
    }

    /// The time as the screen shows it: it stands still in a silent step.
    #[must_use]
    pub fn visible_time(&self, now: Now) -> Now {
        match &self.doing {
            Doing::Wait { look: Look::Frozen, .. } | Doing::Gone => self.step_started,
            _ => now,
        }
    }

    /// The status line without its spinner; none while an answer is written or a dialog is open.
    #[must_use]
    pub fn label(&self, now: Now) -> Option<String> {
        let seconds = self.visible_time(now).saturating_sub(self.started).as_secs();
        let verb = match &self.doing {
            Doing::Next | Doing::Wait { look: Look::Frozen, .. } | Doing::Gone => "Thinking",
            Doing::Wait { look: Look::Status(verb), .. } => verb,
            Doing::Deciding { .. } => "Asking the hook",
            Doing::Command { .. } => "Running Bash",
            Doing::Retry { kind, attempt, of, until, .. } => {
                let left = until.saturating_sub(now).as_millis().div_ceil(1000);
                return Some(format!("Retrying in {left}s · attempt {attempt}/{of} ({kind})"));
            }
            Doing::Wait { look: Look::Still, .. } | Doing::Stream(_) | Doing::Dialog(_) => return None,
        };
        Some(format!("{verb}… ({seconds}s)"))
    }

    /// The line of an answer that is being written.
    #[must_use]
    pub fn open_line(&self) -> Option<Entry> {
        match &self.doing {
            Doing::Stream(stream) => stream.open(),
            _ => None,
        }
    }

    pub(crate) fn wait(&mut self, now: Now, time: Duration, step: Step, look: Look) {
        self.doing = Doing::Wait { until: now + time, step, look };
    }
}
