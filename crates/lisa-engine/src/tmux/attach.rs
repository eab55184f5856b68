//! Control clients attach one at a time, and nothing that tmux tells them of is done meanwhile.
//!
//! Up to 3.3a the server takes a client for a control client from the first message of its greeting, but has nothing
//! to write to it with until the last. A client is slow between the two on a busy machine; a session that begins or
//! ends just then, or another client that comes or goes, is told to it, and the server dies with every session in it.
//!
//! Whoever attaches may be killed meanwhile, so its client holds the lock with it; and whoever was killed before has
//! left a client that goes at some time, so those are waited for first.

use super::{Cmd, Tmux, clients, fork};
use crate::disk::Lock;
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    io::Write,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Stdio},
    time::{Duration, Instant},
};

/// How long to wait for others. Whoever has waited that long goes on: a crash is unlikely, waiting for ever is worse.
const LIMIT: Duration = Duration::from_secs(2);
/// How long a client may take to leave.
pub(super) const LEAVE: Duration = Duration::from_millis(300);
/// Commands of Lisa's that tmux tells its control clients of.
const TOLD: &[&str] = &["new-session", "kill-session"];

impl Tmux {
    /// Keeps other processes of Lisa's from attaching and from what is told to clients, until it is dropped.
    pub(super) fn hold_attaching(&self) -> Option<Lock> {
        hold(&self.attaching())
    }

    /// What a client that attaches gets as its standard error: the lock, to be held until it is attached or gone.
    pub(super) fn attaching_stderr(&self, alone: Option<&Lock>) -> Stdio {
        alone.and_then(|lock| lock.shared().ok()).map_or_else(Stdio::null, Stdio::from)
    }

    /// Ends the clients of owners that were killed, and waits until the server has forgotten them.
    pub(super) fn await_orphans(&self) {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            let Ok(Some(replies)) = fork::call(self, &[clients::list()]) else { return };
            let Some(listed) = replies.first() else { return };
            if clients::end_orphans(listed) == 0 && !clients::is_any_dead(listed) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The same, where one of these commands is told to clients.
    pub(super) fn hold_for(&self, commands: &[Cmd]) -> Option<Lock> {
        commands.iter().any(|command| TOLD.contains(&command.name())).then(|| self.hold_attaching()).flatten()
    }

    /// The file that is locked, beside the socket.
    pub(super) fn attaching(&self) -> PathBuf {
        let mut path = self.socket_path().into_os_string();
        path.push(".attach");
        path.into()
    }
}

fn hold(path: &Path) -> Option<Lock> {
    // Without a folder for the socket there is no server to crash.
    Lock::take(path, LIMIT).ok()
}

/// Has a control client leave by itself, because the others are told of that too: killed, it is gone at some time.
pub(super) fn leave(client: &mut Child, stdin: &mut ChildStdin, attaching: &Path) {
    if !matches!(client.try_wait(), Ok(None)) {
        return;
    }
    let _alone = hold(attaching);
    if stdin.write_all(b"detach-client\n").and_then(|()| stdin.flush()).is_ok() {
        let deadline = Instant::now() + LEAVE;
        while matches!(client.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let _ = client.kill();
    let _ = client.wait();
}

/// Waits until a client has something to say: it has, as soon as it is attached.
pub(super) fn wait_until_greeted(client: &impl AsFd) {
    let mut fds = [PollFd::from_borrowed_fd(client.as_fd(), PollFlags::IN)];
    // Where it can not be waited for, nothing else is wrong.
    let _ = poll(&mut fds, LIMIT.try_into().ok().as_ref());
}
