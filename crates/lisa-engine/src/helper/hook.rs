//! What an agent's hooks call: takes one payload and writes it down. It never fails the agent.

use crate::{
    api::EventKind,
    disk::Cache,
    observation::At,
    session::{Folder, find::Sighting, policy},
    watch::{change::Writer, journal::Journal, record::Note},
    words::State,
};
use std::{
    io::{self, Read},
    path::Path,
    process::ExitCode,
    time::Duration,
};

/// A payload that is larger than this is cut: what it is about is kept, its long texts are not.
const MAX: usize = 256 << 10;
/// How long a text in a payload that is too large may be, and how many values are kept of it.
const TEXT_MAX: usize = 4 << 10;
const LEAVES_MAX: usize = 200;
/// How long a hook waits for the session's lock, which a look holds for a few milliseconds. The agent waits meanwhile.
const LOCK_LIMIT: Duration = Duration::from_secs(2);
/// The file is started anew when it grows beyond this; a look has read it long before.
const FILE_MAX: u64 = 16 << 20;

/// `helper hook DIR`: appends standard input to the session's `hooks.jsonl`.
pub(super) fn main(dir: &Path) -> ExitCode {
    let mut input = Vec::new();
    // Whatever goes wrong here must not reach the agent: at worst an event is missed, and other signals fill in.
    let _ = io::stdin().lock().take(64 << 20).read_to_end(&mut input);
    let now = jiff::Timestamp::now().as_millisecond();
    record(dir, &input, now);
    if let Ok(payload) = serde_json::from_slice(&input)
        && let Some(decision) = policy::decide(dir, &payload)
    {
        use std::io::Write;
        // What cannot be told is not decided: the agent then asks.
        if tell(dir, &decision, now).is_some() {
            let _ = writeln!(io::stdout(), "{}", decision.answer);
        }
    }
    ExitCode::SUCCESS
}

/// Tells what the policy decided, so that nothing is decided in silence.
fn tell(dir: &Path, decision: &policy::Decision, at: i64) -> Option<()> {
    let folder = Folder::at(dir)?;
    let meta = folder.meta().ok()??;
    let journal = Journal::at(dir.parent()?.parent()?).ok()?;
    let session = Sighting { folder, meta, pane: None };
    let records = Cache::default();
    let writer = Writer { journal: &journal, lock_limit: LOCK_LIMIT, records: &records };
    let mut change = writer.open(&session).ok()?;
    let state =
        change.record.memory.verdict.as_ref().map_or(State::Starting, |verdict| verdict.state.clone());
    let word = if decision.allowed { "allowed" } else { "denied" };
    let mut note =
        Note::line(format!("{word} {} {} by {}", decision.tool, decision.subject, decision.pattern));
    note.turn = change.record.turn.as_ref().map(|turn| turn.id.clone());
    change.note(EventKind::Policy, &state, At(at), note);
    change.commit().ok().map(drop)
}

fn record(dir: &Path, input: &[u8], at: i64) {
    let path = dir.join("hooks.jsonl");
    if std::fs::metadata(&path).is_ok_and(|found| found.len() > FILE_MAX) {
        let _ = std::fs::rename(&path, dir.join("hooks.old.jsonl"));
    }
    if dir.is_dir() {
        let _ = crate::disk::append_line(&path, &line(input, at));
    }
}

/// The line of `hooks.jsonl` for a payload.
pub(crate) fn line(input: &[u8], at: i64) -> String {
    let line = match serde_json::from_slice::<serde_json::Value>(input) {
        Ok(mut payload) => {
            if input.len() > MAX {
                shorten(&mut payload, LEAVES_MAX);
            }
            serde_json::json!({ "at": at, "payload": payload })
        }
        // Nothing can be concluded from it, but whoever asks why must be able to see that it came.
        Err(error) => serde_json::json!({ "at": at, "malformed": error.to_string() }),
    };
    line.to_string()
}

/// Cuts long texts, and what is left of a list or an object when so many values were kept; says how many more may be.
fn shorten(value: &mut serde_json::Value, left: usize) -> usize {
    let Some(left) = left.checked_sub(1) else {
        *value = serde_json::Value::Null;
        return 0;
    };
    match value {
        serde_json::Value::String(text) if text.len() > TEXT_MAX => {
            *text = text.chars().take(TEXT_MAX).chain("…".chars()).collect();
            left
        }
        serde_json::Value::Array(items) => {
            let rest = items.iter_mut().fold(left, |left, item| shorten(item, left));
            items.truncate(LEAVES_MAX);
            rest
        }
        serde_json::Value::Object(fields) => {
            // What it is about stands in its own fields, not deep inside them.
            let (plain, nested): (Vec<_>, Vec<_>) =
                fields.values_mut().partition(|value| !value.is_array() && !value.is_object());
            plain.into_iter().chain(nested).fold(left, |left, value| shorten(value, left))
        }
        _ => left,
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
        let (first, second) = text.split_once('\n').unwrap();
        assert_eq!(first, "{\"at\":5,\"payload\":{\"hook_event_name\":\"Stop\"}}");
        assert!(second.starts_with("{\"at\":6,\"malformed\":\"expected"), "{second}");
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
    fn a_payload_of_a_million_small_values_is_cut_as_well() {
        let payload = serde_json::json!({
            "input": { "numbers": vec![7; 1 << 20] }, "hook_event_name": "PreToolUse", "tool_use_id": "t1",
        });
        let line = line(payload.to_string().as_bytes(), 5);
        assert!(line.len() < 4_000, "{}", line.len());
        let kept: serde_json::Value = serde_json::from_str(&line).unwrap();
        let fields = &kept["payload"];
        assert_eq!(
            (&fields["hook_event_name"], &fields["tool_use_id"]),
            (&"PreToolUse".into(), &"t1".into())
        );
    }

    #[test]
    fn a_session_that_is_gone_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        record(&gone, b"{}", 5);
        assert!(!gone.exists());
    }
}
