//! The `next` field of results: what to do next, with tool names.

use lisa_engine::{
    api::{Actions, DoctorResponse, Explanation, ListResponse, Next, next_step, words::Attention},
    drive::gate::hint,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// An engine response with a `next` field.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WithNext<T> {
    /// The engine's response.
    #[serde(flatten)]
    pub answer: T,
    /// What to do next.
    pub next: String,
}

impl<T> WithNext<T> {
    /// Adds the next step to a response.
    pub fn new(answer: T, next: impl FnOnce(&T) -> String) -> Self {
        let next = next(&answer);
        Self { answer, next }
    }
}

/// The engine's next step as text, with tool names.
pub fn text(next: &Next) -> String {
    match next {
        Next::Spawn => "there are no sessions: spawn_session starts one".to_owned(),
        Next::Wait { session, since } => {
            format!("wait_sessions with sessions=[\"{session}\"], since={since}")
        }
        Next::WaitAgain { since, more: true } => format!("there is more: wait again with since={since}"),
        Next::WaitAgain { since, more: false } => format!("nothing yet: wait again with since={since}"),
        Next::Answer { session } => {
            format!("answer_prompt for {session}: choose one of prompt.options and pass prompt_id")
        }
        Next::ReadDialog { session } => format!(
            "read the dialog with session_status {session}; answer_prompt only if you want one of its options"
        ),
        Next::Collect { session } => {
            format!(
                "read_session {session} for its answer, then send_input to continue or kill_session when done"
            )
        }
        Next::Redirect { session } => {
            format!("send_input to {session} with what to do instead, or kill_session")
        }
        Next::Send { session } => format!("send_input to {session} to continue"),
        Next::Retry { session } => {
            format!("read `error` of {session}; if it is recoverable, send_input again later")
        }
        Next::Resume { session } => {
            format!("read_session {session} view=output; resume_session to continue, or kill_session")
        }
        Next::Unblock { session } => {
            format!("explain_session {session}; then interrupt_session or kill_session")
        }
        Next::Diagnose { session } => format!("explain_session {session}, or doctor"),
        Next::Overcome { refusal } => hint(*refusal).to_owned(),
    }
}

/// Replaces the engine's structured `next` in a response with text.
pub fn render_next(answer: &mut Value) {
    let Some(next) = answer.get_mut("next") else { return };
    if let Ok(advice) = serde_json::from_value::<Next>(next.clone()) {
        *next = text(&advice).into();
    }
}

/// The next step after `list_sessions`.
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

/// The next step after `kill_session`.
pub fn after_kill(actions: &Actions) -> String {
    match actions
        .sessions
        .iter()
        .find_map(|action| action.detail.as_deref().filter(|_| action.done == "already_gone"))
    {
        Some(detail) => format!("nothing was ended; {detail} list_sessions lists all sessions"),
        None => "nothing more to do; list_sessions shows what is left".to_owned(),
    }
}

/// The next step after `explain_session`; `cursor` is the journal's current cursor.
pub fn after_explain(explanation: &Explanation, cursor: u64) -> String {
    let next = text(&next_step(&explanation.session, cursor));
    if explanation.failed.is_empty() { next } else { format!("doctor checks the installation; {next}") }
}

/// The next step after `doctor`.
pub fn after_doctor(doctor: &DoctorResponse) -> String {
    match doctor.checks.iter().find(|check| check.required && !check.ok) {
        Some(check) => {
            format!("fix `{}` first: {}", check.name, check.fix.as_deref().unwrap_or(&check.detail))
        }
        None if doctor.ok => "spawn_session starts an agent".to_owned(),
        None => "see the checks that are not ok".to_owned(),
    }
}
