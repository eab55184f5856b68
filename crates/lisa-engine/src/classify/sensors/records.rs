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
