//! The next step, for answers whose engine type does not carry one.

use lisa_engine::{
    api::{Actions, DoctorResponse, Explanation, ListResponse},
    engine::next_step,
    words::Attention,
};
use schemars::JsonSchema;
use serde::Serialize;

/// An answer of the engine and what to do next.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WithNext<T> {
    /// The answer itself.
    #[serde(flatten)]
    pub answer: T,
    /// What to do next.
    pub next: String,
}

impl<T> WithNext<T> {
    /// Puts the next step beside an answer.
    pub fn new(answer: T, next: impl FnOnce(&T) -> String) -> Self {
        let next = next(&answer);
        Self { answer, next }
    }
}

/// After a list of sessions.
pub fn after_list(list: &ListResponse) -> String {
    let needing: Vec<&str> = list
        .sessions
        .iter()
        .filter(|row| row.attention == Attention::NeedsYou)
        .map(|row| row.name.as_str())
        .take(5)
        .collect();
    match (&list.cursor, list.sessions.is_empty()) {
        (_, true) if list.total == 0 => "spawn_session starts one".to_owned(),
        (Some(cursor), _) => format!("list_sessions cursor={cursor} for the rest of the {}", list.total),
        _ if !needing.is_empty() => format!("session_status of those that need you: {}", needing.join(", ")),
        _ => "wait_sessions until one of them needs you".to_owned(),
    }
}

/// After sessions were ended.
pub fn after_kill(actions: &Actions) -> String {
    match actions
        .sessions
        .iter()
        .find_map(|action| action.detail.as_deref().filter(|_| action.done == "already_gone"))
    {
        Some(slip) => format!("nothing was ended; {slip} list_sessions names every session"),
        None => "nothing more to do for it; list_sessions shows what is left".to_owned(),
    }
}

/// After an explanation; `cursor` is where the journal stands.
pub fn after_explain(explanation: &Explanation, cursor: u64) -> String {
    let next = next_step(&explanation.session, cursor);
    if explanation.failed.is_empty() { next } else { format!("doctor checks the installation; {next}") }
}

/// After a check of the installation.
pub fn after_doctor(doctor: &DoctorResponse) -> String {
    match doctor.checks.iter().find(|check| check.required && !check.ok) {
        Some(check) => {
            format!("mend `{}` first: {}", check.name, check.fix.as_deref().unwrap_or(&check.detail))
        }
        None if doctor.ok => "spawn_session starts an agent".to_owned(),
        None => "look at the checks that are not ok".to_owned(),
    }
}
