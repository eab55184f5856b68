//! The exec front end: one prompt in, the answer on standard output, and an exit code.

use std::io::{self, Write};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use crate::agent::{Agent, ExternalEvent};
use crate::effect::Effect;
use crate::screen::Entry;
use crate::side_effects::SideEffects;

/// Runs a single turn. Returns the exit code.
///
/// # Errors
/// If standard output is closed.
pub fn run(
    mut agent: Agent,
    mut side_effects: SideEffects,
    events: &Receiver<ExternalEvent>,
) -> io::Result<i32> {
    let started = Instant::now();
    agent.boot(started.elapsed());
    loop {
        agent.tick(started.elapsed());
        let mut end = None;
        for effect in agent.take_effects() {
            match effect {
                Effect::Print(Entry::Answer { line, .. }) => writeln!(io::stdout(), "{line}")?,
                Effect::Print(Entry::Error(text)) => writeln!(io::stderr(), "{text}")?,
                Effect::Quit { code, reason } => end = Some((code, reason)),
                Effect::Abort => std::process::abort(),
                Effect::Hang { .. } => loop {
                    thread::park();
                },
                other => side_effects.perform(other),
            }
        }
        side_effects.publish(agent.status().as_ref());
        side_effects.flush();
        if let Some((code, reason)) = end {
            side_effects.close(reason);
            return Ok(code);
        }
        let now = started.elapsed();
        let wait = agent.next_tick(now).map_or(Duration::MAX, |at| at.saturating_sub(now));
        if let Ok(item) = events.recv_timeout(wait) {
            agent.handle_event(item, started.elapsed());
        }
    }
}
