//! One line that says what is being done and for how long: drawn over itself on a terminal, plain lines elsewhere.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

const REDRAW: Duration = Duration::from_millis(100);
/// How often a log that is no terminal hears that work still goes on.
const PLAIN_EVERY: Duration = Duration::from_secs(30);
const WIDTH: usize = 79;

/// The progress of one piece of work.
pub(crate) struct Progress {
    label: String,
    doing: String,
    started: Instant,
    drawn: Option<Instant>,
    terminal: bool,
}

impl Progress {
    /// Begins: says at once what is about to happen.
    pub(crate) fn start(terminal: bool, label: impl Into<String>) -> Self {
        let mut progress = Self {
            label: label.into(),
            doing: String::new(),
            started: Instant::now(),
            drawn: None,
            terminal,
        };
        if terminal {
            progress.tick();
        } else {
            println!("{} …", progress.label);
            progress.drawn = Some(progress.started);
        }
        progress
    }

    /// Says what is being done just now.
    pub(crate) fn doing(&mut self, doing: &str) {
        if self.doing != doing {
            doing.clone_into(&mut self.doing);
            self.tick();
        }
    }

    /// Shows that time passes.
    pub(crate) fn tick(&mut self) {
        let pause = if self.terminal { REDRAW } else { PLAIN_EVERY };
        if self.drawn.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        self.drawn = Some(Instant::now());
        let line =
            clip(&format!("{}  {}  {}", self.label, seconds(self.started.elapsed()), self.doing), WIDTH);
        if self.terminal {
            print!("\r\x1b[2K{line}");
            // A terminal that went away is noticed elsewhere.
            let _ = io::stdout().flush();
        } else {
            println!("  still at it: {line}");
        }
    }

    /// Prints a line that stays.
    pub(crate) fn say(&mut self, line: &str) {
        self.clear();
        println!("{line}");
        self.drawn = self.drawn.filter(|_| !self.terminal);
    }

    /// Ends with a line that stays; the time taken goes to its end.
    pub(crate) fn finish(mut self, line: &str) -> Duration {
        let elapsed = self.started.elapsed();
        self.say(&format!("{line}  {}", seconds(elapsed)));
        elapsed
    }

    fn clear(&self) {
        if self.terminal {
            print!("\r\x1b[2K");
            let _ = io::stdout().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A duration as people say it: `0.4s`, `12s`, `3m05s`.
pub(crate) fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    match whole {
        0..10 => format!("{:.1}s", duration.as_secs_f64()),
        10..100 => format!("{whole}s"),
        _ => format!("{}m{:02}s", whole / 60, whole % 60),
    }
}

/// The first `width` characters, with a mark where some were cut off.
pub(crate) fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_speech() {
        let told: Vec<_> = [400, 12_000, 99_000, 185_000].map(Duration::from_millis).map(seconds).into();
        assert_eq!(told, ["0.4s", "12s", "99s", "3m05s"]);
    }

    #[test]
    fn a_cut_is_marked_and_counts_characters() {
        assert_eq!(clip("naïve", 5), "naïve");
        assert_eq!(clip("naïveté", 5), "naïv…");
    }
}
