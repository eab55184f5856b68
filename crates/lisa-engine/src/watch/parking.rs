//! Waits without a thread each: one thread looks after all waits of a process.
//!
//! It sleeps until the journal moves, a wait comes, is cancelled or runs out of time. An event names its session, and only
//! the waits that are about that one are looked at.

use super::{
    Want, Wanted, journal,
    waits::{Wait, cancelled},
};
use crate::{
    api::{WaitRequest, WaitResponse},
    engine::{Cancel, Engine},
    error::{Error, Result},
};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How often somebody who wants to know hears what the sessions do.
const PROGRESS: Duration = Duration::from_secs(1);
/// How often the journal is looked at where its files cannot be watched.
const BLIND: Duration = Duration::from_millis(200);

/// What a wait says to whoever began it.
#[derive(Debug)]
pub enum Said {
    /// What the sessions do meanwhile.
    Progress(String),
    /// The wait is over.
    Done(Box<Result<WaitResponse>>),
}

/// A wait that is about to begin.
pub(super) struct Arrival {
    pub(super) request: WaitRequest,
    /// Whether it wants to hear what the sessions do.
    pub(super) progress: bool,
    pub(super) say: Box<dyn Fn(Said) + Send>,
}

#[derive(Default)]
struct Lot {
    arrivals: Vec<(u64, Arrival)>,
    cancelled: Vec<u64>,
    /// How often the journal has moved.
    moves: u64,
    last_id: u64,
    stop: bool,
}

/// Where waits are left, and where the journal's movements are told.
#[derive(Default)]
pub(super) struct Parking {
    lot: Mutex<Lot>,
    rung: Condvar,
}

impl fmt::Debug for Parking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parking").finish_non_exhaustive()
    }
}

impl Parking {
    fn lot(&self) -> MutexGuard<'_, Lot> {
        self.lot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a wait here.
    pub(super) fn park(self: &Arc<Self>, arrival: Arrival, cancel: &Cancel) {
        let mut lot = self.lot();
        lot.last_id += 1;
        let id = lot.last_id;
        lot.arrivals.push((id, arrival));
        drop(lot);
        self.rung.notify_all();
        let parking = Arc::downgrade(self);
        cancel.on_cancel(move || {
            if let Some(parking) = parking.upgrade() {
                parking.lot().cancelled.push(id);
                parking.rung.notify_all();
            }
        });
    }

    fn moved(&self) {
        self.lot().moves += 1;
        self.rung.notify_all();
    }

    fn stop(&self) {
        self.lot().stop = true;
        self.rung.notify_all();
    }

    /// How often the journal has moved.
    pub(super) fn moves(&self) -> u64 {
        self.lot().moves
    }

