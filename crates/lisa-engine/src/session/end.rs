//! Ending sessions: descendants first, then the agent and its processes, then the directory.

use super::{Store, find::SessionSnapshot, repair::repair};
use crate::{
    api::Removed,
    error::Result,
    process,
    tmux::{Cmd, Tmux},
};
use std::{collections::HashSet, time::Duration};

/// How long an agent has to exit by itself.
const GRACE: Duration = Duration::from_secs(3);

/// A session and every session that it started, deepest first.
pub fn with_descendants(all: &[SessionSnapshot], name: &str) -> Vec<SessionSnapshot> {
    let mut order: Vec<&SessionSnapshot> = all.iter().filter(|session| session.meta.name == name).collect();
    let mut seen: HashSet<&str> = order.iter().map(|session| session.meta.name.as_str()).collect();
    let mut next = 0;
    while next < order.len() {
        let parent = order[next].meta.name.as_str();
        for child in all.iter().filter(|session| session.meta.parent.as_deref() == Some(parent)) {
            if seen.insert(&child.meta.name) {
                order.push(child);
            }
        }
        next += 1;
    }
    order.into_iter().rev().cloned().collect()
}

/// What to do about a session's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processes {
    /// They are running: SIGHUP first, SIGKILL after the grace period.
    Polite,
    /// They are running: SIGKILL at once.
    Force,
    /// They have already been ended.
    Ended,
}

impl Processes {
    /// For processes that are running.
    pub fn running(force: bool) -> Self {
        if force { Self::Force } else { Self::Polite }
    }

    fn grace(self) -> Duration {
        if self == Self::Polite { GRACE } else { Duration::ZERO }
    }
}

/// Ends the processes of many sessions in parallel, so all of them share one grace period.
pub fn stop_processes(sessions: &[SessionSnapshot], processes: Processes) {
    let leader = |session: &SessionSnapshot| match &session.pane {
        Some(row) => Some(row.pane.pid),
        None => session.meta.pane.filter(|pane| pane.alive()).map(|pane| pane.pid),
    };
    let leaders: Vec<u32> = sessions.iter().filter_map(leader).collect();
    process::end_all(&leaders, processes.grace());
}

/// Ends one session, but keeps its directory. Returns how many processes had to be killed.
pub fn stop(session: &SessionSnapshot, processes: Processes, tmux: &Tmux) -> Result<usize> {
    let grace = processes.grace();
    let mut killed = 0;
    if let Some(row) = &session.pane {
        if processes != Processes::Ended {
            // Also for a dead pane: processes of its group may live on.
            killed = process::end_all(&[row.pane.pid], if row.pane.dead { Duration::ZERO } else { grace });
        }
        tmux.end_pane(row, &session.meta.name)?;
    } else if let Some(pane) = session.meta.pane.filter(|pane| pane.alive()) {
        // The server is gone, but the agent isn't.
        killed = process::end_all(&[pane.pid], grace);
    }
    Ok(killed)
}

/// Removes leftovers: directories of sessions that were never started or that are malformed and have no agent, tmux
/// sessions without a directory, and the socket of a server that is gone.
pub fn sweep(tmux: &Tmux, store: &Store) -> Result<Vec<Removed>> {
    let mut removed = Vec::new();
    let mut note = |kind: &str, name: &str, why: &str| {
        removed.push(Removed { kind: kind.to_owned(), name: name.to_owned(), why: why.to_owned() });
    };
    for stored in store.load_all()? {
        if stored.found.is_err()
            && repair(tmux, store, &stored.name)?.is_none()
            && let Some(dir) = store.dir(&stored.name)
        {
            dir.remove()?;
            note("directory", &stored.name, "its metadata is malformed, and tmux has no pane of it");
        }
    }
    for name in store.names()? {
        let Some(dir) = store.dir(&name) else { continue };
        if dir.meta().is_ok_and(|meta| meta.is_none()) && dir_is_old(dir.path()) {
            dir.remove()?;
            note("directory", &name, "the session was never started");
        }
    }
    let left = store.sweep()?;
    if left > 0 {
        note("directory", &left.to_string(), "the process that was removing it was killed");
    }
    // By the run, not by the name: a person may have renamed the tmux session, or moved the pane to another.
    let runs: HashSet<String> =
        store.load_all()?.into_iter().filter_map(|stored| Some(stored.found.ok()?.1.run_id)).collect();
    for row in tmux.panes(false)? {
        if !row.run_id.is_empty() && !runs.contains(&row.run_id) {
            process::end_all(&[row.pane.pid], GRACE);
            tmux.end_pane(&row, &row.session)?;
            note("session", &row.session, "it has no directory");
        }
    }
    if let Some(server) = tmux.lingering() {
        // Its sessions are already gone; it may exit by itself in the meantime.
        let _ = server.signal(rustix::process::Signal::KILL);
        note("server", &server.identity().pid.to_string(), "it was told to end, but a client kept it alive");
    }
    let socket = tmux.socket_path();
    if socket.exists() && tmux.call(&[Cmd::new("display-message").args(["-p", "x"])])?.is_none() {
        let _ = std::fs::remove_file(&socket);
        note("socket", &socket.display().to_string(), "no server answers there");
    }
    Ok(removed)
}

/// A directory without metadata may be one that is just being created.
fn dir_is_old(path: &std::path::Path) -> bool {
    let age =
        std::fs::metadata(path).and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > Duration::from_secs(60))
}
