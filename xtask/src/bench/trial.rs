//! What trials with agents have in common: random pauses, the wall clock, an agent's own word, lanes that run at once.

use crate::failure::{Failure, Result};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// Milliseconds since 1970: the clock that agents write into their logs.
pub(super) fn wall_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The lines of a file of JSON.
pub(super) fn json_lines(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// When the last line of a file that fits was written, by its own `at`.
pub(super) fn last_at(path: &Path, fits: impl Fn(&Value) -> bool) -> Result<u64> {
    let lines = json_lines(path)?;
    let at = lines.iter().rev().find(|line| fits(line)).and_then(|line| line.get("at")?.as_u64());
    at.ok_or_else(|| Failure::new(format!("{} does not tell when it happened", path.display())))
}

/// How long after a moment of the wall clock it is now.
pub(super) fn since(moment: u64) -> Duration {
    Duration::from_millis(wall_clock().saturating_sub(moment))
}

/// Runs the same work in several lanes at once and gathers what each found.
pub(super) fn lanes<T: Send>(count: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..count).map(|lane| scope.spawn(move || work(lane))).collect();
        let ended =
            running.into_iter().map(|lane| lane.join().map_err(|_| Failure::new("a lane broke down"))?);
        ended.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_repeat_themselves_and_differ_by_seed() {
        let roll = |seed| {
            let mut dice = Dice::new(seed);
            (0..5).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(roll(1), roll(1));
        assert_ne!(roll(1), roll(2));
    }

    #[test]
    fn lanes_give_back_what_each_found_and_the_first_failure() {
        assert_eq!(lanes(3, Ok).unwrap(), [0, 1, 2]);
        let failed = lanes(3, |lane| if lane == 1 { Err(Failure::new("no")) } else { Ok(lane) });
        assert_eq!(failed.err().map(|failure| failure.line()).as_deref(), Some("no"));
    }
}
