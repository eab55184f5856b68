//! What wakes the observer: who, and why.

use crate::process::Sight;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Why a session is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// Its directory came, or its metadata was written: it was started, resumed or removed.
    Listed,
    /// Its process ended.
    Exit,
    /// A hook wrote a line.
    Hook,
    /// Another file that tells about it was written.
    File,
    /// Its agent wrote to the terminal.
    Output,
    /// Somebody asked.
    Request,
    /// It works, and nobody has looked for a while.
    Tick,
    /// A look over all panes found something that nothing had told of.
    Sweep,
    /// This process has just become the observer.
    First,
}

impl Reason {
    /// Whether something has told of the session, instead of somebody just wanting to know.
    pub(crate) const fn tells(self) -> bool {
        !matches!(self, Self::Request | Self::Tick)
    }

    /// The word in traces.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Exit => "exit",
            Self::Hook => "hook",
            Self::File => "file",
            Self::Output => "output",
            Self::Request => "request",
            Self::Tick => "tick",
            Self::Sweep => "sweep",
            Self::First => "first",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the observer has to do.
#[derive(Debug, Default)]
struct Board {
    /// Sessions to look at: why, and since when they wait.
    woken: BTreeMap<String, (Reason, Instant)>,
    /// Sessions that are being looked at, and when they rang for it.
    looking: BTreeMap<String, Instant>,
    /// What the sentinel told.
    sights: Vec<Sight>,
    /// Whether the observer has taken sights and not made up its mind about them yet.
    weighing: bool,
    /// Whether sessions may have come or gone without being named.
    rebuild: bool,
    stop: bool,
}

/// What woke the observer.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// Sessions to look at.
    pub(super) sessions: BTreeMap<String, Reason>,
    /// What the sentinel told.
    pub(super) sights: Vec<Sight>,
    /// Whether the list of sessions must be read anew.
    pub(super) rebuild: bool,
    /// Whether the observer must end.
    pub(super) stop: bool,
}

/// The bell that every source of events rings.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    board: Mutex<Board>,
    rung: Condvar,
    settled: Condvar,
}

impl Bell {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session is to be looked at. Of several reasons the strongest stays.
    pub(crate) fn wake(&self, session: &str, reason: Reason) {
        let mut board = self.board();
        match board.woken.get_mut(session) {
            Some((known, _)) => *known = reason.min(*known),
            None => {
                board.woken.insert(session.to_owned(), (reason, Instant::now()));
            }
        }
        self.rung.notify_all();
    }

    /// The sentinel saw something.
    pub(super) fn saw(&self, sight: Sight) {
        self.board().sights.push(sight);
        self.rung.notify_all();
    }

    /// Sessions may have come or gone.
    pub(super) fn rebuild(&self) {
        self.board().rebuild = true;
        self.rung.notify_all();
    }

    /// The observer must end.
    pub(super) fn stop(&self) {
        self.board().stop = true;
        self.rung.notify_all();
        self.settled.notify_all();
    }

    /// Whether the observer must end.
    pub(super) fn stopped(&self) -> bool {
        self.board().stop
    }

    /// Sleeps until something rings or `until`; what is taken counts as being looked at until [`Bell::looked`].
    pub(super) fn sleep(&self, until: Instant) -> Woken {
        let mut board = self.board();
        board.weighing = false;
        while board.woken.is_empty() && board.sights.is_empty() && !board.rebuild && !board.stop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            board = self.rung.wait_timeout(board, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let woken = std::mem::take(&mut board.woken);
        board.looking.extend(woken.iter().map(|(name, (_, rung))| (name.clone(), *rung)));
        board.weighing = !board.sights.is_empty();
        Woken {
            sessions: woken.into_iter().map(|(name, (reason, _))| (name, reason)).collect(),
            sights: std::mem::take(&mut board.sights),
            rebuild: std::mem::take(&mut board.rebuild),
            stop: board.stop,
        }
    }

    /// Sessions that were taken are looked at, or given up.
    pub(super) fn looked<'a>(&self, names: impl Iterator<Item = &'a String>) {
        let mut board = self.board();
        names.for_each(|name| {
            board.looking.remove(name);
        });
        drop(board);
        self.settled.notify_all();
    }

    /// Whether nothing is on its way that could be about a session.
    pub(super) fn is_quiet(&self, session: &str) -> bool {
        let board = self.board();
        board.sights.is_empty()
            && !board.weighing
            && !board.rebuild
            && !board.woken.contains_key(session)
            && !board.looking.contains_key(session)
    }

    /// Whether a look at a session is due or under way.
    pub(super) fn has_rung(&self, session: &str) -> bool {
        let board = self.board();
        board.woken.contains_key(session) || board.looking.contains_key(session)
    }

    /// Waits until nothing is left to be looked at that had rung before this call; says whether that came in time.
    /// `concerns` says which sessions matter.
    pub(super) fn settle(&self, concerns: impl Fn(&str) -> bool, limit: Duration) -> bool {
        let asked = Instant::now();
        let mut board = self.board();
        loop {
            let waits = |(name, since): (&String, Instant)| since <= asked && concerns(name);
            let open = board.woken.iter().any(|(name, (_, since))| waits((name, *since)))
                || board.looking.iter().any(|(name, since)| waits((name, *since)))
                || board.rebuild;
            if !open {
                return true;
            }
            let left = limit.saturating_sub(asked.elapsed());
            if left.is_zero() || board.stop {
                return false;
            }
            board = self.settled.wait_timeout(board, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn several_rings_are_one_look_with_the_strongest_reason() {
        let bell = Bell::default();
        bell.wake("a", Reason::Output);
        bell.wake("a", Reason::Exit);
        bell.wake("a", Reason::Tick);
        bell.wake("b", Reason::Hook);
        let woken = bell.sleep(Instant::now());
        assert_eq!(
            woken.sessions.into_iter().collect::<Vec<_>>(),
            [("a".to_owned(), Reason::Exit), ("b".to_owned(), Reason::Hook)]
        );
        assert!(bell.sleep(Instant::now()).sessions.is_empty());
    }

    #[test]
    fn what_had_rung_before_somebody_asked_is_waited_for_also_when_its_look_begins_after_that() {
        let bell = Bell::default();
        bell.wake("a", Reason::Request);
        thread::scope(|scope| {
            let settled = scope.spawn(|| bell.settle(|name| name == "a", Duration::from_secs(20)));
            // Long enough for it to ask.
            thread::sleep(Duration::from_millis(50));
            let woken = bell.sleep(Instant::now());
            // Another session was looked at.
            bell.looked(std::iter::once(&"b".to_owned()));
            thread::sleep(Duration::from_millis(50));
            assert!(!settled.is_finished(), "the look that it waits for has not ended");
            bell.looked(woken.sessions.keys());
            assert!(settled.join().unwrap());
        });
    }

    #[test]
    fn what_has_rung_and_was_not_looked_at_is_not_settled() {
        let bell = Bell::default();
        let settled = |concerns: &str| bell.settle(|name| name == concerns, Duration::from_millis(5));
        assert!(settled("a"));
        bell.wake("a", Reason::Hook);
        assert!(!settled("a") && settled("b"));
        let woken = bell.sleep(Instant::now());
        assert!(!settled("a"), "it is being looked at");
        bell.looked(woken.sessions.keys());
        assert!(settled("a"));
    }
}
