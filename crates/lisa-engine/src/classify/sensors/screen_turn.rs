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
    let mut evidence: Vec<Evidence> = idle(look).into_iter().collect();
    evidence.extend(look.signs.iter().map(|found| {
        let claim = match found.sign.says {
            SignSays::Working => {
                Claim::Working { activity: found.sign.activity.unwrap_or(Activity::Thinking), tool: None }
            }
            SignSays::TurnOver => Claim::TurnOver { background: false },
            SignSays::Background => Claim::TurnOver { background: true },
            SignSays::Interrupted => Claim::Interrupted,
            SignSays::Ready | SignSays::Idle => Claim::Up,
            SignSays::Failed => {
                let message = found.message.clone().unwrap_or_else(|| found.line.trim().to_owned());
                let kind = look.profile.error_kind(&message);
                Claim::Failed { failure: Failure { kind, recoverable: kind.recoverable(), message } }
            }
        };
        look.standing(Source::Screen, claim, found.line.trim())
    }));
    evidence
}

/// That no turn is running, by a sign for that, by a command that was the last thing to run, or by a banner below which
/// nothing has been asked. Text in the input box hides the signs, or leaves them as they were.
fn idle(look: &Look<'_>) -> Option<Evidence> {
    let layout = look.layout.as_ref()?;
    let input = layout.input()?;
    let sign = look.signs.iter().find(|found| found.sign.says == SignSays::Idle);
    let shown = sign.filter(|_| input.draft.is_none()).map(|found| found.line.trim());
    let screen = &look.profile.screen;
    let quote = shown.or_else(|| layout.last_command(screen)).or_else(|| layout.untouched_banner(screen))?;
    Some(look.standing(Source::Screen, Claim::Idle, quote.trim()))
}
