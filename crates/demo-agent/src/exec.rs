//! Without a screen: one prompt in, the answer on standard output, and an exit code.

use std::io::{self, Write};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use crate::agent::{Agent, News};
use crate::effect::Effect;
use crate::screen::Entry;
use crate::world::World;

/// Runs the agent's one turn; returns the exit code.
///
/// # Errors
/// The output is closed.
pub fn run(mut agent: Agent, mut world: World, news: &Receiver<News>) -> io::Result<i32> {
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
                other => world.perform(other),
            }
        }
        world.publish(agent.status().as_ref());
        world.flush();
        if let Some((code, reason)) = end {
            world.close(reason);
            return Ok(code);
        }
        let now = started.elapsed();
        let wait = agent.next_tick(now).map_or(Duration::MAX, |at| at.saturating_sub(now));
        if let Ok(item) = news.recv_timeout(wait) {
            agent.news(item, started.elapsed());
        }
    }
}
