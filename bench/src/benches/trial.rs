//! What trials with agents have in common: pauses, the wall clock, an agent's own word, lanes that run at once, sessions
//! that sleep.

use crate::{
    context::Context,
    failure::{Failure, Result},
};
use lisa_engine::{
    api::SpawnRequest,
    config::{Environment, Socket},
    engine::Engine,
    tmux::{Cmd, Tmux},
};
use serde_json::Value;
use std::{
    fs,
    ops::Range,
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How many sessions are started or ended at once.
pub(super) const LANES: usize = 4;

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

/// The time since 1970: the clock that agents write into their logs.
pub(super) fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Does nothing for so long, unless somebody asks to stop.
pub(super) fn pause(context: &Context, long: Duration) -> Result<()> {
    let until = Instant::now() + long;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        context.go_on()?;
        thread::sleep(left.min(Duration::from_millis(200)));
    }
    Ok(())
}

/// The lines of a file of JSON.
pub(super) fn json_lines(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// When the last line of a file that fits was written, by its own `at_us`.
pub(super) fn last_at(path: &Path, fits: impl Fn(&Value) -> bool) -> Result<Duration> {
    let lines = json_lines(path)?;
    let at = lines.iter().rev().find(|line| fits(line)).and_then(|line| line.get("at_us")?.as_u64());
    at.map(Duration::from_micros)
        .ok_or_else(|| Failure::new(format!("{} does not tell when it happened", path.display())))
}

/// A request for a session that runs a command.
pub(super) fn command_session(name: &str, command: &[&str]) -> SpawnRequest {
    SpawnRequest {
        agent: "generic".to_owned(),
        name: Some(name.to_owned()),
        args: command.iter().map(|word| (*word).to_owned()).collect(),
        ..SpawnRequest::default()
    }
}

/// The name of one of many sessions.
pub(super) fn numbered(number: usize) -> String {
    format!("bench-{number:04}")
}

/// Starts sessions that only sleep, with these numbers: the cheapest there are.
pub(super) fn sleepers(context: &Context, engine: &Engine, numbers: Range<usize>) -> Result<()> {
    lanes(LANES, |lane| {
        for number in numbers.clone().skip(lane).step_by(LANES) {
            context.go_on()?;
            engine.spawn(&command_session(&numbered(number), &["sleep", "86400"]))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// The process of the tmux server on a socket.
pub(super) fn server_pid(socket: &Path) -> Result<u32> {
    let tmux = Tmux::new(Socket::Path(socket.to_owned()), &Environment::of_this_process())?;
    let replies = tmux.call(&[Cmd::new("display-message").args(["-p", "#{pid}"])])?.unwrap_or_default();
    let answer = replies.into_iter().next().and_then(|reply| String::from_utf8(reply.ok()?).ok());
    let pid = answer.and_then(|answer| answer.trim().parse().ok());
    pid.ok_or_else(|| Failure::new("tmux does not say its process id"))
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
