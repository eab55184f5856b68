//! Waits as tasks, for clients that have them.
//!
//! A task is a small file in the state folder: the request, when it began and when it ends. Nothing is kept in memory,
//! so a task goes on after the server was restarted, and any server of the same user can answer for it. The id only
//! names the file: clients refuse a long one.

use crate::{
    failure::Failure,
    server::Lisa,
    tools::wait::{MOST_SECONDS, result},
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

/// How often a client should ask.
const POLL_MS: u64 = 1_000;

/// How long a task that has ended can still be asked for.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

const PREFIX: &str = "wait-";

/// What a task's file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Wait {
    request: WaitRequest,
    #[serde(with = "jiff::fmt::serde::timestamp::millisecond::required")]
    began: Timestamp,
    #[serde(with = "jiff::fmt::serde::timestamp::millisecond::required")]
    ends: Timestamp,
    #[serde(default)]
    cancelled: bool,
}

impl Wait {
    fn new(request: WaitRequest, look: &WaitResponse) -> Self {
        let began = Timestamp::now();
        let seconds = request.timeout_s.unwrap_or(f64::from(MOST_SECONDS));
        let hour = SignedDuration::from_hours(1);
        let ends = began + SignedDuration::try_from_secs_f64(seconds).unwrap_or(hour);
        // Without a place to begin, what happens between two polls would be missed.
        let request = WaitRequest { since: request.since.or(Some(look.cursor)), ..request };
        Self { request, began, ends, cancelled: false }
    }

    fn read(engine: &Engine, id: &str) -> Result<Option<Self>, Error> {
        let Some(path) = path(&folder(engine), id) else { return Ok(None) };
        Ok(disk::read(&path)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn write(&self, engine: &Engine, id: &str) -> Result<(), Error> {
        let folder = folder(engine);
        disk::private_dir(&engine.config().state_dir)?;
        disk::private_dir(&folder)?;
        let path = path(&folder, id).ok_or_else(|| Error::invalid("that is no task's id", "report this"))?;
        disk::write_atomic(&path, &serde_json::to_vec(self).unwrap_or_default())
    }

    fn task(&self, id: &str, status: TaskStatus, now: Timestamp) -> Task {
        let kept = self.ends.duration_since(self.began) + KEPT;
        Task::new(id, status, self.began.to_string(), now.to_string())
            .with_poll_interval_ms(POLL_MS)
            .with_ttl_ms(u64::try_from(kept.as_millis()).unwrap_or_default())
    }
}

fn folder(engine: &Engine) -> PathBuf {
    engine.config().state_dir.join("waits")
}

/// The file of a task. What a client says is no path before it has been looked at.
fn path(folder: &Path, id: &str) -> Option<PathBuf> {
    let number = id.strip_prefix(PREFIX)?;
    let plain = number.len() == 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| folder.join(format!("{number}.json")))
}

/// Removes the tasks that nobody can ask for any more.
fn sweep(folder: &Path) {
    let kept = Duration::from_secs(u64::from(MOST_SECONDS)) + KEPT.unsigned_abs();
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|facts| facts.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > kept) {
            // Another server may have been faster.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The task for a wait that is not satisfied yet.
pub(crate) async fn create(
    lisa: &Lisa,
    request: WaitRequest,
    look: &WaitResponse,
) -> Result<CreateTaskResult, Error> {
    let wait = Wait::new(request, look);
    let id = format!("{PREFIX}{}", uuid::Uuid::new_v4().simple());
    let task = wait.task(&id, TaskStatus::Working, wait.began).with_status_message(doing(look));
    lisa.run(move |engine| {
        sweep(&folder(engine));
        wait.write(engine, &id)
    })
    .await?;
    Ok(CreateTaskResult::new(task))
}

/// The wait behind an id.
async fn find(lisa: &Lisa, id: &str) -> Result<Wait, ErrorData> {
    let wanted = id.to_owned();
    match lisa.run(move |engine| Wait::read(engine, &wanted)).await {
        Ok(Some(wait)) => Ok(wait),
        Ok(None) => Err(unknown(id)),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

/// How a task stands.
pub(crate) async fn get(lisa: &Lisa, id: &str) -> Result<GetTaskResult, ErrorData> {
    let wait = find(lisa, id).await?;
    let now = Timestamp::now();
    let task = wait.task(id, TaskStatus::Working, now);
    if wait.cancelled {
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
    let wait = Wait { cancelled: true, ..find(lisa, &id).await? };
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
    fn a_wait_begins_where_the_caller_or_the_look_says() {
        let request =
            WaitRequest { sessions: vec!["a".into()], timeout_s: Some(90.0), ..WaitRequest::default() };
        let wait = Wait::new(request, &look(17));
        assert_eq!((wait.request.since, wait.request.sessions.as_slice()), (Some(17), &["a".to_owned()][..]));
        assert_eq!(wait.ends.duration_since(wait.began), SignedDuration::from_secs(90));
        let wait = Wait::new(WaitRequest { since: Some(3), ..WaitRequest::default() }, &look(17));
        assert_eq!(wait.request.since, Some(3));
        assert_eq!(wait.ends.duration_since(wait.began), SignedDuration::from_hours(1));
    }

    #[test]
    fn what_is_no_id_names_no_file() {
        let folder = Path::new("/waits");
        let number = "0123456789abcdef0123456789abcdef";
        assert_eq!(path(folder, &format!("wait-{number}")), Some(folder.join(format!("{number}.json"))));
        for id in ["", "wait-", "wait-x", number, "wait-../../../../../../../../etc/passwd00", "other"] {
            assert_eq!(path(folder, id), None, "{id}");
        }
    }

    #[test]
    fn only_old_waits_are_swept_away() {
        let folder = tempfile::tempdir().unwrap();
        for (name, hours) in [("old", 30), ("new", 2)] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
        }
        sweep(folder.path());
        assert_eq!((folder.path().join("old").exists(), folder.path().join("new").exists()), (false, true));
    }
}
