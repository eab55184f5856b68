//! Answers that stay below what parents pass on whole.
//!
//! Both known parents cut or divert tool results somewhere above 44,000 characters, so every answer stays below
//! [`LIMIT`]: long texts are shortened first, then lists end early where a cursor leads on.

use lisa_engine::{
    api::{ListResponse, ReadRequest, ReadResponse, WaitResponse},
    error::Result,
    words::Attention,
};
use serde::Serialize;
use serde_json::Value;

/// The most characters that one answer may have.
pub const LIMIT: usize = 40_000;

/// Text of a read leaves room for its last line.
const TEXT_LIMIT: usize = LIMIT - 200;

/// Lengths that long texts are cut to, one after the other, until the answer fits.
const CUTS: &[usize] = &[12_000, 4_000, 1_500, 500, 160];

/// An answer as JSON, without what is unknown, its longest texts shortened until it fits.
pub fn json<T: Serialize>(answer: &T) -> Value {
    let mut value = shortened(answer, CUTS);
    drop_unknown(&mut value);
    value
}

fn drop_unknown(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_unknown),
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_unknown);
        }
        _ => {}
    }
}

/// A wait's answer: events that do not fit are left for the next call, and the cursor with them; of too many
/// sessions those that need somebody are kept.
pub fn wait(mut answer: WaitResponse) -> Value {
    say_once(&mut answer);
    let mut notes = Vec::new();
    let all = answer.events.len();
    while answer.events.len() > 1 && characters(&shortened(&answer, &CUTS[..2])) > LIMIT - 500 {
        answer.events.truncate(answer.events.len() / 2);
        answer.cursor = answer.events.last().map_or(answer.cursor, |event| event.cursor);
    }
    let total = answer.sessions.len();
    if answer.events.len() < all {
        notes.push(format!("events after {} come with wait_sessions since={0}", answer.cursor));
    }
    if characters(&shortened(&answer, CUTS)) > LIMIT - 500 {
        answer.sessions.sort_by_key(|session| match session.attention {
            Attention::NeedsYou => 0,
            Attention::Delivered => 1,
            Attention::Autonomous => 2,
        });
        while answer.sessions.len() > 1 && characters(&shortened(&answer, CUTS)) > LIMIT - 500 {
            answer.sessions.pop();
        }
        notes.push(format!("{} more sessions: list_sessions", total - answer.sessions.len()));
    }
    notes.push(std::mem::take(&mut answer.next));
    answer.next = notes.join("; ");
    json(&answer)
}

/// Takes out of the events what the sessions beside them say in full: an open prompt, the last message.
fn say_once(answer: &mut WaitResponse) {
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

/// A list's answer: rows that do not fit are left for the next call.
pub fn list(answer: &mut ListResponse) {
    while answer.sessions.len() > 1 && characters(&json_of(answer)) > LIMIT - 1_000 {
        answer.sessions.pop();
        answer.cursor = answer.sessions.last().map(|row| row.name.clone());
    }
}

/// A read of at most [`LIMIT`] characters: fewer lines are asked for until they fit, and a single line that is too
/// long is cut with a word about it.
pub fn read(
    request: &ReadRequest,
    mut read: impl FnMut(&ReadRequest) -> Result<ReadResponse>,
) -> Result<ReadResponse> {
    let mut request = request.clone();
    loop {
        let mut answer = read(&request)?;
        let length = answer.text.chars().count();
        if length <= TEXT_LIMIT {
            return Ok(answer);
        }
        let lines = u32::try_from(answer.text.lines().count()).unwrap_or(u32::MAX);
        let asked = request.max_lines.unwrap_or(lines).min(lines);
        if asked <= 1 {
            answer.text = cut(&answer.text, TEXT_LIMIT - 100);
            return Ok(answer);
        }
        request.max_lines = Some(asked / 2);
    }
}

/// The answer with its texts cut to the first of these lengths that makes it fit, or else to the last.
fn shortened<T: Serialize>(answer: &T, cuts: &[usize]) -> Value {
    let mut value = json_of(answer);
    for most in cuts {
        if characters(&value) <= LIMIT {
            break;
        }
        shorten(&mut value, *most);
    }
    value
}

fn json_of<T: Serialize>(answer: &T) -> Value {
    serde_json::to_value(answer).unwrap_or(Value::Null)
}

/// How many characters it takes, without writing them anywhere.
fn characters(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Each character has one byte that does not continue another.
            self.0 += bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Writing to it can not fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

fn shorten(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.len() > most + 60 => *text = cut(text, most),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, most)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, most)),
        _ => {}
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => {
            format!("{} … ({} characters more: read_session)", &text[..at], text[at..].chars().count())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

    #[test]
    fn characters_are_counted_as_they_would_be_written() {
        for value in [value!({"a": "é\n\"あ😀", "b": [1, null, true, -2.5]}), value!(""), value!([])] {
            assert_eq!(characters(&value), value.to_string().chars().count(), "{value}");
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let answer = json(&value!({ "name": "a", "last_message": "x".repeat(100_000) }));
        assert!(characters(&answer) <= LIMIT);
        assert!(answer["last_message"].as_str().unwrap().ends_with("characters more: read_session)"));
        assert_eq!(answer["name"], "a");
    }

    #[test]
    fn what_fits_is_left_alone() {
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
            status: lisa_engine::words::Status::InProgress,
            state: lisa_engine::words::StateName::Working,
            detail: "d".repeat(1_000),
            turn: None,
            data: None,
        };
        let answer = wait(WaitResponse {
            events: (1..=200).map(event).collect(),
            sessions: Vec::new(),
            timed_out: false,
            cursor: 200,
            next: "read it".to_owned(),
        });
        assert!(characters(&answer) <= LIMIT);
        let events = answer["events"].as_array().unwrap();
        assert!(events.len() > 20 && events.len() < 200, "{}", events.len());
        assert_eq!(answer["cursor"], events.last().unwrap()["cursor"]);
        assert!(answer["next"].as_str().unwrap().ends_with("; read it"), "{}", answer["next"]);
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let answer = json(&value!({ "a": null, "b": { "c": null, "d": 0 }, "e": [{ "f": null }] }));
        assert_eq!(answer, value!({ "b": { "d": 0 }, "e": [{}] }));
    }

    #[test]
    fn a_read_asks_for_fewer_lines_until_they_fit() {
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
    fn a_line_that_is_too_long_is_cut() {
        let answer = read(&ReadRequest::default(), |_| {
            Ok(ReadResponse { text: "x".repeat(90_000), cursor: 1, more: false })
        })
        .unwrap();
        assert!(answer.text.chars().count() <= TEXT_LIMIT);
    }
}
