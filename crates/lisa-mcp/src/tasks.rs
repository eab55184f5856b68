//! Waits as tasks, for clients that have them.
//!
//! A task's id *is* the wait: the request, when it began and when it ends. Nothing is kept in memory, so a task goes
//! on after the server was restarted, and any server of the same user can answer for it.

use crate::{
    failure::Failure,
    server::Lisa,
    tools::wait::{MOST_SECONDS, result},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use lisa_engine::{
    api::{WaitRequest, WaitResponse},
    error::Kind,
};
use rmcp::{
    ErrorData,
    model::{
        CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload,
        TaskStatus,
    },
};
use serde::{Deserialize, Serialize};

/// How often a client should ask.
const POLL_MS: u64 = 1_000;

/// How long a task that has ended can still be asked for.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

const PREFIX: &str = "wait-";

/// What a task's id says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Wait {
    #[serde(rename = "r")]
    request: WaitRequest,
    #[serde(rename = "b", with = "jiff::fmt::serde::timestamp::millisecond::required")]
    began: Timestamp,
    #[serde(rename = "e", with = "jiff::fmt::serde::timestamp::millisecond::required")]
    ends: Timestamp,
}

impl Wait {
    fn id(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(json))
    }

    fn parse(id: &str) -> Option<Self> {
        let json = BASE64_URL_SAFE_NO_PAD.decode(id.strip_prefix(PREFIX)?).ok()?;
        serde_json::from_slice(&json).ok()
    }

    fn task(&self, id: String, status: TaskStatus, now: Timestamp) -> Task {
        let kept = self.ends.duration_since(self.began) + KEPT;
        Task::new(id, status, self.began.to_string(), now.to_string())
            .with_poll_interval_ms(POLL_MS)
            .with_ttl_ms(u64::try_from(kept.as_millis()).unwrap_or_default())
    }
}

/// The task for a wait that is not satisfied yet.
pub(crate) fn create(request: WaitRequest, look: &WaitResponse) -> CreateTaskResult {
    let began = Timestamp::now();
    let seconds = request.timeout_s.unwrap_or(f64::from(MOST_SECONDS));
    let ends = began + SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::from_hours(1));
    // Without a place to begin, what happens between two polls would be missed.
    let request = WaitRequest { since: request.since.or(Some(look.cursor)), ..request };
    let wait = Wait { request, began, ends };
    CreateTaskResult::new(wait.task(wait.id(), TaskStatus::Working, began).with_status_message(doing(look)))
}

/// How a task stands.
pub(crate) async fn get(lisa: &Lisa, id: &str) -> Result<GetTaskResult, ErrorData> {
    let wait = Wait::parse(id).ok_or_else(|| unknown(id))?;
    let now = Timestamp::now();
    let task = wait.task(id.to_owned(), TaskStatus::Working, now);
    if lisa.cancelled_tasks.lock().await.contains(id) {
        return Ok(GetTaskResult::new(DetailedTask::new(task, TaskPayload::Cancelled)));
    }
    let detailed = match lisa.look_once(&wait.request).await {
        Ok(look) if look.timed_out && now < wait.ends => {
            DetailedTask::new(task.with_status_message(doing(&look)), TaskPayload::Working)
        }
        Ok(look) => completed(task, result(look)),
        // What passes: the wait goes on.
        Err(error) if matches!(error.kind(), Kind::TmuxTimeout | Kind::LockTimeout) && now < wait.ends => {
            DetailedTask::new(task.with_status_message(error.to_string()), TaskPayload::Working)
        }
        Err(error) => completed(task, Failure(error).into_result()),
    };
    Ok(GetTaskResult::new(detailed))
}

/// Ends a wait. The sessions go on.
pub(crate) async fn cancel(lisa: &Lisa, id: String) -> Result<(), ErrorData> {
    Wait::parse(&id).ok_or_else(|| unknown(&id))?;
    let mut cancelled = lisa.cancelled_tasks.lock().await;
    // A client that cancels thousands of tasks asks for none of the old ones any more.
    if cancelled.len() >= 1_000 {
        cancelled.clear();
    }
    cancelled.insert(id);
    Ok(())
}

fn completed(task: Task, result: CallToolResult) -> DetailedTask {
    let result = match serde_json::to_value(result) {
        Ok(serde_json::Value::Object(object)) => object,
        _ => JsonObject::new(),
    };
    DetailedTask::new(task, TaskPayload::Completed { result })
}

fn unknown(id: &str) -> ErrorData {
    let shown = lisa_engine::error::printable(id);
    ErrorData::invalid_params(format!("there is no task `{shown}`; call wait_sessions for a new one"), None)
}

fn doing(look: &WaitResponse) -> String {
    let mut parts: Vec<String> =
        look.sessions.iter().take(5).map(|session| format!("{}: {}", session.name, session.state)).collect();
    if look.sessions.len() > 5 {
        parts.push(format!("and {} more", look.sessions.len() - 5));
    }
    if parts.is_empty() { "nothing has changed yet".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(cursor: u64) -> WaitResponse {
        WaitResponse {
            events: Vec::new(),
            sessions: Vec::new(),
            timed_out: true,
            cursor,
            next: String::new(),
        }
    }

    #[test]
    fn an_id_names_the_wait_itself() {
        let request =
            WaitRequest { sessions: vec!["a".into()], timeout_s: Some(90.0), ..WaitRequest::default() };
        let task = create(request, &look(17)).task;
        let wait = Wait::parse(&task.task_id).unwrap();
        assert_eq!(wait.request.sessions, ["a"]);
        assert_eq!(wait.request.since, Some(17));
        assert_eq!(wait.ends.duration_since(wait.began), SignedDuration::from_secs(90));
        assert_eq!(wait.id(), task.task_id);
    }

    #[test]
    fn a_task_keeps_the_cursor_that_the_caller_gave() {
        let request = WaitRequest { since: Some(3), ..WaitRequest::default() };
        let wait = Wait::parse(&create(request, &look(17)).task.task_id).unwrap();
        assert_eq!(wait.request.since, Some(3));
        assert_eq!(wait.ends.duration_since(wait.began), SignedDuration::from_hours(1));
    }

    #[test]
    fn what_is_no_wait_is_no_task() {
        for id in ["", "wait-", "wait-!!", "wait-bm8", "other"] {
            assert_eq!(Wait::parse(id), None, "{id}");
        }
    }
}
