//! What only time tells: how young the session is, and whether anything about it moves.

use super::{Look, Sensor, failure};
use crate::api::words::Signals;
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::observation::At;
use crate::classify::resolve::TRANSIENT_EXPIRY_MS;

/// Grace period in which a session counts as starting if nothing shows that it is up.
const GRACE_MS: u64 = 60_000;
/// How long output may stand still before it counts as stale.
pub(crate) const OUTPUT_STALE_MS: u64 = 240_000;
/// How recent the last movement must be for the session to count as moving.
const MOVING_MS: u64 = 10_000;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.heartbeat_age_ms = look.obs.heartbeat.seen().map(|at| look.now().since(*at));
    signals.heartbeat_error = failure(&look.obs.heartbeat);
}

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    let now = look.now();
    let mut evidence = Vec::new();
    let age = now.since(look.obs.spawned_at);
    if age < GRACE_MS {
        let quote = format!("started {} s ago", age / 1_000);
        evidence.push(Evidence::new(Source::Timing, look.obs.spawned_at, Claim::Young, quote));
    }
    let moved = last_movement(look);
    let still_for = now.since(moved);
    let quote = format!("last moved {} s ago", still_for / 1_000);
    if still_for < MOVING_MS {
        evidence.push(Evidence::new(Source::Timing, moved, Claim::Moving, quote));
    } else if still_for > TRANSIENT_EXPIRY_MS {
        evidence.push(Evidence::new(Source::Timing, moved, Claim::Still, quote));
    }
    evidence
}

/// The last movement of anything: the screen, the title, the window, the agent's CPU time.
pub(crate) fn last_movement(look: &Look<'_>) -> At {
    let window = look.pane().map_or(look.obs.spawned_at, |pane| pane.activity);
    let screen = look.memory.output.changed_at;
    let busy = look.memory.agent.busy_at.unwrap_or(look.obs.spawned_at);
    let title = look.memory.title.changed_at;
    [window, screen, title, busy].into_iter().fold(look.obs.spawned_at, At::max).min(look.now())
}

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{ClaimKind, Source},
        observation::{At, Reading},
        sensors::testing::*,
    };

    fn says(session: &mut Session, at: i64) -> Vec<ClaimKind> {
        claims(&session.look(&blank(at)), Source::Timing)
    }

    #[test]
    fn a_session_is_young_for_a_minute_by_its_age_however_often_it_is_looked_at() {
        let mut session = Session::new("claude");
        for at in [1_000, 2_000, 59_999] {
            assert!(says(&mut session, at).contains(&ClaimKind::Young), "{at}");
        }
        assert!(!says(&mut session, 60_000).contains(&ClaimKind::Young));
    }

    #[test]
    fn what_has_not_moved_for_a_minute_stands_still_and_any_movement_counts() {
        let mut session = Session::new("claude");
        session.look(&blank(100_000).title("a").screen("one\n"));
        let look = |at: i64| blank(at).title("a").screen("one\n");
        let mut says = |obs| claims(&session.look(&obs), Source::Timing);
        assert_eq!(says(look(105_000)), [ClaimKind::Moving]);
        assert_eq!(says(look(130_000)), []);
        assert_eq!(says(look(161_000)), [ClaimKind::Still]);
        for moved in [
            look(162_000).title("b"),
            look(300_000).title("b").screen("two\n"),
            look(500_000).title("b").screen("two\n").pane(|pane| pane.activity = At(499_000)),
        ] {
            assert_eq!(says(moved), [ClaimKind::Moving]);
        }
    }

    #[test]
    fn the_heartbeat_is_shown_with_its_age_or_why_it_could_not_be_read() {
        let mut obs = blank(9_000);
        obs.heartbeat = Reading::Seen(At(2_000));
        assert_eq!(Session::new("claude").look(&obs).signals.heartbeat_age_ms, Some(7_000));
        obs.heartbeat = Reading::Unavailable { why: "a pipe".to_owned() };
        assert_eq!(Session::new("claude").look(&obs).signals.heartbeat_error.as_deref(), Some("a pipe"));
    }
}
