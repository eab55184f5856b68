//! Converts sessions.

use super::{date, int, json_record, list, millis, or_null, prompt, text, text_or_null};
use lisa_engine::api::{
    Session, TreeNode, Usage,
    words::{Exit, Failure},
};
use nu_protocol::{Record, Span, Value, record};

/// The longest name that leaves room for `agent`, `status`, `idle` and `started` in 80 columns.
const NAME_FIRST: usize = 20;

/// A list of sessions. With short names, `name` is the first column, as documented. Generated names have about 60
/// characters and would push the other columns off the screen, so with one of those in the list, `name` is the fifth
/// column, where Nushell wraps it. Names are never truncated.
pub(crate) fn rows(sessions: &[Session], span: Span) -> Value {
    let name_first = sessions.iter().all(|session| session.name.chars().count() <= NAME_FIRST);
    let rows = sessions.iter().map(|session| {
        let record = row_record(session, span);
        if name_first {
            return Value::record(record, span);
        }
        let mut columns: Vec<(String, Value)> = record.into_iter().collect();
        columns[..5].rotate_left(1);
        Value::record(columns.into_iter().collect(), span)
    });
    Value::list(rows.collect(), span)
}

fn row_record(row: &Session, span: Span) -> Record {
    record! {
        "name" => text(row.name.as_str(), span),
        "agent" => text(row.agent.as_str(), span),
        "status" => text(row.status.as_str(), span),
        "idle" => idle(row.idle_ms, span),
        "started" => date(row.started_at, span),
        "state" => text(row.state.as_str(), span),
        "attention" => text(row.attention.as_str(), span),
        "prompt" => or_null(row.prompt.as_ref(), span, prompt),
        "project" => text(row.project.as_str(), span),
        "cwd" => text(row.cwd.as_str(), span),
        "mode" => text(row.mode.as_str(), span),
        "pid" => or_null(row.pid.as_ref(), span, |pid, span| int((*pid).into(), span)),
        "tag" => text_or_null(row.tag.as_deref(), span),
        "parent" => text_or_null(row.parent.as_deref(), span),
        "host" => text(row.host.as_str(), span),
        "reason" => text(row.reason.as_str(), span),
    }
}

/// A session with all fields.
pub(crate) fn session(session: &Session, span: Span) -> Value {
    Value::record(session_record(session, span), span)
}

/// A session with all fields, as a record to extend.
pub(crate) fn session_record(s: &Session, span: Span) -> Record {
    record! {
        "name" => text(s.name.as_str(), span),
        "agent" => text(s.agent.as_str(), span),
        "status" => text(s.status.as_str(), span),
        "idle" => idle(s.idle_ms, span),
        "started" => date(s.started_at, span),
        "state" => text(s.state.as_str(), span),
        "attention" => text(s.attention.as_str(), span),
        "prompt" => or_null(s.prompt.as_ref(), span, prompt),
        "reason" => text(s.reason.as_str(), span),
        "confidence" => text(s.confidence.as_str(), span),
        "source" => text(s.source.as_str(), span),
        "since" => date(s.since, span),
        "activity" => text_or_null(s.activity.map(|activity| activity.as_str()), span),
        "tool" => text_or_null(s.tool.as_deref(), span),
        "last_message" => text_or_null(s.last_message.as_deref(), span),
        "asks" => or_null(s.asks.as_ref(), span, |asks, span| Value::bool(*asks, span)),
        "error" => or_null(s.error.as_ref(), span, failure),
        "exit" => or_null(s.exit.as_ref(), span, exit),
        "expected" => text_or_null(s.expected.as_deref(), span),
        "failed_signals" => list(&s.failed_signals, span, |signal, span| text(signal.as_str(), span)),
        "mode" => text(s.mode.as_str(), span),
        "cwd" => text(s.cwd.as_str(), span),
        "project" => text(s.project.as_str(), span),
        "project_hash" => text(s.project_hash.as_str(), span),
        "tag" => text_or_null(s.tag.as_deref(), span),
        "parent" => text_or_null(s.parent.as_deref(), span),
        "depth" => int(s.depth.into(), span),
        "host" => text(s.host.as_str(), span),
        "pid" => or_null(s.pid.as_ref(), span, |pid, span| int((*pid).into(), span)),
        "run_id" => text(s.run_id.as_str(), span),
        "agent_session_id" => text_or_null(s.agent_session_id.as_deref(), span),
        "turn" => text_or_null(s.turn.as_deref(), span),
        "subagents" => int(s.subagents.into(), span),
        "background_tasks" => int(s.background_tasks.into(), span),
        "todos" => or_null(s.todos.as_ref(), span, todos),
        "wait_estimate" => or_null(s.wait_estimate_s.as_ref(), span, |s, span| millis(u64::from(*s) * 1000, span)),
        "usage" => or_null(s.usage.as_ref(), span, usage),
        "signals" => or_null(s.signals.as_ref(), span, json_record),
    }
}

