//! One line that says what is being done and for how long: drawn over itself on a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::{
    fmt,
    time::{Duration, Instant},
};

/// How often a log that is not a terminal hears that work still goes on.
const PLAIN_EVERY: Duration = Duration::from_secs(30);
/// The longest line in such a log.
const PLAIN_WIDTH: usize = 79;

/// The progress of one piece of work.
pub struct Progress {
    /// Hidden where there is no terminal.
    bar: ProgressBar,
    terminal: bool,
    label: String,
    doing: String,
    started: Instant,
    told: Instant,
}

impl Progress {
    /// Begins: says at once what is about to happen.
    pub fn start(terminal: bool, label: impl Into<String>) -> Self {
        let label = label.into();
        let bar = if terminal {
            drawn(&label)
        } else {
            println!("{label} …");
            ProgressBar::hidden()
        };
        let now = Instant::now();
        Self { bar, terminal, label, doing: String::new(), started: now, told: now }
    }

    /// Says what is being done just now.
    pub fn doing(&mut self, doing: &str) {
        if self.doing != doing {
            doing.clone_into(&mut self.doing);
            self.bar.set_message(self.doing.clone());
            self.tick();
        }
    }

    /// Shows that time passes.
    pub fn tick(&mut self) {
        if self.terminal {
            self.bar.tick();
        } else if self.told.elapsed() >= PLAIN_EVERY {
            self.told = Instant::now();
            println!("  still at it: {}", clip(&self.plain(), PLAIN_WIDTH));
        }
    }

    fn plain(&self) -> String {
        format!("{}  {}  {}", self.label, seconds(self.started.elapsed()), self.doing)
    }

    /// Prints a line that stays.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| println!("{line}"));
    }

    /// Ends with a line that stays; the time taken goes to its end.
    pub fn finish(self, line: &str) -> Duration {
        let elapsed = self.started.elapsed();
        self.say(&format!("{line}  {}", seconds(elapsed)));
        elapsed
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn drawn(label: &str) -> ProgressBar {
    let took = |state: &ProgressState, out: &mut dyn fmt::Write| {
        // A line that cannot be drawn is drawn again soon.
        let _ = out.write_str(&seconds(state.elapsed()));
    };
    let style = ProgressStyle::with_template("{prefix}  {took}  {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner()).with_key("took", took);
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
    let bar = bar.with_style(style).with_prefix(label.to_owned());
    bar.tick();
    bar
}

/// A duration as people say it: `0.4s`, `12s`, `3m05s`.
pub fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    match whole {
        0..10 => format!("{:.1}s", duration.as_secs_f64()),
        10..100 => format!("{whole}s"),
        _ => format!("{}m{:02}s", whole / 60, whole % 60),
    }
}

/// The first `width` characters, with a mark where some were cut off.
pub fn clip(text: &str, width: usize) -> String {
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

    #[test]
    fn a_line_of_a_log_says_what_for_how_long_and_what_now() {
        let mut progress = Progress::start(false, "building");
        progress.doing("serde");
        assert_eq!(progress.plain(), "building  0.0s  serde");
    }
}
