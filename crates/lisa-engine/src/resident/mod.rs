//! A process that stays: it is woken by events and judges the sessions that changed.
//!
//! One thread, the pump, does all judging. It sleeps until something rings: a file of a session or its agent was
//! written, a pane's process ended, an agent that tells nothing by itself wrote to its terminal, the journal moved,
//! or a slow tick came round. The tick is the safety net for
//! agents that publish nothing: it asks tmux once for all panes and looks only at those whose fields say that
//! something is different.

mod exits;
mod files;
mod output;
mod panes;

use crate::{
    api::Session,
    engine::Engine,
    error::Result,
    session::find::{self, Sighting},
};
use exits::Exits;
use files::Files;
use output::Outputs;
use panes::Panes;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How often all panes are looked over while somebody works, or there are more to listen to than can be heard.
const TICK: Duration = Duration::from_secs(1);
/// How often they are looked over otherwise: every agent that is at rest will ring when it begins.
const TICK_AT_REST: Duration = Duration::from_secs(2);
/// How long a burst of changes is gathered before it is judged.
const GATHER: Duration = Duration::from_millis(2);

/// What rang, and what is known.
#[derive(Debug, Default)]
struct Board {
    /// Sessions to look at.
    dirty: BTreeSet<String>,
    /// Whether the journal or the list of sessions changed.
    journal_moved: bool,
    /// Grows with every round of judging: those who wait compare it.
    round: u64,
    /// The sessions as they were last judged.
    sessions: HashMap<String, Session>,
    /// Set when the pump can not go on.
    broken: Option<String>,
}

/// The bell that everything rings.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    board: Mutex<Board>,
    rung: Condvar,
}

impl Bell {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session changed.
    pub(crate) fn session(&self, name: &str) {
        self.board().dirty.insert(name.to_owned());
        self.rung.notify_all();
    }

    /// The journal moved, or sessions came or went.
    pub(crate) fn journal(&self) {
        self.board().journal_moved = true;
        self.rung.notify_all();
    }
}

/// The pump of one process.
#[derive(Debug)]
pub(crate) struct Resident {
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    pump: Mutex<Option<JoinHandle<()>>>,
}

impl Resident {
    /// Starts the pump on an engine of its own.
    pub(crate) fn start(engine: Engine) -> Result<Self> {
        let bell = Arc::new(Bell::default());
        let stop = Arc::new(AtomicBool::new(false));
        let pump = Pump {
            files: Files::new(&engine, Arc::clone(&bell))?,
            exits: Exits::start(Arc::clone(&bell))?,
            outputs: Outputs::default(),
            panes: Panes::default(),
            engine,
            bell: Arc::clone(&bell),
            stop: Arc::clone(&stop),
        };
        let handle = thread::Builder::new()
            .name("lisa-pump".to_owned())
            .spawn(move || pump.run())
            .map_err(|error| crate::error::Error::io("start", std::path::Path::new("a thread"), &error))?;
        Ok(Self { bell, stop, pump: Mutex::new(Some(handle)) })
    }

    /// How many rounds were judged so far.
    pub(crate) fn round(&self) -> u64 {
        self.bell.board().round
    }

    /// Asks for a look at these sessions now.
    pub(crate) fn look(&self, names: &[String]) {
        self.bell.board().dirty.extend(names.iter().cloned());
        self.bell.rung.notify_all();
    }

    /// Sleeps until a round after `seen` was judged, or the time is over; says which round that was.
    pub(crate) fn after(&self, seen: u64, limit: Duration) -> u64 {
        let deadline = Instant::now() + limit;
        let mut board = self.bell.board();
        while board.round == seen && board.broken.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.bell.rung.wait_timeout(board, left);
            board = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        board.round
    }

    /// A session as it was last judged.
    pub(crate) fn session(&self, name: &str) -> Option<Session> {
        self.bell.board().sessions.get(name).cloned()
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.bell.rung.notify_all();
        let handle = self.pump.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle {
            let _ = handle.join();
        }
    }
}

struct Pump {
    engine: Engine,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    files: Files,
    exits: Exits,
    outputs: Outputs,
    panes: Panes,
}

impl Pump {
    fn run(mut self) {
        let mut next_tick = Instant::now();
        while !self.stop.load(Ordering::SeqCst) {
            let (dirty, moved) = self.sleep(next_tick);
            if self.stop.load(Ordering::SeqCst) {
                break;
            }
            let tick = Instant::now() >= next_tick;
            // A failed round is told by the sessions' own verdicts at the next look; the pump goes on.
            let _ = self.round(dirty, moved || tick, tick);
            let rest = !self.panes.any_at_work() && self.outputs.all_heard();
            let due = Instant::now() + if rest { TICK_AT_REST } else { TICK };
            next_tick = if tick { due } else { next_tick.min(due) };
        }
    }

    /// Sleeps until something rings or the tick is due; a burst is gathered for a moment.
    fn sleep(&self, until: Instant) -> (BTreeSet<String>, bool) {
        let mut board = self.bell.board();
        while board.dirty.is_empty() && !board.journal_moved && !self.stop.load(Ordering::SeqCst) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (BTreeSet::new(), false);
            }
            board = self.bell.rung.wait_timeout(board, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(board);
        thread::sleep(GATHER);
        let mut board = self.bell.board();
        (std::mem::take(&mut board.dirty), std::mem::take(&mut board.journal_moved))
    }

    fn round(&mut self, mut dirty: BTreeSet<String>, list_changed: bool, tick: bool) -> Result<()> {
        if dirty.is_empty() && !list_changed {
            return Ok(());
        }
        let store = self.engine.store()?;
        let all = find::all(self.engine.tmux(), &store, false)?;
        self.files.follow(&all, &self.engine);
        self.exits.follow(&all);
        self.outputs.follow(&all, &self.engine, &self.bell, |name| self.panes.is_up(name));
        if tick || list_changed {
            dirty.extend(self.panes.changed(&all, &self.engine, tick));
        }
        let looked: Vec<Sighting> =
            all.iter().filter(|session| dirty.contains(&session.meta.name)).cloned().collect();
        let judged = self.engine.judge(&looked)?;
        let mut board = self.bell.board();
        board.sessions.retain(|name, _| all.iter().any(|session| session.meta.name == *name));
        for (sighting, judged) in looked.iter().zip(&judged) {
            let session = self.engine.describe(sighting, judged, false);
            self.panes.judged(&session);
            board.sessions.insert(session.name.clone(), session);
        }
        if !looked.is_empty() || list_changed {
            board.round += 1;
        }
        drop(board);
        self.bell.rung.notify_all();
        Ok(())
    }
}
