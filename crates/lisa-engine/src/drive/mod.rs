//! Driving: the one write gate, answers, interrupts.
//!
//! Whatever is typed into a session is typed here, by one process at a time (the session's drive lock), after a look
//! and before a proof. The gate is shut unless that look says that it is open, and a key goes only to a pane that
//! still shows what the look saw.

pub mod choice;
pub mod gate;

mod answer;
mod input_box;
mod interrupt;
mod send;
mod startup;

pub(crate) use send::seconds;

use crate::{
    api::EventKind,
    disk::Lock,
    engine::{Engine, now},
    error::{Error, Result},
    judge::Judged,
    memory::Inputs,
    observation::Reading,
    profile::Profile,
    session::find::{self, Sighting},
    tmux::{Guard, Typed},
    watch::record::{Intent, Note, Record},
    words::State,
};
use std::{
    cell::RefCell,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// How often a session is looked at while something is expected of it: soon at first, then less often.
const PACE: [u64; 6] = [15, 25, 40, 60, 100, 150];
/// How long one process may drive a session before another gives up waiting for it.
const DRIVE_LIMIT: Duration = Duration::from_secs(60);

/// How many of the last rows must still be there when a key is pressed: those around an input box, or a whole dialog.
const BOX_ROWS: usize = 4;
const DIALOG_ROWS: usize = 24;
/// How often something is tried again because the pane had moved on between the look and the key.
const MOVED_MAX: usize = 40;

/// How often a look that others overtook is taken again.
const OVERTAKEN_MAX: usize = 20;

/// What a driver has typed.
#[derive(Debug)]
struct Typing {
    /// What had been typed before.
    before: Inputs,
    /// How often anything was typed into the pane when this driver did last.
    count: u64,
}

/// A session in the hands of one driver.
pub(crate) struct Driver<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) name: String,
    pub(crate) profile: Arc<Profile>,
    /// What this driver has typed so far.
    typing: RefCell<Option<Typing>>,
    _lock: Lock,
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        self.engine.nudge(&self.name);
    }
}

impl<'a> Driver<'a> {
    /// Takes a session in hand, by its exact name.
    pub(crate) fn take(engine: &'a Engine, name: &str) -> Result<Self> {
        let (folder, meta) = find::stored(&engine.store_with(name)?, name)?;
        let lock = Lock::take(&folder.file("drive.lock"), DRIVE_LIMIT)?;
        let profile = engine.profiles().get_or_generic(&meta.agent);
        let profile = profile.ok_or_else(|| Error::not_found(&meta.agent, &[]))?;
        Ok(Self { engine, name: name.to_owned(), profile, typing: RefCell::default(), _lock: lock })
    }

    /// Looks at the session now. What is typed is decided from one look: one that another process overtook has that
    /// one's verdict beside its own signals, so it is taken again.
    pub(crate) fn look(&self) -> Result<(Sighting, Judged)> {
        let mut look = self.engine.look_at(&self.name)?;
        for _ in 0..OVERTAKEN_MAX {
            if !look.1.outcome.stale {
                break;
            }
            look = self.engine.look_at(&self.name)?;
        }
        // What cannot be written down is not acted on.
        match look.1.unwritten.take() {
            Some(error) => Err(error),
            None => Ok(look),
        }
    }

    /// Looks at the session again and again until `found` finds something, or the time is over.
    pub(crate) fn watch<T>(
        &self,
        limit: Duration,
        mut found: impl FnMut(&Sighting, &Judged) -> Option<T>,
    ) -> Result<(Option<T>, Sighting, Judged)> {
        let deadline = Instant::now() + limit;
        let mut pace = PACE.iter().copied().chain(std::iter::repeat(200));
        loop {
            let (sighting, judged) = self.look()?;
            if let Some(found) = found(&sighting, &judged) {
                return Ok((Some(found), sighting, judged));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok((None, sighting, judged));
            }
            thread::sleep(Duration::from_millis(pace.next().unwrap_or(200)).min(left));
        }
    }

