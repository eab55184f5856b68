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

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{Claim, ClaimKind, Source},
        observation::Reading,
        sensors::testing::*,
    };

    fn says(screen: &str) -> Vec<ClaimKind> {
        claims(&Session::new("claude").look(&blank(1_000).screen(screen)), Source::Screen)
    }

    #[test]
    fn a_spinner_in_its_place_is_work_and_the_line_that_ends_a_turn_is_its_end() {
        assert!(says(&working_screen()).contains(&ClaimKind::Working));
        let idle = says(&idle_screen());
        assert!(idle.contains(&ClaimKind::TurnOver) && !idle.contains(&ClaimKind::Working), "{idle:?}");
    }

    #[test]
    fn an_error_that_ends_the_screen_is_a_failure_with_its_kind() {
        let screen = conversation("❯ go\n  ⎿  API Error: 529 Overloaded", "? for shortcuts");
        let outcome = Session::new("claude").look(&blank(1_000).screen(&screen));
        let failed = from(&outcome, Source::Screen).into_iter().find_map(|item| match &item.claim {
            Claim::Failed { failure } => Some(failure.kind.as_str()),
            _ => None,
        });
        assert_eq!(failed, Some("overloaded"));
    }

    #[test]
    fn a_screen_that_could_not_be_captured_is_unreadable_and_shows_no_age() {
        let mut obs = blank(1_000);
        obs.screen = Reading::Unavailable { why: "capture failed".to_owned() };
        let outcome = Session::new("claude").look(&obs);
        assert_eq!(claims(&outcome, Source::Screen), [ClaimKind::Unreadable]);
        let signals = outcome.signals;
        assert_eq!((signals.capture_error.as_deref(), signals.output_age_ms), (Some("capture failed"), None));
    }

    #[test]
    fn the_age_of_the_output_counts_from_its_last_change() {
        let mut session = Session::new("claude");
        session.look(&blank(1_000).screen(&idle_screen()));
        assert_eq!(session.look(&blank(4_000).screen(&idle_screen())).signals.output_age_ms, Some(3_000));
        assert_eq!(session.look(&blank(5_000).screen(&working_screen())).signals.output_age_ms, Some(0));
    }
}
