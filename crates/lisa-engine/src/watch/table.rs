//! What the observer knows: the last verdict on every session, for other processes.

use super::{
    journal::EventId,
    stamps::Stamps,
    wake::{Bell, WakeReason},
};
use crate::{api::Session, process::Sentinel};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a question waits for looks that are due.
const LOOK_TIMEOUT: Duration = Duration::from_millis(250);
/// How long a session must have been without events for its verdict to be reusable: longer than any channel lags
/// behind another.
const QUIET_TIME: Duration = Duration::from_secs(5);
/// How long a verdict is valid that may change by time alone.
const TRANSIENT_VALIDITY: Duration = Duration::from_secs(1);

/// Which sessions somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wanted {
    /// All of them, as they are now.
    All,
    /// These, as they are now; missing ones are left out.
    Now(Vec<String>),
    /// These, as last judged. A caller that read an event wants its verdict, and shouldn't wait for the next one.
    Judged(Vec<Want>),
}

/// A session that somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Want {
    pub(crate) name: String,
    /// The last event of it that the caller has read; an older verdict is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<EventId>,
}

impl Wanted {
    /// The names asked for; `None` for all.
    pub(crate) fn names(&self) -> Option<Vec<&str>> {
        match self {
            Self::All => None,
            Self::Now(names) => Some(names.iter().map(String::as_str).collect()),
            Self::Judged(wants) => Some(wants.iter().map(|want| want.name.as_str()).collect()),
        }
    }
}

/// The last verdict on a session.
#[derive(Debug)]
pub(super) struct CachedVerdict {
    pub(super) session: Session,
    pub(super) at: Instant,
    /// The number of its run's last event at that time.
    pub(super) seq: u64,
    /// Stamps of the files it is based on, taken before they were read.
    pub(super) stamps: Option<Stamps>,
    /// Whether events report everything that can change it.
    pub(super) heard: bool,
    /// Whether time alone may change it.
    pub(super) passing: bool,
}

impl CachedVerdict {
    /// Whether it is still valid at `now`; `told` is the session's last event.
    fn holds(&self, told: Option<Instant>, now: Instant) -> bool {
        self.heard
            && told.is_none_or(|told| told + QUIET_TIME <= self.at)
            && (!self.passing || now.saturating_duration_since(self.at) < TRANSIENT_VALIDITY)
    }

    /// Whether the event is newer than this verdict.
    fn is_older_than(&self, event: &EventId) -> bool {
        event.run == self.session.run_id && event.number > self.seq
    }
}

/// The last verdicts on all sessions, while this process is the observer.
#[derive(Debug)]
pub(crate) struct Table {
    bell: Arc<Bell>,
    sessions: Mutex<Sessions>,
    /// Notified when a session was judged.
    put: Condvar,
}

#[derive(Debug, Default)]
struct Sessions {
    /// Whether this process is the observer.
    leading: bool,
    /// Whether it has looked at every session.
    complete: bool,
    judged: BTreeMap<String, CachedVerdict>,
    /// The time of each session's last event.
    told: HashMap<String, Instant>,
    /// The source of process and terminal events.
    sentinel: Option<Arc<Sentinel>>,
    /// Sessions that can't be watched, and why.
    troubles: BTreeMap<String, String>,
}

impl Sessions {
    /// Whether the caller has read an event that is newer than the last verdict.
    fn is_outdated(&self, want: &Want) -> bool {
        let judged = self.judged.get(&want.name);
        judged.zip(want.event.as_ref()).is_some_and(|(judged, event)| judged.is_older_than(event))
    }
}

impl Table {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self { bell, sessions: Mutex::default(), put: Condvar::new() }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a verdict.
    pub(super) fn put(&self, judged: CachedVerdict) {
        self.sessions().judged.insert(judged.session.name.clone(), judged);
        self.put.notify_all();
    }

    /// Notes an event of a session.
    pub(super) fn told(&self, name: &str, at: Instant) {
        self.sessions().told.insert(name.to_owned(), at);
    }

