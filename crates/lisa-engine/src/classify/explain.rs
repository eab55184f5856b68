//! Explains a verdict: the rule, the evidence for and against, and what couldn't be read.

use crate::{
    api::words::{EvidenceItem, FailedSignal, PassedOver, Signals, Status},
    classify::{
        evidence::{Claim, Evidence},
        observation::At,
        resolve::Outcome,
        rules::{RULES, exit},
    },
};

/// Why a verdict is what it is, without its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasons {
    /// The description of the rule that decided.
    pub rule_says: String,
    /// Evidence for the verdict, strongest first.
    pub evidence_for: Vec<EvidenceItem>,
    /// Evidence against it, strongest first.
    pub evidence_against: Vec<EvidenceItem>,
    /// Earlier rules that didn't apply, in order.
    pub passed_over: Vec<PassedOver>,
    /// Signals that couldn't be read.
    pub failed: Vec<FailedSignal>,
}

/// The reasons for an outcome, at the time of its look.
pub fn reasons(outcome: &Outcome, at: At) -> Reasons {
    let rule = RULES.iter().find(|rule| rule.reason == outcome.verdict.reason);
    let decided = |item: &Evidence| {
        outcome.decided_by.iter().any(|by| by.claim == item.claim && by.source == item.source)
    };
    let (mut evidence_for, mut evidence_against): (Vec<EvidenceItem>, Vec<EvidenceItem>) =
        (Vec::new(), Vec::new());
    for item in &outcome.evidence {
        let shown = describe(item, at);
        if decided(item) || says(&item.claim) == Some(outcome.verdict.state.status()) {
            evidence_for.push(shown);
        } else if says(&item.claim).is_some() {
            evidence_against.push(shown);
        }
    }
    evidence_for.sort_by_key(|item| item.authority);
    evidence_against.sort_by_key(|item| item.authority);
    let passed_over = outcome.passed_over.iter();
    Reasons {
        rule_says: rule.map_or("The state could not be judged.", |rule| rule.doc).to_owned(),
        evidence_for,
        evidence_against,
        passed_over: passed_over
            .map(|(rule, why_not)| PassedOver { rule: rule.to_string(), why_not: why_not.to_string() })
            .collect(),
        failed: failed(&outcome.signals),
    }
}

/// The status that a claim would give on its own; `None` if it decides nothing on its own.
fn says(claim: &Claim) -> Option<Status> {
    match claim {
        Claim::ServerDied => Some(Status::Crashed),
        Claim::PaneDead { code, signal } | Claim::RunDone { code, signal } => {
            Some(exit(*code, *signal).status())
        }
        Claim::AgentGone { clean } => Some(if *clean { Status::Completed } else { Status::Crashed }),
        Claim::AgentSuspended | Claim::Still => Some(Status::Stuck),
        Claim::Working { .. } | Claim::Moving | Claim::Sent => Some(Status::InProgress),
        Claim::TurnOver { .. }
        | Claim::Failed { .. }
        | Claim::Interrupted
        | Claim::Idle
        | Claim::Asking { .. }
        | Claim::Dialog { .. }
        | Claim::Covered { .. }
        | Claim::InputShown { .. } => Some(Status::WaitingInput),
        Claim::Young => Some(Status::JustStarted),
        Claim::Unreadable { .. } => Some(Status::Degraded),
        Claim::AgentAlive | Claim::PlainText | Claim::Up => None,
    }
}

fn describe(item: &Evidence, at: At) -> EvidenceItem {
    EvidenceItem {
        claim: item.claim.kind().to_string(),
        source: item.source.as_str().to_owned(),
        authority: item.source.authority(),
        age_ms: at.since(item.since),
        quote: item.quote.clone(),
    }
}

fn failed(signals: &Signals) -> Vec<FailedSignal> {
    let failed = signals.errors().map(|(signal, why)| FailedSignal {
        signal,
        why: why.to_owned(),
        would_tell: signal.would_tell().to_owned(),
    });
    failed.collect()
}
