//! Watching: what a long-lived Lisa process does besides answering calls.
//!
//! One of these processes is the observer ([`election`], [`observer`]): it judges on events and writes the results to
//! the sessions' state and the [`journal`]. The others follow the journal, and ask the observer ([`door`]) before they
//! look themselves. When the observer exits, another one takes over.
//!
//! One thread serves all waits ([`parking`]); a caller that follows the journal as a stream has its own ([`stream`]).

pub mod change;
pub mod journal;
pub mod record;

mod bursts;
mod cancel;
mod context;
mod describe;
mod door;
mod election;
mod ending;
mod files;
mod index;
pub mod judge;
mod looking;
mod observer;
mod parking;
mod stamps;
mod stream;
mod table;
mod waits;
mod wake;

pub use cancel::Cancel;
pub use context::{Caller, Context};
pub(crate) use describe::describe;
pub use door::Health;
#[cfg(feature = "fuzz")]
pub(crate) use door::{answer_line, answers};
pub(crate) use ending::Ending;
pub(crate) use parking::NewWait;
pub use parking::WaitMessage;
pub use stream::Watch;
pub use waits::holds;
pub(crate) use waits::{cancelled, not_ahead};

use crate::error::{Error, Result};
use election::{Election, Term};
use observer::Observer;
use parking::{WaitMailbox, WaitThread};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    io::{PipeReader, PipeWriter},
    os::fd::AsFd,
    panic::AssertUnwindSafe,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use table::Want;
pub(crate) use table::{Table, Wanted};
use wake::Bell;

/// How often the observer's process removes sessions that ended long ago, and how many at a time.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
const CLEANUP_BATCH: usize = 50;
/// How long a process that couldn't become the observer pauses before it retries.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The background threads of a long-lived process: the candidate for observer, and the one that serves waits.
#[derive(Debug)]
pub(crate) struct Watcher {
    bell: Arc<Bell>,
    table: Arc<Table>,
    mailbox: Arc<WaitMailbox>,
    context: Arc<Context>,
    wait_thread: Mutex<Option<WaitThread>>,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts the threads.
    pub(crate) fn start(context: Arc<Context>) -> Result<Self> {
        let io = |error: std::io::Error| Error::io("start", Path::new("a thread"), &error);
        let bell = Arc::new(Bell::default());
        let table = Arc::new(Table::new(Arc::clone(&bell)));
        context.knows(&table);
        let election = context.election();
        let (stop, writer) = std::io::pipe().map_err(io)?;
        let candidate = Candidate {
            context: Arc::clone(&context),
            election,
            bell: Arc::clone(&bell),
            table: Arc::clone(&table),
            stop,
        };
        let thread = thread::Builder::new()
            .name("lisa-observer".to_owned())
            .spawn(move || candidate.run())
            .map_err(io)?;
        Ok(Self {
            bell,
            table,
            mailbox: Arc::default(),
            context,
            wait_thread: Mutex::new(None),
            stop: Some(writer),
            thread: Some(thread),
        })
    }

    /// This process's own table, for while it is the observer.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    /// Hands a wait to the thread that serves all waits.
    pub(crate) fn park(&self, new_wait: NewWait, cancel: &Cancel) -> Result<()> {
        self.attend()?;
        self.mailbox.park(new_wait, cancel);
        Ok(())
    }

    /// How often the journal has changed.
    pub(crate) fn moves(&self) -> u64 {
        if let Err(error) = self.attend() {
            tracing::warn!(%error, "could not follow the journal; polling instead");
        }
        self.mailbox.moves()
    }

    /// Blocks until the journal has changed since `seen`, or until the timeout.
    pub(crate) fn moved_since(&self, seen: u64, limit: Duration) {
        self.mailbox.moved_since(seen, limit);
    }

    fn attend(&self) -> Result<()> {
        let mut wait_thread = self.wait_thread.lock().unwrap_or_else(PoisonError::into_inner);
        if wait_thread.as_ref().is_none_or(WaitThread::is_dead) {
            *wait_thread = Some(WaitThread::start(self.context.clone(), Arc::clone(&self.mailbox))?);
        }
        Ok(())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.bell.stop();
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread that becomes the observer when there is none.
struct Candidate {
    context: Arc<Context>,
    election: Election,
    bell: Arc<Bell>,
    table: Arc<Table>,
    stop: PipeReader,
}

impl Candidate {
    fn run(self) {
        while !self.bell.stopped() {
            let served = match self.election.wait_for_term(&self.stop) {
                Ok(Some(term)) => self.serve(&term),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            // The term is over, so another candidate can take over meanwhile.
            if let Err(error) = served {
                tracing::warn!(%error, "could not be the observer");
                thread::sleep(RETRY_AFTER);
            }
        }
    }

    /// Watches, and answers on the observer's socket, until the term ends.
    fn serve(&self, term: &Term) -> Result<()> {
        let start = |error: std::io::Error| Error::io("start", Path::new("the observer"), &error);
        let (over, writer) = std::io::pipe().map_err(start)?;
        self.table.begin();
        let served = thread::scope(|scope| {
            // However this ends, the other threads end too.
            let _writer = writer;
            let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
            spawn("lisa-beat")
                .spawn_scoped(scope, || term.beat_until(&over, || self.bell.nudge()))
                .map_err(start)?;
            let answering = spawn("lisa-door").spawn_scoped(scope, || {
                door::serve(self.election.observer_socket(), &self.table, &over);
            });
            if let Err(error) = answering {
                tracing::warn!(%error, "could not serve the observer's socket");
            }
            let removing = spawn("lisa-cleanup").spawn_scoped(scope, || self.remove_old_sessions(&over));
            if let Err(error) = removing {
                tracing::warn!(%error, "sessions that ended long ago are not removed");
            }
            contain(|| Observer::new(&self.context, &self.bell, &self.table).map(|it| it.run(term)))
        });
        // From here on, callers look for themselves.
        self.table.clear();
        self.bell.abandon();
        served
    }
}

impl Candidate {
    /// Removes sessions that ended longer ago than they are kept, until `over` is closed. Has its own thread: tmux takes
    /// a while to list a thousand panes.
    fn remove_old_sessions(&self, over: &PipeReader) {
        while let Ok(false) = is_closed_within(over, CLEANUP_INTERVAL) {
            match self.context.remove_old(CLEANUP_BATCH) {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "removed sessions that ended long ago"),
                Err(error) => tracing::warn!(%error, "could not remove sessions that ended long ago"),
            }
        }
    }
}

/// Waits until the other end of a pipe is closed; returns whether that happened in time.
fn is_closed_within(pipe: &PipeReader, limit: Duration) -> std::io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
        match poll(&mut fds, left.try_into().ok().as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Turns a panic into an error, so that it doesn't leave the observer's table to callers.
fn contain(work: impl FnOnce() -> Result<()>) -> Result<()> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Error::new(
            crate::error::Kind::Internal,
            format!("the observer panicked: {text}"),
            "report this as a bug",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_a_term_like_any_other_error() {
        let error = contain(|| panic!("index {}", 7)).unwrap_err();
        assert_eq!(error.message(), "the observer panicked: index 7");
        assert!(contain(|| Ok(())).is_ok());
    }
}
