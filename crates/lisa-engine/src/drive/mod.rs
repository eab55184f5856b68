//! Driving: the gate before typing, send, answer, interrupt.
//!
//! Everything typed into a session is typed here, by one process at a time (the session's drive lock), after a look
//! and before a confirmation. The gate is shut unless that look opens it, and a key is only sent to a pane that still
//! shows what the look saw.

pub mod choice;
pub mod gate;

mod answer;
mod input_box;
mod interrupt;
mod send;
mod startup;

pub(crate) use answer::answer;
pub(crate) use interrupt::interrupt;
pub(crate) use send::send;

use crate::{
    api::{EventKind, words::State},
    classify::{memory::Inputs, observation::Reading, profile::Profile},
    disk::Lock,
    error::{Error, Result},
    observe::now,
    session::find::{self, SessionSnapshot},
    tmux::{Guard, Typed},
    watch::{
        Cancel, Context,
        judge::{Judged, Unwritten},
        record::{Intent, Note, Record},
    },
};
use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tracing::span::EnteredSpan;

/// Polling intervals while something is expected of a session (backoff), in milliseconds.
const POLL_BACKOFF_MS: [u64; 6] = [15, 25, 40, 60, 100, 150];
/// Timeout for a session's drive lock.
const DRIVE_LIMIT: Duration = Duration::from_secs(60);

/// How many of the last rows must be unchanged when a key is pressed: around an input box, or a whole dialog.
const BOX_ROWS: usize = 4;
const DIALOG_ROWS: usize = 24;
/// How often to retry if the pane changed between the look and the key.
const GUARD_RETRIES: usize = 40;

/// How often to repeat a look that another process overtook.
const LOOK_RETRIES: usize = 20;

/// What a driver has typed.
#[derive(Debug)]
struct Typing {
    /// What had been typed before.
    before: Inputs,
    /// The pane's input counter after this driver's last input.
    count: u64,
}

/// One driver's exclusive access to a session.
pub(crate) struct Driver<'a> {
    context: &'a Context,
    /// Raised when the caller cancels.
    cancel: Cancel,
    pub(crate) name: String,
    pub(crate) profile: Arc<Profile>,
    /// What this driver has typed so far.
    typing: RefCell<Option<Typing>>,
    /// Whether the current operation has typed anything.
    has_typed: Cell<bool>,
    _lock: Lock,
    /// Adds the session's name to log messages.
    _span: EnteredSpan,
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        self.context.notify_observer(&self.name);
    }
}

impl<'a> Driver<'a> {
    /// Takes exclusive access to a session, by its exact name.
    pub(crate) fn acquire(context: &'a Context, cancel: &Cancel, name: &str) -> Result<Self> {
        let (dir, meta) = find::stored(&context.store_with(name)?, name)?;
        let lock = Lock::take(&dir.file("drive.lock"), DRIVE_LIMIT)?;
        tracing::debug!(session = name, waited_us = lock.waited().as_micros(), "driving");
        let profile = context.profiles.get_or_generic(&meta.agent);
        let profile = profile.ok_or_else(|| Error::not_found(&meta.agent, &[]))?;
        Ok(Self {
            context,
            cancel: cancel.clone(),
            name: name.to_owned(),
            profile,
            typing: RefCell::default(),
            has_typed: Cell::default(),
            _span: tracing::debug_span!("drive", session = name).entered(),
            _lock: lock,
        })
    }

    /// Looks at the session now. Input is decided from one look. If another process's look overtook it, the verdict
    /// would be from that one and the signals from this one, so it is repeated.
    pub(crate) fn look(&self) -> Result<(SessionSnapshot, Judged)> {
        let mut look = self.context.look_at(&self.name)?;
        for _ in 0..LOOK_RETRIES {
            if !look.1.outcome.stale {
                break;
            }
            look = self.context.look_at(&self.name)?;
        }
        let (_, judged) = &mut look;
        if let Some(Unwritten { verdict, error }) = judged.unwritten.take() {
            // What can't be recorded must not be acted on. But once something was typed, the caller has to know what
            // came of it; the result then says that it isn't recorded.
            if !self.has_typed() {
                return Err(error);
            }
            tracing::warn!(session = self.name, %error, "could not record a look after typing");
            judged.outcome.verdict = verdict;
            judged.record.memory = judged.outcome.memory.clone();
        }
        Ok(look)
    }

    /// Looks at the session repeatedly until `found` returns something, or until the timeout.
    pub(crate) fn watch<T>(
        &self,
        limit: Duration,
        mut found: impl FnMut(&SessionSnapshot, &Judged) -> Option<T>,
    ) -> Result<(Option<T>, SessionSnapshot, Judged)> {
        let deadline = Instant::now() + limit;
        let mut pace = POLL_BACKOFF_MS.iter().copied().chain(std::iter::repeat(200));
        loop {
            let (snapshot, judged) = self.look()?;
            if let Some(found) = found(&snapshot, &judged) {
                return Ok((Some(found), snapshot, judged));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok((None, snapshot, judged));
            }
            thread::sleep(Duration::from_millis(pace.next().unwrap_or(200)).min(left));
        }
    }

