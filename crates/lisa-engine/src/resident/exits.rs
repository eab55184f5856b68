//! The ends of the panes' processes, known at once.

use super::Bell;
use crate::{error::Result, process::Handle, session::find::Sighting};
use std::{collections::HashMap, sync::Arc};

/// Watches processes and rings when one ends.
#[derive(Debug)]
pub(super) struct Exits {
    sender: std::sync::mpsc::Sender<Watched>,
    known: HashMap<String, u32>,
    wake: std::fs::File,
}

#[derive(Debug)]
struct Watched {
    name: String,
    handle: Handle,
}

impl Exits {
    pub(super) fn start(bell: Arc<Bell>) -> Result<Self> {
        let io = |error: std::io::Error| {
            crate::error::Error::io("watch", std::path::Path::new("processes"), &error)
        };
        let (reader, writer) = std::io::pipe().map_err(io)?;
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name("lisa-exits".to_owned())
            .spawn(move || run(&receiver, reader, &bell))
            .map_err(io)?;
        Ok(Self {
            sender,
            known: HashMap::new(),
            wake: std::fs::File::from(std::os::fd::OwnedFd::from(writer)),
        })
    }

    /// Watches the processes of these sessions that are not watched yet.
    pub(super) fn follow(&mut self, all: &[Sighting]) {
        let mut added = false;
        for session in all {
            let Some(row) = session.pane.as_ref().filter(|row| !row.pane.dead) else { continue };
            if self.known.insert(session.meta.name.clone(), row.pane.pid) == Some(row.pane.pid) {
                continue;
            }
            if let Ok(handle) = Handle::open(row.pane.pid) {
                added |= self.sender.send(Watched { name: session.meta.name.clone(), handle }).is_ok();
            }
        }
        self.known.retain(|name, _| all.iter().any(|session| session.meta.name == *name));
        if added {
            use std::io::Write;
            let _ = (&self.wake).write_all(b"x");
        }
    }
}

/// Sleeps until a process ends or another is to be watched; ends when nobody can send any more.
#[cfg(target_os = "linux")]
fn run(receiver: &std::sync::mpsc::Receiver<Watched>, mut wake: std::io::PipeReader, bell: &Bell) {
    use rustix::event::{PollFd, PollFlags, poll};
    use std::{io::Read, os::fd::AsFd, sync::mpsc::TryRecvError};
    let mut watched: Vec<Watched> = Vec::new();
    loop {
        loop {
            match receiver.try_recv() {
                Ok(more) => watched.push(more),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let mut fds: Vec<PollFd<'_>> = watched
            .iter()
            .map(|watched| PollFd::from_borrowed_fd(watched.handle.as_fd(), PollFlags::IN))
            .collect();
        fds.push(PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN));
        if poll(&mut fds, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
            return;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if ready.last() == Some(&true) {
            let mut bytes = [0; 64];
            // The other end is closed when the pump has ended.
            if !matches!(wake.read(&mut bytes), Ok(n) if n > 0) {
                return;
            }
        }
        let mut index = 0;
        watched.retain(|watched| {
            let ended = ready[index];
            index += 1;
            if ended {
                bell.session(&watched.name);
            }
            !ended
        });
    }
}

/// Without a descriptor for a process, its start time is looked at now and then.
#[cfg(not(target_os = "linux"))]
fn run(receiver: &std::sync::mpsc::Receiver<Watched>, _wake: std::io::PipeReader, bell: &Bell) {
    use std::sync::mpsc::RecvTimeoutError;
    let mut watched: Vec<Watched> = Vec::new();
    loop {
        match receiver.recv_timeout(std::time::Duration::from_millis(200)) {
            Ok(more) => watched.push(more),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        watched.retain(|watched| {
            let alive = watched.handle.identity().alive();
            if !alive {
                bell.session(&watched.name);
            }
            alive
        });
    }
}
