//! Who watches: of all Lisa processes on a state directory and a socket, one.
//!
//! The observer holds a lock that dies with it, and writes a beat into the lock's file as often as it comes round. Every
//! other process that stays is a candidate: it is connected to the observer, so it knows at once when that dies. One of
//! them, the deputy, also looks at the beat, so it sees when the observer hangs; the others rest, and look now and then.
//!
//! An observer that hangs is deposed: its lock's file is replaced by another, which the next observer holds. Whoever finds
//! that its own file is not the one at that path any more has lost the office and writes nothing more. Two that believe
//! for a moment that they watch cost time and nothing else: each change of a session is written under that session's
//! lock, against what is written there.

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
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime},
};

/// How often an observer says that it is there.
pub(super) const BEAT: Duration = Duration::from_millis(200);
/// An observer that has not said so for this long hangs.
const HANGS: Duration = Duration::from_millis(500);
/// How often the deputy looks at the beat, and how often every other candidate does.
const LOOK: Duration = Duration::from_millis(300);
const LOOK_RESTING: Duration = Duration::from_secs(2);
/// How often a candidate tries where there is no observer to be connected to, and for how long.
const RETRY: Duration = Duration::from_millis(30);
const RETRIES: Duration = Duration::from_secs(3);

/// The office: where its lock is, and where its observer can be reached.
#[derive(Debug, Clone)]
pub(crate) struct Office {
    lock: PathBuf,
    door: PathBuf,
}

impl Office {
    /// The office for a state directory and a socket of tmux's. Nothing is made and nothing is read.
    pub(crate) fn of(state_dir: &Path, socket: &Path) -> Self {
        use md5::{Digest, Md5};
        let dir = state_dir.join("observer");
        let hash = Md5::digest(socket.as_os_str().as_encoded_bytes());
        let name: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Self { lock: dir.join(format!("{name}.lock")), door: dir.join(name) }
    }

    /// The socket at which the observer can be asked.
    pub(crate) fn door(&self) -> &Path {
        &self.door
    }

    /// Waits until this process is the observer. `None` when `stop` was closed before.
    pub(super) fn stand(&self, stop: &PipeReader) -> Result<Option<Term>> {
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

    /// Takes the office if it is free.
    fn take(&self) -> Result<Option<Term>> {
        let file = self.open(&self.lock)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(Error::io("lock", &self.lock, &error.into())),
        }
        let term = Term { file, path: self.lock.clone(), beats: AtomicU64::new(0) };
        // Somebody may have replaced the file between the two.
        Ok(term.holds().then_some(term))
    }

    /// Waits until the observer is gone, hangs, or this process is to end.
    fn follow(&self, stop: &PipeReader, candidacy: &mut Candidacy) -> Result<Next> {
        let connection = UnixStream::connect(&self.door).ok();
        loop {
            if candidacy.deputy.is_none() {
                candidacy.deputy = self.deputise()?;
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
            // Nothing is ever sent to a connection that asks nothing: what comes is its end. One to an observer that was
            // deposed says nothing of the next.
            if another || connection.is_none() || fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
                if another || connection.is_some() {
                    candidacy.began = Instant::now();
                }
                return Ok(Next::TryAgain);
            }
        }
    }

    /// Becomes the deputy, if nobody is.
    fn deputise(&self) -> Result<Option<File>> {
        let file = self.open(&self.lock.with_extension("deputy"))?;
        Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file))
    }

    /// Takes the office from an observer that hangs: it has not beaten since this.
    fn depose(&self, beat: Option<Beat>) -> Result<Option<Term>> {
        let guard = self.open(&self.lock.with_extension("depose"))?;
        if flock(&guard, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        if let Some(term) = self.take()? {
            return Ok(Some(term));
        }
        // Another candidate may have deposed it a moment ago.
        if self.beat() != beat {
            return Ok(None);
        }
        let fresh = self.lock.with_extension("new");
        let _ = fs::remove_file(&fresh);
        let file = self.open(&fresh)?;
        let io = |error: std::io::Error| Error::io("replace", &self.lock, &error);
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| io(error.into()))?;
        fs::rename(&fresh, &self.lock).map_err(io)?;
        tracing::warn!(lock = %self.lock.display(), "the observer hangs and was deposed");
        Ok(Some(Term { file, path: self.lock.clone(), beats: AtomicU64::new(0) }))
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

/// A sign of life: which file, and when it was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Beat {
    file: (u64, u64),
    written: SystemTime,
}

