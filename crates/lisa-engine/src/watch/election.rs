//! Leader election: of all Lisa processes on one state directory and tmux socket, one is the observer.
//!
//! The observer holds a lock that dies with it, and writes a heartbeat into the lock file. Every other long-lived
//! process is a candidate: it is connected to the observer, so it notices at once when the observer dies. One of the
//! candidates, the deputy, also watches the heartbeat and so notices a hung observer; the others only check now and
//! then whether there is a deputy.
//!
//! A hung observer is deposed by replacing its lock file; the next observer holds the new one. A process whose own
//! lock file is no longer the one at that path has been deposed and stops writing. Two processes that briefly both
//! believe they are the observer cost time and nothing else: each change of a session is made under that session's
//! lock and checked against what is already written.

use super::is_closed_within;
use crate::{
    disk,
    error::{Error, Result},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{FlockOperation, flock},
};
use std::{
    fs::{self, File},
    io::PipeReader,
    os::{
        fd::AsFd,
        unix::{
            fs::{FileExt, MetadataExt},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

/// How often an observer writes its heartbeat.
const BEAT: Duration = Duration::from_millis(200);
/// How long the observer may be busy with a few sessions and still count as alive. A session's lock and tmux each have
/// a shorter timeout.
const STUCK: Duration = Duration::from_secs(15);
/// How often the observer says that it isn't stuck.
pub(super) const PROGRESS: Duration = Duration::from_secs(5);
/// An observer that has not said so for this long hangs.
const HANGS: Duration = Duration::from_millis(450);
/// How often the deputy looks at the beat: two looks at the same one are a hang, noticed within 0.9 s.
const LOOK: Duration = HANGS;
/// How often every other candidate looks whether there is a deputy.
const LOOK_RESTING: Duration = Duration::from_secs(5);
/// How often a candidate tries where there is no observer to be connected to, and for how long.
const RETRY: Duration = Duration::from_millis(30);
const RETRIES: Duration = Duration::from_secs(3);

/// The election: where its lock is, and where its observer can be reached.
#[derive(Debug, Clone)]
pub(crate) struct Election {
    lock: PathBuf,
    observer_socket: PathBuf,
}

impl Election {
    /// The election for a state directory and a tmux socket. Creates nothing and reads nothing.
    pub(crate) fn of(state_dir: &Path, socket: &Path) -> Self {
        use md5::{Digest, Md5};
        let dir = state_dir.join("observer");
        let hash = Md5::digest(socket.as_os_str().as_encoded_bytes());
        let name: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Self { lock: dir.join(format!("{name}.lock")), observer_socket: dir.join(name) }
    }

    /// The socket of the observer.
    pub(crate) fn observer_socket(&self) -> &Path {
        &self.observer_socket
    }

    /// Waits until this process is the observer. `None` if `stop` is closed first.
    pub(super) fn wait_for_term(&self, stop: &PipeReader) -> Result<Option<Term>> {
        for directory in self.lock.ancestors().skip(1).take(2).collect::<Vec<_>>().into_iter().rev() {
            disk::private_dir(directory)?;
        }
        let mut candidacy =
            Candidacy { beat: self.beat(), changed: Instant::now(), deputy: None, began: Instant::now() };
        loop {
            if let Some(term) = self.take()? {
                return Ok(Some(term));
            }
            match self.follow(stop, &mut candidacy)? {
                Next::TryAgain => {}
                Next::Depose => {
                    if let Some(term) = self.depose(candidacy.beat)? {
                        return Ok(Some(term));
                    }
                }
                Next::Stop => return Ok(None),
            }
        }
    }

    /// Becomes the observer if there is none.
    fn take(&self) -> Result<Option<Term>> {
        let file = self.open(&self.lock)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(Error::io("lock", &self.lock, &error.into())),
        }
        let term = Term::new(file, self.lock.clone());
        // Somebody may have replaced the file between open and lock (race).
        Ok(term.holds().then_some(term))
    }

    /// Waits until the observer has died or hangs, or until this process should stop.
    fn follow(&self, stop: &PipeReader, candidacy: &mut Candidacy) -> Result<Next> {
        let connection = UnixStream::connect(&self.observer_socket).ok();
        loop {
            if candidacy.deputy.is_none() {
                candidacy.deputy = self.become_deputy()?;
            }
            let limit = match &connection {
                None if candidacy.began.elapsed() < RETRIES => RETRY,
                Some(_) if candidacy.deputy.is_none() => LOOK_RESTING,
                _ => LOOK,
            };
            let mut fds = vec![PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
            fds.extend(connection.as_ref().map(|c| PollFd::from_borrowed_fd(c.as_fd(), PollFlags::IN)));
            match poll(&mut fds, limit.try_into().ok().as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::io("wait for", &self.lock, &error.into())),
            }
            if !fds[0].revents().is_empty() {
                return Ok(Next::Stop);
            }
            let beat = self.beat();
            let another = beat.map(|beat| beat.file) != candidacy.beat.map(|beat| beat.file);
            if beat != candidacy.beat {
                (candidacy.beat, candidacy.changed) = (beat, Instant::now());
            } else if candidacy.changed.elapsed() >= HANGS {
                candidacy.changed = Instant::now();
                return Ok(Next::Depose);
            }
            // Nothing is ever sent on a connection that asks nothing, so an event on it is its end. The end of a
            // connection to a deposed observer says nothing about the next one.
            if another || connection.is_none() || fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
                if another || connection.is_some() {
                    candidacy.began = Instant::now();
                }
                return Ok(Next::TryAgain);
            }
        }
    }

    /// Becomes the deputy, if there is none.
    fn become_deputy(&self) -> Result<Option<File>> {
        let file = self.open(&self.lock.with_extension("deputy"))?;
        Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file))
    }

    /// Deposes a hung observer, whose heartbeat hasn't changed since `beat`.
    fn depose(&self, beat: Option<Beat>) -> Result<Option<Term>> {
        let guard = self.open(&self.lock.with_extension("depose"))?;
        if flock(&guard, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        if let Some(term) = self.take()? {
            return Ok(Some(term));
        }
        // Another candidate may have just deposed it (race).
        if self.beat() != beat {
            return Ok(None);
        }
        let fresh = self.lock.with_extension("new");
        let _ = fs::remove_file(&fresh);
        let file = self.open(&fresh)?;
        let io = |error: std::io::Error| Error::io("replace", &self.lock, &error);
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| io(error.into()))?;
        fs::rename(&fresh, &self.lock).map_err(io)?;
        tracing::warn!(lock = %self.lock.display(), "the observer hung and was deposed");
        Ok(Some(Term::new(file, self.lock.clone())))
    }

    fn open(&self, path: &Path) -> Result<File> {
        disk::open_private(path, |options| options.read(true).write(true).create(true).truncate(false))
            .map_err(|error| Error::io("open", path, &error))
    }

    fn beat(&self) -> Option<Beat> {
        let found = fs::metadata(&self.lock).ok()?;
        Some(Beat { file: (found.dev(), found.ino()), written: found.modified().ok()? })
    }
}

