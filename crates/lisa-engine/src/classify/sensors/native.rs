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

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{ClaimKind, Source},
        observation::Reading,
        sensors::testing::*,
    };
    use serde_json::json;

    #[test]
    fn the_state_file_s_words_are_quoted_with_what_they_mean() {
        for (file, claim, shown) in [
            (json!({"status": "busy"}), ClaimKind::Working, "working"),
            (json!({"status": "idle"}), ClaimKind::TurnOver, "idle"),
            (json!({"status": "waiting", "waitingFor": "permission prompt"}), ClaimKind::Asking, "asking"),
        ] {
            let outcome = Session::new("claude").look(&blank(1_000).native(file));
            let said = from(&outcome, Source::Native);
            assert_eq!(said[0].claim.kind(), claim);
            assert!(said[0].quote.starts_with("status="), "{}", said[0].quote);
            assert_eq!(outcome.signals.native_status.as_deref(), Some(shown));
        }
    }

    #[test]
    fn words_that_nobody_knows_say_nothing_and_a_torn_file_is_unreadable() {
        let unknown = Session::new("claude").look(&blank(1_000).native(json!({"status": "pondering"})));
        assert_eq!((claims(&unknown, Source::Native), unknown.signals.native_status), (vec![], None));
        let mut torn = blank(1_000);
        torn.native = Reading::Unavailable { why: "incomplete".to_owned() };
        let torn = Session::new("claude").look(&torn);
        assert_eq!(claims(&torn, Source::Native), [ClaimKind::Unreadable]);
        assert_eq!(torn.signals.native_error.as_deref(), Some("incomplete"));
    }

    #[test]
    fn the_state_file_of_an_agent_whose_pane_is_dead_is_left_over() {
        let dead = blank(1_000).native(json!({"status": "busy"})).pane(|pane| pane.dead = true);
        assert_eq!(claims(&Session::new("claude").look(&dead), Source::Native), []);
    }
}
