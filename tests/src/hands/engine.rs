//! The engine, called from Rust.

use lisa_engine::api::{
    AnswerRequest, KillRequest, ReadRequest, ResumeRequest, SendRequest, SessionRequest, SpawnRequest, View,
    WaitRequest,
};
use lisa_engine::error::{Error, Result};
use lisa_engine::{engine::Engine, watch::Cancel};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Answered, Done, Hands, Seen, Sent, Spawned, Told, Until};
use crate::lab::Lab;

/// A resident engine of its own: not the one that the second pair of eyes looks with.
pub struct InProcess(Engine);

impl InProcess {
    /// An engine in a lab.
    pub fn new(lab: &Lab) -> Self {
        Self(Engine::open_resident(lab.caller()).unwrap_or_else(|error| panic!("{error}")))
    }
}

fn told<T: DeserializeOwned>(answer: Result<impl Serialize>) -> Told<T> {
    let value = serde_json::to_value(answer.map_err(said)?).map_err(|error| error.to_string())?;
    serde_json::from_value(value.clone()).map_err(|error| format!("{error}: {value}"))
}

fn said(error: Error) -> String {
    format!("{:?}: {error}", error.kind())
}

impl Hands for InProcess {
    fn spawn(&self, request: &SpawnRequest) -> Told<Spawned> {
        told(self.0.spawn(request))
    }

    fn send(&self, request: &SendRequest) -> Told<Sent> {
        told(self.0.send(request))
    }

    fn answer(&self, request: &AnswerRequest) -> Told<Answered> {
        told(self.0.answer(request))
    }

    fn status(&self, session: &str) -> Told<Seen> {
        told(self.0.status(&SessionRequest { session: session.to_owned() }))
    }

    fn wait(&self, session: &str, until: &Until<'_>, seconds: f64) -> Told<()> {
        let mut request = WaitRequest {
            sessions: vec![session.to_owned()],
            timeout_s: Some(seconds),
            ..WaitRequest::default()
        };
        match until {
            Until::Word(word) => request.until = Some((*word).to_owned()),
            Until::Turn(turn) => request.turn = Some((*turn).to_owned()),
        }
        let answer = self.0.wait(&request, &Cancel::default(), &mut |_| {}).map_err(said)?;
        if answer.timed_out { Err("the time was over".to_owned()) } else { Ok(()) }
    }

    fn read(&self, session: &str, view: View) -> Told<String> {
        let request =
            ReadRequest { session: session.to_owned(), view, max_lines: Some(400), ..ReadRequest::default() };
        self.0.read(&request).map(|read| read.text).map_err(said)
    }

    fn interrupt(&self, session: &str) -> Told<Done> {
        told(self.0.interrupt(&SessionRequest { session: session.to_owned() }))
    }

    fn resume(&self, session: &str, prompt: Option<&str>) -> Told<Done> {
        let prompt = prompt.map(str::to_owned);
        told(self.0.resume(&ResumeRequest { session: session.to_owned(), prompt, wait_ready_s: None }))
    }

    fn kill(&self, session: &str) -> Told<Done> {
        let ended = self.0.kill(&KillRequest { session: session.to_owned(), force: false }).map_err(said)?;
        told(Ok(ended.sessions.first()))
    }
}
