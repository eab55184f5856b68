//! `wait_sessions` as an MCP task, for clients that support tasks.
//!
//! A task is a small file in the state directory: the request, its start and its end. Nothing is kept in memory, so a
//! task survives a restart of the server, and any server of the same user can answer for it. The id is only the file's
//! name, because clients reject long ids.

use crate::{
    server::Lisa,
    tool_error::ToolError,
    tools::wait::{MAX_SECONDS, result},
};
use jiff::{SignedDuration, Timestamp};
use lisa_engine::{
    api::{WaitRequest, WaitResponse},
    disk,
    engine::Engine,
    error::{Error, Kind},
};
use rmcp::{
    ErrorData,
    model::{
        CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload,
        TaskStatus,
    },
};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Poll interval suggested to clients.
const POLL_INTERVAL_MS: u64 = 1_000;

/// How long the result of a finished task is kept.
const RETENTION: SignedDuration = SignedDuration::from_hours(24);

const PREFIX: &str = "wait-";

/// The contents of a task file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct WaitTask {
    request: WaitRequest,
    #[serde(with = "jiff::fmt::serde::timestamp::millisecond::required")]
    began: Timestamp,
    #[serde(with = "jiff::fmt::serde::timestamp::millisecond::required")]
    ends: Timestamp,
    #[serde(default)]
    cancelled: bool,
}

impl WaitTask {
    fn new(request: WaitRequest, response: &WaitResponse) -> Self {
        let began = Timestamp::now();
        let seconds = request.timeout_s.unwrap_or(f64::from(MAX_SECONDS));
        let hour = SignedDuration::from_hours(1);
        let ends = began + SignedDuration::try_from_secs_f64(seconds).unwrap_or(hour);
        // Without a cursor, events between two polls would be missed.
        let request = WaitRequest { since: request.since.or(Some(response.cursor)), ..request };
        Self { request, began, ends, cancelled: false }
    }

