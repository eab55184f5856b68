//! Debounces output on terminals: decides when output is worth a look.
//!
//! Output means that something may have changed, but not what. A look follows shortly after the first output (tmux has
//! to draw it), and another one when the terminal has become quiet. An agent that writes without pause is looked at
//! periodically; the more such agents there are, the less often each. An agent whose hooks report its work isn't
//! looked at while it writes, but when it falls silent: an interrupt by hand fires no hook.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

/// How long tmux may need to draw what was written.
const DRAWN: Duration = Duration::from_millis(4);
/// Output counts as ended after this pause.
const QUIET: Duration = Duration::from_millis(80);
/// The same for an agent with a spinner: longer than a spinner ever pauses.
const SILENT: Duration = Duration::from_millis(600);
/// Minimum time between two looks at one session because of output; `GAP_EACH` is per session that writes.
const GAP_EACH: Duration = Duration::from_millis(20);
const GAP_LEAST: Duration = Duration::from_millis(60);

/// How a session's output is debounced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum DebounceMode {
    /// Any output is worth a look.
    #[default]
    Output,
    /// Only the end of output is worth a look.
    Silence,
    /// A prompt was announced and is being drawn: look now, and again at the first output.
    Drawing,
}

#[derive(Debug, Default)]
struct DebouncedOutput {
    mode: DebounceMode,
    /// When a look is due.
    due: Option<Instant>,
    /// Whether that look is the one after the output has ended.
    resting: bool,
    last_output: Option<Instant>,
    last_look: Option<Instant>,
}

/// The debounced output of all sessions, by key.
#[derive(Debug, Default)]
pub(super) struct OutputDebouncer {
    sessions: HashMap<u64, DebouncedOutput>,
    due: BTreeSet<(Instant, u64)>,
}

impl OutputDebouncer {
    /// Sets how a session's output is debounced from now on.
    pub(super) fn set_mode(&mut self, key: u64, mode: DebounceMode, now: Instant) {
        let before = std::mem::replace(&mut self.sessions.entry(key).or_default().mode, mode);
        if mode == DebounceMode::Drawing && before != mode {
            // It may have been drawn during the look that found the announcement.
            self.set(key, now, false);
        }
    }

    /// Stops tracking a session.
    pub(super) fn forget(&mut self, key: u64) {
        if let Some(DebouncedOutput { due: Some(due), .. }) = self.sessions.remove(&key) {
            self.due.remove(&(due, key));
        }
    }

    /// Notes that a session wrote something.
    pub(super) fn on_output(&mut self, key: u64, now: Instant) {
        let gap = self.gap();
        let Some(output) = self.sessions.get_mut(&key) else { return };
        output.last_output = Some(now);
        let pending = output.due.is_some() && !output.resting;
        let due = match output.mode {
            DebounceMode::Silence => now + SILENT,
            DebounceMode::Drawing => now,
            DebounceMode::Output if pending => return,
            DebounceMode::Output => {
                output.last_look.map_or(now + DRAWN, |last| (last + gap).max(now + DRAWN))
            }
        };
        self.set(key, due, false);
    }

    /// Takes the sessions whose look is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<u64> {
        let mut keys = Vec::new();
        while let Some(&(due, key)) = self.due.first().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, key));
            let Some(output) = self.sessions.get_mut(&key) else { continue };
            output.due = None;
            output.last_look = Some(now);
            keys.push(key);
            // One more look when the output has ended, unless this is it.
            let rests = output.last_output.map(|last| last + QUIET).filter(|rests| *rests > now);
            if let (DebounceMode::Output, Some(rests)) = (output.mode, rests) {
                self.set(key, rests, true);
            }
        }
        keys
    }

    /// When the next look is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    fn set(&mut self, key: u64, due: Instant, resting: bool) {
        let Some(output) = self.sessions.get_mut(&key) else { return };
        output.resting = resting;
        if let Some(before) = output.due.replace(due) {
            self.due.remove(&(before, key));
        }
        self.due.insert((due, key));
    }

    /// The minimum time between looks at one session, depending on how many sessions write.
    fn gap(&self) -> Duration {
        let writing = u32::try_from(self.due.len()).unwrap_or(u32::MAX);
        GAP_LEAST.max(GAP_EACH.saturating_mul(writing)).min(Duration::from_secs(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of the looks, if a session writes at these times (in milliseconds).
    fn looks(mode: DebounceMode, writes: &[u64]) -> Vec<u64> {
        let began = Instant::now();
        let mut sessions = OutputDebouncer::default();
        sessions.set_mode(1, mode, began);
        let mut looks = Vec::new();
        for ms in 0..5_000 {
            let now = began + Duration::from_millis(ms);
            if writes.contains(&ms) {
                sessions.on_output(1, now);
            }
            looks.extend(sessions.take_due(now).iter().map(|_| ms));
        }
        looks
    }

    #[test]
    fn one_line_is_looked_at_when_it_is_drawn_and_when_it_has_come_to_rest() {
        assert_eq!(looks(DebounceMode::Output, &[100]), [104, 180]);
        assert_eq!(looks(DebounceMode::Output, &[100, 102, 110]), [104, 164, 190]);
    }

    #[test]
    fn a_spinner_is_looked_at_now_and_then_and_after_it_stops() {
        let spins: Vec<u64> = (0..20).map(|n| 100 + n * 100).collect();
        let seen = looks(DebounceMode::Output, &spins);
        assert!(seen.len() <= 2 * spins.len(), "{seen:?}");
        assert!(seen.last() >= Some(&2_080), "{seen:?}");
    }

    #[test]
    fn an_agent_that_tells_what_it_does_is_looked_at_when_it_falls_silent() {
        let spins: Vec<u64> = (0..20).map(|n| 100 + n * 100).collect();
        assert_eq!(looks(DebounceMode::Silence, &spins), [2_600]);
    }

    #[test]
    fn a_prompt_that_is_being_drawn_is_looked_at_at_once_and_at_every_output() {
        assert_eq!(looks(DebounceMode::Drawing, &[3, 5]), [0, 3, 5]);
    }

    #[test]
    fn the_more_write_the_less_often_each_is_looked_at() {
        let began = Instant::now();
        let mut sessions = OutputDebouncer::default();
        (0..200).for_each(|key| sessions.set_mode(key, DebounceMode::Output, began));
        let mut looks = 0;
        for ms in (0..10_000).step_by(50) {
            let now = began + Duration::from_millis(ms);
            (0..200).for_each(|key| sessions.on_output(key, now));
            looks += sessions.take_due(now).len();
        }
        assert!(looks <= 200 * 10, "{looks} looks in ten seconds");
    }

    #[test]
    fn a_session_that_is_forgotten_is_not_looked_at() {
        let mut sessions = OutputDebouncer::default();
        sessions.set_mode(1, DebounceMode::Output, Instant::now());
        sessions.on_output(1, Instant::now());
        sessions.forget(1);
        assert_eq!(sessions.next(), None);
        sessions.on_output(1, Instant::now());
        assert_eq!(sessions.next(), None);
    }
}
