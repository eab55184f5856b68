//! The run's done file; a done file of another run says nothing about this one.

use super::{Look, Sensor, failure};
use crate::api::words::{SignalError, Signals};
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::observation::Done;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if let Some(why) = look.obs.done.failure() {
        return vec![look.unreadable(Source::DoneFile, SignalError::DoneFile, why)];
    }
    let Some(done) = of_this_run(look) else { return Vec::new() };
    let quote = match (done.code, done.signal) {
        (_, Some(signal)) => format!("{} ended by signal {signal}", done.run_id),
        (Some(code), None) => format!("{} ended with code {code}", done.run_id),
        (None, None) => format!("{} ended", done.run_id),
    };
    let claim = Claim::RunDone { code: done.code, signal: done.signal };
    vec![Evidence::new(Source::DoneFile, done.at, claim, quote)]
}

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.done_file = of_this_run(look).map(|done| match (done.signal, done.code) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => code.to_string(),
        (None, None) => "unknown".to_owned(),
    });
    signals.done_file_read_error = failure(&look.obs.done);
}

fn of_this_run<'a>(look: &Look<'a>) -> Option<&'a Done> {
    look.obs.done.seen().filter(|done| done.run_id == look.obs.run_id)
}
