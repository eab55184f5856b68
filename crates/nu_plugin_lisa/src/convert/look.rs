//! Converts the results of queries.

use super::{date, int, list, millis, text, text_or_null, texts};
use lisa_engine::api::{AgentInfo, Check, Explanation, Removed, ReplayRow, words::EvidenceItem};
use nu_protocol::{Span, Value, record};
use std::{path::Path, time::Duration};

/// An explanation.
pub(crate) fn explanation(explanation: &Explanation, span: Span) -> Value {
    let session = &explanation.session;
    Value::record(
        record! {
            "name" => text(session.name.as_str(), span),
            "status" => text(session.status.as_str(), span),
            "state" => text(session.state.as_str(), span),
            "rule" => text(explanation.rule.as_str(), span),
            "rule_says" => text(explanation.rule_says.as_str(), span),
            "confidence" => text(session.confidence.as_str(), span),
            "source" => text(session.source.as_str(), span),
            "since" => date(session.since, span),
            "evidence_for" => list(&explanation.evidence_for, span, evidence),
            "evidence_against" => list(&explanation.evidence_against, span, evidence),
            "passed_over" => list(&explanation.passed_over, span, |passed, span| Value::record(record! {
                "rule" => text(passed.rule.as_str(), span),
                "why_not" => text(passed.why_not.as_str(), span),
            }, span)),
            "failed" => list(&explanation.failed, span, |failed, span| Value::record(record! {
                "signal" => text(failed.signal.as_str(), span),
                "why" => text(failed.why.as_str(), span),
                "would_tell" => text(failed.would_tell.as_str(), span),
            }, span)),
            "session" => super::session(session, span),
        },
        span,
    )
}

fn evidence(item: &EvidenceItem, span: Span) -> Value {
    Value::record(
        record! {
            "claim" => text(item.claim.as_str(), span),
            "source" => text(item.source.as_str(), span),
            "authority" => Value::int(item.authority.into(), span),
            "age" => millis(item.age_ms, span),
            "quote" => text(item.quote.as_str(), span),
        },
        span,
    )
}

/// A check of `doctor`.
pub(crate) fn check(check: &Check, span: Span) -> Value {
    Value::record(
        record! {
            "name" => text(check.name.as_str(), span),
            "ok" => Value::bool(check.ok, span),
            "required" => Value::bool(check.required, span),
            "detail" => text(check.detail.as_str(), span),
            "fix" => text_or_null(check.fix.as_deref(), span),
        },
        span,
    )
}

/// An agent.
pub(crate) fn agent(agent: &AgentInfo, span: Span) -> Value {
    Value::record(
        record! {
            "id" => text(agent.id.as_str(), span),
            "title" => text(agent.title.as_str(), span),
            "installed" => Value::bool(agent.installed, span),
            "exec" => Value::bool(agent.exec, span),
            "resume" => Value::bool(agent.resume, span),
            "own" => Value::bool(agent.own, span),
            "recorded_with" => texts(&agent.recorded_with, span),
            "prompt_in_arguments" => Value::bool(agent.prompt_in_arguments, span),
            "path" => text_or_null(agent.path.as_deref(), span),
            "install" => text(agent.install.as_str(), span),
        },
        span,
    )
}

/// Something that a cleanup removed.
pub(crate) fn removed(removed: &Removed, span: Span) -> Value {
    Value::record(
        record! {
            "kind" => text(removed.kind.as_str(), span),
            "name" => text(removed.name.as_str(), span),
            "why" => text(removed.why.as_str(), span),
        },
        span,
    )
}

/// The result of a recording.
pub(crate) fn recorded(name: &str, file: &Path, frames: u64, size: u64, took: Duration, span: Span) -> Value {
    Value::record(
        record! {
            "name" => text(name, span),
            "file" => text(file.display().to_string(), span),
            "frames" => int(frames, span),
            "size" => Value::filesize(i64::try_from(size).unwrap_or(i64::MAX), span),
            "took" => millis(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), span),
        },
        span,
    )
}

/// The verdict on one frame of a recording.
pub(crate) fn replayed(row: &ReplayRow, span: Span) -> Value {
    Value::record(
        record! {
            "t" => Value::duration(row.t.saturating_mul(1_000_000), span),
            "status" => text(row.status.as_str(), span),
            "state" => text(row.state.as_str(), span),
            "reason" => text(row.reason.as_str(), span),
            "confidence" => text(row.confidence.as_str(), span),
            "source" => text(row.source.as_str(), span),
        },
        span,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{convert::samples, types};
    use lisa_engine::api::words::{Confidence, FailedSignal, PassedOver, SignalError, StateName, Status};

    const SPAN: Span = Span::test_data();

    #[test]
    fn an_explanation_has_the_declared_type() {
        let item = EvidenceItem {
            claim: "the turn is over".into(),
            source: "transcript".into(),
            authority: 3,
            age_ms: 1500,
            quote: String::new(),
        };
        let full = Explanation {
            session: samples::session("a"),
            rule: "turn_complete".into(),
            rule_says: "the agent says so".into(),
            evidence_for: vec![item],
            evidence_against: vec![],
            passed_over: vec![PassedOver { rule: "dead".into(), why_not: "alive".into() }],
            failed: vec![FailedSignal {
                signal: SignalError::Hook,
                why: "gone".into(),
                would_tell: "more".into(),
            }],
        };
        samples::assert_type(&explanation(&full, SPAN), types::explanation());
    }

    #[test]
    fn checks_agents_removals_and_verdicts_have_the_declared_types() {
        let tmux = Check { name: "tmux".into(), ok: true, required: true, detail: "3.3a".into(), fix: None };
        samples::assert_type(&check(&tmux, SPAN), types::check());
        let demo = AgentInfo {
            id: "demo".into(),
            title: "Demo".into(),
            installed: true,
            path: None,
            recorded_with: vec!["1.0".into()],
            prompt_in_arguments: false,
            exec: true,
            resume: false,
            own: false,
            install: "it comes with Lisa".into(),
        };
        samples::assert_type(&agent(&demo, SPAN), types::agent());
        let folder = Removed { kind: "folder".into(), name: "a".into(), why: "its session is gone".into() };
        samples::assert_type(&removed(&folder, SPAN), types::removed());
        let verdict = ReplayRow {
            t: 1500,
            status: Status::InProgress,
            state: StateName::Working,
            reason: lisa_engine::api::words::Reason::ScreenWorking,
            confidence: Confidence::Likely,
            source: "screen".into(),
        };
        samples::assert_type(&replayed(&verdict, SPAN), types::replayed());
        let took = Duration::from_millis(1500);
        samples::assert_type(
            &recorded("a", Path::new("/tmp/a.jsonl"), 3, 2048, took, SPAN),
            types::recorded(),
        );
    }
}
