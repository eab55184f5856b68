//! The files that the agent writes: test log, transcript, and state file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::agent::Status;

/// Milliseconds since 1970.
#[must_use]
pub fn wall_clock() -> u64 {
    wall_clock_us() / 1000
}

fn wall_clock_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A file of JSON lines. Each line is one write.
#[derive(Debug)]
pub struct JsonLines(File);

impl JsonLines {
    /// Opens the file for appending. Creates its directory if necessary.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(dir)?;
        }
        Ok(Self(OpenOptions::new().create(true).append(true).open(path)?))
    }

    /// Appends a line with the time in `at` (ms) and `at_us`.
    pub fn push(&mut self, mut value: Value) {
        if let Some(object) = value.as_object_mut() {
            let at_us = wall_clock_us();
            object.insert("at".to_owned(), json!(at_us / 1000));
            object.insert("at_us".to_owned(), json!(at_us));
        }
        // Errors are ignored: a full disk must not stop the agent.
        let _ = self.0.write_all(format!("{value}\n").as_bytes());
    }
}

/// The transcript file. `{session}` in its path is replaced by the session id.
#[derive(Debug)]
pub struct Transcript {
    template: String,
    session: String,
    file: Option<JsonLines>,
}

impl Transcript {
    /// A transcript at this path. The file is created with the first line.
    #[must_use]
    pub fn new(template: String, session: &str) -> Self {
        Self { template, session: session.to_owned(), file: None }
    }

    /// The path of the current file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.template.replace("{session}", &self.session))
    }

    /// Switches to another session id.
    pub fn switch(&mut self, session: &str) {
        session.clone_into(&mut self.session);
        self.file = None;
    }

    /// Appends a line.
    pub fn push(&mut self, line: Value) {
        if self.file.is_none() {
            self.file = JsonLines::open(&self.path()).ok();
        }
        if let Some(file) = &mut self.file {
            file.push(line);
        }
    }

    /// The number of recorded turns.
    #[must_use]
    pub fn turns(&self) -> usize {
        let text = fs::read_to_string(self.path()).unwrap_or_default();
        let is_end = |line: &&str| {
            let value = serde_json::from_str::<Value>(line).unwrap_or_default();
            value.get("type").and_then(Value::as_str) == Some("turn_end")
        };
        text.lines().filter(is_end).count()
    }
}

/// The state file: rewritten when the state changes, removed on a clean exit.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    written: Option<(Status, String)>,
    started_at: u64,
}

impl StateFile {
    /// A state file at this path.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, written: None, started_at: wall_clock() }
    }

    /// Writes the state if it has changed.
    pub fn publish(&mut self, status: &Status, session: &str, cwd: &str) {
        if self.written.as_ref().is_some_and(|(old, id)| old == status && id == session) {
            return;
        }
        let value = json!({
            "pid": std::process::id(), "session_id": session, "cwd": cwd, "status": status.status,
            "waiting_for": status.waiting_for, "started_at": self.started_at, "updated_at": wall_clock(),
        });
        if self.replace(&value).is_ok() {
            self.written = Some((status.clone(), session.to_owned()));
        }
    }

    fn replace(&self, value: &Value) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(name);
        fs::write(&new, format!("{value}\n"))?;
        fs::rename(&new, &self.path)
    }

    /// Removes the file.
    pub fn remove(&self) {
        if self.written.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_follows_the_session_and_counts_turns() {
        let dir = tempfile::tempdir().unwrap();
        let template = dir.path().join("deep/{session}.jsonl").to_string_lossy().into_owned();
        let mut transcript = Transcript::new(template, "one");
        assert!(!transcript.path().exists());
        transcript.push(json!({"type": "user", "text": "\"type\":\"turn_end\""}));
        transcript.push(json!({"type": "turn_end"}));
        assert_eq!(transcript.turns(), 1);
        transcript.switch("two");
        assert_eq!(transcript.turns(), 0);
        transcript.push(json!({"type": "turn_end"}));
        assert!(dir.path().join("deep/two.jsonl").exists());
    }

    #[test]
    fn the_state_file_is_there_only_while_it_is_true() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        let mut state = StateFile::new(path.clone());
        state.publish(&Status { status: "busy", waiting_for: None }, "s", "/");
        let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(value["status"], "busy");
        assert_eq!(value["pid"], std::process::id());
        state.remove();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
