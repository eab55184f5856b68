//! The observer: woken by events, it looks at the sessions that they name, and at no others.
//!
//! One thread does all of it. What wakes it is a file of a session or its agent, the end of a process, output on a
//! terminal, or the clock: an agent at work is looked at every few seconds, and now and then all panes are asked for what
//! nothing has told of. An event costs the same whether there are ten sessions or a thousand.

use super::{
    bursts::{Bursts, Listening},
    election::{BEAT, Term},
    files::Files,
    index::{Index, Watched},
    table::{Known, Table},
    waits::is_being_drawn,
    wake::{Bell, Reason, Woken},
};
use crate::{
    api::Session,
    engine::Engine,
    error::{Error, Result},
    judge::Judged,
    process::{self, Sentinel, Sight},
    session::{Folder, Meta, find::Sighting},
    tmux::remind_of_children,
    words::StateName,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// How many sessions are looked at in one go: others that ring meanwhile are not kept waiting for long.
const CHUNK: usize = 16;
/// How often a session is looked at that is being made, says nothing, or cannot be watched as it should be.
const SOON: Duration = Duration::from_secs(1);
/// How long at most a session is left alone that is at work and says nothing.
const PATIENCE_MOST: Duration = Duration::from_secs(60);
/// How often all panes are asked for, with nothing to watch and for each pane more.
const SWEEP: Duration = Duration::from_secs(2);
const SWEEP_EACH: Duration = Duration::from_millis(10);
/// How often sessions that ended long ago are removed, and how many at a time.
const TIDY: Duration = Duration::from_secs(60);
const TIDY_MOST: usize = 50;
/// The key under which the tmux server itself is watched; sessions have others.
const SERVER: u64 = 0;

/// The observer of one term.
pub(super) struct Observer<'a> {
    engine: &'a Engine,
    bell: &'a Arc<Bell>,
    table: &'a Table,
    index: Index,
    files: Files,
    sentinel: Arc<Sentinel>,
    bursts: Bursts,
    ticks: BTreeSet<(Instant, String)>,
    /// Sessions that nobody has looked at in this term.
    unseen: VecDeque<String>,
    next_sweep: Instant,
    swept_at: i64,
    /// When sessions that ended long ago are removed next.
    next_tidy: Instant,
    scan: Duration,
    /// The tmux server whose end is waited for.
    server: Option<u32>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(engine: &'a Engine, bell: &'a Arc<Bell>, table: &'a Table) -> Result<Self> {
        process::raise_own_descriptor_limit();
        let rings = Arc::clone(bell);
        let sentinel = Sentinel::start(move |sight| rings.saw(sight))
            .map_err(|error| Error::io("watch", Path::new("processes"), &error))?;
        let sentinel = Arc::new(sentinel);
        table.listens(Arc::clone(&sentinel));
        // Makes the directories that are to be watched.
        engine.store()?;
        let sessions = engine.config().state_dir.join("sessions");
        Ok(Self {
            engine,
            bell,
            table,
            index: Index::default(),
            files: Files::new(&sessions, Arc::clone(bell)),
            sentinel,
            bursts: Bursts::default(),
            ticks: BTreeSet::new(),
            unseen: VecDeque::new(),
            next_sweep: Instant::now() + SWEEP,
            swept_at: 0,
            next_tidy: Instant::now() + TIDY,
            scan: engine.config().process_scan_interval,
            server: None,
        })
    }

    /// Watches until the term is over or the process is to end.
    pub(super) fn run(mut self, term: &Term) {
        tracing::info!(pid = std::process::id(), "this process is the observer");
        self.rebuild();
        loop {
            if !term.holds() {
                tracing::warn!("another process has taken over as the observer");
                return;
            }
            term.beat();
            if self.unseen.is_empty() {
                self.table.complete();
            }
            let until = if self.unseen.is_empty() { self.next_wake() } else { Instant::now() };
            let woken = self.bell.sleep(until.min(Instant::now() + BEAT));
            tracing::trace!(?woken, "woken");
            if woken.stop {
                return;
            }
            let due = self.due(woken);
            self.tidy();
            self.look_at(due, term);
        }
    }

    /// Removes some of the sessions that ended longer ago than they are kept.
    fn tidy(&mut self) {
        if self.next_tidy > Instant::now() {
            return;
        }
        self.next_tidy = Instant::now() + TIDY;
        match self.engine.remove_old(TIDY_MOST) {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "sessions that ended long ago were removed"),
            Err(error) => tracing::warn!(%error, "sessions that ended long ago cannot be removed"),
        }
    }

    fn next_wake(&self) -> Instant {
        let tick = self.ticks.first().map(|(at, _)| *at);
        [tick, self.bursts.next()].into_iter().flatten().fold(self.next_sweep, Instant::min)
    }

    /// The sessions to look at now.
    fn due(&mut self, woken: Woken) -> BTreeMap<String, Reason> {
        let now = Instant::now();
        let mut lost = woken.rebuild;
        let mut due = woken.sessions;
        let mut add = |name: &str, reason: Reason| {
            due.entry(name.to_owned()).and_modify(|known| *known = reason.min(*known)).or_insert(reason);
        };
        for sight in woken.sights {
            match sight {
                Sight::Output(key) => {
                    self.bursts.heard(key, now);
                    if let Some(watched) = self.index.by_key(key) {
                        self.table.told(&watched.meta.name, now);
                    }
                }
                // Every session has ended with it, whatever its process does.
                Sight::Ended(SERVER) => {
                    self.server = None;
                    lost = true;
                }
                Sight::Ended(key) => {
                    // A server that has not heard of it would have to be asked twice.
                    self.server.into_iter().for_each(remind_of_children);
                    if let Some(watched) = self.index.by_key(key) {
                        watched.process_heard = false;
                        add(&watched.meta.name, Reason::Exit);
                    }
                }
            }
        }
        if lost {
            self.rebuild();
        }
        for key in self.bursts.take_due(now) {
            if let Some(watched) = self.index.by_key(key) {
                add(&watched.meta.name, Reason::Output);
            }
        }
        while self.ticks.first().is_some_and(|(at, _)| *at <= now)
            && let Some((at, name)) = self.ticks.pop_first()
        {
            // One that another run left behind says nothing.
            if let Some(watched) = self.index.get_mut(&name).filter(|watched| watched.tick == Some(at)) {
                watched.tick = None;
                add(&name, Reason::Tick);
            }
        }
        if self.next_sweep <= now {
            for name in self.sweep(now) {
                add(&name, Reason::Sweep);
            }
        }
        if due.is_empty() {
            for name in self.unseen.drain(..self.unseen.len().min(CHUNK)) {
                due.insert(name, Reason::First);
            }
        }
        due
    }

    /// Reads the list of sessions anew.
    fn rebuild(&mut self) {
        let names = match self.engine.kept() {
            Ok(kept) => kept.names,
            Err(error) => {
                tracing::warn!(%error, "the sessions cannot be listed");
                return;
            }
        };
        let there: HashSet<&String> = names.iter().collect();
        let gone: Vec<String> =
            self.index.iter().map(|w| w.meta.name.clone()).filter(|name| !there.contains(name)).collect();
        gone.iter().for_each(|name| self.forget(name));
        self.table.incomplete();
        self.unseen = names.into();
    }

    /// Asks tmux for all panes: which have moved since the last time, and which are gone. Only what nothing has told of
    /// is new here.
    fn sweep(&mut self, now: Instant) -> Vec<String> {
        let lives = |watched: &&Watched| watched.state != Some(StateName::Exited);
        let live: HashMap<String, String> = self
            .index
            .iter()
            .filter(lives)
            .filter_map(|watched| Some((watched.meta.pane_id.clone()?, watched.meta.name.clone())))
            .collect();
        let all_heard = self.index.iter().filter(lives).all(|watched| watched.terminal_heard);
        let pause = SWEEP + SWEEP_EACH * u32::try_from(live.len()).unwrap_or(u32::MAX);
        self.next_sweep = now + if all_heard { pause } else { SOON };
        if live.is_empty() {
            return Vec::new();
        }
        let second = crate::engine::now().0 / 1000;
        let panes: HashMap<String, bool> = match self.engine.tmux().panes_moved(self.swept_at) {
            Ok(panes) => panes.into_iter().collect(),
            Err(error) => {
                tracing::warn!(%error, "the panes cannot be listed");
                return live.into_values().collect();
            }
        };
        // What came in the same second may have come after the look.
        self.swept_at = second;
        let mut names = Vec::new();
        for (pane, name) in live {
            let Some(watched) = self.index.get_mut(&name) else { continue };
            let moved = panes.get(&pane).copied();
            // Where the terminal tells nothing, both output and its end are worth a look.
            let before = std::mem::replace(&mut watched.moved, moved == Some(true));
            if moved.is_none() || (!watched.terminal_heard && (before || watched.moved)) {
                names.push(name);
            }
        }
        names
    }

    /// Looks at sessions, a few at a time; the strongest reasons first.
    fn look_at(&mut self, due: BTreeMap<String, Reason>, term: &Term) {
        let mut order: Vec<(String, Reason)> = due.into_iter().collect();
        order.sort_by_key(|(_, reason)| *reason);
        for chunk in order.chunks(CHUNK) {
            term.beat();
            self.look_at_few(chunk);
            self.bell.looked(chunk.iter().map(|(name, _)| name));
        }
    }

    fn look_at_few(&mut self, due: &[(String, Reason)]) {
        let mut sessions: Vec<(Folder, Meta)> = Vec::with_capacity(due.len());
        for (name, reason) in due {
            let renewed = matches!(reason, Reason::Listed | Reason::First);
            if (renewed || self.index.get(name).is_none()) && !self.renew(name) {
                continue;
            }
            sessions.extend(self.index.get(name).map(|w| (w.folder.clone(), w.meta.clone())));
        }
        if sessions.is_empty() {
            return;
        }
        let began = Instant::now();
        for (name, reason) in due {
            if reason.tells() {
                self.table.told(name, began);
            }
            if let Some(watched) = self.index.get_mut(name) {
                watched.stamps = Some(watched.stamped());
            }
        }
        match self.engine.look_into_all(sessions) {
            Ok(looked) => {
                for (sighting, judged) in looked {
                    let name = &sighting.meta.name;
                    let reason = due.iter().find(|(due, _)| due == name).map(|(_, reason)| *reason);
                    self.judged(&sighting, &judged, began);
                    tracing::debug!(
                        session = %name,
                        reason = reason.map_or("", Reason::as_str),
                        state = %judged.outcome.verdict.state.name(),
                        rule = %judged.outcome.verdict.reason,
                        us = began.elapsed().as_micros(),
                        "looked"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(%error, sessions = due.len(), "a look failed and is taken again");
                for (name, _) in due {
                    // Whoever asks must find out for themselves.
                    self.table.remove(name);
                    self.set_tick(name, Some(began + SOON));
                }
            }
        }
    }

    /// Reads what is known of a session from its directory; says whether there is one.
    fn renew(&mut self, name: &str) -> bool {
        let directory = self.directory(name);
        if !directory.is_dir() {
            self.forget(name);
            return false;
        }
        // Watched before it is read: what is written between the two rings.
        self.files.watch_session(name, &directory);
        match self.engine.load(name) {
            Ok(Some((folder, meta))) => {
                if let Some(before) = self.index.put(folder, meta) {
                    self.sentinel.forget(before);
                    self.bursts.forget(before);
                }
                true
            }
            // It is being made.
            Ok(None) => false,
            Err(error) => {
                tracing::warn!(session = name, %error, "its metadata cannot be read");
                false
            }
        }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.engine.config().state_dir.join("sessions").join(name)
    }

    fn forget(&mut self, name: &str) {
        self.set_tick(name, None);
        self.table.remove(name);
        self.files.forget(name, &self.directory(name));
        if let Some(watched) = self.index.remove(name) {
            self.sentinel.forget(watched.key);
            self.bursts.forget(watched.key);
        }
    }

    /// Takes down what a look came to, and listens to the session as its state asks for.
    fn judged(&mut self, sighting: &Sighting, judged: &Judged, at: Instant) {
        let name = &sighting.meta.name;
        if judged.gone {
            self.forget(name);
            return;
        }
        let session = self.engine.describe(sighting, judged, true);
        let state = session.state;
        self.files.watch_files(name, judged.files.clone());
        if judged.outcome.stale && state != StateName::Exited {
            // Somebody else's look counts, which may not have seen what this one was for.
            self.bell.wake(name, Reason::Request);
        }
        if let Some(row) = &sighting.pane {
            self.watch_server(row.server_pid);
        }
        let alive = sighting.pane.as_ref().is_some_and(|row| !row.pane.dead);
        let hears_files = self.files.hears(sighting.folder.path());
        let rings = self.rings_by_itself(&sighting.meta.agent);
        let Some(watched) = self.index.get_mut(name) else { return };
        // Files that this look was the first to read have no stamp from before.
        let stamps = watched.stamps.take().filter(|_| watched.files == judged.files);
        watched.files.clone_from(&judged.files);
        watched.state = Some(state);
        watched.looked = Some(at);
        let mut trouble = (!hears_files).then(|| "its directory cannot be watched".to_owned());
        if let Some(row) = sighting.pane.as_ref().filter(|_| alive) {
            if !watched.process_heard {
                match self.sentinel.watch_process(watched.key, row.pane.pid) {
                    Ok(()) => watched.process_heard = true,
                    Err(error) => trouble = Some(format!("its process cannot be watched: {error}")),
                }
            }
            if !watched.terminal_heard
                && let Some(terminal) = &watched.meta.terminal
            {
                // Where terminals tell nothing, the sweep asks tmux.
                watched.terminal_heard = self.sentinel.watch_terminal(watched.key, terminal).is_ok();
            }
            let listening = match state {
                _ if is_being_drawn(&session) => Listening::Drawing,
                StateName::Working if rings => Listening::Silence,
                _ => Listening::Output,
            };
            self.bursts.listen(watched.key, listening, Instant::now());
        } else {
            self.sentinel.forget(watched.key);
            self.bursts.forget(watched.key);
            watched.process_heard = false;
            watched.terminal_heard = false;
        }
        let heard = trouble.is_none() && (!alive || (watched.process_heard && watched.terminal_heard));
        let pause = match state {
            _ if trouble.is_some() && alive => Some(SOON),
            StateName::Unknown => Some(SOON),
            // Its pane is being made.
            StateName::Starting if !alive => Some(SOON),
            StateName::Starting | StateName::Working | StateName::Stalled => Some(self.patience(&session)),
            _ => None,
        };
        self.table.trouble(name, trouble);
        self.set_tick(name, pause.map(|pause| at + pause));
        self.table.put(Known {
            session,
            at,
            seq: judged.record.seq,
            stamps,
            heard,
            passing: pause.is_some(),
        });
    }

    fn watch_server(&mut self, pid: u32) {
        if self.server != Some(pid) {
            self.sentinel.forget(SERVER);
            self.server = self.sentinel.watch_process(SERVER, pid).is_ok().then_some(pid);
        }
    }

    fn set_tick(&mut self, name: &str, at: Option<Instant>) {
        let Some(watched) = self.index.get_mut(name) else { return };
        if let Some(before) = std::mem::replace(&mut watched.tick, at) {
            self.ticks.remove(&(before, name.to_owned()));
        }
        self.ticks.extend(at.map(|at| (at, name.to_owned())));
    }

    /// How long a session is left alone in which nothing happens: the longer nothing has, the longer.
    fn patience(&self, session: &Session) -> Duration {
        self.scan.max(Duration::from_millis(session.idle_ms / 8)).min(self.scan.max(PATIENCE_MOST))
    }

    /// Whether the agent's own hooks ring for everything that matters.
    fn rings_by_itself(&self, agent: &str) -> bool {
        let profile = self.engine.profiles().get_or_generic(agent);
        profile.is_some_and(|profile| profile.launch.as_ref().is_some_and(|launch| launch.settings.is_some()))
    }
}
