//! Driving in a few words: what tests of sends, answers and waits do again and again.

use super::{Lab, log};
use lisa_engine::{api::*, engine::Engine, watch::Cancel};
use std::time::Duration;

pub const SHORT: Duration = Duration::from_secs(15);

pub fn by_name(session: &str) -> SessionRequest {
    SessionRequest { session: session.to_owned() }
}

pub fn status(engine: &Engine, session: &str) -> Session {
    engine.status(&by_name(session)).unwrap()
}

pub fn send(engine: &Engine, session: &str, text: &str) -> SendResponse {
    let request =
        SendRequest { session: session.to_owned(), text: Some(text.to_owned()), ..SendRequest::default() };
    engine.send(&request).unwrap()
}

pub fn wait(engine: &Engine, request: &WaitRequest) -> WaitResponse {
    engine.wait(request, &Cancel::default(), &mut |_| {}).unwrap()
}

pub fn wait_for(engine: &Engine, session: &str, until: &str) -> Session {
    let request = WaitRequest {
        sessions: vec![session.to_owned()],
        until: Some(until.to_owned()),
        timeout_s: Some(20.0),
        ..WaitRequest::default()
    };
    let answer = wait(engine, &request);
    assert!(!answer.timed_out, "{session} never became {until}: {:?}", status(engine, session));
    answer.sessions.into_iter().find(|found| found.name == session).unwrap()
}

pub fn answer(engine: &Engine, session: &str, choice: &str) -> AnswerResponse {
    let request = AnswerRequest {
        session: session.to_owned(),
        choice: Some(choice.to_owned()),
        ..AnswerRequest::default()
    };
    engine.answer(&request).unwrap()
}

pub fn prompts(lab: &Lab, name: &str) -> Vec<String> {
    log(lab, name).iter().filter_map(|line| line["text"].as_str().map(str::to_owned)).collect()
}

pub fn answers(lab: &Lab, name: &str) -> Vec<serde_json::Value> {
    log(lab, name).into_iter().filter(|line| line.get("dialog").is_some()).collect()
}
