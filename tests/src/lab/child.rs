//! A session under test: driven through the engine, and followed by a second pair of eyes.

use lisa_engine::api::{
    AnswerRequest, AnswerResponse, Delivery, KillRequest, ReadRequest, SendRequest, SendResponse, Session,
    SessionRequest, SpawnRequest, SpawnResponse, View, WaitRequest,
};
use lisa_engine::watch::Cancel;

use super::{Eyes, Lab, PATIENCE};
use crate::report;
use crate::truth::{Deed, Delay, Lie};

/// A session under test.
pub struct Child<'a> {
    lab: &'a Lab,
    /// The session's name.
    pub name: String,
    /// What the spawn answered.
    pub spawned: SpawnResponse,
    eyes: Eyes<'a>,
}

impl<'a> Child<'a> {
    pub(super) fn spawn(lab: &'a Lab, request: &SpawnRequest) -> Self {
        let name = request.name.clone().unwrap();
        let eyes = Eyes::open(lab, &name);
        let spawned =
            lab.engine().spawn(request).unwrap_or_else(|error| panic!("{name} did not start: {error}"));
        eyes.record();
        Self { lab, name, spawned, eyes }
    }

    /// Only conversations in which the user said this are the child's own: where a lab has several.
    pub fn only(&self, marker: &str) {
        self.eyes.only(marker);
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
            timeout_s: Some(PATIENCE.as_secs_f64()),
            ..WaitRequest::default()
        };
        self.wait(&request, what)
    }

    /// Waits for the end of a turn.
    pub fn turn(&self, turn: &str) -> Session {
        let request = WaitRequest {
            sessions: vec![self.name.clone()],
            turn: Some(turn.to_owned()),
            timeout_s: Some(PATIENCE.as_secs_f64()),
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
        let seen = self.eyes.asked(times);
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
        self.eyes.did(deed);
    }

    /// Ends the session.
    pub fn kill(&self) -> String {
        self.eyes.close();
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
        self.eyes.explained()
    }

    /// Compares all that Lisa said with the truth, writes the delays into the report, and fails on a lie.
    pub fn check(self) {
        let judged = self.eyes.judge();
        let lies: Vec<Lie> = judged.lies.into_iter().map(|(_, lie)| lie).collect();
        let delays: Vec<Delay> = judged.delays.into_iter().map(|(_, delay)| delay).collect();
        report::note(&self.lab.kind, &self.name, &delays, &lies);
        if !lies.is_empty() {
            let truth: Vec<_> =
                judged.truth.iter().map(|(_, span)| (span.from, span.to, span.doing)).collect();
            panic!("{} was not told rightly: {lies:#?}\ntruth: {truth:?}\n{}", self.name, self.explained());
        }
    }
}
