//! Tokens and model, as reported by the agent.

use super::fold::shown_at;
use crate::classify::profile::{Take, number_at};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens and model, as reported by the agent.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Usage {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Input tokens of the last answer: the size of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The size of the model's context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

impl Usage {
    /// Takes over what a line reports.
    pub(super) fn take(&mut self, take: &Take, value: &Value) {
        if let Some(model) = shown_at(value, take.model.as_ref()) {
            self.model = Some(model);
        }
        let read: Vec<u64> =
            take.input_tokens.iter().filter_map(|pointer| number_at(value, pointer)).collect();
        if !read.is_empty() {
            self.input_tokens = Some(read.into_iter().fold(0, u64::saturating_add));
        }
        if let Some(written) = take.output_tokens.as_deref().and_then(|pointer| number_at(value, pointer)) {
            self.output_tokens = Some(written);
        }
        if let Some(window) = take.context_window.as_deref().and_then(|pointer| number_at(value, pointer)) {
            self.context_window = Some(window);
        }
    }
}
