//! Lisa's own control clients, and those that an owner who was killed has left behind.
//!
//! A control client should end when nobody reads it any more. tmux waits until everything for it is written, though,
//! and where its reader went away with a reply under way that never comes: the client stays for good, and with it the
//! server, even after `kill-server`. So each client bears the mark of its owner, and whoever connects next ends those
//! whose owner is gone, before it attaches itself.

use super::{Cmd, Reply, Tmux, Version, attach::LEAVE, fork};
use crate::{
    error::Result,
    process::{self, Handle, Identity},
};
use rustix::process::Signal;
use std::{
    process::Command,
    time::{Duration, Instant},
};

/// The variable in a client's environment that names its owner.
const OWNER: &str = "LISA_CLIENT_OF";

/// The first tmux that tells a program that has ended nothing about who looks at it.
const FIXED: Version = Version::new(3, 4);

/// Marks a client that is about to be started as this process's own.
pub(super) fn mark(command: &mut Command) {
    if let Some(own) = Identity::own() {
        command.env(OWNER, mark_of(own));
    }
}

fn mark_of(owner: Identity) -> String {
    format!("{}:{}", owner.pid, owner.started)
}

/// Ends every client that this process has started, for a process that is about to end: threads that hold one are not
/// asked to let it go.
pub fn end_own_clients() {
    let Some(own) = Identity::own() else { return };
    let below = process::tree(own.pid).unwrap_or_default();
    for child in below.into_iter().filter(|proc| proc.ppid == own.pid) {
        let marked = |handle: &Handle| process::variable(handle.identity().pid, OWNER) == Some(mark_of(own));
        if let Some(handle) = Handle::open(child.pid).ok().filter(marked) {
            let _ = handle.signal(Signal::KILL);
        }
    }
}

/// The command whose reply [`end_orphans`] reads.
pub(super) fn list() -> Cmd {
    Cmd::new("list-clients").args(["-F", "#{client_pid}"])
}

/// Ends every listed client whose owner is gone; says how many those were.
pub(super) fn end_orphans(listed: &Reply) -> usize {
    let clients = marked(listed).into_iter();
    clients.filter(|(handle, owner)| is_gone(owner) && handle.signal(Signal::KILL).is_ok()).count()
}

/// Whether the server still lists a client whose process has ended: it will tell the others that it is gone.
pub(super) fn is_any_dead(listed: &Reply) -> bool {
    pids(listed).into_iter().any(|pid| process::start_time(pid).is_none())
}

/// The listed clients that are Lisa's, each with the mark of its owner.
fn marked(listed: &Reply) -> Vec<(Handle, String)> {
    // Held before its mark is read: what is ended is what was marked, even if the number is given to another.
    let held = |pid| Some((Handle::open(pid).ok()?, process::variable(pid, OWNER)?));
    pids(listed).into_iter().filter_map(held).collect()
}

fn pids(listed: &Reply) -> Vec<u32> {
    let text = listed.as_ref().map(|listed| String::from_utf8_lossy(listed)).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Whether the process that a mark names has ended. A mark that can not be read names nobody.
fn is_gone(owner: &str) -> bool {
    let identity = owner
        .split_once(':')
        .and_then(|(pid, started)| Some(Identity { pid: pid.parse().ok()?, started: started.parse().ok()? }));
    identity.is_some_and(|identity| !identity.alive())
}

impl Tmux {
    /// Ends a session.
    ///
    /// A tmux before 3.4 tells the program in a pane when nobody looks at it any more, if it asked for that; if it has
    /// ended in the meantime, the server dies of it with every session. So what it asked for is forgotten first, in the
    /// same command list.
    pub fn end_session(&self, id: &str) -> Result<()> {
        let forget = Cmd::new("send-keys").args(["-R", "-t"]).arg(format!("{id}:"));
        self.call_atomic(&[forget, Cmd::new("kill-session").arg("-t").arg(id)])?;
        Ok(())
    }

    /// Whether the server outlives a client that comes to look at a pane whose program has ended.
    pub fn survives_a_look(&self) -> Result<bool> {
        Ok(self.version()? >= FIXED)
    }

    /// Ends control clients whose owner was killed; says how many those were.
    pub fn end_orphaned_clients(&self) -> Result<usize> {
        let replies = self.call(&[list()])?.unwrap_or_default();
        Ok(replies.first().map_or(0, end_orphans))
    }

    /// Ends the server with every session in it, and waits until it is gone; says whether it is.
    ///
    /// A server goes only after its last client. Those of Lisa's that do not leave when they are told to are ended.
    pub fn end_server(&self, limit: Duration) -> Result<bool> {
        let pid = Cmd::new("display-message").args(["-p", "#{pid}"]);
        let Some(replies) = self.call(&[pid, list()])? else { return Ok(true) };
        let [Ok(pid), listed] = replies.as_slice() else { return Ok(false) };
        let pid = String::from_utf8_lossy(pid).trim().parse().ok();
        let Some(server) = pid.and_then(Identity::of) else { return Ok(true) };
        let clients = marked(listed);
        // It may go before it has answered.
        let _ = fork::call(self, &[Cmd::new("kill-server")]);
        let told = Instant::now();
        while server.alive() && told.elapsed() < limit {
            if told.elapsed() > LEAVE {
                for (client, _) in &clients {
                    // It may have left in the meantime.
                    let _ = client.signal(Signal::KILL);
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(!server.alive())
    }
}
