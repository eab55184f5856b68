//! When output on a terminal is worth a look.
//!
//! Output says that something may have changed, not what. A look comes a moment after the first output (tmux has to draw
//! it), and one more when the terminal has been quiet for a while. An agent that writes without end is looked at now and
//! then; the more of them there are, the less often each. An agent that tells by hooks what it does is not looked at
//! while it works, but when it falls silent: an interrupt by hand fires no hook.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

/// How long tmux has to draw what was written.
const DRAWN: Duration = Duration::from_millis(4);
/// Output has ended when nothing came for this long.
const QUIET: Duration = Duration::from_millis(80);
/// The same for an agent whose spinner turns: longer than it ever stands still.
const SILENT: Duration = Duration::from_millis(600);
/// The shortest time between two looks at one session because of its output, for each session that writes.
const GAP_EACH: Duration = Duration::from_millis(20);
const GAP_LEAST: Duration = Duration::from_millis(60);

/// How a session's output is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Listening {
    /// Any output is worth a look.
    #[default]
    Output,
    /// Only the end of output is.
    Silence,
    /// A prompt was announced and is being drawn: look at once, and again at the first output.
    Drawing,
}

#[derive(Debug, Default)]
struct Burst {
    listening: Listening,
    /// When a look is due.
    due: Option<Instant>,
    /// Whether that look is the one at rest.
    resting: bool,
    last_output: Option<Instant>,
    last_look: Option<Instant>,
}

/// The output of all sessions, by key.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    bursts: HashMap<u64, Burst>,
    due: BTreeSet<(Instant, u64)>,
}

impl Bursts {
    /// Says how a session is listened to from now on.
    pub(super) fn listen(&mut self, key: u64, listening: Listening, now: Instant) {
        let before = std::mem::replace(&mut self.bursts.entry(key).or_default().listening, listening);
        if listening == Listening::Drawing && before != listening {
            // It may have been drawn while the look was under way that found it announced.
            self.set(key, now, false);
        }
    }

    /// A session is not listened to any more.
    pub(super) fn forget(&mut self, key: u64) {
        if let Some(Burst { due: Some(due), .. }) = self.bursts.remove(&key) {
            self.due.remove(&(due, key));
        }
    }

    /// A session wrote something.
    pub(super) fn heard(&mut self, key: u64, now: Instant) {
        let gap = self.gap();
        let Some(burst) = self.bursts.get_mut(&key) else { return };
        burst.last_output = Some(now);
        let pending = burst.due.is_some() && !burst.resting;
        let due = match burst.listening {
            Listening::Silence => now + SILENT,
            Listening::Drawing => now,
            Listening::Output if pending => return,
            Listening::Output => burst.last_look.map_or(now + DRAWN, |last| (last + gap).max(now + DRAWN)),
        };
        self.set(key, due, false);
    }

    /// The sessions whose look is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<u64> {
        let mut keys = Vec::new();
        while let Some(&(due, key)) = self.due.first().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, key));
            let Some(burst) = self.bursts.get_mut(&key) else { continue };
            burst.due = None;
            burst.last_look = Some(now);
            keys.push(key);
            // One more when it has come to rest, unless this is the one.
            let rests = burst.last_output.map(|last| last + QUIET).filter(|rests| *rests > now);
            if let (Listening::Output, Some(rests)) = (burst.listening, rests) {
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
        let Some(burst) = self.bursts.get_mut(&key) else { return };
        burst.resting = resting;
        if let Some(before) = burst.due.replace(due) {
            self.due.remove(&(before, key));
        }
        self.due.insert((due, key));
    }

    /// How long one session waits between looks, by how many write.
    fn gap(&self) -> Duration {
        let writing = u32::try_from(self.due.len()).unwrap_or(u32::MAX);
        GAP_LEAST.max(GAP_EACH.saturating_mul(writing)).min(Duration::from_secs(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When looks happen if a session writes at these milliseconds.
    fn looks(listening: Listening, writes: &[u64]) -> Vec<u64> {
        let began = Instant::now();
        let mut bursts = Bursts::default();
        bursts.listen(1, listening, began);
        let mut looks = Vec::new();
        for ms in 0..5_000 {
            let now = began + Duration::from_millis(ms);
            if writes.contains(&ms) {
                bursts.heard(1, now);
            }
            looks.extend(bursts.take_due(now).iter().map(|_| ms));
        }
        looks
    }

    #[test]
    fn one_line_is_looked_at_when_it_is_drawn_and_when_it_has_come_to_rest() {
        assert_eq!(looks(Listening::Output, &[100]), [104, 180]);
        assert_eq!(looks(Listening::Output, &[100, 102, 110]), [104, 164, 190]);
    }

    #[test]
    fn a_spinner_is_looked_at_now_and_then_and_after_it_stops() {
        let spins: Vec<u64> = (0..20).map(|n| 100 + n * 100).collect();
        let seen = looks(Listening::Output, &spins);
        assert!(seen.len() <= 2 * spins.len(), "{seen:?}");
        assert!(seen.last() >= Some(&2_080), "{seen:?}");
    }

    #[test]
    fn an_agent_that_tells_what_it_does_is_looked_at_when_it_falls_silent() {
        let spins: Vec<u64> = (0..20).map(|n| 100 + n * 100).collect();
        assert_eq!(looks(Listening::Silence, &spins), [2_600]);
    }

    #[test]
    fn a_prompt_that_is_being_drawn_is_looked_at_at_once_and_at_every_output() {
        assert_eq!(looks(Listening::Drawing, &[3, 5]), [0, 3, 5]);
    }

    #[test]
    fn the_more_write_the_less_often_each_is_looked_at() {
        let began = Instant::now();
        let mut bursts = Bursts::default();
        (0..200).for_each(|key| bursts.listen(key, Listening::Output, began));
        let mut looks = 0;
        for ms in (0..10_000).step_by(50) {
            let now = began + Duration::from_millis(ms);
            (0..200).for_each(|key| bursts.heard(key, now));
            looks += bursts.take_due(now).len();
        }
        assert!(looks <= 200 * 10, "{looks} looks in ten seconds");
    }

    #[test]
    fn a_session_that_is_forgotten_is_not_looked_at() {
        let mut bursts = Bursts::default();
        bursts.listen(1, Listening::Output, Instant::now());
        bursts.heard(1, Instant::now());
        bursts.forget(1);
        assert_eq!(bursts.next(), None);
        bursts.heard(1, Instant::now());
        assert_eq!(bursts.next(), None);
    }
}
