//! What an agent's hooks call: writes down one payload. It never makes the agent fail.

use crate::{
    api::{EventKind, words::State},
    classify::observation::At,
    disk::Cache,
    session::{SessionDir, find::SessionSnapshot, policy},
    watch::{change::Writer, journal::Journal, record::Note},
};
use std::{
    io::{self, Read},
    path::Path,
    process::ExitCode,
    time::Duration,
};

/// Maximum size of a payload. From a larger one, the fields that identify it are kept and its long texts are cut.
const MAX: usize = 256 << 10;
/// For a payload that is too large: maximum length of a text, and maximum number of values.
const TEXT_MAX: usize = 4 << 10;
const LEAVES_MAX: usize = 200;
/// How long a hook waits for the session's lock, which a look holds for a few milliseconds. Meanwhile the agent waits.
const LOCK_LIMIT: Duration = Duration::from_secs(2);
/// The file is restarted when it grows beyond this; a look has read it long before.
const FILE_MAX: u64 = 16 << 20;

/// `helper hook DIR`: appends standard input to the session's `hooks.jsonl`.
pub(super) fn main(dir: &Path) -> ExitCode {
    let mut input = Vec::new();
    // No error here may reach the agent: at worst an event is missed, and other signals fill in.
    let _ = io::stdin().lock().take(64 << 20).read_to_end(&mut input);
    let now = jiff::Timestamp::now().as_millisecond();
    record(dir, &input, now);
    if let Ok(payload) = serde_json::from_slice(&input)
        && let Some(decision) = policy::decide(dir, &payload)
    {
        use std::io::Write;
        // A decision that can't be recorded isn't made: the agent then asks.
        if tell(dir, &decision, now).is_some() {
            let _ = writeln!(io::stdout(), "{}", decision.answer);
        }
    }
    ExitCode::SUCCESS
}

/// Records what the policy decided, so that no decision is silent.
fn tell(dir: &Path, decision: &policy::Decision, at: i64) -> Option<()> {
    let session_dir = SessionDir::at(dir)?;
    let meta = session_dir.meta().ok()??;
    let journal = Journal::at(dir.parent()?.parent()?).ok()?;
    let session = SessionSnapshot { dir: session_dir, meta, pane: None };
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
        // Nothing can be concluded from it, but `explain` should show that it came.
        Err(error) => serde_json::json!({ "at": at, "malformed": error.to_string() }),
    };
    line.to_string()
}

/// Cuts long texts and names of fields, and drops values of lists and fields of objects beyond `left`; returns how many
/// more values are allowed.
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
            // The fields that identify it are at the top, not deeply nested.
            let (plain, nested): (Vec<_>, Vec<_>) = std::mem::take(fields)
                .into_iter()
                .filter(|(name, _)| name.len() <= TEXT_MAX)
                .partition(|(_, value)| !value.is_array() && !value.is_object());
            plain.into_iter().chain(nested).fold(left, |left, (name, mut value)| {
                if left == 0 {
                    return 0;
                }
                let left = shorten(&mut value, left);
                fields.insert(name, value);
                left
            })
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
    fn a_payload_of_many_or_long_names_is_cut_as_well() {
        let many: serde_json::Map<_, _> = (0..1 << 18).map(|n| (format!("field {n}"), n.into())).collect();
        for input in [serde_json::Value::Object(many), serde_json::json!({ "x".repeat(1 << 20): 1 })] {
            let payload = serde_json::json!({ "hook_event_name": "PreToolUse", "input": input });
            let line = line(payload.to_string().as_bytes(), 5);
            assert!(line.len() < 20_000, "{}", line.len());
            assert!(line.contains("PreToolUse"), "{line}");
        }
    }

    #[test]
    fn a_session_that_is_gone_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        record(&gone, b"{}", 5);
        assert!(!gone.exists());
    }
}
