//! Converts API responses to Nushell values: durations, datetimes, lists and records. Every row has every column;
//! unknown values are null.

mod act;
mod look;
mod prompt;
#[cfg(test)]
mod samples;
mod session;

pub(crate) use act::*;
pub(crate) use look::*;
pub(crate) use prompt::prompt;
pub(crate) use session::*;

use jiff::Timestamp;
use nu_protocol::{Record, Span, Value};

/// A list or table.
pub(crate) fn list<T>(items: &[T], span: Span, make: impl Fn(&T, Span) -> Value) -> Value {
    Value::list(items.iter().map(|item| make(item, span)).collect(), span)
}

/// A value, or null.
fn or_null<T>(item: Option<&T>, span: Span, make: impl Fn(&T, Span) -> Value) -> Value {
    item.map_or_else(|| Value::nothing(span), |item| make(item, span))
}

fn text(text: impl Into<String>, span: Span) -> Value {
    Value::string(text, span)
}

fn text_or_null(text: Option<&str>, span: Span) -> Value {
    text.map_or_else(|| Value::nothing(span), |text| Value::string(text, span))
}

fn texts(texts: &[String], span: Span) -> Value {
    list(texts, span, |word, span| text(word.as_str(), span))
}

/// A count. Saturates at the maximum of Nushell's integers.
fn int(count: u64, span: Span) -> Value {
    Value::int(i64::try_from(count).unwrap_or(i64::MAX), span)
}

/// Milliseconds as a duration.
fn millis(ms: u64, span: Span) -> Value {
    Value::duration(i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000_000), span)
}

/// A timestamp in the local time zone, like those of `date now` and `ls`.
fn date(at: Timestamp, span: Span) -> Value {
    let nanos = u32::try_from(at.subsec_nanosecond()).unwrap_or(0);
    chrono::DateTime::from_timestamp(at.as_second(), nanos).map_or_else(
        || Value::nothing(span),
        |utc| Value::date(utc.with_timezone(&chrono::Local).fixed_offset(), span),
    )
}

/// Untyped JSON. A field like `output_age_ms` becomes a duration `output_age`, and a field whose name ends in `_bytes`
/// becomes a filesize.
fn json(value: &serde_json::Value, span: Span) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::nothing(span),
        Json::Bool(flag) => Value::bool(*flag, span),
        Json::Number(number) => number.as_i64().map_or_else(
            || Value::float(number.as_f64().unwrap_or(f64::NAN), span),
            |int| Value::int(int, span),
        ),
        Json::String(string) => text(string.as_str(), span),
        Json::Array(items) => list(items, span, json),
        Json::Object(map) => json_record(map, span),
    }
}

/// A JSON object; see [`json`].
fn json_record(map: &serde_json::Map<String, serde_json::Value>, span: Span) -> Value {
    let fields = map.iter().map(|(name, value)| {
        let number = value.as_u64();
        if let Some(name) = name.strip_suffix("_ms") {
            return (name.to_owned(), number.map_or_else(|| json(value, span), |ms| millis(ms, span)));
        }
        match number {
            Some(bytes) if name.ends_with("_bytes") => {
                (name.clone(), Value::filesize(i64::try_from(bytes).unwrap_or(i64::MAX), span))
            }
            _ => (name.clone(), json(value, span)),
        }
    });
    Value::record(Record::from_iter(fields), span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nu_protocol::record;

    #[test]
    fn ages_and_sizes_in_signals_are_durations_and_filesizes() {
        let given = serde_json::json!({
            "heartbeat": { "value": null, "age_ms": 1500, "error": "gone" },
            "output_age_ms": null,
            "output_bytes": 2048,
            "agent_cpu": 0.5,
        });
        let want = record! {
            "heartbeat" => Value::test_record(record! {
                "value" => Value::test_nothing(),
                "age" => Value::test_duration(1_500_000_000),
                "error" => Value::test_string("gone"),
            }),
            "output_age" => Value::test_nothing(),
            "output_bytes" => Value::test_filesize(2048),
            "agent_cpu" => Value::test_float(0.5),
        };
        assert_eq!(json(&given, Span::test_data()), Value::test_record(want));
    }

    #[test]
    fn a_timestamp_keeps_its_instant() {
        let at: Timestamp = "2025-11-16T18:35:20.5Z".parse().unwrap();
        let Value::Date { val, .. } = date(at, Span::test_data()) else { panic!("no date") };
        assert_eq!(val.timestamp_millis(), at.as_millisecond());
    }

    #[test]
    fn large_numbers_saturate() {
        assert_eq!(int(u64::MAX, Span::test_data()), Value::test_int(i64::MAX));
        assert_eq!(millis(u64::MAX, Span::test_data()), Value::test_duration(i64::MAX));
    }
}