/// A session with the sessions it started.
pub(crate) fn tree(node: &TreeNode, span: Span) -> Value {
    let row = &node.session;
    Value::record(
        record! {
            "name" => text(row.name.as_str(), span),
            "agent" => text(row.agent.as_str(), span),
            "status" => text(row.status.as_str(), span),
            "idle" => idle(row.idle_ms, span),
            "started" => date(row.started_at, span),
            "state" => text(row.state.as_str(), span),
            "attention" => text(row.attention.as_str(), span),
            "depth" => int(node.depth.into(), span),
            "children" => list(&node.children, span, tree),
        },
        span,
    )
}

/// The idle time, rounded to two units: `12sec`, `5min 3sec`, `3hr 20min`, `2day 4hr`.
fn idle(ms: u64, span: Span) -> Value {
    let s = ms / 1000;
    let unit = match s {
        0..3600 => 1,
        3600..86_400 => 60,
        86_400..604_800 => 3600,
        _ => 86_400,
    };
    millis((s - s % unit).saturating_mul(1000), span)
}

fn failure(failure: &Failure, span: Span) -> Value {
    Value::record(
        record! {
            "kind" => text(failure.kind.as_str(), span),
            "recoverable" => Value::bool(failure.recoverable, span),
            "message" => text(failure.message.as_str(), span),
        },
        span,
    )
}

fn exit(exit: &Exit, span: Span) -> Value {
    let number = |number: &i32, span| Value::int(i64::from(*number), span);
    Value::record(
        record! {
            "code" => or_null(exit.code.as_ref(), span, number),
            "signal" => or_null(exit.signal.as_ref(), span, number),
            "kind" => text(exit.kind.as_str(), span),
        },
        span,
    )
}

fn todos(todos: &lisa_engine::api::words::Todos, span: Span) -> Value {
    Value::record(
        record! {
            "done" => int(todos.done.into(), span),
            "total" => int(todos.total.into(), span),
            "active" => text_or_null(todos.active.as_deref(), span),
        },
        span,
    )
}

fn usage(usage: &Usage, span: Span) -> Value {
    let count = |tokens: &u64, span| int(*tokens, span);
    Value::record(
        record! {
            "model" => text_or_null(usage.model.as_deref(), span),
            "input_tokens" => or_null(usage.input_tokens.as_ref(), span, count),
            "output_tokens" => or_null(usage.output_tokens.as_ref(), span, count),
            "context_tokens" => or_null(usage.context_tokens.as_ref(), span, count),
            "context_size" => or_null(usage.context_size.as_ref(), span, count),
            "cost_usd" => or_null(usage.cost_usd.as_ref(), span, |cost, span| Value::float(*cost, span)),
        },
        span,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{convert::samples, types};
    use lisa_engine::api::Row;

    fn columns(value: &Value) -> Vec<String> {
        value.as_record().unwrap().columns().cloned().collect()
    }

    #[test]
    fn every_session_has_the_declared_type() {
        for sample in samples::sessions() {
            let value = session(&sample, Span::test_data());
            samples::assert_type(&value, types::session());
            if let Some(asked) = &sample.prompt {
                samples::assert_type(&prompt(asked, Span::test_data()), types::prompt());
            }
        }
    }

    #[test]
    fn every_row_has_the_declared_type() {
        let value = rows(&samples::sessions(), Span::test_data());
        for row in value.as_list().unwrap() {
            samples::assert_type(row, types::row());
        }
    }

    #[test]
    fn a_long_name_is_the_fifth_column_and_not_truncated() {
        let session = samples::session("lisa-0a1b2c3d-251116-183520-123456789-claude-interactive");
        let value = rows(std::slice::from_ref(&session), Span::test_data());
        let first = &value.as_list().unwrap()[0];
        assert_eq!(columns(first)[..6], ["agent", "status", "idle", "started", "name", "state"]);
        assert_eq!(first.as_record().unwrap().get("name"), Some(&Value::test_string(session.name)));
    }

    #[test]
    fn idle_times_are_rounded_to_two_units() {
        let shown = |ms| idle(ms, Span::test_data()).to_expanded_string("", &Default::default());
        assert_eq!(shown(12_345), "12sec");
        assert_eq!(shown(303_900), "5min 3sec");
        assert_eq!(shown(12_034_000), "3hr 20min");
        assert_eq!(shown(188_000_000), "2day 4hr");
    }

    #[test]
    fn a_tree_nests_started_sessions() {
        let leaf = TreeNode { session: Row::from(&samples::session("leaf")), depth: 1, children: vec![] };
        let root = TreeNode { session: Row::from(&samples::session("root")), depth: 0, children: vec![leaf] };
        let value = tree(&root, Span::test_data());
        samples::assert_type(&value, types::tree());
    }
}