/// What a candidate knows.
struct Candidacy {
    /// The last beat that it has seen, and when that was new.
    beat: Option<Beat>,
    changed: Instant,
    /// The lock of the deputy, where this is the one.
    deputy: Option<File>,
    /// Since when it has tried to reach an observer.
    began: Instant,
}

enum Next {
    TryAgain,
    Depose,
    Stop,
}

/// The time in which this process is the observer. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Term {
    file: File,
    path: PathBuf,
    beats: AtomicU64,
}

impl Term {
    /// Whether nobody has taken the office from this process.
    pub(super) fn holds(&self) -> bool {
        let id = |found: fs::Metadata| (found.dev(), found.ino());
        match (self.file.metadata().map(id), fs::metadata(&self.path).map(id)) {
            (Ok(own), Ok(there)) => own == there,
            _ => false,
        }
    }

    /// Says that this process is there.
    pub(super) fn beat(&self) {
        let beat = format!("{} {:020}\n", std::process::id(), self.beats.fetch_add(1, Ordering::Relaxed));
        // Written over what is there: that works on a full disk, too.
        let _ = self.file.write_all_at(beat.as_bytes(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn office(dir: &Path) -> Office {
        Office::of(dir, Path::new("/tmp/tmux-0/lisa"))
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
        let first = office(dir.path()).take().unwrap().unwrap();
        assert!(office(dir.path()).take().unwrap().is_none());
        assert!(first.holds());
        drop(first);
        assert!(office(dir.path()).take().unwrap().is_some());
    }

    #[test]
    fn two_sockets_have_an_office_each() {
        let dir = state();
        let _first = office(dir.path()).take().unwrap().unwrap();
        let other = Office::of(dir.path(), Path::new("/tmp/tmux-0/other"));
        assert!(other.take().unwrap().is_some());
    }

    #[test]
    fn an_observer_that_does_not_beat_is_deposed_and_knows_it() {
        let dir = state();
        let hung = office(dir.path()).take().unwrap().unwrap();
        hung.beat();
        let (stop, _writer) = std::io::pipe().unwrap();
        let began = Instant::now();
        let next = office(dir.path()).stand(&stop).unwrap().unwrap();
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        assert!(next.holds() && !hung.holds());
        drop(hung);
        assert!(office(dir.path()).take().unwrap().is_none(), "the office of the next is not lost with it");
    }

    #[test]
    fn one_candidate_is_the_deputy_until_it_goes() {
        let dir = state();
        let deputy = office(dir.path()).deputise().unwrap().unwrap();
        assert!(office(dir.path()).deputise().unwrap().is_none());
        drop(deputy);
        assert!(office(dir.path()).deputise().unwrap().is_some());
    }

    #[test]
    fn an_observer_that_beats_is_left_alone_and_a_candidate_that_is_stopped_goes() {
        let dir = state();
        let term = office(dir.path()).take().unwrap().unwrap();
        let (stop, writer) = std::io::pipe().unwrap();
        let beating = std::thread::spawn(move || {
            for _ in 0..20 {
                term.beat();
                std::thread::sleep(Duration::from_millis(100));
            }
            term.holds()
        });
        let stands = std::thread::spawn({
            let office = office(dir.path());
            move || office.stand(&stop).unwrap().is_none()
        });
        std::thread::sleep(Duration::from_millis(1_500));
        drop(writer);
        assert!(stands.join().unwrap(), "a candidate that was told to stop became the observer");
        assert!(beating.join().unwrap());
    }
}