    /// Triggers a look at a session that somebody changed.
    pub(super) fn wake(&self, name: &str) {
        self.told(name, Instant::now());
        self.bell.wake(name, WakeReason::Request);
    }

    /// Removes a session.
    pub(super) fn remove(&self, name: &str) {
        let mut sessions = self.sessions();
        sessions.judged.remove(name);
        sessions.told.remove(name);
        sessions.troubles.remove(name);
        drop(sessions);
        self.put.notify_all();
    }

    /// This process became the observer.
    pub(super) fn begin(&self) {
        *self.sessions() = Sessions { leading: true, ..Sessions::default() };
    }

    /// Sets the source of process and terminal events.
    pub(super) fn set_sentinel(&self, sentinel: Arc<Sentinel>) {
        self.sessions().sentinel = Some(sentinel);
    }

    /// Whether this process is the observer.
    pub(super) fn leads(&self) -> bool {
        self.sessions().leading
    }

    /// Events may have been lost: all sessions are looked at again.
    pub(super) fn incomplete(&self) {
        self.sessions().complete = false;
    }

    /// Every session has been looked at.
    pub(super) fn complete(&self) {
        self.sessions().complete = true;
    }

    /// This process is no longer the observer.
    pub(super) fn clear(&self) {
        *self.sessions() = Sessions::default();
    }

    /// Sets why a session can't be watched properly; `None` if it can.
    pub(super) fn trouble(&self, name: &str, why: Option<String>) {
        let mut sessions = self.sessions();
        match why {
            Some(why) => {
                if sessions.troubles.insert(name.to_owned(), why.clone()).is_none() {
                    tracing::warn!(session = name, why, "could not watch a session; polling it every second");
                }
            }
            None => {
                sessions.troubles.remove(name);
            }
        }
    }

    /// Sessions that can't be watched, and why.
    pub(super) fn troubles(&self) -> Vec<(String, String)> {
        self.sessions().troubles.iter().map(|(name, why)| (name.clone(), why.clone())).collect()
    }

    /// The sessions that somebody asks for; `All` is sorted by start time. `None` if this process doesn't know: it
    /// isn't the observer, or couldn't look in time.
    pub(crate) fn answer(&self, wanted: &Wanted) -> Option<Vec<Session>> {
        let sessions = match wanted {
            Wanted::Judged(wants) => self.renewed(wants)?,
            Wanted::All | Wanted::Now(_) => self.settled(wanted)?,
        };
        let now = Instant::now();
        let aged =
            |judged: &CachedVerdict| aged(judged.session.clone(), now.saturating_duration_since(judged.at));
        Some(match wanted.names() {
            Some(names) => names.iter().filter_map(|name| sessions.judged.get(*name)).map(aged).collect(),
            None => {
                let mut found: Vec<Session> = sessions.judged.values().map(aged).collect();
                found.sort_by(|a, b| (a.started_at, &a.name).cmp(&(b.started_at, &b.name)));
                found
            }
        })
    }