    /// Changes the session's record under its lock, and tells the journal. An error means that nothing has changed.
    /// What the journal couldn't be told is kept for later.
    pub(crate) fn update(&self, snapshot: &SessionSnapshot, change: impl FnOnce(&mut Record)) -> Result<()> {
        let journal = self.context.journal()?;
        let mut opened = self.context.writer(&journal).open(snapshot)?;
        change(&mut opened.record);
        let changed = opened.commit()?;
        if let Some(error) = changed.untold {
            tracing::warn!(session = self.name, %error, "could not write to the journal; the events are kept for later");
        }
        Ok(())
    }

    /// Records what is about to be done. What can't be recorded isn't done.
    fn record_intent(&self, snapshot: &SessionSnapshot, kind: EventKind, mut note: Note) -> Result<()> {
        self.update(snapshot, |record| {
            note.turn = record.turn.as_ref().map(|turn| turn.id.clone());
            record.intent = Some(Intent::new(kind, now(), note));
        })
    }

    /// Records that the intent was done; returns whether it could be recorded.
    fn record_done(
        &self,
        snapshot: &SessionSnapshot,
        kind: EventKind,
        state: &State,
        mut note: Note,
    ) -> bool {
        let told = self.update(snapshot, |record| {
            record.intent = None;
            note.turn = record.turn.as_ref().map(|turn| turn.id.clone());
            record.note(&self.name, kind, state, now(), note);
            self.own(record);
        });
        if let Err(error) = &told {
            tracing::warn!(session = self.name, %error, "could not record what was done");
        }
        told.is_ok()
    }

    /// Withdraws the intent, and undoes what was recorded with it: nothing was done.
    fn withdraw(&self, snapshot: &SessionSnapshot, undo: impl FnOnce(&mut Record)) {
        let withdrawn = self.update(snapshot, |record| {
            record.intent = None;
            undo(record);
        });
        if let Err(error) = withdrawn {
            tracing::warn!(session = self.name, %error, "could not withdraw an intent");
        }
    }

    /// Presses keys, if the pane still shows what that look saw.
    fn press(&self, look: (&SessionSnapshot, &Judged), rows: usize, keys: &[&str]) -> Result<Typed> {
        match (&look.0.pane, guard(look, rows)) {
            (Some(row), Some(guard)) => {
                self.typed(look.1, self.context.tmux().press(&row.pane_id, keys, &guard))
            }
            (Some(_), None) => Ok(Typed::Moved),
            (None, _) => Ok(Typed::Gone),
        }
    }

    /// Pastes text, if the pane still shows what that look saw.
    fn paste(&self, look: (&SessionSnapshot, &Judged), text: &str) -> Result<Typed> {
        match (&look.0.pane, guard(look, BOX_ROWS)) {
            (Some(row), Some(guard)) => {
                self.typed(look.1, self.context.tmux().paste(&row.pane_id, text.as_bytes(), &guard))
            }
            (Some(_), None) => Ok(Typed::Moved),
            (None, _) => Ok(Typed::Gone),
        }
    }

    /// Tracks what this driver has typed. If typing failed, some of it may have been typed anyway.
    fn typed(&self, judged: &Judged, typed: Result<Typed>) -> Result<Typed> {
        let count = match &typed {
            Ok(Typed::Moved | Typed::Gone) => return typed,
            Ok(Typed::Done(count)) => *count,
            Err(_) => judged.record.memory.inputs.count + 1,
        };
        self.has_typed.set(true);
        let mut typing = self.typing.borrow_mut();
        let before =
            typing.take().map_or_else(|| judged.record.memory.inputs.clone(), |typing| typing.before);
        *typing = Some(Typing { before, count });
        typed
    }

    /// Begins an operation: until it types something, an error means that nothing was done.
    fn begin(&self) {
        self.has_typed.set(false);
    }

    /// Whether the current operation has typed anything.
    fn has_typed(&self) -> bool {
        self.has_typed.get()
    }

    /// Records that all input was from this driver, unless somebody else has typed as well.
    fn own(&self, record: &mut Record) {
        if let Some(typing) =
            self.typing.borrow().as_ref().filter(|own| record.memory.inputs.count <= own.count)
        {
            record.memory.inputs = Inputs { count: typing.count, ..typing.before.clone() };
        }
    }

    /// Whether the session's program has read all its input; `None` if unknown.
    fn has_read_all(&self, snapshot: &SessionSnapshot) -> Option<bool> {
        crate::process::unread(snapshot.meta.terminal.as_ref()?).ok().map(|bytes| bytes == 0)
    }
}

/// What the pane must still show for input that was decided from a look; `None` if that look saw nothing.
fn guard((snapshot, judged): (&SessionSnapshot, &Judged), rows: usize) -> Option<Guard> {
    match (&snapshot.pane, &judged.observation.screen) {
        (Some(row), Reading::Seen(screen)) => Some(Guard::of(&row.pane, screen, rows)),
        _ => None,
    }
}
