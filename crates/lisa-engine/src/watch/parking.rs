//! Waits without a thread each: one thread serves all waits of a process.
//!
//! It sleeps until the journal changes, or until a wait arrives, is cancelled or times out. An event names its
//! session, and only the waits for that session are checked.

use super::{
    Want, Wanted,
    journal::{self, Latest},
    waits::{Wait, cancelled},
};
use crate::{
    api::{WaitRequest, WaitResponse},
    error::{Error, Result},
    watch::{Cancel, Context},
};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Interval of progress messages, for those who want them.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Polling interval if the journal's files can't be watched.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A message of a wait to its caller.
#[derive(Debug)]
pub enum WaitMessage {
    /// What the sessions are doing meanwhile.
    Progress(String),
    /// The wait is over.
    Done(Box<Result<WaitResponse>>),
}

/// A new wait.
pub(crate) struct NewWait {
    pub(crate) request: WaitRequest,
    /// Whether it wants progress messages.
    pub(crate) progress: bool,
    pub(crate) say: Box<dyn Fn(WaitMessage) + Send>,
}

#[derive(Default)]
struct Mail {
    new_waits: Vec<(u64, NewWait)>,
    cancelled: Vec<u64>,
    /// How often the journal has changed.
    moves: u64,
    last_id: u64,
    stop: bool,
}

/// The mailbox of the thread: new and cancelled waits, and changes of the journal.
#[derive(Default)]
pub(super) struct WaitMailbox {
    mail: Mutex<Mail>,
    rung: Condvar,
}

impl fmt::Debug for WaitMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitMailbox").finish_non_exhaustive()
    }
}