    /// Changes the session's record under its lock, and tells the journal what was noted. An error means that nothing has
    /// changed; what the journal could not be told is kept until it can.
    pub(crate) fn update(&self, sighting: &Sighting, change: impl FnOnce(&mut Record)) -> Result<()> {
        let journal = self.engine.journal()?;
        let mut opened = self.engine.writer(&journal).open(sighting)?;
        change(&mut opened.record);
        let changed = opened.commit()?;
        if let Some(error) = changed.untold {
            tracing::warn!(session = self.name, %error, "the journal is told later");
        }
        Ok(())
    }

    /// Writes down what is about to be done. What cannot be written down is not done.
    fn intend(&self, sighting: &Sighting, kind: EventKind, mut note: Note) -> Result<()> {
        self.update(sighting, |record| {
            note.turn = record.turn.as_ref().map(|turn| turn.id.clone());
            record.intent = Some(Intent::new(kind, now(), note));
        })
    }

    /// Tells what was done of what was intended; says whether that could be written down.
    fn fulfil(&self, sighting: &Sighting, kind: EventKind, state: &State, mut note: Note) -> bool {
        let told = self.update(sighting, |record| {
            record.intent = None;
            note.turn = record.turn.as_ref().map(|turn| turn.id.clone());
            record.note(&self.name, kind, state, now(), note);
            self.own(record);
        });
        if let Err(error) = &told {
            tracing::warn!(session = self.name, %error, "what was done could not be written down");
        }
        told.is_ok()
    }

    /// Takes back what was intended: nothing was done.
    fn give_up(&self, sighting: &Sighting) {
        if let Err(error) = self.update(sighting, |record| record.intent = None) {
            tracing::warn!(session = self.name, %error, "what was not done could not be written down");
        }
    }

    /// Presses keys, if the pane still shows what that look saw.
    fn press(&self, look: (&Sighting, &Judged), rows: usize, keys: &[&str]) -> Result<Typed> {
        match (&look.0.pane, guard(look, rows)) {
            (Some(row), Some(guard)) => {
                self.typed(look.1, self.engine.tmux().press(&row.pane_id, keys, &guard))
            }
            (Some(_), None) => Ok(Typed::Moved),
            (None, _) => Ok(Typed::Gone),
        }
    }

    /// Pastes a text, if the pane still shows what that look saw.
    fn paste(&self, look: (&Sighting, &Judged), text: &str) -> Result<Typed> {
        match (&look.0.pane, guard(look, BOX_ROWS)) {
            (Some(row), Some(guard)) => {
                self.typed(look.1, self.engine.tmux().paste(&row.pane_id, text.as_bytes(), &guard))
            }
            (Some(_), None) => Ok(Typed::Moved),
            (None, _) => Ok(Typed::Gone),
        }
    }

    /// Remembers what this driver has typed itself. Something that failed may have been typed all the same.
    fn typed(&self, judged: &Judged, typed: Result<Typed>) -> Result<Typed> {
        let count = match &typed {
            Ok(Typed::Moved | Typed::Gone) => return typed,
            Ok(Typed::Done(count)) => *count,
            Err(_) => judged.record.memory.inputs.count + 1,
        };
        let mut typing = self.typing.borrow_mut();
        let before =
            typing.take().map_or_else(|| judged.record.memory.inputs.clone(), |typing| typing.before);
        *typing = Some(Typing { before, count });
        typed
    }

    /// Whether this driver has typed anything.
    fn has_typed(&self) -> bool {
        self.typing.borrow().is_some()
    }

    /// Notes that what was typed is this driver's own, unless somebody else has typed as well.
    fn own(&self, record: &mut Record) {
        if let Some(typing) =
            self.typing.borrow().as_ref().filter(|own| record.memory.inputs.count <= own.count)
        {
            record.memory.inputs = Inputs { count: typing.count, ..typing.before.clone() };
        }
    }

    /// Whether the session's program has read everything that was typed; `None` where that can not be told.
    fn has_read_all(&self, sighting: &Sighting) -> Option<bool> {
        crate::process::unread(sighting.meta.terminal.as_ref()?).ok().map(|bytes| bytes == 0)
    }
}

/// What the pane must still show for something to be typed that was decided from a look; `None` where that look saw
/// nothing.
fn guard((sighting, judged): (&Sighting, &Judged), rows: usize) -> Option<Guard> {
    match (&sighting.pane, &judged.observation.screen) {
        (Some(row), Reading::Seen(screen)) => Some(Guard::of(&row.pane, screen, rows)),
        _ => None,
    }
}
