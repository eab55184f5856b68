//! The agent's own state file.

use super::Look;
use crate::api::words::Activity;
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::memory::Ask;
use crate::classify::profile::NativeSays;
use crate::classify::prompt;

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.pane().is_some_and(|pane| pane.dead) {
        return Vec::new();
    }
    let Some(rule) = look.native_says() else { return Vec::new() };
    let quote = look.obs.native.seen().map(|file| quote(file, rule.when.keys())).unwrap_or_default();
    let claim = match rule.says {
        NativeSays::Working => Claim::Working { activity: Activity::Thinking, tool: None },
        NativeSays::Idle => Claim::TurnOver { background: false },
        NativeSays::Background => Claim::TurnOver { background: true },
        NativeSays::Asking => Claim::Asking {
            prompt: rule.asks.map(|asks| {
                let (kind, dialog) = asks.prompt();
                let at = look.now();
                let ask =
                    Ask { kind, dialog, tool: None, command: None, file: None, text: None, id: None, at };
                prompt::from_ask(look.profile, &ask)
            }),
        },
    };
    vec![look.standing(Source::Native, claim, &quote)]
}

fn quote<'k>(file: &serde_json::Value, fields: impl Iterator<Item = &'k String>) -> String {
    let parts = fields.filter_map(|pointer| {
        Some(format!("{}={}", pointer.trim_start_matches('/'), file.pointer(pointer)?))
    });
    parts.collect::<Vec<_>>().join(" ")
}
