//! What wakes the observer: which session, and why.

use crate::process::SentinelEvent;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Why to look at a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WakeReason {
    /// Its directory was created or its metadata written: it was started, resumed or removed.
    Listed,
    /// Its process ended.
    Exit,
    /// A hook wrote a line.
    Hook,
    /// Another of its watched files was written.
    File,
    /// Its agent wrote to the terminal.
    Output,
    /// Somebody asked.
    Request,
    /// It is working, and hasn't been looked at for a while.
    Tick,
    /// A sweep over all panes found something that no event had reported.
    Sweep,
    /// Somebody else's look was judged first. It began later, so it has almost certainly seen what this one was for.
    Overtaken,
    /// This process just became the observer.
    First,
}

impl WakeReason {
    /// Whether this is an event of the session, and not just somebody's question.
    pub(crate) const fn is_event(self) -> bool {
        !matches!(self, Self::Request | Self::Tick | Self::Overtaken)
    }

    /// The word in logs.
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
            Self::Overtaken => "overtaken",
            Self::First => "first",
        }
    }
}

impl fmt::Display for WakeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How long to wait with a look that isn't urgent (debounce): sessions that are started in a row are then looked at
/// together, and nothing is drawn before that anyway.
const DEBOUNCE: Duration = Duration::from_millis(30);

/// A session to look at.
#[derive(Debug, Clone, Copy)]
struct PendingLook {
    reason: WakeReason,
    /// When it was first woken.
    rung: Instant,
    /// When to look at it.
    due: Instant,
}

/// The observer's pending work.
#[derive(Debug, Default)]
struct Pending {
    /// Sessions to look at.
    woken: BTreeMap<String, PendingLook>,
    /// Whether somebody waits for looks that aren't due yet.
    hurry: bool,
    /// Sessions that are being looked at, and when they were woken.
    looking: BTreeMap<String, Instant>,
    /// Events of the sentinel.
    sentinel_events: Vec<SentinelEvent>,
    /// Whether the observer has taken sentinel events and not processed them yet.
    processing: bool,
    /// Whether sessions may have come or gone without an event.
    rebuild: bool,
    stop: bool,
}

/// What woke the observer.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// Sessions to look at.
    pub(super) sessions: BTreeMap<String, WakeReason>,
    /// Events of the sentinel.
    pub(super) sentinel_events: Vec<SentinelEvent>,
    /// Whether to read the list of sessions again.
    pub(super) rebuild: bool,
    /// Whether the observer must stop.
    pub(super) stop: bool,
}

/// The bell that every source of events rings.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    pending: Mutex<Pending>,
    rung: Condvar,
    settled: Condvar,
}

impl Bell {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a look at a session. If there are several reasons, the strongest one is kept.
    pub(crate) fn wake(&self, session: &str, reason: WakeReason) {
        let rung = Instant::now();
        let can_wait = matches!(reason, WakeReason::Listed | WakeReason::Overtaken);
        let due = if can_wait { rung + DEBOUNCE } else { rung };
        let mut pending = self.pending();
        match pending.woken.get_mut(session) {
            Some(known) => (known.reason, known.due) = (reason.min(known.reason), due.min(known.due)),
            None => {
                pending.woken.insert(session.to_owned(), PendingLook { reason, rung, due });
            }
        }
        self.rung.notify_all();
    }

    /// Adds an event of the sentinel.
    pub(super) fn on_sentinel_event(&self, event: SentinelEvent) {
        self.pending().sentinel_events.push(event);
        self.rung.notify_all();
    }

    /// Sessions may have come or gone.
    pub(super) fn rebuild(&self) {
        self.pending().rebuild = true;
        self.rung.notify_all();
    }

    /// Stops the observer.
    pub(super) fn stop(&self) {
        self.pending().stop = true;
        self.rung.notify_all();
        self.settled.notify_all();
    }

    /// Wakes the observer, to check whether its term is over.
    pub(super) fn nudge(&self) {
        self.pending().hurry = true;
        self.rung.notify_all();
    }

    /// The observer is gone and leaves its work undone.
    pub(super) fn abandon(&self) {
        let mut pending = self.pending();
        pending.looking.clear();
        pending.processing = false;
        drop(pending);
        self.settled.notify_all();
    }

    /// Whether the observer must stop.
    pub(super) fn stopped(&self) -> bool {
        self.pending().stop
    }

