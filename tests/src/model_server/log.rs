//! What happened on the server, and when: the truth that tests compare with.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::request::Request;
use super::scenario::Step;

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// Milliseconds since 1970, by the wall clock, to compare with what agents write.
    pub at_ms: u64,
    /// The number of the request it belongs to, from 1; 0 for a probe.
    pub request: usize,
    /// What it was.
    pub what: What,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum What {
    /// Something other than a model request: method and path.
    Probe(String),
    /// A model request is there, read to its end.
    Asked(Arc<Request>),
    /// Where the reply comes from.
    Chosen(Source),
    /// The status was sent.
    Headers(u16),
    /// A step begins. Text is logged when its first piece leaves, a pause when it starts.
    Step(Step),
    /// The exchange is over.
    Ended(End),
}

/// Where a reply comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The rule with this index, and which of its replies.
    Rule(usize, usize),
    /// A queued turn, and which of its replies.
    Queue(usize),
    /// Outside the script: a title or the like.
    Auxiliary,
    /// Nothing was scripted; a short stock text was sent.
    Unscripted,
}

impl Source {
    /// Whether a rule of the script chose the reply.
    pub fn is_rule(self) -> bool {
        matches!(self, Self::Rule(..))
    }
}

/// How an exchange ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything was sent.
    Complete,
    /// The script broke it off.
    Cut,
    /// The client left early: an interrupt, a steering message, or its death.
    ClientLeft,
}

/// One request with all that became of it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What was asked.
    pub request: Arc<Request>,
    /// When it was asked.
    pub asked_ms: u64,
    /// Where the reply comes from.
    pub source: Option<Source>,
    /// The status and when it was sent.
    pub headers: Option<(u64, u16)>,
    /// The steps begun so far.
    pub steps: Vec<(u64, Step)>,
    /// How and when it ended.
    pub end: Option<(u64, End)>,
}

/// The log; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<(Mutex<Vec<Event>>, Condvar)>);

impl Log {
    pub(crate) fn probe(&self, line: String) {
        self.push(0, What::Probe(line));
    }

    /// Opens a new exchange.
    pub(crate) fn ask(&self, request: Arc<Request>) -> Recorder {
        let number = {
            let mut events = self.events();
            let number = events.iter().map(|event| event.request).max().unwrap_or(0) + 1;
            events.push(Event { at_ms: now_ms(), request: number, what: What::Asked(request) });
            number
        };
        self.0.1.notify_all();
        Recorder { log: self.clone(), number, ended: false }
    }

    pub(crate) fn snapshot(&self) -> Vec<Event> {
        self.events().clone()
    }

    /// Waits until `done` says yes to the events so far, or the time is over.
    pub(crate) fn wait(&self, time: Duration, done: impl Fn(&[Event]) -> bool) -> bool {
        let deadline = Instant::now() + time;
        let mut events = self.events();
        while !done(&events) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            events = self.0.1.wait_timeout(events, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn push(&self, request: usize, what: What) {
        self.events().push(Event { at_ms: now_ms(), request, what });
        self.0.1.notify_all();
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes down one exchange. Dropped before an end was recorded, it records that the client left: the web server
/// drops whoever serves a connection as soon as the other side closes it.
pub(crate) struct Recorder {
    log: Log,
    number: usize,
    ended: bool,
}

impl Recorder {
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn note(&self, what: What) {
        self.log.push(self.number, what);
    }

    pub(crate) fn end(mut self, end: End) {
        self.ended = true;
        self.note(What::Ended(end));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.ended {
            self.note(What::Ended(End::ClientLeft));
        }
    }
}

/// Groups events by request, in the order the requests came.
pub fn exchanges(events: &[Event]) -> Vec<Exchange> {
    let mut found: Vec<(usize, Exchange)> = Vec::new();
    for event in events {
        if let What::Asked(request) = &event.what {
            let (request, asked_ms) = (request.clone(), event.at_ms);
            let fresh =
                Exchange { request, asked_ms, source: None, headers: None, steps: Vec::new(), end: None };
            found.push((event.request, fresh));
            continue;
        }
        let Some((_, exchange)) = found.iter_mut().find(|(number, _)| *number == event.request) else {
            continue;
        };
        match &event.what {
            What::Chosen(source) => exchange.source = Some(*source),
            What::Headers(status) => exchange.headers = Some((event.at_ms, *status)),
            What::Step(step) => exchange.steps.push((event.at_ms, step.clone())),
            What::Ended(end) => exchange.end = Some((event.at_ms, *end)),
            What::Asked(_) | What::Probe(_) => {}
        }
    }
    found.into_iter().map(|(_, exchange)| exchange).collect()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
