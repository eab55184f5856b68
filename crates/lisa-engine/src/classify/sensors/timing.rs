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
