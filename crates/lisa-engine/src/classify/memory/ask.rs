//! Prompts that an agent has announced on a channel.

use crate::api::words::PromptKind;
use crate::classify::evidence::shorten;
use crate::classify::observation::At;
use crate::classify::profile::{Asks, EventRule, Take};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum characters to keep of each text of a prompt.
pub(super) const ASK_LIMIT: usize = 16_000;

/// A prompt that an agent announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The kind of prompt.
    pub kind: PromptKind,
    /// Which dialog, if the kind is `dialog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<crate::api::words::DialogKind>,
    /// The tool, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The command, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The file, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The question, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The agent's own id of the request, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The call that it is about, if the channel has named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Whether a subagent asks, which may outlive its turn.
    #[serde(default)]
    pub of_subagent: bool,
    /// Its number among those of its channel, from 1.
    #[serde(default)]
    pub number: u64,
    /// When it was announced.
    pub at: At,
}

impl Ask {
    /// A prompt of which only the kind is known, and maybe the tool.
    pub(in crate::classify) const fn of(asks: Asks, tool: Option<String>, at: At) -> Self {
        let Asks { kind, dialog } = asks;
        Self {
            kind,
            dialog,
            tool,
            command: None,
            file: None,
            text: None,
            id: None,
            call: None,
            of_subagent: false,
            number: 0,
            at,
        }
    }

    /// The prompt that a line announces.
    pub(super) fn read(rule: &EventRule, value: &Value, at: At) -> Self {
        let text = |pointer: &Option<String>| {
            super::fold::shown_at(value, pointer.as_ref()).map(|text| shorten(&text, ASK_LIMIT))
        };
        let Take { tool, command, file, text: question, id, .. } = &rule.take;
        Self {
            command: text(command),
            file: text(file),
            text: text(question),
            id: text(id),
            ..Self::of(rule.asks.unwrap_or(Asks::PERMISSION), text(tool), at)
        }
    }

    /// Whether this prompt can be about that call.
    pub(super) fn is_about(&self, call: &Call) -> bool {
        let same =
            |asked: &Option<String>, called: &str| asked.as_deref().is_none_or(|asked| asked == called);
        let command = || match (&self.command, &call.command) {
            (Some(asked), Some(called)) => asked == called,
            _ => true,
        };
        same(&self.tool, &call.tool) && command()
    }
}

/// A tool call.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The command, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Call {
    /// Whether its id tells it apart from other calls. Some agents only name the tool.
    pub(super) fn has_own_id(&self) -> bool {
        !self.id.is_empty() && self.id != self.tool
    }
}
