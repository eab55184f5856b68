//! A session under test: driven through the engine, and followed by a second pair of eyes.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lisa_engine::api::{
    AnswerRequest, AnswerResponse, Delivery, KillRequest, ReadRequest, SendRequest, SendResponse, Session,
    SessionRequest, SpawnRequest, SpawnResponse, View, WaitRequest,
};
use lisa_engine::engine::{Cancel, Engine};
use lisa_engine::error::Kind;

use super::Lab;
use crate::model_server::Exchange;
use crate::record::Recorder;
use crate::report;
use crate::truth::{self, Deed, Doing, Sample};

/// How often Lisa is asked.
const LOOK: Duration = Duration::from_millis(100);
/// How long anything may take that a test waits for, on a machine that is busy.
const PATIENCE_S: f64 = 40.0;

/// A session under test.
pub struct Child<'a> {
    lab: &'a Lab,
    /// The session's name.
    pub name: String,
    /// What the spawn answered.
    pub spawned: SpawnResponse,
    started: u64,
    marker: Mutex<Option<String>>,
    deeds: Mutex<Vec<(u64, Deed)>>,
    samples: Arc<Mutex<Vec<Sample>>>,
    stop: Arc<AtomicBool>,
    follower: Mutex<Option<JoinHandle<()>>>,
    recorder: Option<Recorder>,
}