impl WaitMailbox {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a wait.
    pub(super) fn park(self: &Arc<Self>, new_wait: NewWait, cancel: &Cancel) {
        let mut mail = self.mail();
        mail.last_id += 1;
        let id = mail.last_id;
        mail.new_waits.push((id, new_wait));
        drop(mail);
        self.rung.notify_all();
        let mailbox = Arc::downgrade(self);
        cancel.on_cancel(move || {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.mail().cancelled.push(id);
                mailbox.rung.notify_all();
            }
        });
    }

    fn moved(&self) {
        self.mail().moves += 1;
        self.rung.notify_all();
    }

    fn stop(&self) {
        self.mail().stop = true;
        self.rung.notify_all();
    }

    /// How often the journal has changed.
    pub(super) fn moves(&self) -> u64 {
        self.mail().moves
    }

    /// Blocks until the journal has changed since `seen`, or until the timeout.
    pub(super) fn moved_since(&self, seen: u64, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut mail = self.mail();
        while mail.moves == seen && !mail.stop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            mail = self.rung.wait_timeout(mail, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The thread that serves the waits, and the watcher of the journal's files. Dropping it stops both.
#[derive(Debug)]
pub(super) struct WaitThread {
    mailbox: Arc<WaitMailbox>,
    thread: Option<JoinHandle<()>>,
    _journal: Option<RecommendedWatcher>,
}

impl WaitThread {
    /// Starts the thread.
    pub(super) fn start(context: Arc<Context>, mailbox: Arc<WaitMailbox>) -> Result<Self> {
        let journal = context.journal()?;
        let watched = follow(journal.dir(), &mailbox);
        let polls = watched.is_none();
        // From here on every change wakes the thread.
        let tail = journal::Tail::new(journal)?;
        let own = Arc::clone(&mailbox);
        let thread = thread::Builder::new()
            .name("lisa-waits".to_owned())
            .spawn(move || WaitLoop::new(&context, &own, tail, polls).run())
            .map_err(|error| Error::io("start", Path::new("a thread"), &error))?;
        Ok(Self { mailbox, thread: Some(thread), _journal: watched })
    }
}

impl WaitThread {
    /// Whether the thread has ended without being told to: it panicked, and its waits ended with it.
    pub(super) fn is_dead(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for WaitThread {
    fn drop(&mut self) {
        self.mailbox.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(dir: &Path, mailbox: &Arc<WaitMailbox>) -> Option<RecommendedWatcher> {
    let rings = Arc::downgrade(mailbox);
    let is_segment =
        |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let written = match &event {
            Ok(event) if matches!(event.kind, notify::EventKind::Access(_)) => false,
            Ok(event) => event.need_rescan() || event.paths.iter().any(is_segment),
            Err(_) => true,
        };
        if let (true, Some(mailbox)) = (written, rings.upgrade()) {
            mailbox.moved();
        }
    });
    let watched = watcher.and_then(|mut watcher| {
        watcher.watch(dir, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watched.inspect_err(|error| tracing::warn!(%error, "could not watch the journal; polling instead")).ok()
}

struct ParkedWait {
    wait: Wait,
    new_wait: NewWait,
    next: Instant,
    tell: Option<Instant>,
}

/// The state of the thread.
struct WaitLoop<'a> {
    context: &'a Context,
    mailbox: &'a WaitMailbox,
    tail: journal::Tail,
    polls: bool,
    moves: u64,
    parked: HashMap<u64, ParkedWait>,
    by_name: HashMap<String, BTreeSet<u64>>,
    /// Waits for all sessions, including new ones.
    open: BTreeSet<u64>,
    due: BTreeSet<(Instant, u64)>,
}

impl<'a> WaitLoop<'a> {
    fn new(context: &'a Context, mailbox: &'a WaitMailbox, tail: journal::Tail, polls: bool) -> Self {
        let (parked, by_name) = (HashMap::new(), HashMap::new());
        let (open, due) = (BTreeSet::new(), BTreeSet::new());
        Self { context, mailbox, tail, polls, moves: 0, parked, by_name, open, due }
    }

    fn run(mut self) {
        loop {
            let (new_waits, cancelled_ids, moved, stop) = self.sleep();
            if stop {
                let ids: Vec<u64> = self.parked.keys().copied().collect();
                ids.into_iter().for_each(|id| self.end(id, Err(cancelled())));
                return;
            }
            for (id, new_wait) in new_waits {
                self.begin(id, new_wait);
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

    fn sleep(&mut self) -> (Vec<(u64, NewWait)>, Vec<u64>, bool, bool) {
        let mut mail = self.mailbox.mail();
        loop {
            let moved = mail.moves != self.moves;
            let now = Instant::now();
            let next = self.due.first().map(|(at, _)| *at);
            let polls = self.polls && !self.parked.is_empty();
            if moved
                || mail.stop
                || !mail.new_waits.is_empty()
                || !mail.cancelled.is_empty()
                || next <= Some(now) && next.is_some()
            {
                self.moves = mail.moves;
                let new_waits = std::mem::take(&mut mail.new_waits);
                return (new_waits, std::mem::take(&mut mail.cancelled), moved, mail.stop);
            }
            let left = next.map(|next| next.saturating_duration_since(now));
            let left =
                if polls { Some(left.map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL))) } else { left };
            match left {
                None => mail = self.mailbox.rung.wait(mail).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    mail =
                        self.mailbox.rung.wait_timeout(mail, left).unwrap_or_else(PoisonError::into_inner).0;
                    if polls {
                        mail.moves += 1;
                    }
                }
            }
        }
    }

    fn begin(&mut self, id: u64, new_wait: NewWait) {
        let begun = Wait::begin(self.context, new_wait.request.clone()).and_then(|mut wait| {
            let names = wait.names().to_vec();
            wait.see(&names, self.context.observed_or_looked_at(&wait.now())?);
            Ok(wait)
        });
        match begun {
            Ok(wait) => {
                let next = wait.deadline;
                let tell = new_wait.progress.then(|| Instant::now() + PROGRESS_INTERVAL);
                for name in wait.names() {
                    self.by_name.entry(name.clone()).or_default().insert(id);
                }
                if wait.is_open() {
                    self.open.insert(id);
                }
                self.due.insert((next, id));
                self.parked.insert(id, ParkedWait { wait, new_wait, next, tell });
                self.consider(id);
            }
            Err(error) => (new_wait.say)(WaitMessage::Done(Box::new(Err(error)))),
        }
    }

    /// Checks the waits for the sessions with new events in the journal.
    fn journal_moved(&mut self) {
        let told = self.tail.sessions().unwrap_or_else(|error| {
            tracing::warn!(%error, "could not read the journal; checking every wait");
            None
        });
        self.join(told.as_ref());
        let (changed, wanted): (Vec<Want>, _) = match told {
            Some(told) => {
                let ours = told.into_iter().filter(|(name, _)| self.by_name.contains_key(name));
                let wants: Vec<Want> =
                    ours.map(|(name, latest)| Want { name, event: Some(latest.id) }).collect();
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
        let sessions = match self.context.observed_or_looked_at(&wanted) {
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

    /// Adds new sessions to the waits for all sessions.
    fn join(&mut self, told: Option<&BTreeMap<String, Latest>>) {
        for id in &self.open {
            let Some(ParkedWait { wait, .. }) = self.parked.get_mut(id) else { continue };
            let names: Vec<String> = match told {
                Some(told) => {
                    let about =
                        |(name, latest): &(&String, &Latest)| wait.is_about(name, latest.parent.as_deref());
                    told.iter().filter(about).map(|(name, _)| name.clone()).collect()
                }
                None => wait.named_now(self.context).unwrap_or_default(),
            };
            for name in names.into_iter().filter(|name| wait.join(name)) {
                self.by_name.entry(name).or_default().insert(*id);
            }
        }
    }

    /// A wait's timer has expired: it has timed out, has to be checked again, or gets a progress message.
    fn time_passed(&mut self, id: u64, now: Instant) {
        let Some(parked) = self.parked.get_mut(&id) else { return };
        if parked.tell.is_some_and(|tell| tell <= now) {
            parked.tell = Some(now + PROGRESS_INTERVAL);
            (parked.new_wait.say)(WaitMessage::Progress(parked.wait.progress()));
        }
        if parked.wait.deadline <= now || parked.wait.look_again().is_some() {
            let names = parked.wait.names().to_vec();
            match self.context.observed_or_looked_at(&parked.wait.now()) {
                Ok(sessions) => parked.wait.see(&names, sessions),
                Err(error) => return self.end(id, Err(error)),
            }
        }
        self.consider(id);
    }

    /// Ends a wait that is satisfied or has timed out; otherwise sets its timer.
    fn consider(&mut self, id: u64) {
        let Some(parked) = self.parked.get_mut(&id) else { return };
        let now = Instant::now();
        let answer = match parked.wait.is_true(self.context) {
            Ok(true) => parked.wait.answer(self.context, false),
            Ok(false) if parked.wait.deadline <= now => parked.wait.answer(self.context, true),
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
        self.open.remove(&id);
        for name in parked.wait.names() {
            if let Some(ids) = self.by_name.get_mut(name) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
        (parked.new_wait.say)(WaitMessage::Done(Box::new(answer)));
    }
}