    fn read(engine: &Engine, id: &str) -> Result<Option<Self>, Error> {
        let Some(path) = task_path(&tasks_dir(engine), id) else { return Ok(None) };
        Ok(disk::read(&path)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn write(&self, engine: &Engine, id: &str) -> Result<(), Error> {
        let dir = tasks_dir(engine);
        disk::private_dir(&engine.config().state_dir)?;
        disk::private_dir(&dir)?;
        let path =
            task_path(&dir, id).ok_or_else(|| Error::invalid("invalid task id", "report this as a bug"))?;
        disk::write_atomic(&path, &serde_json::to_vec(self).unwrap_or_default())
    }

    fn task(&self, id: &str, status: TaskStatus, now: Timestamp) -> Task {
        let ttl = self.ends.duration_since(self.began) + RETENTION;
        Task::new(id, status, self.began.to_string(), now.to_string())
            .with_poll_interval_ms(POLL_INTERVAL_MS)
            .with_ttl_ms(u64::try_from(ttl.as_millis()).unwrap_or_default())
    }
}

fn tasks_dir(engine: &Engine) -> PathBuf {
    engine.config().state_dir.join("waits")
}

/// The file of a task. The id comes from the client, so it's validated before it becomes a path.
fn task_path(dir: &Path, id: &str) -> Option<PathBuf> {
    let number = id.strip_prefix(PREFIX)?;
    let plain = number.len() == 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| dir.join(format!("{number}.json")))
}

/// Removes expired task files.
fn remove_expired(dir: &Path) {
    let ttl = Duration::from_secs(u64::from(MAX_SECONDS)) + RETENTION.unsigned_abs();
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|facts| facts.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > ttl) {
            // Another server may already have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Creates a task for a wait that isn't satisfied yet.
pub(crate) async fn create(
    lisa: &Lisa,
    request: WaitRequest,
    response: &WaitResponse,
) -> Result<CreateTaskResult, Error> {
    let wait = WaitTask::new(request, response);
    let id = format!("{PREFIX}{}", uuid::Uuid::new_v4().simple());
    let task = wait.task(&id, TaskStatus::Working, wait.began).with_status_message(progress_text(response));
    lisa.run(move |engine| {
        remove_expired(&tasks_dir(engine));
        wait.write(engine, &id)
    })
    .await?;
    Ok(CreateTaskResult::new(task))
}

/// Loads a task by its id.
async fn load(lisa: &Lisa, id: &str) -> Result<WaitTask, ErrorData> {
    let wanted = id.to_owned();
    match lisa.run(move |engine| WaitTask::read(engine, &wanted)).await {
        Ok(Some(wait)) => Ok(wait),
        Ok(None) => Err(unknown_task(id)),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

/// Handles `tasks/get`.
pub(crate) async fn get(lisa: &Lisa, id: &str) -> Result<GetTaskResult, ErrorData> {
    let wait = load(lisa, id).await?;
    let now = Timestamp::now();
    let task = wait.task(id, TaskStatus::Working, now);
    if wait.cancelled {
        return Ok(GetTaskResult::new(DetailedTask::new(task, TaskPayload::Cancelled)));
    }
    let detailed = match lisa.check_once(&wait.request).await {
        Ok(response) if response.timed_out && now < wait.ends => {
            DetailedTask::new(task.with_status_message(progress_text(&response)), TaskPayload::Working)
        }
        Ok(response) => completed(task, result(response)),
        // Temporary errors don't end the wait.
        Err(error) if matches!(error.kind(), Kind::TmuxTimeout | Kind::LockTimeout) && now < wait.ends => {
            DetailedTask::new(task.with_status_message(error.to_string()), TaskPayload::Working)
        }
        Err(error) => completed(task, ToolError(error).into_result()),
    };
    Ok(GetTaskResult::new(detailed))
}

/// Handles `tasks/cancel`. The sessions keep running.
pub(crate) async fn cancel(lisa: &Lisa, id: String) -> Result<(), ErrorData> {
    let wait = WaitTask { cancelled: true, ..load(lisa, &id).await? };
    lisa.run(move |engine| wait.write(engine, &id))
        .await
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn completed(task: Task, result: CallToolResult) -> DetailedTask {
    let result = match serde_json::to_value(result) {
        Ok(serde_json::Value::Object(object)) => object,
        _ => JsonObject::new(),
    };
    DetailedTask::new(task, TaskPayload::Completed { result })
}

fn unknown_task(id: &str) -> ErrorData {
    let shown = lisa_engine::error::printable(id);
    ErrorData::invalid_params(format!("unknown task `{shown}`; call wait_sessions for a new one"), None)
}

fn progress_text(response: &WaitResponse) -> String {
    let mut parts: Vec<String> = response
        .sessions
        .iter()
        .take(5)
        .map(|session| format!("{}: {}", session.name, session.state))
        .collect();
    if response.sessions.len() > 5 {
        parts.push(format!("and {} more", response.sessions.len() - 5));
    }
    if parts.is_empty() { "nothing has changed yet".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::api::Next;

    fn look(cursor: u64) -> WaitResponse {
        WaitResponse { events: Vec::new(), sessions: Vec::new(), timed_out: true, cursor, next: Next::Spawn }
    }

    #[test]
    fn a_wait_starts_at_the_callers_cursor_or_at_the_current_one() {
        let request =
            WaitRequest { sessions: vec!["a".into()], timeout_s: Some(90.0), ..WaitRequest::default() };
        let wait = WaitTask::new(request, &look(17));
        assert_eq!((wait.request.since, wait.request.sessions.as_slice()), (Some(17), &["a".to_owned()][..]));
        assert_eq!(wait.ends.duration_since(wait.began), SignedDuration::from_secs(90));
        let wait = WaitTask::new(WaitRequest { since: Some(3), ..WaitRequest::default() }, &look(17));
        assert_eq!(wait.request.since, Some(3));
        assert_eq!(wait.ends.duration_since(wait.began), SignedDuration::from_hours(1));
    }

    #[test]
    fn an_invalid_id_has_no_path() {
        let dir = Path::new("/waits");
        let number = "0123456789abcdef0123456789abcdef";
        assert_eq!(task_path(dir, &format!("wait-{number}")), Some(dir.join(format!("{number}.json"))));
        for id in ["", "wait-", "wait-x", number, "wait-../../../../../../../../etc/passwd00", "other"] {
            assert_eq!(task_path(dir, id), None, "{id}");
        }
    }

    #[test]
    fn only_expired_tasks_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for (name, hours) in [("old", 30), ("new", 2)] {
            let file = fs::File::create(dir.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
        }
        remove_expired(dir.path());
        assert_eq!((dir.path().join("old").exists(), dir.path().join("new").exists()), (false, true));
    }
}