    /// Waits for the looks that are due.
    fn settled(&self, wanted: &Wanted) -> Option<MutexGuard<'_, Sessions>> {
        let names = wanted.names();
        let concerns = |name: &str| names.as_ref().is_none_or(|names| names.contains(&name));
        if !self.sessions().complete || !self.bell.settle(concerns, LOOK_TIMEOUT) {
            return None;
        }
        let sessions = self.sessions();
        sessions.complete.then_some(sessions)
    }

    /// Waits for verdicts that are newer than the events: another process may have written those.
    fn renewed(&self, wants: &[Want]) -> Option<MutexGuard<'_, Sessions>> {
        let deadline = Instant::now() + LOOK_TIMEOUT;
        let mut sessions = self.sessions();
        loop {
            if !sessions.complete {
                return None;
            }
            let outdated: Vec<&Want> = wants.iter().filter(|want| sessions.is_outdated(want)).collect();
            let left = deadline.saturating_duration_since(Instant::now());
            match outdated.is_empty() {
                true => return Some(sessions),
                false if left.is_zero() => return None,
                false => {}
            }
            // A look in progress may answer it; a look that is merely due must not wait.
            for want in outdated.into_iter().filter(|want| !self.bell.is_looking(&want.name)) {
                sessions.told.insert(want.name.clone(), Instant::now());
                self.bell.wake(&want.name, WakeReason::Request);
            }
            sessions = self.put.wait_timeout(sessions, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A session as it is now, if its last verdict is still valid: no event since, and none pending. `None` if only a
    /// look can tell.
    pub(crate) fn current(&self, name: &str) -> Option<Session> {
        let now = Instant::now();
        let sessions = self.sessions();
        let judged = sessions.judged.get(name).filter(|_| sessions.complete)?;
        let told = sessions.told.get(name).copied();
        if !judged.holds(told, now) {
            // A look now would stay valid, so the next caller gets an answer.
            if judged.heard && told.is_none_or(|told| told + QUIET_TIME <= now) {
                self.bell.wake(name, WakeReason::Request);
            }
            return None;
        }
        let quiet = self.bell.is_quiet(name)
            && sessions.sentinel.as_ref().is_some_and(|sentinel| !sentinel.is_pending())
            && judged.stamps.as_ref().is_some_and(Stamps::hold);
        quiet.then(|| aged(judged.session.clone(), now.saturating_duration_since(judged.at)))
    }
}

/// A session some time after it was judged, without events since: only its ages have grown.
fn aged(mut session: Session, by: Duration) -> Session {
    let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    session.idle_ms = session.idle_ms.saturating_add(by);
    for (name, value) in session.signals.iter_mut().flatten() {
        if let (true, Some(age)) = (name.ends_with("_age_ms"), value.as_u64()) {
            *value = Value::from(age.saturating_add(by));
        }
    }
    session
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(name: &str) -> Session {
        serde_json::from_value(json!({
            "name": name, "agent": "demo", "status": "waiting_input", "state": "ready", "attention": "delivered",
            "reason": "turn_over", "confidence": "certain", "source": "hook", "since": "2026-01-01T00:00:00Z",
            "idle_ms": 5, "started_at": "2026-01-01T00:00:00Z", "mode": "interactive", "cwd": "/", "project": "p",
            "project_hash": "0", "depth": 0, "host": "h", "run_id": "r", "signals": {"output_age_ms": 7, "x": 1},
        }))
        .unwrap()
    }

    fn judged(name: &str, at: Instant) -> CachedVerdict {
        let stamps = Some(Stamps::of(std::iter::empty()));
        CachedVerdict { session: session(name), at, seq: 3, stamps, heard: true, passing: false }
    }

    fn names(found: Option<Vec<Session>>) -> Option<Vec<String>> {
        found.map(|sessions| sessions.into_iter().map(|session| session.name).collect())
    }

    #[test]
    fn nothing_is_said_before_every_session_was_looked_at_nor_of_one_whose_look_is_due() {
        let bell = Arc::new(Bell::default());
        let table = Table::new(Arc::clone(&bell));
        table.put(judged("b", Instant::now()));
        table.put(judged("a", Instant::now()));
        assert_eq!(table.answer(&Wanted::All), None);
        table.complete();
        assert_eq!(names(table.answer(&Wanted::All)).unwrap(), ["a", "b"]);
        bell.wake("a", WakeReason::Hook);
        assert_eq!(table.answer(&Wanted::All), None);
        assert_eq!(names(table.answer(&Wanted::Now(vec!["b".into(), "c".into()]))).unwrap(), ["b"]);
        table.clear();
        assert_eq!(table.answer(&Wanted::Now(vec!["b".into()])), None);
    }

    #[test]
    fn one_of_which_something_newer_was_read_is_looked_at_before_it_is_answered() {
        let bell = Arc::new(Bell::default());
        let table = Table::new(Arc::clone(&bell));
        table.put(judged("a", Instant::now()));
        table.complete();
        let ask = |event: &str| {
            table
                .answer(&Wanted::Judged(vec![Want { name: "a".into(), event: Some(event.parse().unwrap()) }]))
        };
        for known in ["r:3", "r:2", "another:9"] {
            assert_eq!(names(ask(known)).unwrap(), ["a"], "{known}");
        }
        assert_eq!(ask("r:4"), None, "nobody looks here");
        let woken = bell.sleep(Instant::now());
        assert_eq!(woken.sessions["a"], WakeReason::Request);
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| ask("r:4"));
            table.put(judged("a", Instant::now()));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!answer.is_finished(), "that look was too early");
            table.put(CachedVerdict { seq: 4, ..judged("a", Instant::now()) });
            assert_eq!(names(answer.join().unwrap()).unwrap(), ["a"]);
        });
    }

    #[test]
    fn somebody_who_was_told_of_a_change_hears_of_it_although_the_next_look_is_due() {
        let bell = Arc::new(Bell::default());
        let table = Table::new(Arc::clone(&bell));
        table.put(judged("a", Instant::now()));
        table.complete();
        bell.wake("a", WakeReason::Hook);
        let told = Want { name: "a".into(), event: Some("r:3".parse().unwrap()) };
        assert_eq!(names(table.answer(&Wanted::Judged(vec![told]))).unwrap(), ["a"]);
        assert_eq!(table.answer(&Wanted::Now(vec!["a".into()])), None, "how it is now, nobody knows yet");
    }

    #[test]
    fn the_last_look_holds_until_something_tells_of_the_session() {
        let bell = Arc::new(Bell::default());
        let table = Table::new(Arc::clone(&bell));
        let now = Instant::now();
        let ago = |time: Duration| now.checked_sub(time).unwrap();
        let says = || table.current("a").is_some();
        table.begin();
        table.set_sentinel(Arc::new(Sentinel::start(|_| {}).unwrap()));
        table.put(judged("a", now));
        assert!(!says(), "not every session was looked at");
        table.complete();
        assert!(says());
        table.told("a", ago(Duration::from_secs(1)));
        assert!(!says(), "one channel may lag behind the other");
        assert!(bell.sleep(Instant::now()).sessions.is_empty(), "and a look would still be too early");
        table.told("a", ago(QUIET_TIME));
        assert!(says());
        table.put(CachedVerdict { at: ago(Duration::from_secs(1)), ..judged("a", now) });
        assert!(!says());
        let woken = bell.sleep(Instant::now());
        assert!(woken.sessions.contains_key("a"), "it is looked at for the next one");
        bell.looked(woken.sessions.keys());
        table.put(judged("a", now));
        assert!(says());
        bell.wake("a", WakeReason::Hook);
        assert!(!says(), "a hook has rung");
        let woken = bell.sleep(Instant::now());
        assert!(!says(), "it is being looked at");
        bell.looked(woken.sessions.keys());
        table.put(CachedVerdict { passing: true, ..judged("a", now) });
        assert!(says());
        table.put(CachedVerdict { passing: true, ..judged("a", ago(TRANSIENT_VALIDITY)) });
        assert!(!says(), "time may have changed it");
        bell.looked(bell.sleep(Instant::now()).sessions.keys());
        table.put(CachedVerdict { heard: false, ..judged("a", now) });
        assert!(!says(), "nobody hears of it");
    }

    #[test]
    fn a_file_that_was_written_and_has_not_rung_yet_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let hooks = dir.path().join("hooks.jsonl");
        let table = Table::new(Arc::new(Bell::default()));
        table.begin();
        table.set_sentinel(Arc::new(Sentinel::start(|_| {}).unwrap()));
        table.complete();
        let stamps = Some(Stamps::of([hooks.clone()].into_iter()));
        table.put(CachedVerdict { stamps, ..judged("a", Instant::now()) });
        assert!(table.current("a").is_some());
        std::fs::write(&hooks, "x").unwrap();
        assert!(table.current("a").is_none());
    }

    #[test]
    fn ages_go_on() {
        let later = aged(session("a"), Duration::from_millis(100));
        assert_eq!(later.idle_ms, 105);
        assert_eq!(later.signals.unwrap(), *json!({"output_age_ms": 107, "x": 1}).as_object().unwrap());
    }
}
