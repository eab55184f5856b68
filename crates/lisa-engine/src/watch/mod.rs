//! Watching: what a Lisa process that stays does beside answering calls.
//!
//! Of all such processes one is the observer ([`election`], [`observer`]): it judges on events and writes what came of it
//! to the sessions' state and to the [`journal`]. The others follow the journal, and ask the observer what it knows
//! ([`door`]) before they look for themselves. When it goes, the next takes over.
//!
//! Waits are left with one thread for all of them ([`parking`]); whoever follows the journal as a stream has its own
//! ([`stream`]).

pub mod change;
pub mod journal;
pub mod record;

mod bursts;
mod door;
mod election;
mod files;
mod index;
mod observer;
mod parking;
mod stamps;
mod stream;
mod table;
mod waits;
mod wake;

pub use door::Health;
#[cfg(feature = "fuzz")]
pub(crate) use door::{answer_line, answers};
pub use parking::Said;
pub use stream::Watch;

use crate::{
    api::Session,
    engine::{Cancel, Engine},
    error::{Error, Result},
};
use door::{Answer, Ask};
use election::{Office, Term};
use observer::Observer;
use parking::{Arrival, Attendant, Parking};
use std::{
    io::{PipeReader, PipeWriter},
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};
use table::Want;
pub(crate) use table::{Table, Wanted};
use wake::Bell;

/// How long a process that could not become the observer rests before it tries again.
const REST: Duration = Duration::from_secs(1);

/// What a process that stays has: it is the observer or ready to become it, and it looks after its own waits.
#[derive(Debug)]
pub(crate) struct Watcher {
    bell: Arc<Bell>,
    table: Arc<Table>,
    parking: Arc<Parking>,
    engine: Engine,
    attendant: Mutex<Option<Attendant>>,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts on an engine of its own.
    pub(crate) fn start(engine: Engine) -> Result<Self> {
        let io = |error: std::io::Error| Error::io("start", Path::new("a thread"), &error);
        let bell = Arc::new(Bell::default());
        let table = Arc::new(Table::new(Arc::clone(&bell)));
        engine.knows(&table);
        let office = engine.office();
        let (stop, writer) = std::io::pipe().map_err(io)?;
        let candidate = Candidate {
            engine: engine.clone(),
            office,
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
            parking: Arc::default(),
            engine,
            attendant: Mutex::new(None),
            stop: Some(writer),
            thread: Some(thread),
        })
    }

    /// What this process itself knows, where it is the observer.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    /// Leaves a wait with the thread that looks after them.
    fn park(&self, arrival: Arrival, cancel: &Cancel) -> Result<()> {
        self.attend()?;
        self.parking.park(arrival, cancel);
        Ok(())
    }

    /// How often the journal has moved.
    pub(crate) fn moves(&self) -> u64 {
        // Where the journal cannot be followed, a stream looks as often as it is asked.
        let _ = self.attend();
        self.parking.moves()
    }

    /// Sleeps until the journal has moved since, or the time is over.
    pub(crate) fn moved_since(&self, seen: u64, limit: Duration) {
        self.parking.moved_since(seen, limit);
    }

    fn attend(&self) -> Result<()> {
        let mut attendant = self.attendant.lock().unwrap_or_else(PoisonError::into_inner);
        if attendant.is_none() {
            *attendant = Some(Attendant::start(self.engine.clone(), Arc::clone(&self.parking))?);
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

/// The thread that becomes the observer when nobody else is.
struct Candidate {
    engine: Engine,
    office: Office,
    bell: Arc<Bell>,
    table: Arc<Table>,
    stop: PipeReader,
}

impl Candidate {
    fn run(self) {
        while !self.bell.stopped() {
            match self.office.stand(&self.stop) {
                Ok(Some(term)) => self.serve(&term),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "this process cannot become the observer");
                    thread::sleep(REST);
                }
            }
        }
    }

    /// Watches, and answers at the door, until the term is over.
    fn serve(&self, term: &Term) {
        let (over, writer) = match std::io::pipe() {
            Ok(pipe) => pipe,
            Err(error) => {
                tracing::warn!(%error, "this process cannot watch");
                thread::sleep(REST);
                return;
            }
        };
        self.table.begin();
        thread::scope(|scope| {
            let door = thread::Builder::new().name("lisa-door".to_owned());
            let answering = door.spawn_scoped(scope, || door::serve(self.office.door(), &self.table, &over));
            if let Err(error) = answering {
                tracing::warn!(%error, "other processes cannot ask the observer");
            }
            match Observer::new(&self.engine, &self.bell, &self.table) {
                Ok(observer) => observer.run(term),
                Err(error) => {
                    tracing::warn!(%error, "this process cannot watch");
                    thread::sleep(REST);
                }
            }
            self.table.clear();
            drop(writer);
        });
    }
}

/// The way to the observer of a process that does not watch itself.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    door: OnceLock<door::Caller>,
}

impl Observed {
    fn ask(&self, engine: &Engine, ask: Ask) -> Option<Answer> {
        self.door.get_or_init(|| door::Caller::new(engine.office().door().to_owned())).ask(ask)
    }
}

impl Engine {
    /// Where the observer of this state directory and socket is elected.
    pub(crate) fn office(&self) -> Office {
        Office::of(&self.config().state_dir, &self.tmux().socket_path())
    }

    /// A session as the observer knows it, if its last look at it still holds.
    pub(crate) fn current(&self, name: &str) -> Option<Session> {
        if let Some(table) = self.own_table().filter(|table| table.leads()) {
            return table.current(name);
        }
        match self.observer().ask(self, Ask::Current(name.to_owned()))? {
            Answer::Sessions(sessions) => sessions.into_iter().next(),
            _ => None,
        }
    }

    /// Tells the observer that this process has changed a session, which no event tells.
    pub(crate) fn nudge(&self, name: &str) {
        match self.own_table().filter(|table| table.leads()) {
            Some(table) => table.wake(name),
            // Where there is no observer, nobody has old news.
            None => drop(self.observer().ask(self, Ask::Wake(vec![name.to_owned()]))),
        }
    }

    /// Sessions as the observer knows them; `None` where nobody is the observer, or it does not know.
    pub(crate) fn observed(&self, wanted: &Wanted) -> Option<Vec<Session>> {
        if let Some(table) = self.own_table().filter(|table| table.leads()) {
            return table.answer(wanted);
        }
        match self.observer().ask(self, Ask::Sessions(wanted.clone()))? {
            Answer::Sessions(sessions) => Some(sessions),
            _ => None,
        }
    }

    /// How the observer is; `None` where there is none, or it does not answer.
    pub fn observer_health(&self) -> Option<Health> {
        match self.observer().ask(self, Ask::Health)? {
            Answer::Health(health) => Some(health),
            _ => None,
        }
    }
}
