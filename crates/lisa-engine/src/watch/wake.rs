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

/// How long a session that has just appeared is left alone: several that are started one after the other are looked at
/// together, and nothing is drawn before that anyway.
const GATHER: Duration = Duration::from_millis(30);

/// A session that is to be looked at.
#[derive(Debug, Clone, Copy)]
struct Ring {
    reason: Reason,
    /// When it first rang.
    rung: Instant,
    /// When it should be looked at.
    due: Instant,
}

/// What the observer has to do.
#[derive(Debug, Default)]
struct Board {
    /// Sessions to look at.
    woken: BTreeMap<String, Ring>,
    /// Whether somebody waits for what is not due yet.
    hurry: bool,
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
        let rung = Instant::now();
        let due = if reason == Reason::Listed { rung + GATHER } else { rung };
        let mut board = self.board();
        match board.woken.get_mut(session) {
            Some(known) => (known.reason, known.due) = (reason.min(known.reason), due.min(known.due)),
            None => {
                board.woken.insert(session.to_owned(), Ring { reason, rung, due });
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

    /// Sleeps until something is due or `until`. What has rung is taken with it, and counts as being looked at until
    /// [`Bell::looked`].
    pub(super) fn sleep(&self, until: Instant) -> Woken {
        let mut board = self.board();
        board.weighing = false;
        while board.sights.is_empty() && !board.rebuild && !board.stop && !board.hurry {
            let due = board.woken.values().map(|ring| ring.due).fold(until, Instant::min);
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            board = self.rung.wait_timeout(board, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        board.hurry = false;
        let woken = std::mem::take(&mut board.woken);
        board.looking.extend(woken.iter().map(|(name, ring)| (name.clone(), ring.rung)));
        board.weighing = !board.sights.is_empty();
        Woken {
            sessions: woken.into_iter().map(|(name, ring)| (name, ring.reason)).collect(),
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

    /// Whether a session that rang is being looked at.
    pub(super) fn is_looking(&self, session: &str) -> bool {
        self.board().looking.contains_key(session)
    }

    /// Waits until nothing is left to be looked at that had rung before this call; says whether that came in time.
    /// `concerns` says which sessions matter.
    pub(super) fn settle(&self, concerns: impl Fn(&str) -> bool, limit: Duration) -> bool {
        let asked = Instant::now();
        let mut board = self.board();
        loop {
            let waits = |(name, since): (&String, Instant)| since <= asked && concerns(name);
            let due = board.woken.iter().any(|(name, ring)| waits((name, ring.rung)));
            let looking = board.looking.iter().any(|(name, since)| waits((name, *since)));
            if !due && !looking && !board.rebuild {
                return true;
            }
            if due && !board.hurry {
                board.hurry = true;
                self.rung.notify_all();
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
    fn sessions_that_appear_one_after_the_other_are_looked_at_together_unless_something_hurries() {
        let soon = || Instant::now() + Duration::from_secs(20);
        let bell = Bell::default();
        let began = Instant::now();
        bell.wake("a", Reason::Listed);
        bell.wake("b", Reason::Listed);
        assert_eq!(bell.sleep(soon()).sessions.len(), 2);
        assert!(began.elapsed() >= GATHER);
        bell.wake("c", Reason::Listed);
        bell.wake("d", Reason::Hook);
        assert_eq!(bell.sleep(soon()).sessions.len(), 2);
        bell.wake("f", Reason::Listed);
        let later = bell.board().woken["f"].due;
        bell.wake("f", Reason::Request);
        assert!(bell.board().woken["f"].due <= later.min(Instant::now()), "somebody asked for it");
        bell.sleep(soon());
        bell.wake("e", Reason::Listed);
        assert!(!bell.settle(|name| name == "e", Duration::ZERO));
        assert!(bell.board().hurry, "somebody waits for it");
        assert_eq!(bell.sleep(soon()).sessions.len(), 1);
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
