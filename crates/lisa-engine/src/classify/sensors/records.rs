//! Lisa's own records: whether what was known at the last look could be read, and how long the lock took.

use super::{Look, Sensor};
use crate::api::words::{SignalError, Signals};
use crate::classify::evidence::{Evidence, Source};

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    let why = look.obs.state_error.iter();
    why.map(|why| look.unreadable(Source::Timing, SignalError::State, why)).collect()
}

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.state_lock_wait_ms = look.obs.lock_wait_ms;
    signals.state_read_error.clone_from(&look.obs.state_error);
}

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{ClaimKind, Source},
        sensors::testing::*,
    };

    #[test]
    fn a_record_that_could_not_be_read_and_the_wait_for_its_lock_are_shown() {
        let mut obs = blank(1_000);
        (obs.state_error, obs.lock_wait_ms) = (Some("state.json is malformed".to_owned()), 12);
        let outcome = Session::new("claude").look(&obs);
        assert!(claims(&outcome, Source::Timing).contains(&ClaimKind::Unreadable));
        let signals = outcome.signals;
        assert_eq!(signals.state_read_error.as_deref(), Some("state.json is malformed"));
        assert_eq!(signals.state_lock_wait_ms, 12);
    }
}
