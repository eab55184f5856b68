//! Truncates tool results to a size that parents pass to the model unchanged.
//!
//! Both known parents truncate or redirect tool results above roughly 44,000 characters, so every result stays below
//! [`LIMIT`]. Long strings are truncated first; then lists are cut where a cursor can fetch the rest.

use crate::next;
use lisa_engine::{
    api::{ListResponse, ReadRequest, ReadResponse, WaitResponse, words::Attention},
    error::Result,
};
use serde::Serialize;
use serde_json::Value;

/// Maximum number of characters in one result.
pub const LIMIT: usize = 40_000;

/// Like [`LIMIT`], minus room for the cursor line of `read_session`.
const READ_LIMIT: usize = LIMIT - 200;

/// Lengths to truncate strings to, tried in order until the result fits.
const CUT_LENGTHS: &[usize] = &[12_000, 4_000, 1_500, 500, 160];

/// Serializes a result: drops nulls and truncates the longest strings until it fits.
pub fn json<T: Serialize>(answer: &T) -> Value {
    let mut value = truncated(answer, CUT_LENGTHS);
    drop_nulls(&mut value);
    next::render_next(&mut value);
    value
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}

/// Serializes a wait result. Events that don't fit are left for the next call, and the cursor moves back with them.
/// If there are too many sessions, those that need attention are kept.
pub fn wait(mut answer: WaitResponse) -> Value {
    remove_duplicates(&mut answer);
    let mut notes = Vec::new();
    let all = answer.events.len();
    while answer.events.len() > 1 && char_count(&truncated(&answer, &CUT_LENGTHS[..2])) > LIMIT - 500 {
        answer.events.truncate(answer.events.len() / 2);
        answer.cursor = answer.events.last().map_or(answer.cursor, |event| event.cursor);
    }
    let total = answer.sessions.len();
    if answer.events.len() < all {
        notes.push(format!("more events: wait_sessions with since={}", answer.cursor));
    }
    if char_count(&truncated(&answer, CUT_LENGTHS)) > LIMIT - 500 {
        answer.sessions.sort_by_key(|session| match session.attention {
            Attention::NeedsYou => 0,
            Attention::Delivered => 1,
            Attention::Autonomous => 2,
        });
        while answer.sessions.len() > 1 && char_count(&truncated(&answer, CUT_LENGTHS)) > LIMIT - 500 {
            answer.sessions.pop();
        }
        notes.push(format!("{} more sessions: list_sessions", total - answer.sessions.len()));
    }
    let mut value = json(&answer);
    notes.push(next::text(&answer.next));
    value["next"] = notes.join("; ").into();
    value
}

/// Removes from the events what the result's sessions already contain: the open prompt, the last message.
fn remove_duplicates(answer: &mut WaitResponse) {
    for event in &mut answer.events {
        let Some(session) = answer.sessions.iter().find(|session| session.name == event.session) else {
            continue;
        };
        let Some(data) = &mut event.data else { continue };
        let open = session.prompt.as_ref().map(|prompt| prompt.id.as_str());
        data.retain(|key, value| match key.as_str() {
            "prompt" => value.get("id").and_then(Value::as_str) != open || open.is_none(),
            "last_message" => value.as_str() != session.last_message.as_deref(),
            _ => true,
        });
        if data.is_empty() {
            event.data = None;
        }
    }
}

/// Drops rows that don't fit; the cursor lets the next call fetch them.
pub fn list(answer: &mut ListResponse) {
    while answer.sessions.len() > 1 && char_count(&to_json(answer)) > LIMIT - 1_000 {
        answer.sessions.pop();
        answer.cursor = answer.sessions.last().map(|row| row.name.clone());
    }
}

/// Reads at most [`LIMIT`] characters: asks for fewer lines until they fit, and truncates a single line that is too
/// long.
pub fn read(
    request: &ReadRequest,
    mut read: impl FnMut(&ReadRequest) -> Result<ReadResponse>,
) -> Result<ReadResponse> {
    let mut request = request.clone();
    loop {
        let mut answer = read(&request)?;
        let length = answer.text.chars().count();
        if length <= READ_LIMIT {
            return Ok(answer);
        }
        let lines = u32::try_from(answer.text.lines().count()).unwrap_or(u32::MAX);
        let asked = request.max_lines.unwrap_or(lines).min(lines);
        if asked <= 1 {
            answer.text = truncate_text(&answer.text, READ_LIMIT - 100);
            return Ok(answer);
        }
        request.max_lines = Some(asked / 2);
    }
}