    /// Sleeps until the journal has moved since, or the time is over.
    pub(super) fn moved_since(&self, seen: u64, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut lot = self.lot();
        while lot.moves == seen && !lot.stop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            lot = self.rung.wait_timeout(lot, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The thread that looks after the waits, and what tells it of the journal. Dropping it ends both.
#[derive(Debug)]
pub(super) struct Attendant {
    parking: Arc<Parking>,
    thread: Option<JoinHandle<()>>,
    _journal: Option<RecommendedWatcher>,
}

impl Attendant {
    /// Starts it on an engine of its own.
    pub(super) fn start(engine: Engine, parking: Arc<Parking>) -> Result<Self> {
        let journal = engine.journal()?;
        let watched = follow(journal.dir(), &parking);
        let blind = watched.is_none();
        // From here on every movement rings.
        let tail = journal::Tail::new(journal)?;
        let own = Arc::clone(&parking);
        let thread = thread::Builder::new()
            .name("lisa-waits".to_owned())
            .spawn(move || Rounds::new(&engine, &own, tail, blind).run())
            .map_err(|error| Error::io("start", Path::new("a thread"), &error))?;
        Ok(Self { parking, thread: Some(thread), _journal: watched })
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.parking.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(dir: &Path, parking: &Arc<Parking>) -> Option<RecommendedWatcher> {
    let rings = Arc::downgrade(parking);
    let is_segment =
        |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let written = match &event {
            Ok(event) if matches!(event.kind, notify::EventKind::Access(_)) => false,
            Ok(event) => event.need_rescan() || event.paths.iter().any(is_segment),
            Err(_) => true,
        };
        if let (true, Some(parking)) = (written, rings.upgrade()) {
            parking.moved();
        }
    });
    let watched = watcher.and_then(|mut watcher| {
        watcher.watch(dir, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watched
        .inspect_err(|error| tracing::warn!(%error, "the journal cannot be watched and is looked at instead"))
        .ok()
}

struct Parked {
    wait: Wait,
    arrival: Arrival,
    next: Instant,
    tell: Option<Instant>,
}

/// The thread's own part.
struct Rounds<'a> {
    engine: &'a Engine,
    parking: &'a Parking,
    tail: journal::Tail,
    blind: bool,
    moves: u64,
    parked: HashMap<u64, Parked>,
    by_name: HashMap<String, BTreeSet<u64>>,
    due: BTreeSet<(Instant, u64)>,
}

impl<'a> Rounds<'a> {
    fn new(engine: &'a Engine, parking: &'a Parking, tail: journal::Tail, blind: bool) -> Self {
        let (parked, by_name, due) = (HashMap::new(), HashMap::new(), BTreeSet::new());
        Self { engine, parking, tail, blind, moves: 0, parked, by_name, due }
    }

    fn run(mut self) {
        loop {
            let (arrivals, cancelled_ids, moved, stop) = self.sleep();
            if stop {
                let ids: Vec<u64> = self.parked.keys().copied().collect();
                ids.into_iter().for_each(|id| self.end(id, Err(cancelled())));
                return;
            }
            for (id, arrival) in arrivals {
                self.begin(id, arrival);
            }
            for id in cancelled_ids {
                self.end(id, Err(cancelled()));
            }
            if moved {
                self.journal_moved();
            }
            let now = Instant::now();
            while let Some((_, id)) = self.due.first().filter(|(at, _)| *at <= now).copied() {
                self.time_passed(id, now);
            }
        }
    }

    fn sleep(&mut self) -> (Vec<(u64, Arrival)>, Vec<u64>, bool, bool) {
        let mut lot = self.parking.lot();
        loop {
            let moved = lot.moves != self.moves;
            let now = Instant::now();
            let next = self.due.first().map(|(at, _)| *at);
            let blind = self.blind && !self.parked.is_empty();
            if moved
                || lot.stop
                || !lot.arrivals.is_empty()
                || !lot.cancelled.is_empty()
                || next <= Some(now) && next.is_some()
            {
                self.moves = lot.moves;
                let arrivals = std::mem::take(&mut lot.arrivals);
                return (arrivals, std::mem::take(&mut lot.cancelled), moved, lot.stop);
            }
            let left = next.map(|next| next.saturating_duration_since(now));
            let left = if blind { Some(left.map_or(BLIND, |left| left.min(BLIND))) } else { left };
            match left {
                None => lot = self.parking.rung.wait(lot).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    lot = self.parking.rung.wait_timeout(lot, left).unwrap_or_else(PoisonError::into_inner).0;
                    if blind {
                        lot.moves += 1;
                    }
                }
            }
        }
    }

    fn begin(&mut self, id: u64, arrival: Arrival) {
        let begun = Wait::begin(self.engine, arrival.request.clone()).and_then(|mut wait| {
            let names = wait.names().to_vec();
            wait.see(&names, self.engine.observed_or_looked_at(&wait.now())?);
            Ok(wait)
        });
        match begun {
            Ok(wait) => {
                let next = wait.deadline;
                let tell = arrival.progress.then(|| Instant::now() + PROGRESS);
                for name in wait.names() {
                    self.by_name.entry(name.clone()).or_default().insert(id);
                }
                self.due.insert((next, id));
                self.parked.insert(id, Parked { wait, arrival, next, tell });
                self.consider(id);
            }
            Err(error) => (arrival.say)(Said::Done(Box::new(Err(error)))),
        }
    }

    /// Looks at the waits that are about the sessions that the journal tells of.
    fn journal_moved(&mut self) {
        let told = self.tail.sessions().unwrap_or_else(|error| {
            tracing::warn!(%error, "the journal cannot be read; every wait is looked at");
            None
        });
        let (changed, wanted): (Vec<Want>, _) = match told {
            Some(told) => {
                let ours = told.into_iter().filter(|(name, _)| self.by_name.contains_key(name));
                let wants: Vec<Want> = ours.map(|(name, event)| Want { name, event: Some(event) }).collect();
                (wants.clone(), Wanted::Judged(wants))
            }
            None => {
                let names: Vec<String> = self.by_name.keys().cloned().collect();
                let wants = names.iter().map(|name| Want { name: name.clone(), event: None });
                (wants.collect(), Wanted::Now(names))
            }
        };
        if changed.is_empty() {
            return;
        }
        let sessions = match self.engine.observed_or_looked_at(&wanted) {
            Ok(sessions) => sessions,
            Err(error) => {
                let ids: BTreeSet<u64> =
                    changed.iter().flat_map(|want| self.by_name[&want.name].clone()).collect();
                ids.into_iter().for_each(|id| self.end(id, Err(error.clone())));
                return;
            }
        };
        let mut ids = BTreeSet::new();
        for want in &changed {
            let name = &want.name;
            let now: Vec<_> = sessions.iter().filter(|session| session.name == *name).cloned().collect();
            for id in self.by_name.get(name).into_iter().flatten() {
                if let Some(parked) = self.parked.get_mut(id) {
                    parked.wait.tell(want);
                    parked.wait.see(std::slice::from_ref(name), now.clone());
                    ids.insert(*id);
                }
            }
        }
        ids.into_iter().for_each(|id| self.consider(id));
    }

    /// The time has come for a wait: it is over, is to be looked at again, or wants to hear how things stand.
    fn time_passed(&mut self, id: u64, now: Instant) {
        let Some(parked) = self.parked.get_mut(&id) else { return };
        if parked.tell.is_some_and(|tell| tell <= now) {
            parked.tell = Some(now + PROGRESS);
            (parked.arrival.say)(Said::Progress(parked.wait.progress()));
        }
        if parked.wait.deadline <= now || parked.wait.look_again().is_some() {
            let names = parked.wait.names().to_vec();
            match self.engine.observed_or_looked_at(&parked.wait.now()) {
                Ok(sessions) => parked.wait.see(&names, sessions),
                Err(error) => return self.end(id, Err(error)),
            }
        }
        self.consider(id);
    }

    /// Ends a wait that has come true or run out of time; sets the time of any other.
    fn consider(&mut self, id: u64) {
        let Some(parked) = self.parked.get(&id) else { return };
        let now = Instant::now();
        let answer = match parked.wait.is_true(self.engine) {
            Ok(true) => parked.wait.answer(self.engine, false),
            Ok(false) if parked.wait.deadline <= now => parked.wait.answer(self.engine, true),
            Ok(false) => {
                let again = parked.wait.look_again().map(|pause| now + pause);
                let next =
                    [again, parked.tell].into_iter().flatten().fold(parked.wait.deadline, Instant::min);
                self.set_next(id, next);
                return;
            }
            Err(error) => Err(error),
        };
        self.end(id, answer);
    }

    fn set_next(&mut self, id: u64, next: Instant) {
        if let Some(parked) = self.parked.get_mut(&id) {
            self.due.remove(&(parked.next, id));
            parked.next = next;
            self.due.insert((next, id));
        }
    }

    fn end(&mut self, id: u64, answer: Result<WaitResponse>) {
        let Some(parked) = self.parked.remove(&id) else { return };
        tracing::trace!(sessions = ?parked.wait.names(), "a wait has ended");
        self.due.remove(&(parked.next, id));
        for name in parked.wait.names() {
            if let Some(ids) = self.by_name.get_mut(name) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
        (parked.arrival.say)(Said::Done(Box::new(answer)));
    }
}
