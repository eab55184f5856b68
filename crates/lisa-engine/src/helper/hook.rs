//! What an agent's hooks call: takes one payload and writes it down. It never fails the agent.

use std::{
    io::{self, Read},
    path::Path,
    process::ExitCode,
};

/// A payload that is larger than this is cut: what it is about is kept, its long texts are not.
const MAX: usize = 256 << 10;
/// How long a text in a payload that is too large may be.
const TEXT_MAX: usize = 4 << 10;
/// The file is started anew when it grows beyond this; a look has read it long before.
const FILE_MAX: u64 = 16 << 20;

/// `helper hook DIR`: appends standard input to the session's `hooks.jsonl`.
pub(super) fn main(dir: &Path) -> ExitCode {
    let mut input = Vec::new();
    // Whatever goes wrong here must not reach the agent: at worst an event is missed, and other signals fill in.
    let _ = io::stdin().lock().take(64 << 20).read_to_end(&mut input);
    record(dir, &input, jiff::Timestamp::now().as_millisecond());
    ExitCode::SUCCESS
}

fn record(dir: &Path, input: &[u8], at: i64) {
    let payload: serde_json::Value = match serde_json::from_slice(input) {
        Ok(payload) if input.len() <= MAX => payload,
        Ok(mut payload) => {
            shorten(&mut payload);
            payload
        }
        Err(_) => return,
    };
    let path = dir.join("hooks.jsonl");
    if std::fs::metadata(&path).is_ok_and(|found| found.len() > FILE_MAX) {
        let _ = std::fs::rename(&path, dir.join("hooks.old.jsonl"));
    }
    let line = serde_json::json!({ "at": at, "payload": payload }).to_string();
    if dir.is_dir() {
        let _ = crate::disk::append_line(&path, &line);
    }
}

fn shorten(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) if text.len() > TEXT_MAX => {
            *text = text.chars().take(TEXT_MAX).chain("…".chars()).collect();
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(shorten),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_becomes_one_line_with_its_time() {
        let dir = tempfile::tempdir().unwrap();
        record(dir.path(), b"{\"hook_event_name\":\n\"Stop\"}", 5);
        record(dir.path(), b"not json", 6);
        let text = std::fs::read_to_string(dir.path().join("hooks.jsonl")).unwrap();
        assert_eq!(text, "{\"at\":5,\"payload\":{\"hook_event_name\":\"Stop\"}}\n");
    }

    #[test]
    fn a_payload_that_is_too_large_keeps_what_it_is_about() {
        let dir = tempfile::tempdir().unwrap();
        let payload = serde_json::json!({"hook_event_name": "PostToolUse", "output": "x".repeat(1 << 20)});
        record(dir.path(), payload.to_string().as_bytes(), 5);
        let text = std::fs::read_to_string(dir.path().join("hooks.jsonl")).unwrap();
        assert!(text.len() < 10_000 && text.contains("PostToolUse"));
    }

    #[test]
    fn a_session_that_is_gone_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        record(&gone, b"{}", 5);
        assert!(!gone.exists());
    }
}
