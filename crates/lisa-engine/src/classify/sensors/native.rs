//! The agent's own state file.

use super::{Look, Sensor, failure};
use crate::api::words::{Activity, SignalError, Signals};
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::memory::Ask;
use crate::classify::profile::NativeSays;
use crate::classify::prompt;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if let Some(why) = look.obs.native.failure() {
        return vec![look.unreadable(Source::Native, SignalError::Native, why)];
    }
    if look.is_dead() {
        return Vec::new();
    }
    let Some(rule) = look.native_says() else { return Vec::new() };
    let quote = look.obs.native.seen().map(|file| quote(file, rule.when.keys())).unwrap_or_default();
    let claim = match rule.says {
        NativeSays::Working => Claim::Working { activity: Activity::Thinking, tool: None },
        NativeSays::Idle => Claim::TurnOver { background: false },
        NativeSays::Background => Claim::TurnOver { background: true },
        NativeSays::Asking => Claim::Asking {
            prompt: rule.asks.map(|asks| prompt::from_ask(look.profile, &Ask::of(asks, None, look.now()))),
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

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.native_status = look.native_says().map(|rule| {
        let word = match rule.says {
            NativeSays::Working => "working",
            NativeSays::Idle => "idle",
            NativeSays::Background => "background",
            NativeSays::Asking => "asking",
        };
        word.to_owned()
    });
    signals.native_error = failure(&look.obs.native);
}
