//! The second pair of eyes: follows what Lisa says of a session, whoever drives it, and compares it with the truth.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lisa_engine::api::{ReadRequest, SessionRequest, View};
use lisa_engine::engine::Engine;
use lisa_engine::error::Kind;

use super::{Lab, PATIENCE};
use crate::model_server::{self, Asker, Exchange};
use crate::record::Recorder;
use crate::truth::{self, Deed, Delay, Doing, Lie, Sample, Span};

/// How often Lisa is asked.
const LOOK: Duration = Duration::from_millis(100);

/// Eyes on one session.
pub struct Eyes<'a> {
    lab: &'a Lab,
    name: String,
    started: u64,
    marker: Mutex<Option<String>>,
    deeds: Mutex<Vec<(u64, Deed)>>,
    scenes: Mutex<Vec<Scene>>,
    samples: Arc<Mutex<Vec<Sample>>>,
    stop: Arc<AtomicBool>,
    follower: Mutex<Option<JoinHandle<()>>>,
    recorder: Mutex<Option<Recorder>>,
}

/// From when on a session plays which part of a scenario, and how recordings call what may happen in it.
#[derive(Clone, Debug)]
struct Scene {
    from: u64,
    id: String,
    asks: &'static str,
    ends: &'static str,
}

/// What came of the comparison.
#[derive(Debug, Default)]
pub struct Judgement {
    /// The truth, each stretch with the scene that it began in; times since the start of the session.
    pub truth: Vec<(String, Span)>,
    /// Words that were wrong for too long.
    pub lies: Vec<(String, Lie)>,
    /// How long each change took to be seen.
    pub delays: Vec<(String, Delay)>,
}

impl<'a> Eyes<'a> {
    /// Begins to follow a session, best before it is started: a session that is not there yet says nothing.
    pub fn open(lab: &'a Lab, name: &str) -> Self {
        let (samples, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let follower = std::thread::spawn({
            let (engine, name) = (lab.engine().clone(), name.to_owned());
            let (samples, stop) = (Arc::clone(&samples), Arc::clone(&stop));
            move || follow(&engine, &name, &samples, &stop)
        });
        Self {
            lab,
            name: name.to_owned(),
            started: now_ms(),
            marker: Mutex::default(),
            deeds: Mutex::default(),
            scenes: Mutex::default(),
            samples,
            stop,
            follower: Mutex::new(Some(follower)),
            recorder: Mutex::default(),
        }
    }

    /// Records the session from now on, where the environment asks for recordings.
    pub fn record(&self) {
        let Lab { kind, version, .. } = self.lab;
        *lock(&self.recorder) = Recorder::start_if_asked(self.lab.engine(), &self.name, *kind, version);
    }

    /// Only conversations in which the user said this are the session's own: where a lab has several.
    pub fn only(&self, marker: &str) {
        *lock(&self.marker) = Some(marker.to_owned());
    }

    /// What follows belongs to this scene; `asks` and `ends` are what recordings call it when the agent waits for an
    /// answer, or ends, in it.
    pub fn scene(&self, id: &str, asks: &'static str, ends: &'static str) {
        lock(&self.scenes).push(Scene { from: now_ms(), id: id.to_owned(), asks, ends });
    }

    /// Notes what the test did, now.
    pub fn did(&self, deed: Deed) {
        self.did_at(now_ms(), deed);
    }

    /// Notes what happened at a time, in milliseconds since 1970.
    pub fn did_at(&self, at: u64, deed: Deed) {
        lock(&self.deeds).push((at, deed));
    }

    /// Whether the model was asked at least this often on the session's behalf, within the time that tests have.
    pub fn asked(&self, times: usize) -> bool {
        let enough = |exchanges: Vec<Exchange>| self.own(exchanges).len() >= times;
        self.lab.server.wait(PATIENCE, |events| enough(model_server::exchanges(events)))
    }

    /// The session's own exchanges with the model.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.own(self.lab.server.exchanges())
    }

