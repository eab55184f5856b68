//! The observer: woken by events, it looks at the sessions that they name, and at no others.
//!
//! It is a single thread. It is woken by a file of a session or its agent, by the end of a process, by output on a
//! terminal, or by a timer: a working agent is looked at every few seconds. A sweep over all panes now and then finds
//! what no event reported. An event costs the same with ten sessions and with a thousand.

use super::{
    bursts::{DebounceMode, OutputDebouncer},
    election::{PROGRESS, Term},
    files::Files,
    index::{Index, Watched},
    table::{CachedVerdict, Table},
    waits::is_being_drawn,
    wake::{Bell, WakeReason, Woken},
};
use crate::{
    api::{Session, words::StateName},
    classify::prompt,
    error::{Error, Result},
    process::{self, Sentinel, SentinelEvent},
    session::{Meta, SessionDir, find::SessionSnapshot},
    tmux::send_sigchld,
    watch::{Context, describe, judge::Judged},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// How many sessions to look at in one batch, so that others that are woken meanwhile don't wait for long.
const CHUNK: usize = 16;
/// How often to look at a session that is being started, can't be judged, or can't be watched properly.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time between looks at a working session without events.
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Interval of the sweep over all panes, plus the time per pane.
const SWEEP_INTERVAL: Duration = Duration::from_secs(2);
const SWEEP_PER_PANE: Duration = Duration::from_millis(10);
/// The key of the tmux server itself; sessions have other keys.
const SERVER: u64 = 0;

/// The observer, for one term.
pub(super) struct Observer<'a> {
    context: &'a Context,
    bell: &'a Arc<Bell>,
    table: &'a Table,
    index: Index,
    files: Files,
    sentinel: Arc<Sentinel>,
    output: OutputDebouncer,
    ticks: BTreeSet<(Instant, String)>,
    /// Sessions that haven't been looked at in this term.
    unseen: VecDeque<String>,
    next_sweep: Instant,
    swept_at: i64,
    scan: Duration,
    /// The tmux server whose end is watched.
    server: Option<u32>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(context: &'a Context, bell: &'a Arc<Bell>, table: &'a Table) -> Result<Self> {
        process::raise_own_descriptor_limit();
        let rings = Arc::clone(bell);
        let sentinel = Sentinel::start(move |event| rings.on_sentinel_event(event))
            .map_err(|error| Error::io("watch", Path::new("processes"), &error))?;
        let sentinel = Arc::new(sentinel);
        table.set_sentinel(Arc::clone(&sentinel));
        // Creates the directories to watch.
        context.store()?;
        let sessions = context.config.state_dir.join("sessions");
        Ok(Self {
            context,
            bell,
            table,
            index: Index::default(),
            files: Files::new(&sessions, Arc::clone(bell)),
            sentinel,
            output: OutputDebouncer::default(),
            ticks: BTreeSet::new(),
            unseen: VecDeque::new(),
            next_sweep: Instant::now() + SWEEP_INTERVAL,
            swept_at: 0,
            scan: context.config.process_scan_interval,
            server: None,
        })
    }

    /// Watches until the term ends or the process should stop.
    pub(super) fn run(mut self, term: &Term) {
        tracing::info!(pid = std::process::id(), "this process is the observer");
        self.rebuild();
        loop {
            if term.is_deposed() {
                tracing::warn!("another process took over as the observer");
                return;
            }
            term.progress();
            if self.unseen.is_empty() {
                self.table.complete();
            }
            let until = if self.unseen.is_empty() { self.next_wake() } else { Instant::now() };
            let woken = self.bell.sleep(until.min(Instant::now() + PROGRESS));
            tracing::trace!(?woken, "woken");
            if woken.stop {
                return;
            }
            let due = self.due(woken);
            self.look_at(due, term);
        }
    }

    fn next_wake(&self) -> Instant {
        let tick = self.ticks.first().map(|(at, _)| *at);
        [tick, self.output.next()].into_iter().flatten().fold(self.next_sweep, Instant::min)
    }

    /// The sessions to look at now.
    fn due(&mut self, woken: Woken) -> BTreeMap<String, WakeReason> {
        let now = Instant::now();
        let mut lost = woken.rebuild;
        let mut due = woken.sessions;
        let mut add = |name: &str, reason: WakeReason| {
            due.entry(name.to_owned()).and_modify(|known| *known = reason.min(*known)).or_insert(reason);
        };
        for event in woken.sentinel_events {
            match event {
                SentinelEvent::Output(key) => {
                    self.output.on_output(key, now);
                    if let Some(watched) = self.index.by_key(key) {
                        self.table.told(&watched.meta.name, now);
                    }
                }
                // Every session has ended with it, whatever its process does.
                SentinelEvent::Ended(SERVER) => {
                    self.server = None;
                    lost = true;
                }
                SentinelEvent::Ended(key) => {
                    // A server that hasn't noticed the end yet would have to be asked twice.
                    self.server.into_iter().for_each(send_sigchld);
                    if let Some(watched) = self.index.by_key(key) {
                        watched.process_heard = false;
                        add(&watched.meta.name, WakeReason::Exit);
                    }
                }
            }
        }
        if lost {
            self.rebuild();
        }
        for key in self.output.take_due(now) {
            if let Some(watched) = self.index.by_key(key) {
                add(&watched.meta.name, WakeReason::Output);
            }
        }
        while self.ticks.first().is_some_and(|(at, _)| *at <= now)
            && let Some((at, name)) = self.ticks.pop_first()
        {
            // A key that another run left behind means nothing.
            if let Some(watched) = self.index.get_mut(&name).filter(|watched| watched.tick == Some(at)) {
                watched.tick = None;
                add(&name, WakeReason::Tick);
            }
        }
        if self.next_sweep <= now {
            for name in self.sweep(now) {
                add(&name, WakeReason::Sweep);
            }
        }
        if due.is_empty() {
            for name in self.unseen.drain(..self.unseen.len().min(CHUNK)) {
                due.insert(name, WakeReason::First);
            }
        }
        due
    }

    /// Reads the list of sessions again.
    fn rebuild(&mut self) {
        let names = match self.context.kept() {
            Ok(kept) => kept.names,
            Err(error) => {
                tracing::warn!(%error, "could not list the sessions");
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

    /// Lists all panes: which have had output since the last sweep, and which are gone. Only returns what no event has
    /// reported.
    fn sweep(&mut self, now: Instant) -> Vec<String> {
        let lives = |watched: &&Watched| watched.state != Some(StateName::Exited);
        let live: HashMap<String, String> = self
            .index
            .iter()
            .filter(lives)
            .filter_map(|watched| Some((watched.meta.pane_id.clone()?, watched.meta.name.clone())))
            .collect();
        let all_heard = self.index.iter().filter(lives).all(|watched| watched.terminal_heard);
        let pause = SWEEP_INTERVAL + SWEEP_PER_PANE * u32::try_from(live.len()).unwrap_or(u32::MAX);
        self.next_sweep = now + if all_heard { pause } else { POLL_INTERVAL };
        if live.is_empty() {
            return Vec::new();
        }
        let second = crate::observe::now().0 / 1000;
        let panes: HashMap<String, bool> = match self.context.tmux().panes_moved(self.swept_at) {
            Ok(panes) => panes.into_iter().collect(),
            Err(error) => {
                tracing::warn!(%error, "could not list the panes");
                return live.into_values().collect();
            }
        };
        // Output in the same second may have come after the look.
        self.swept_at = second;
        let mut names = Vec::new();
        for (pane, name) in live {
            let Some(watched) = self.index.get_mut(&name) else { continue };
            let moved = panes.get(&pane).copied();
            // Without notifications from the terminal, both output and its end are worth a look.
            let before = std::mem::replace(&mut watched.moved, moved == Some(true));
            if moved.is_none() || (!watched.terminal_heard && (before || watched.moved)) {
                names.push(name);
            }
        }
        names
    }

    /// Looks at sessions in batches, strongest reasons first.
    fn look_at(&mut self, due: BTreeMap<String, WakeReason>, term: &Term) {
        let mut order: Vec<(String, WakeReason)> = due.into_iter().collect();
        order.sort_by_key(|(_, reason)| *reason);
        for chunk in order.chunks(CHUNK) {
            let _span = tracing::debug_span!("round", sessions = chunk.len()).entered();
            term.progress();
            self.look_at_few(chunk);
            self.bell.looked(chunk.iter().map(|(name, _)| name));
        }
    }

    fn look_at_few(&mut self, due: &[(String, WakeReason)]) {
        let mut sessions: Vec<(SessionDir, Meta)> = Vec::with_capacity(due.len());
        for (name, reason) in due {
            let renewed = matches!(reason, WakeReason::Listed | WakeReason::First);
            if (renewed || self.index.get(name).is_none()) && !self.renew(name) {
                continue;
            }
            sessions.extend(self.index.get(name).map(|w| (w.dir.clone(), w.meta.clone())));
        }
        if sessions.is_empty() {
            return;
        }
        let began = Instant::now();
        for (name, reason) in due {
            if reason.is_event() {
                self.table.told(name, began);
            }
            if let Some(watched) = self.index.get_mut(name) {
                watched.stamps = Some(watched.stamped());
            }
        }
        match self.context.look_at_sessions(sessions) {
            Ok(looked) => {
                for (snapshot, judged) in looked {
                    let name = &snapshot.meta.name;
                    let reason = due.iter().find(|(due, _)| due == name).map(|(_, reason)| *reason);
                    self.judged(&snapshot, &judged, began);
                    tracing::debug!(
                        session = %name,
                        reason = reason.map_or("", WakeReason::as_str),
                        state = %judged.outcome.verdict.state.name(),
                        rule = %judged.outcome.verdict.reason,
                        us = began.elapsed().as_micros(),
                        "looked"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(%error, sessions = due.len(), "a look failed and will be retried");
                for (name, _) in due {
                    // Other processes have to look themselves.
                    self.table.remove(name);
                    self.set_tick(name, Some(began + POLL_INTERVAL));
                }
            }
        }
    }

    /// Reads a session's metadata again; returns whether there is one.
    fn renew(&mut self, name: &str) -> bool {
        let directory = self.directory(name);
        if !directory.is_dir() {
            self.forget(name);
            return false;
        }
        // Watch before reading: a write between the two then triggers an event (race).
        self.files.watch_session(name, &directory);
        match self.context.load(name) {
            Ok(Some((dir, meta))) => {
                if let Some(before) = self.index.put(dir, meta) {
                    self.sentinel.forget(before);
                    self.output.forget(before);
                }
                true
            }
            // It is being created.
            Ok(None) => false,
            Err(error) => {
                tracing::warn!(session = name, %error, "malformed metadata");
                false
            }
        }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.context.config.state_dir.join("sessions").join(name)
    }

    fn forget(&mut self, name: &str) {
        self.set_tick(name, None);
        self.table.remove(name);
        self.files.forget(name, &self.directory(name));
        if let Some(watched) = self.index.remove(name) {
            self.sentinel.forget(watched.key);
            self.output.forget(watched.key);
        }
    }

    /// Stores the result of a look, and sets up notifications as the session's state requires.
    fn judged(&mut self, snapshot: &SessionSnapshot, judged: &Judged, at: Instant) {
        let name = &snapshot.meta.name;
        if judged.gone {
            self.forget(name);
            return;
        }
        let session = describe(snapshot, judged, true);
        let state = session.state;
        self.files.watch_files(name, judged.files.clone());
        if judged.outcome.stale && state != StateName::Exited {
            self.bell.wake(name, WakeReason::Overtaken);
        }
        if let Some(row) = &snapshot.pane {
            self.watch_server(row.server_pid);
        }
        let alive = snapshot.pane.as_ref().is_some_and(|row| !row.pane.dead);
        let hears_files = self.files.hears(snapshot.dir.path());
        let rings = self.reports_all(&snapshot.meta.agent);
        let Some(watched) = self.index.get_mut(name) else { return };
        // Files that this look was the first to read have no earlier stamp.
        let stamps = watched.stamps.take().filter(|_| watched.files == judged.files);
        watched.files.clone_from(&judged.files);
        watched.state = Some(state);
        watched.looked = Some(at);
        let mut trouble = (!hears_files).then(|| "could not watch its directory".to_owned());
        if let Some(row) = snapshot.pane.as_ref().filter(|_| alive) {
            if !watched.process_heard {
                match self.sentinel.watch_process(watched.key, row.pane.pid) {
                    Ok(()) => watched.process_heard = true,
                    Err(error) => trouble = Some(format!("could not watch its process: {error}")),
                }
            }
            if !watched.terminal_heard
                && let Some(terminal) = &watched.meta.terminal
            {
                // Without notifications from terminals, the sweep asks tmux.
                watched.terminal_heard = self.sentinel.watch_terminal(watched.key, terminal).is_ok();
            }
            let mode = match state {
                _ if is_being_drawn(&session) => DebounceMode::Drawing,
                StateName::Working if rings => DebounceMode::Silence,
                _ => DebounceMode::Output,
            };
            self.output.set_mode(watched.key, mode, Instant::now());
        } else {
            self.sentinel.forget(watched.key);
            self.output.forget(watched.key);
            watched.process_heard = false;
            watched.terminal_heard = false;
        }
        let heard = trouble.is_none() && (!alive || (watched.process_heard && watched.terminal_heard));
        let pause = match state {
            _ if trouble.is_some() && alive => Some(POLL_INTERVAL),
            StateName::Unknown => Some(POLL_INTERVAL),
            // After that, waits are told about a prompt that was only announced.
            _ if is_being_drawn(&session) => Some(prompt::DRAWN),
            // Its pane is being created.
            StateName::Starting if !alive => Some(POLL_INTERVAL),
            StateName::Starting | StateName::Working | StateName::Stalled => {
                Some(self.look_interval(&session))
            }
            _ => None,
        };
        self.table.trouble(name, trouble);
        self.set_tick(name, pause.map(|pause| at + pause));
        self.table.put(CachedVerdict {
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

    /// How long to leave a session without events alone: the longer nothing has happened, the longer.
    fn look_interval(&self, session: &Session) -> Duration {
        self.scan.max(Duration::from_millis(session.idle_ms / 8)).min(self.scan.max(LOOK_INTERVAL_MAX))
    }

    /// Whether the agent reports everything that matters by itself.
    fn reports_all(&self, agent: &str) -> bool {
        let profile = self.context.profiles.get_or_generic(agent);
        profile.is_some_and(|profile| profile.feeds.iter().any(|feed| feed.complete))
    }
}