/// A heartbeat: the lock file and its last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Beat {
    file: (u64, u64),
    written: SystemTime,
}

/// The state of a candidate.
struct Candidacy {
    /// The last heartbeat it saw, and when that one was new.
    beat: Option<Beat>,
    changed: Instant,
    /// The deputy's lock, if this process is the deputy.
    deputy: Option<File>,
    /// When it started to try to connect to an observer.
    began: Instant,
}

enum Next {
    TryAgain,
    Depose,
    Stop,
}

/// The term of this process as the observer. Dropping it ends the term.
#[derive(Debug)]
pub(super) struct Term {
    file: File,
    path: PathBuf,
    beats: AtomicU64,
    /// When the observer last said that it isn't stuck.
    progress: Mutex<Instant>,
    deposed: AtomicBool,
}

impl Term {
    fn new(file: File, path: PathBuf) -> Self {
        let progress = Mutex::new(Instant::now());
        Self { file, path, beats: AtomicU64::new(0), progress, deposed: AtomicBool::new(false) }
    }

    /// Whether this process's lock file is still the one at its path.
    fn holds(&self) -> bool {
        let id = |found: fs::Metadata| (found.dev(), found.ino());
        match (self.file.metadata().map(id), fs::metadata(&self.path).map(id)) {
            (Ok(own), Ok(there)) => own == there,
            _ => false,
        }
    }

    /// Whether another process took over.
    pub(super) fn is_deposed(&self) -> bool {
        self.deposed.load(Ordering::SeqCst)
    }