    fn own(&self, mut exchanges: Vec<Exchange>) -> Vec<Exchange> {
        exchanges.retain(|item| item.request.asker != Asker::Auxiliary && item.asked_ms >= self.started);
        if let Some(marker) = lock(&self.marker).as_ref() {
            exchanges.retain(|item| item.request.said.iter().any(|said| said.contains(marker)));
        }
        exchanges
    }

    /// Everything that helps to see why Lisa says what it says.
    pub fn explained(&self) -> String {
        let request = SessionRequest { session: self.name.clone() };
        let explained = match self.lab.engine().explain(&request) {
            Ok(explained) => serde_json::to_string_pretty(&explained).unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        let heard: Vec<_> = lock(&self.samples)
            .iter()
            .map(|sample| (sample.at.saturating_sub(self.started), sample.why.clone()))
            .collect();
        let mut said: Vec<(u64, String)> = Vec::new();
        for (at, why) in heard {
            if said.last().is_none_or(|last| last.1 != why) {
                said.push((at, why));
            }
        }
        let asked: Vec<_> = self
            .exchanges()
            .iter()
            .map(|item| {
                let steps: Vec<_> = item
                    .steps
                    .iter()
                    .map(|(at, step)| (at.saturating_sub(self.started), step.clone()))
                    .collect();
                let end = item.end.map(|(at, end)| (at.saturating_sub(self.started), end));
                let short = |text: &str| text.chars().take(80).collect::<String>();
                let results: Vec<_> = item.request.results.iter().map(|result| short(result)).collect();
                format!(
                    "  {} {:?} {results:?} {:?} {steps:.0?} {end:?}",
                    item.asked_ms.saturating_sub(self.started),
                    short(&item.request.prompt),
                    item.headers.map(|(_, status)| status)
                )
            })
            .collect();
        let deeds: Vec<_> =
            lock(&self.deeds).iter().map(|(at, deed)| (at.saturating_sub(self.started), *deed)).collect();
        format!(
            "said: {said:#?}\nasked:\n{}\ndid: {deeds:?}\nexplained: {explained}\nscreen:\n{}",
            asked.join("\n"),
            self.screen()
        )
    }

    /// What the session shows.
    pub fn screen(&self) -> String {
        let request = ReadRequest {
            session: self.name.clone(),
            view: View::Screen,
            max_lines: Some(400),
            ..ReadRequest::default()
        };
        self.lab.engine().read(&request).map_or_else(|error| error.to_string(), |read| read.text)
    }

    /// Ends the following, as before the session is removed.
    pub fn close(&self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(follower) = lock(&self.follower).take() {
            follower.join().unwrap();
        }
    }

    /// Compares all that Lisa said with the truth.
    pub fn judge(&self) -> Judgement {
        self.close();
        let end = lock(&self.samples).last().map_or_else(now_ms, |last| last.done);
        let spans = truth::spans(&self.exchanges(), &lock(&self.deeds), end);
        let samples = lock(&self.samples).clone();
        let scenes = lock(&self.scenes).clone();
        let playing = |at: u64| scenes.iter().rev().find(|scene| scene.from <= at).or(scenes.first());
        let scene = |at: u64| playing(at).map_or_else(String::new, |scene| scene.id.clone());
        if let Some(recorder) = lock(&self.recorder).as_ref() {
            let truth =
                truth::recorded(&spans, self.started, |span| match (playing(span.from), span.doing) {
                    (Some(scene), Doing::Blocked) => scene.asks,
                    (Some(scene), Doing::Gone) => scene.ends,
                    (_, doing) => doing.label(),
                });
            recorder.finish(&truth);
        }
        let mut judged = Judgement::default();
        for span in &spans {
            let (lies, delays) = truth::compare(std::slice::from_ref(span), &samples);
            judged.lies.extend(lies.into_iter().map(|lie| (scene(span.from), lie)));
            judged.delays.extend(delays.into_iter().map(|delay| (scene(span.from), delay)));
            let since = |at: u64| at.saturating_sub(self.started);
            let shown = Span { from: since(span.from), to: since(span.to), doing: span.doing };
            judged.truth.push((scene(span.from), shown));
        }
        judged
    }
}

impl Drop for Eyes<'_> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
