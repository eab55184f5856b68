//! Why a verdict is what it is: the rule, those above it that did not hold, the evidence on both sides, and what could
//! not be read.

use crate::evidence::{Claim, Evidence, Source};
use crate::observation::At;
use crate::resolve::Outcome;
use crate::rules::RULES;
use crate::words::{Confidence, State, StateName, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a verdict is what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The coarse status.
    pub status: Status,
    /// The finer state.
    pub state: StateName,
    /// The rule that decided.
    pub reason: String,
    /// What that rule says.
    pub rule: String,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// What decided it.
    pub source: Option<Source>,
    /// Milliseconds since the session came into this state.
    pub for_ms: u64,
    /// The rules above the one that decided, and why they did not hold.
    pub passed_over: Vec<PassedOver>,
    /// Evidence that agrees with the verdict, strongest first.
    pub evidence_for: Vec<Quoted>,
    /// Evidence that speaks against it, strongest first.
    pub evidence_against: Vec<Quoted>,
    /// What could not be read, and what it would have told.
    pub failed_signals: Vec<FailedSignal>,
}

/// A rule that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassedOver {
    /// The rule.
    pub rule: String,
    /// Why it did not hold.
    pub because: String,
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quoted {
    /// Who says it.
    pub source: Source,
    /// What is said.
    pub claim: String,
    /// How much the source is worth, from 1 (strongest) to 5.
    pub authority: u8,
    /// How long ago it was said, or since when it stands, in milliseconds.
    pub age_ms: u64,
    /// The words that prove it.
    pub quote: String,
    /// Whether the verdict rests on it.
    pub decided: bool,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedSignal {
    /// The signal's error field.
    pub signal: String,
    /// Why it could not be read.
    pub why: String,
    /// What it would have told.
    pub would_tell: String,
}

/// Explains an outcome as of the moment of its look.
pub fn explain(outcome: &Outcome, at: At) -> Explanation {
    let verdict = &outcome.verdict;
    let quoted = |item: &Evidence| Quoted {
        source: item.source,
        claim: item.claim.word().to_owned(),
        authority: item.authority,
        age_ms: at.since(item.since),
        quote: item.quote.clone(),
        decided: outcome.decided_by.contains(item),
    };
    let sorted = |side: Side| {
        let mut items: Vec<&Evidence> = outcome
            .evidence
            .iter()
            .filter(|item| stands(&item.claim, &verdict.state) == Some(side))
            .collect();
        items.sort_by_key(|item| (item.authority, std::cmp::Reverse(item.since)));
        items.into_iter().map(quoted).collect()
    };
    let rule = RULES.iter().find(|rule| rule.name == verdict.reason).map_or("", |rule| rule.doc);
    Explanation {
        status: verdict.status(),
        state: verdict.state.name(),
        reason: verdict.reason.clone(),
        rule: rule.to_owned(),
        confidence: verdict.confidence,
        source: verdict.source,
        for_ms: at.since(verdict.since),
        passed_over: outcome
            .passed_over
            .iter()
            .map(|(rule, because)| PassedOver { rule: (*rule).to_owned(), because: because.clone() })
            .collect(),
        evidence_for: sorted(Side::For),
        evidence_against: sorted(Side::Against),
        failed_signals: outcome.evidence.iter().filter_map(failed).collect(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    For,
    Against,
}

/// On which side a claim stands, if it has anything to say about the state.
fn stands(claim: &Claim, state: &State) -> Option<Side> {
    let group = match claim {
        Claim::PaneDead { .. } | Claim::AgentGone { .. } | Claim::RunDone { .. } => Group::Ended,
        Claim::Working { .. } | Claim::Sent => Group::Working,
        Claim::TurnOver { .. } | Claim::Failed { .. } | Claim::Interrupted => Group::Over,
        Claim::Asking { .. } | Claim::Dialog { .. } => Group::Asking,
        Claim::AgentSuspended | Claim::Still => Group::Stalled,
        Claim::InputShown { .. } | Claim::Up => Group::Over,
        Claim::Young => Group::Starting,
        Claim::PlainText | Claim::Moving | Claim::AgentAlive | Claim::Unreadable { .. } => return None,
    };
    let of_state = match state.name() {
        StateName::Starting => Group::Starting,
        StateName::Working => Group::Working,
        StateName::Ready | StateName::Interrupted | StateName::Error => Group::Over,
        StateName::AwaitingPermission
        | StateName::AwaitingQuestion
        | StateName::AwaitingPlan
        | StateName::AwaitingDialog => Group::Asking,
        StateName::Exited => Group::Ended,
        StateName::Stalled => Group::Stalled,
        StateName::Unknown => return None,
    };
    // An input box and the age of a session go with more than one state; they are evidence only where they agree.
    let weak = matches!(claim, Claim::InputShown { .. } | Claim::Up | Claim::Young);
    match (group == of_state, weak) {
        (true, _) => Some(Side::For),
        (false, true) => None,
        (false, false) => Some(Side::Against),
    }
}

#[derive(PartialEq, Eq)]
enum Group {
    Starting,
    Working,
    Over,
    Asking,
    Ended,
    Stalled,
}

fn failed(item: &Evidence) -> Option<FailedSignal> {
    let Claim::Unreadable { signal } = &item.claim else { return None };
    let would_tell = match item.source {
        Source::Pane => "whether the pane's process has ended, and how",
        Source::Process => "whether the agent's process is there, and whether it is busy",
        Source::Screen => "whether a dialog is open, and what it asks",
        Source::Native => "whether the agent itself says busy, idle or waiting",
        Source::DoneFile => "whether the run is over, and with which code",
        Source::Hook => "what the agent's last event was",
        Source::Transcript => "whether the turn is over, and the last message",
        _ => "whether anything moves",
    };
    Some(FailedSignal { signal: signal.clone(), why: item.quote.clone(), would_tell: would_tell.to_owned() })
}
