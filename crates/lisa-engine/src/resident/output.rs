//! The output of agents that tell nothing by themselves, as it comes.
//!
//! An agent with hooks rings by itself once it is up; what it asks before that (whether a folder is trusted) it tells
//! nobody. For one that does not ring, a control client of its own is attached to its session; what
//! it writes is not read for its content, only for its rhythm: a first word after silence rings, and so does the
//! silence after the last one. A spinner that goes on and on rings once a second at the most.

use super::Bell;
use crate::{engine::Engine, observation::Mode, session::find::Sighting};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    collections::HashMap,
    io::Read,
    os::fd::AsFd,
    process::{Child, ChildStdout},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// So many sessions are listened to at once; each takes a client process. The tick serves the rest.
const LISTENERS_MAX: usize = 16;
/// Output has ended when nothing came for this long.
const QUIET: Duration = Duration::from_millis(80);
/// How often output that does not end rings.
const GOING_ON: Duration = Duration::from_secs(1);

/// The clients that listen.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    clients: HashMap<String, Client>,
    unheard: bool,
}

#[derive(Debug)]
struct Client {
    run_id: String,
    child: Child,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outputs {
    /// Listens to the sessions that need it, and to no others. `is_up` says whether an agent has come up.
    pub(super) fn follow(
        &mut self,
        all: &[Sighting],
        engine: &Engine,
        bell: &Arc<Bell>,
        is_up: impl Fn(&str) -> bool,
    ) {
        let wanted = |session: &Sighting| {
            let alive = session.pane.as_ref().is_some_and(|row| !row.pane.dead);
            let speaks = tells_by_itself(engine, session) && is_up(&session.meta.name);
            alive && session.meta.mode == Mode::Interactive && !speaks
        };
        self.clients.retain(|name, client| {
            let stays = all
                .iter()
                .find(|session| session.meta.name == *name)
                .is_some_and(|session| session.meta.run_id == client.run_id && wanted(session));
            stays && matches!(client.child.try_wait(), Ok(None))
        });
        self.unheard = false;
        for session in all.iter().filter(|session| wanted(session)) {
            let name = &session.meta.name;
            if self.clients.contains_key(name) {
                continue;
            }
            if self.clients.len() >= LISTENERS_MAX {
                self.unheard = true;
                continue;
            }
            // Where a client can not be had, the tick comes round.
            let Ok(mut child) = engine.tmux().listen(name) else {
                self.unheard = true;
                continue;
            };
            let Some(stdout) = child.stdout.take() else { continue };
            let (bell, heard) = (Arc::clone(bell), name.clone());
            let listening = thread::Builder::new()
                .name("lisa-output".to_owned())
                .spawn(move || hear(stdout, |()| bell.session(&heard)));
            if listening.is_ok() {
                self.clients.insert(name.clone(), Client { run_id: session.meta.run_id.clone(), child });
            }
        }
    }

    /// Whether everybody who must be listened to is.
    pub(super) fn all_heard(&self) -> bool {
        !self.unheard
    }
}

/// Whether the agent's own hooks ring for everything that matters.
fn tells_by_itself(engine: &Engine, session: &Sighting) -> bool {
    let profile = engine.profiles().get_or_generic(&session.meta.agent);
    profile.is_some_and(|profile| profile.launch.as_ref().is_some_and(|launch| launch.settings.is_some()))
}

/// Reads and forgets, and rings at the beginning and at the end of each burst. Reading never waits for anything, so
/// that the pane is never held up.
fn hear(mut stdout: ChildStdout, ring: impl Fn(())) {
    let mut chunk = vec![0; 65536];
    let mut rung: Option<Instant> = None;
    loop {
        let wait = rung.map(|_| QUIET.try_into().unwrap_or_default());
        let mut fds = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::IN)];
        match poll(&mut fds, wait.as_ref()) {
            Ok(0) => {
                ring(());
                rung = None;
                continue;
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        match stdout.read(&mut chunk) {
            Ok(0) | Err(_) => {
                ring(());
                return;
            }
            Ok(_) => {}
        }
        if rung.is_none_or(|last| last.elapsed() >= GOING_ON) {
            ring(());
            rung = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn rings(script: &str) -> usize {
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let count = AtomicUsize::new(0);
        hear(child.stdout.take().unwrap(), |()| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        child.wait().unwrap();
        count.into_inner()
    }

    #[test]
    fn a_burst_rings_at_its_beginning_and_at_its_end() {
        assert_eq!(
            rings("echo a; sleep 0.3; echo b; echo c; sleep 0.3"),
            5,
            "two bursts, and the end of all"
        );
    }

    #[test]
    fn what_goes_on_and_on_does_not_ring_each_time() {
        assert!(rings("for i in 1 2 3 4 5 6 7 8 9 10; do echo x; sleep 0.04; done") <= 4);
    }
}