/// Truncates strings to the first of these lengths that makes the result fit, or to the last one.
fn truncated<T: Serialize>(answer: &T, cuts: &[usize]) -> Value {
    let mut value = to_json(answer);
    for max_len in cuts {
        if char_count(&value) <= LIMIT {
            break;
        }
        truncate_strings(&mut value, *max_len);
    }
    value
}

fn to_json<T: Serialize>(answer: &T) -> Value {
    serde_json::to_value(answer).unwrap_or(Value::Null)
}

/// Counts the characters of the serialized JSON without allocating it.
fn char_count(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Count UTF-8 bytes that aren't continuation bytes.
            self.0 += bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

fn truncate_strings(value: &mut Value, max_len: usize) {
    match value {
        Value::String(text) if text.len() > max_len + 60 => *text = truncate_text(text, max_len),
        Value::Array(items) => items.iter_mut().for_each(|item| truncate_strings(item, max_len)),
        Value::Object(fields) => fields.values_mut().for_each(|field| truncate_strings(field, max_len)),
        _ => {}
    }
}

fn truncate_text(text: &str, max_len: usize) -> String {
    match text.char_indices().nth(max_len) {
        None => text.to_owned(),
        Some((at, _)) => {
            format!("{} … ({} more characters: read_session)", &text[..at], text[at..].chars().count())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::api::Next;
    use serde_json::json as value;

    #[test]
    fn the_count_matches_the_serialized_json() {
        for value in [value!({"a": "é\n\"あ😀", "b": [1, null, true, -2.5]}), value!(""), value!([])] {
            assert_eq!(char_count(&value), value.to_string().chars().count(), "{value}");
        }
    }

    #[test]
    fn a_long_string_is_truncated_with_a_note() {
        let answer = json(&value!({ "name": "a", "last_message": "x".repeat(100_000) }));
        assert!(char_count(&answer) <= LIMIT);
        assert!(answer["last_message"].as_str().unwrap().ends_with("more characters: read_session)"));
        assert_eq!(answer["name"], "a");
    }

    #[test]
    fn a_result_that_fits_is_unchanged() {
        let answer = value!({ "text": "x".repeat(39_000) });
        assert_eq!(json(&answer), answer);
    }

    #[test]
    fn a_wait_leaves_events_for_the_next_call() {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let event = |cursor| lisa_engine::api::Event {
            cursor,
            at,
            session: "s".to_owned(),
            event: lisa_engine::api::EventKind::Transition,
            status: lisa_engine::api::words::Status::InProgress,
            state: lisa_engine::api::words::StateName::Working,
            detail: "d".repeat(1_000),
            turn: None,
            data: None,
        };
        let answer = wait(WaitResponse {
            events: (1..=200).map(event).collect(),
            sessions: Vec::new(),
            timed_out: false,
            cursor: 200,
            next: Next::Send { session: "a".to_owned() },
        });
        assert!(char_count(&answer) <= LIMIT);
        let events = answer["events"].as_array().unwrap();
        assert!(events.len() > 20 && events.len() < 200, "{}", events.len());
        assert_eq!(answer["cursor"], events.last().unwrap()["cursor"]);
        assert!(
            answer["next"].as_str().unwrap().ends_with("; send_input to a to continue"),
            "{}",
            answer["next"]
        );
    }

    #[test]
    fn nulls_are_dropped() {
        let answer = json(&value!({ "a": null, "b": { "c": null, "d": 0 }, "e": [{ "f": null }] }));
        assert_eq!(answer, value!({ "b": { "d": 0 }, "e": [{}] }));
    }

    #[test]
    fn a_read_requests_fewer_lines_until_they_fit() {
        let request = ReadRequest { max_lines: Some(2_000), ..ReadRequest::default() };
        let answer = read(&request, |request| {
            let lines = request.max_lines.unwrap_or(80);
            let text = vec!["x".repeat(99); lines as usize].join("\n");
            Ok(ReadResponse { text, cursor: u64::from(lines), more: lines < 2_000 })
        })
        .unwrap();
        assert_eq!((answer.cursor, answer.more), (250, true));
    }

    #[test]
    fn a_line_that_is_too_long_is_truncated() {
        let answer = read(&ReadRequest::default(), |_| {
            Ok(ReadResponse { text: "x".repeat(90_000), cursor: 1, more: false })
        })
        .unwrap();
        assert!(answer.text.chars().count() <= READ_LIMIT);
    }
}
