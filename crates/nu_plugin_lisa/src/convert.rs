//! Converts API responses to Nushell values: durations, datetimes, lists and records, with the columns of `columns`.
//! Every row has every column; unknown values are null.

use crate::{
    columns::{self, Column, Columns, Kind},
    errors::code,
    next_step::describe,
};
use lisa_engine::{
    api::{Action, AnswerResponse, Explanation, Next, SendResponse, Session, SpawnResponse, TreeNode},
    error::Error,
};
use nu_protocol::{Record, Span, Value};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use std::{path::Path, time::Duration};

/// The longest name that leaves room for `agent`, `status`, `idle` and `started` in 80 columns.
const NAME_FIRST: usize = 20;

/// A table: one row for each item.
pub(crate) fn table<T: Serialize>(items: &[T], columns: Columns, span: Span) -> Value {
    Value::list(items.iter().map(|item| row(item, columns, span)).collect(), span)
}

/// One row, from the item's fields.
pub(crate) fn row(item: &impl Serialize, columns: Columns, span: Span) -> Value {
    filled(&object(item), columns, span)
}

/// A session with all fields.
pub(crate) fn session(session: &Session, span: Span) -> Value {
    row(session, columns::SESSION, span)
}

/// A list of sessions. With short names, `name` is the first column, as documented. Generated names have about 60
/// characters and would push the other columns off the screen, so with one of those in the list, `name` is the fifth
/// column, where Nushell wraps it. Names are never truncated.
pub(crate) fn sessions(sessions: &[Session], span: Span) -> Value {
    let name_first = sessions.iter().all(|session| session.name.chars().count() <= NAME_FIRST);
    let rows = sessions.iter().map(|session| match row(session, columns::ROW, span) {
        Value::Record { val, .. } if !name_first => {
            let mut columns: Vec<(String, Value)> = val.into_owned().into_iter().collect();
            columns[..5].rotate_left(1);
            Value::record(columns.into_iter().collect(), span)
        }
        row => row,
    });
    Value::list(rows.collect(), span)
}

/// The result of a spawn.
pub(crate) fn spawned(response: &SpawnResponse, span: Span) -> Value {
    let mut fields = object(&response.session);
    fields.insert("receipt".to_owned(), response.receipt.as_ref().map(object).into());
    fields.insert("cursor".to_owned(), response.cursor.into());
    insert_next(&mut fields, &response.next);
    filled(&fields, columns::SPAWNED, span)
}

/// The result of a send.
pub(crate) fn sent(response: &SendResponse, span: Span) -> Value {
    let mut fields = object(response);
    insert_next(&mut fields, &response.next);
    filled(&fields, columns::SENT, span)
}

/// The result of an answer.
pub(crate) fn answered(response: &AnswerResponse, span: Span) -> Value {
    let mut fields = object(response);
    fields.insert("recorded".to_owned(), response.recorded.into());
    fields.insert("detail".to_owned(), response.answered.join(", ").into());
    insert_next(&mut fields, &response.next);
    filled(&fields, columns::ANSWERED, span)
}

/// The row of a failed answer.
pub(crate) fn not_answered(name: &str, error: &Error, span: Span) -> Value {
    row(
        &json!({ "session": name, "detail": error.message(), "error": problem(error) }),
        columns::ANSWERED,
        span,
    )
}

/// The result of an action.
pub(crate) fn action(action: &Action, span: Span) -> Value {
    let mut fields = object(action);
    fields.insert("recorded".to_owned(), action.recorded.into());
    filled(&fields, columns::ACTION, span)
}

/// The row of a failed action.
pub(crate) fn not_done(name: &str, error: &Error, span: Span) -> Value {
    row(&json!({ "name": name, "detail": error.message(), "error": problem(error) }), columns::ACTION, span)
}

fn problem(error: &Error) -> Json {
    json!({ "code": code(error.kind()), "message": error.message(), "help": error.hint() })
}

/// An explanation.
pub(crate) fn explanation(explanation: &Explanation, span: Span) -> Value {
    let mut fields = object(&explanation.session);
    fields.extend(object(explanation));
    filled(&fields, columns::EXPLANATION, span)
}

/// A session with the sessions it started.
pub(crate) fn tree(node: &TreeNode, span: Span) -> Value {
    let mut fields = object(&node.session);
    fields.insert("depth".to_owned(), node.depth.into());
    let mut made = filled(&fields, columns::TREE, span);
    if let Value::Record { val, .. } = &mut made {
        let children = node.children.iter().map(|child| tree(child, span)).collect();
        val.to_mut().insert("children", Value::list(children, span));
    }
    made
}