    /// The observer isn't stuck.
    pub(super) fn progress(&self) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Writes the heartbeat until `over` is closed, or until another process has taken over; then calls `deposed`. A
    /// look that takes long isn't a hang, so this has a thread of its own; it stops for an observer that is stuck.
    pub(super) fn beat_until(&self, over: &PipeReader, deposed: impl FnOnce()) {
        loop {
            if !self.holds() {
                self.deposed.store(true, Ordering::SeqCst);
                return deposed();
            }
            let progress = *self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            if progress.elapsed() < STUCK {
                self.beat();
            }
            match is_closed_within(over, BEAT) {
                Ok(false) => {}
                Ok(true) => return,
                Err(error) => return tracing::error!(%error, "the heartbeat stops: could not wait"),
            }
        }
    }

    fn beat(&self) {
        let beat = format!("{} {:020}\n", std::process::id(), self.beats.fetch_add(1, Ordering::Relaxed));
        // Overwrites the old one, which works even on a full disk.
        if let Err(error) = self.file.write_all_at(beat.as_bytes(), 0) {
            tracing::warn!(%error, lock = %self.path.display(), "could not write the heartbeat");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(dir: &Path) -> Election {
        Election::of(dir, Path::new("/tmp/tmux-0/lisa"))
    }

    fn state() -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        disk::private_dir(&dir.path().join("observer")).unwrap();
        dir
    }

    #[test]
    fn one_of_two_has_the_office_and_the_other_gets_it_when_that_one_lets_go() {
        let dir = state();
        let first = election(dir.path()).take().unwrap().unwrap();
        assert!(election(dir.path()).take().unwrap().is_none());
        assert!(first.holds());
        drop(first);
        assert!(election(dir.path()).take().unwrap().is_some());
    }

    #[test]
    fn two_sockets_have_an_office_each() {
        let dir = state();
        let _first = election(dir.path()).take().unwrap().unwrap();
        let other = Election::of(dir.path(), Path::new("/tmp/tmux-0/other"));
        assert!(other.take().unwrap().is_some());
    }

    #[test]
    fn an_observer_that_does_not_beat_is_deposed_and_knows_it() {
        let dir = state();
        let hung = election(dir.path()).take().unwrap().unwrap();
        hung.beat();
        let (stop, _writer) = std::io::pipe().unwrap();
        let began = Instant::now();
        let next = election(dir.path()).wait_for_term(&stop).unwrap().unwrap();
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        assert!(next.holds() && !hung.holds());
        drop(hung);
        assert!(election(dir.path()).take().unwrap().is_none(), "the term of the next is not lost with it");
    }

    #[test]
    fn one_candidate_is_the_deputy_until_it_goes() {
        let dir = state();
        let deputy = election(dir.path()).become_deputy().unwrap().unwrap();
        assert!(election(dir.path()).become_deputy().unwrap().is_none());
        drop(deputy);
        assert!(election(dir.path()).become_deputy().unwrap().is_some());
    }

    /// Whether a candidate takes over from an observer that beats like this for 1.5 s.
    fn is_deposed(prepare: impl FnOnce(&Term)) -> bool {
        let dir = state();
        let term = election(dir.path()).take().unwrap().unwrap();
        prepare(&term);
        let (over, end) = std::io::pipe().unwrap();
        let (stop, leave) = std::io::pipe().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| term.beat_until(&over, || {}));
            let other = election(dir.path());
            let (sender, taken) = std::sync::mpsc::channel();
            scope.spawn(move || sender.send(other.wait_for_term(&stop).unwrap().is_some()));
            let early = taken.recv_timeout(Duration::from_millis(1_500));
            drop((leave, end));
            early.or_else(|_| taken.recv_timeout(Duration::from_secs(5))).unwrap()
        })
    }

    #[test]
    fn an_observer_whose_look_takes_long_is_left_alone_and_a_candidate_that_is_stopped_goes() {
        let busy = |ago: u64| {
            move |term: &Term| {
                let then = Instant::now().checked_sub(Duration::from_secs(ago)).unwrap();
                *term.progress.lock().unwrap() = then;
            }
        };
        assert!(!is_deposed(busy(0)));
        assert!(!is_deposed(busy(10)), "one look may wait for tmux for 10 s");
        assert!(is_deposed(busy(60)), "an observer that is stuck stops beating");
    }
}