    /// Sleeps until something is due or `until`. Takes the pending work, which counts as in progress until
    /// [`Bell::looked`].
    pub(super) fn sleep(&self, until: Instant) -> Woken {
        let mut pending = self.pending();
        pending.processing = false;
        while pending.sentinel_events.is_empty() && !pending.rebuild && !pending.stop && !pending.hurry {
            let due = pending.woken.values().map(|ring| ring.due).fold(until, Instant::min);
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            pending = self.rung.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        pending.hurry = false;
        let woken = std::mem::take(&mut pending.woken);
        pending.looking.extend(woken.iter().map(|(name, ring)| (name.clone(), ring.rung)));
        pending.processing = !pending.sentinel_events.is_empty();
        Woken {
            sessions: woken.into_iter().map(|(name, ring)| (name, ring.reason)).collect(),
            sentinel_events: std::mem::take(&mut pending.sentinel_events),
            rebuild: std::mem::take(&mut pending.rebuild),
            stop: pending.stop,
        }
    }

    /// The looks at these sessions are done, or given up.
    pub(super) fn looked<'a>(&self, names: impl Iterator<Item = &'a String>) {
        let mut pending = self.pending();
        names.for_each(|name| {
            pending.looking.remove(name);
        });
        drop(pending);
        self.settled.notify_all();
    }

    /// Whether no work is pending for a session.
    pub(super) fn is_quiet(&self, session: &str) -> bool {
        let pending = self.pending();
        pending.sentinel_events.is_empty()
            && !pending.processing
            && !pending.rebuild
            && !pending.woken.contains_key(session)
            && !pending.looking.contains_key(session)
    }

    /// Whether a look at a woken session is in progress.
    pub(super) fn is_looking(&self, session: &str) -> bool {
        self.pending().looking.contains_key(session)
    }

    /// Waits until all looks that were pending before this call are done; returns whether that happened in time.
    /// `concerns` says which sessions matter.
    pub(super) fn settle(&self, concerns: impl Fn(&str) -> bool, limit: Duration) -> bool {
        let asked = Instant::now();
        let mut pending = self.pending();
        loop {
            let waits = |(name, since): (&String, Instant)| since <= asked && concerns(name);
            let due = pending.woken.iter().any(|(name, ring)| waits((name, ring.rung)));
            let looking = pending.looking.iter().any(|(name, since)| waits((name, *since)));
            if !due && !looking && !pending.rebuild {
                return true;
            }
            if due && !pending.hurry {
                pending.hurry = true;
                self.rung.notify_all();
            }
            let left = limit.saturating_sub(asked.elapsed());
            if left.is_zero() || pending.stop {
                return false;
            }
            pending = self.settled.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
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
        bell.wake("a", WakeReason::Output);
        bell.wake("a", WakeReason::Exit);
        bell.wake("a", WakeReason::Tick);
        bell.wake("b", WakeReason::Hook);
        let woken = bell.sleep(Instant::now());
        assert_eq!(
            woken.sessions.into_iter().collect::<Vec<_>>(),
            [("a".to_owned(), WakeReason::Exit), ("b".to_owned(), WakeReason::Hook)]
        );
        assert!(bell.sleep(Instant::now()).sessions.is_empty());
    }

    #[test]
    fn what_had_rung_before_somebody_asked_is_waited_for_also_when_its_look_begins_after_that() {
        let bell = Bell::default();
        bell.wake("a", WakeReason::Request);
        thread::scope(|scope| {
            let settled = scope.spawn(|| bell.settle(|name| name == "a", Duration::from_secs(20)));
            // Long enough for the other thread to ask.
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
        bell.wake("a", WakeReason::Listed);
        bell.wake("b", WakeReason::Listed);
        assert_eq!(bell.sleep(soon()).sessions.len(), 2);
        assert!(began.elapsed() >= DEBOUNCE);
        bell.wake("c", WakeReason::Listed);
        bell.wake("d", WakeReason::Hook);
        assert_eq!(bell.sleep(soon()).sessions.len(), 2);
        bell.wake("f", WakeReason::Listed);
        let later = bell.pending().woken["f"].due;
        bell.wake("f", WakeReason::Request);
        assert!(bell.pending().woken["f"].due <= later.min(Instant::now()), "somebody asked for it");
        bell.sleep(soon());
        bell.wake("e", WakeReason::Listed);
        assert!(!bell.settle(|name| name == "e", Duration::ZERO));
        assert!(bell.pending().hurry, "somebody waits for it");
        assert_eq!(bell.sleep(soon()).sessions.len(), 1);
    }

    #[test]
    fn what_has_rung_and_was_not_looked_at_is_not_settled() {
        let bell = Bell::default();
        let settled = |concerns: &str| bell.settle(|name| name == concerns, Duration::from_millis(5));
        assert!(settled("a"));
        bell.wake("a", WakeReason::Hook);
        assert!(!settled("a") && settled("b"));
        let woken = bell.sleep(Instant::now());
        assert!(!settled("a"), "it is being looked at");
        bell.looked(woken.sessions.keys());
        assert!(settled("a"));
    }
}