/// The result of a recording.
pub(crate) fn recorded(name: &str, file: &Path, frames: u64, size: u64, took: Duration, span: Span) -> Value {
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let file = file.display().to_string();
    let fields = json!({ "name": name, "file": file, "frames": frames, "size": size, "took_ms": took });
    row(&fields, columns::RECORDED, span)
}

/// The next step, as text with the plugin's commands.
fn insert_next(fields: &mut Map<String, Json>, next: &Next) {
    fields.insert("next".to_owned(), describe(next).into());
}

/// The fields of an item as JSON.
fn object(item: &impl Serialize) -> Map<String, Json> {
    match serde_json::to_value(item) {
        Ok(Json::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// A record with all columns, filled from the fields that are there.
fn filled(fields: &Map<String, Json>, columns: Columns, span: Span) -> Value {
    let cells = columns.iter().map(|column| (column.name.to_owned(), cell(fields, column, span)));
    Value::record(Record::from_iter(cells), span)
}

fn cell(fields: &Map<String, Json>, column: &Column, span: Span) -> Value {
    let Some(value) = fields.get(column.field).filter(|value| !value.is_null()) else {
        return missing(column.kind, span);
    };
    let count = || value.as_u64().unwrap_or(0);
    match column.kind {
        Kind::Date => value.as_str().map_or_else(|| Value::nothing(span), |at| date(at, span)),
        Kind::Duration(unit) => millis(count().saturating_mul(unit), span),
        Kind::Idle => millis(two_units(count()), span),
        Kind::Size => size(count(), span),
        Kind::Record(columns) | Kind::Plain(columns) => {
            filled(value.as_object().unwrap_or(&Map::new()), columns, span)
        }
        Kind::Table(columns) => {
            let rows = value.as_array().map(Vec::as_slice).unwrap_or_default();
            table(rows, columns, span)
        }
        Kind::Text | Kind::Texts | Kind::Int | Kind::Float | Kind::Bool | Kind::Flag(_) => any(value, span),
        Kind::Nested | Kind::Any => any(value, span),
    }
}

/// What a column shows where the API leaves its field out.
fn missing(kind: Kind, span: Span) -> Value {
    match kind {
        Kind::Flag(usual) => Value::bool(usual, span),
        Kind::Texts | Kind::Table(_) | Kind::Nested => Value::list(Vec::new(), span),
        _ => Value::nothing(span),
    }
}

/// The idle time, rounded to two units: `12sec`, `5min 3sec`, `3hr 20min`, `2day 4hr`.
fn two_units(ms: u64) -> u64 {
    let s = ms / 1000;
    let unit = match s {
        0..3600 => 1,
        3600..86_400 => 60,
        86_400..604_800 => 3600,
        _ => 86_400,
    };
    (s - s % unit).saturating_mul(1000)
}

fn millis(ms: u64, span: Span) -> Value {
    Value::duration(i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000_000), span)
}

fn size(bytes: u64, span: Span) -> Value {
    Value::filesize(i64::try_from(bytes).unwrap_or(i64::MAX), span)
}

/// A timestamp in the local time zone, like those of `date now` and `ls`.
fn date(at: &str, span: Span) -> Value {
    chrono::DateTime::parse_from_rfc3339(at).map_or_else(
        |_| Value::nothing(span),
        |at| Value::date(at.with_timezone(&chrono::Local).fixed_offset(), span),
    )
}

/// Untyped JSON. A field like `output_age_ms` becomes a duration `output_age`, and a field whose name ends in `_bytes`
/// becomes a filesize.
fn any(value: &Json, span: Span) -> Value {
    match value {
        Json::Null => Value::nothing(span),
        Json::Bool(flag) => Value::bool(*flag, span),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Value::int(int, span),
            // Larger than Nushell's largest integer.
            (None, Some(_)) => Value::int(i64::MAX, span),
            (None, None) => Value::float(number.as_f64().unwrap_or(f64::NAN), span),
        },
        Json::String(text) => Value::string(text, span),
        Json::Array(items) => Value::list(items.iter().map(|item| any(item, span)).collect(), span),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| any_field(name, value, span));
            Value::record(Record::from_iter(fields), span)
        }
    }
}

