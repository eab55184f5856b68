//! What the structure of the screen says about the turn: a spinner in its place, or the line that ends a turn.

use super::{Look, Sensor, failure};
use crate::api::words::{Activity, Failure, SignalError, Signals};
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::profile::SignSays;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.capture_error = failure(&look.obs.screen);
    signals.output_hash.clone_from(&look.memory.output.hash);
    let changed = look.memory.output.hash.as_ref().map(|_| look.memory.output.changed_at);
    signals.output_age_ms = changed.map(|at| look.now().since(at));
}

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if let Some(why) = look.obs.screen.failure() {
        return vec![look.unreadable(Source::Screen, SignalError::Capture, why)];
    }
    if look.is_dead() {
        return Vec::new();
    }
    let claims = look.signs.iter().map(|found| {
        let claim = match found.sign.says {
            SignSays::Working => {
                Claim::Working { activity: found.sign.activity.unwrap_or(Activity::Thinking), tool: None }
            }
            SignSays::TurnOver => Claim::TurnOver { background: false },
            SignSays::Background => Claim::TurnOver { background: true },
            SignSays::Interrupted => Claim::Interrupted,
            SignSays::Ready => Claim::Up,
            SignSays::Failed => {
                let message = found.message.clone().unwrap_or_else(|| found.line.trim().to_owned());
                let kind = look.profile.error_kind(&message);
                Claim::Failed { failure: Failure { kind, recoverable: kind.recoverable(), message } }
            }
        };
        look.standing(Source::Screen, claim, found.line.trim())
    });
    claims.collect()
}