impl<'a> Child<'a> {
    pub(super) fn spawn(lab: &'a Lab, request: &SpawnRequest) -> Self {
        let name = request.name.clone().unwrap();
        let started = now_ms();
        let (samples, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let follower = std::thread::spawn({
            let (engine, name) = (lab.engine().clone(), name.clone());
            let (samples, stop) = (Arc::clone(&samples), Arc::clone(&stop));
            move || follow(&engine, &name, &samples, &stop)
        });
        let spawned =
            lab.engine().spawn(request).unwrap_or_else(|error| panic!("{name} did not start: {error}"));
        let recorder = Recorder::start_if_asked(lab.engine(), &name, lab.kind);
        Self {
            lab,
            name,
            spawned,
            started,
            marker: Mutex::default(),
            deeds: Mutex::default(),
            samples,
            stop,
            follower: Mutex::new(Some(follower)),
            recorder,
        }
    }

    /// Only conversations in which the user said this are the child's own: where a lab has several.
    pub fn only(&self, marker: &str) {
        *lock(&self.marker) = Some(marker.to_owned());
    }

    /// What Lisa says now.
    pub fn status(&self) -> Session {
        let request = SessionRequest { session: self.name.clone() };
        self.lab.engine().status(&request).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Waits for a state, a status or `attention`.
    pub fn until(&self, what: &str) -> Session {
        let request = WaitRequest {
            sessions: vec![self.name.clone()],
            until: Some(what.to_owned()),
            timeout_s: Some(PATIENCE_S),
            ..WaitRequest::default()
        };
        self.wait(&request, what)
    }

    /// Waits for the end of a turn.
    pub fn turn(&self, turn: &str) -> Session {
        let request = WaitRequest {
            sessions: vec![self.name.clone()],
            turn: Some(turn.to_owned()),
            timeout_s: Some(PATIENCE_S),
            ..WaitRequest::default()
        };
        self.wait(&request, turn);
        self.status()
    }

    fn wait(&self, request: &WaitRequest, what: &str) -> Session {
        let answer = self.lab.engine().wait(request, &Cancel::default(), &mut |_| {});
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert!(!answer.timed_out, "{} never became {what}:\n{}", self.name, self.explained());
        answer.sessions.into_iter().find(|session| session.name == self.name).unwrap_or_else(|| self.status())
    }

    /// Waits until the model was asked at least this often on the child's behalf.
    pub fn asked(&self, times: usize) {
        let enough = |exchanges: Vec<Exchange>| self.own(exchanges).len() >= times;
        let limit = Duration::from_secs_f64(PATIENCE_S);
        let seen = self.lab.server.wait(limit, |events| enough(crate::model_server::exchanges(events)));
        assert!(seen, "{} asked the model less than {times} times:\n{}", self.name, self.explained());
    }

    /// Sends a prompt, which must be taken.
    pub fn send(&self, text: &str) -> SendResponse {
        let sent = self.try_send(text);
        assert_eq!(sent.receipt.delivered, Delivery::Submitted, "{:?}\n{}", sent, self.explained());
        sent
    }

    /// Sends a prompt, whatever comes of it.
    pub fn try_send(&self, text: &str) -> SendResponse {
        let request =
            SendRequest { session: self.name.clone(), text: Some(text.to_owned()), ..SendRequest::default() };
        self.lab
            .engine()
            .send(&request)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", self.name, self.explained()))
    }

    /// Presses keys.
    pub fn keys(&self, keys: &[&str]) {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let request = SendRequest { session: self.name.clone(), keys, force: true, ..SendRequest::default() };
        self.lab.engine().send(&request).unwrap();
    }

    /// Answers what is asked; the agent goes on with its turn.
    pub fn answer(&self, choice: &str) -> AnswerResponse {
        self.choose(choice, Deed::Answered)
    }

    /// Answers what is asked in a way that ends the turn.
    pub fn decline(&self, choice: &str) -> AnswerResponse {
        self.choose(choice, Deed::Declined)
    }

    fn choose(&self, choice: &str, deed: Deed) -> AnswerResponse {
        let request = AnswerRequest {
            session: self.name.clone(),
            choice: Some(choice.to_owned()),
            prompt_id: self.status().prompt.map(|prompt| prompt.id),
            ..AnswerRequest::default()
        };
        self.did(deed);
        let answered = self.lab.engine().answer(&request);
        answered.unwrap_or_else(|error| panic!("{}: {error}\n{}", self.name, self.explained()))
    }

    /// Stops the turn.
    pub fn interrupt(&self) -> String {
        self.did(Deed::Interrupted);
        let request = SessionRequest { session: self.name.clone() };
        self.lab.engine().interrupt(&request).unwrap().action.done
    }

    /// Notes what the test did, now.
    pub fn did(&self, deed: Deed) {
        lock(&self.deeds).push((now_ms(), deed));
    }

    /// Ends the session.
    pub fn kill(&self) -> String {
        self.finish();
        let request = KillRequest { session: self.name.clone(), force: false };
        self.lab.engine().kill(&request).unwrap().sessions[0].done.clone()
    }

    /// One of the views of the session.
    pub fn read(&self, view: View) -> String {
        let request =
            ReadRequest { session: self.name.clone(), view, max_lines: Some(400), ..ReadRequest::default() };
        self.lab.engine().read(&request).map_or_else(|error| error.to_string(), |read| read.text)
    }

    /// Everything that helps to see why Lisa says what it says.
    pub fn explained(&self) -> String {
        let request = SessionRequest { session: self.name.clone() };
        let explained = match self.lab.engine().explain(&request) {
            Ok(explained) => serde_json::to_string_pretty(&explained).unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        let heard: Vec<_> =
            lock(&self.samples).iter().map(|sample| (sample.at - self.started, sample.why.clone())).collect();
        let mut said: Vec<(u64, String)> = Vec::new();
        for (at, why) in heard {
            if said.last().is_none_or(|last| last.1 != why) {
                said.push((at, why));
            }
        }
        let asked: Vec<_> = self
            .own(self.lab.server.exchanges())
            .iter()
            .map(|item| {
                let steps: Vec<_> = item
                    .steps
                    .iter()
                    .map(|(at, step)| (at.saturating_sub(self.started), step.clone()))
                    .collect();
                let end = item.end.map(|(at, end)| (at.saturating_sub(self.started), end));
                format!(
                    "  {} {:?} {:?} {steps:.0?} {end:?}",
                    item.asked_ms.saturating_sub(self.started),
                    item.request.prompt.chars().take(40).collect::<String>(),
                    item.headers.map(|(_, status)| status)
                )
            })
            .collect();
        format!(
            "said: {said:#?}\nasked:\n{}\nexplained: {explained}\nscreen:\n{}",
            asked.join("\n"),
            self.read(View::Screen)
        )
    }

    fn own(&self, mut exchanges: Vec<Exchange>) -> Vec<Exchange> {
        exchanges.retain(|item| item.request.asker != crate::model_server::Asker::Auxiliary);
        if let Some(marker) = lock(&self.marker).as_ref() {
            exchanges.retain(|item| item.request.said.iter().any(|said| said.contains(marker)));
        }
        exchanges
    }

    fn finish(&self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(follower) = lock(&self.follower).take() {
            follower.join().unwrap();
        }
    }

    /// Compares all that Lisa said with the truth, writes the delays into the report, and fails on a lie.
    pub fn check(self) {
        self.finish();
        let end = now_ms();
        let spans = truth::spans(&self.own(self.lab.server.exchanges()), &lock(&self.deeds), end);
        let samples = lock(&self.samples).clone();
        let (lies, delays) = truth::compare(&spans, &samples);
        report::note(&self.lab.kind, &self.name, &delays, &lies);
        if let Some(recorder) = &self.recorder {
            recorder.finish(&truth::recorded(&spans, self.started));
        }
        if !lies.is_empty() {
            let spans: Vec<_> = spans
                .iter()
                .map(|span| (span.from - self.started, span.to - self.started, span.doing))
                .collect();
            panic!("{} was not told rightly: {lies:#?}\ntruth: {spans:?}\n{}", self.name, self.explained());
        }
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

fn follow(engine: &Engine, name: &str, samples: &Mutex<Vec<Sample>>, stop: &AtomicBool) {
    let request = SessionRequest { session: name.to_owned() };
    while !stop.load(Ordering::SeqCst) {
        let (at, began) = (now_ms(), Instant::now());
        match engine.status(&request) {
            Ok(session) => {
                let why = format!("{} by {} from {}", session.state, session.reason, session.source);
                let said = Doing::said(&session);
                lock(samples).push(Sample { at, done: now_ms(), said, status: session.status, why });
            }
            Err(error) if error.kind() == Kind::SessionNotFound => {}
            Err(error) => {
                // Seen in the output of a test that fails.
                let _ = writeln!(std::io::stderr(), "{name}: {error}");
            }
        }
        std::thread::sleep(LOOK.saturating_sub(began.elapsed()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