fn any_field(name: &str, value: &Json, span: Span) -> (String, Value) {
    let number = value.as_u64();
    if let Some(name) = name.strip_suffix("_ms") {
        return (name.to_owned(), number.map_or_else(|| any(value, span), |ms| millis(ms, span)));
    }
    match number {
        Some(bytes) if name.ends_with("_bytes") => (name.to_owned(), size(bytes, span)),
        _ => (name.to_owned(), any(value, span)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use lisa_engine::{
        api::{
            AgentInfo, Check, Delivery, Event, EventKind, Receipt, Refusal, Removed, ReplayRow, Row,
            words::{
                Confidence, Effect, EvidenceItem, FailedSignal, PassedOver, Reason, SignalError, StateName,
                Status,
            },
        },
        error::Kind as ErrorKind,
    };
    use nu_protocol::{CompareTypes, record};

    const SPAN: Span = Span::test_data();

    /// Checks that rows have the declared type, and that each column is filled in one of them: a column whose field the
    /// API doesn't have would be null in all.
    #[track_caller]
    fn check(rows: &[Value], columns: Columns) {
        for row in rows {
            let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
            assert_eq!(row.as_record().unwrap().columns().collect::<Vec<_>>(), names);
            assert!(row.is_subtype_of(&columns::record(columns)), "{row:?}");
        }
        for column in columns {
            let cells: Vec<Value> =
                rows.iter().map(|row| row.as_record().unwrap().get(column.name).unwrap().clone()).collect();
            let filled: Vec<Value> = cells.into_iter().filter(|cell| !is_empty(cell)).collect();
            assert!(!filled.is_empty(), "`{}` is never filled", column.name);
            match column.kind {
                Kind::Record(columns) | Kind::Plain(columns) => check(&filled, columns),
                Kind::Table(columns) => {
                    check(
                        &filled.iter().flat_map(|list| list.as_list().unwrap().to_vec()).collect::<Vec<_>>(),
                        columns,
                    );
                }
                _ => {}
            }
        }
    }

    fn is_empty(cell: &Value) -> bool {
        cell.is_nothing() || cell.as_list().is_ok_and(<[Value]>::is_empty)
    }

    fn receipt() -> Receipt {
        Receipt {
            turn: Some("a#1".into()),
            delivered: Delivery::Refused,
            evidence: Some("its transcript".into()),
            at: samples::now(),
            refusal: Some(Refusal::PromptOpen),
            hint: Some("answer it".into()),
            recorded: true,
        }
    }

    #[test]
    fn sessions_and_their_rows_have_the_declared_columns() {
        let given = samples::sessions();
        check(&given.iter().map(|sample| session(sample, SPAN)).collect::<Vec<_>>(), columns::SESSION);
        check(sessions(&given, SPAN).as_list().unwrap(), columns::ROW);
        let spawn = |session, receipt| {
            spawned(&SpawnResponse { session, receipt, cursor: 1, next: Next::Spawn }, SPAN)
        };
        let spawns: Vec<Value> =
            given.into_iter().zip([None, None, Some(receipt())]).map(|(s, r)| spawn(s, r)).collect();
        check(&spawns, columns::SPAWNED);
    }

    #[test]
    fn a_send_has_the_declared_columns_and_says_whether_it_was_recorded() {
        let response = SendResponse {
            session: "a".into(),
            receipt: receipt(),
            status: Status::WaitingInput,
            state: StateName::AwaitingPermission,
            cursor: 7,
            next: Next::Spawn,
        };
        let recorded = |response: &SendResponse| {
            sent(response, SPAN).as_record().unwrap().get("recorded").unwrap().as_bool().unwrap()
        };
        check(&[sent(&response, SPAN)], columns::SENT);
        assert!(recorded(&response));
        let receipt = Receipt { recorded: false, ..receipt() };
        assert!(!recorded(&SendResponse { receipt, ..response }));
    }

    #[test]
    fn answers_and_actions_have_the_declared_columns_also_if_they_failed() {
        let error = Error::new(ErrorKind::NoPrompt, "none", "wait");
        let response = AnswerResponse {
            session: "a".into(),
            prompt_id: "p".into(),
            title: "May I?".into(),
            answered: vec!["Yes".into()],
            effect: Some(Effect::AllowOnce),
            recorded: true,
            status: Status::InProgress,
            state: StateName::Working,
            cursor: 7,
            next: Next::Spawn,
        };
        check(&[answered(&response, SPAN), not_answered("a", &error, SPAN)], columns::ANSWERED);
        let done = Action {
            name: "a".into(),
            was: Status::Stuck,
            done: "killed".into(),
            detail: None,
            recorded: true,
        };
        let failed = not_done("a", &error, SPAN);
        assert!(failed.as_record().unwrap().get("recorded").unwrap().is_nothing());
        check(&[action(&done, SPAN), failed], columns::ACTION);
    }

    #[test]
    fn events_have_the_declared_columns() {
        let happened = Event {
            cursor: 3,
            at: samples::now(),
            session: "a".into(),
            event: EventKind::Spawned,
            status: Status::JustStarted,
            state: StateName::Starting,
            detail: "demo".into(),
            turn: None,
            data: None,
        };
        let data = json!({ "tokens": 3 }).as_object().cloned();
        let more = Event { turn: Some("a#1".into()), data, ..happened.clone() };
        check(table(&[happened, more], columns::EVENT, SPAN).as_list().unwrap(), columns::EVENT);
    }

    #[test]
    fn an_explanation_has_the_declared_columns() {
        let item = EvidenceItem {
            claim: "the turn is over".into(),
            source: "transcript".into(),
            authority: 3,
            age_ms: 1500,
            quote: "end_turn".into(),
        };
        let explained = |session: Session| Explanation {
            session,
            rule: "turn_complete".into(),
            rule_says: "the agent says so".into(),
            evidence_for: vec![item.clone()],
            evidence_against: vec![item.clone()],
            passed_over: vec![PassedOver { rule: "dead".into(), why_not: "alive".into() }],
            failed: vec![FailedSignal {
                signal: SignalError::Hook,
                why: "gone".into(),
                would_tell: "more".into(),
            }],
        };
        let rows: Vec<Value> =
            samples::sessions().into_iter().map(|session| explanation(&explained(session), SPAN)).collect();
        check(&rows, columns::EXPLANATION);
    }

    #[test]
    fn checks_agents_removals_and_verdicts_have_the_declared_columns() {
        let fix = Some("install it".to_owned());
        let tmux = Check { name: "tmux".into(), ok: true, required: true, detail: "3.3a".into(), fix };
        check(&[row(&tmux, columns::CHECK, SPAN)], columns::CHECK);
        let demo = AgentInfo {
            id: "demo".into(),
            title: "Demo".into(),
            installed: true,
            path: Some("/bin/demo".into()),
            recorded_with: vec!["1.0".into()],
            prompt_in_arguments: false,
            exec: true,
            resume: false,
            own: false,
            install: "it comes with Lisa".into(),
        };
        check(&[row(&demo, columns::AGENT, SPAN)], columns::AGENT);
        let removed = Removed { kind: "session".into(), name: "a".into(), why: "it has ended".into() };
        check(&[row(&removed, columns::REMOVED, SPAN)], columns::REMOVED);
        let verdict = ReplayRow {
            t: 1500,
            status: Status::InProgress,
            state: StateName::Working,
            reason: Reason::ScreenWorking,
            confidence: Confidence::Likely,
            source: "screen".into(),
        };
        check(&[row(&verdict, columns::REPLAYED, SPAN)], columns::REPLAYED);
        let took = Duration::from_millis(1500);
        let recorded = recorded("a", Path::new("/tmp/a.jsonl"), 3, 2048, took, SPAN);
        check(&[recorded], columns::RECORDED);
    }

    #[test]
    fn a_tree_nests_started_sessions() {
        let node =
            |name, depth, children| TreeNode { session: Row::from(&samples::session(name)), depth, children };
        let root = tree(&node("root", 0, vec![node("leaf", 1, vec![])]), SPAN);
        check(std::slice::from_ref(&root), columns::TREE);
        let children = root.as_record().unwrap().get("children").unwrap().as_list().unwrap().to_vec();
        assert_eq!(children[0].as_record().unwrap().get("depth"), Some(&Value::test_int(1)));
    }

    #[test]
    fn a_long_name_is_the_fifth_column_and_not_truncated() {
        let session = samples::session("lisa-0a1b2c3d-251116-183520-123456789-claude-interactive");
        let value = sessions(std::slice::from_ref(&session), SPAN);
        let first = value.as_list().unwrap()[0].as_record().unwrap();
        let columns: Vec<&String> = first.columns().take(6).collect();
        assert_eq!(columns, ["agent", "status", "idle", "started", "name", "state"]);
        assert_eq!(first.get("name"), Some(&Value::test_string(session.name)));
    }

    #[test]
    fn idle_times_are_rounded_to_two_units() {
        let shown = |ms| millis(two_units(ms), SPAN).to_expanded_string("", &Default::default());
        assert_eq!(shown(12_345), "12sec");
        assert_eq!(shown(303_900), "5min 3sec");
        assert_eq!(shown(12_034_000), "3hr 20min");
        assert_eq!(shown(188_000_000), "2day 4hr");
    }

    #[test]
    fn ages_and_sizes_in_signals_are_durations_and_filesizes() {
        let given = json!({
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
        assert_eq!(any(&given, SPAN), Value::test_record(want));
    }

    #[test]
    fn a_timestamp_keeps_its_instant() {
        let at: jiff::Timestamp = "2025-11-16T18:35:20.5Z".parse().unwrap();
        let Value::Date { val, .. } = date(&at.to_string(), SPAN) else { panic!("no date") };
        assert_eq!(val.timestamp_millis(), at.as_millisecond());
    }

    #[test]
    fn large_numbers_saturate() {
        assert_eq!(any(&json!(u64::MAX), SPAN), Value::test_int(i64::MAX));
        assert_eq!(millis(u64::MAX, SPAN), Value::test_duration(i64::MAX));
    }
}
