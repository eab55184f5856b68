//! The evidence for a verdict, as `explain` shows it.

use super::SignalError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceItem {
    /// What it says.
    pub claim: String,
    /// Which signal says it.
    pub source: String,
    /// Its authority, from 1 (the process) to 5 (timing).
    pub authority: u8,
    /// Its age, in milliseconds.
    pub age_ms: u64,
    /// The text that proves it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
}

/// A rule that comes before the one that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassedOver {
    /// The rule.
    pub rule: String,
    /// Why it didn't apply.
    pub why_not: String,
}

/// A signal that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedSignal {
    /// The signal.
    #[schemars(with = "String")]
    pub signal: SignalError,
    /// Why it couldn't be read.
    pub why: String,
    /// What it would have told.
    pub would_tell: String,
}
