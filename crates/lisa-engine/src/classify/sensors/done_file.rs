//! The run's done file; a done file of another run says nothing about this one.

use super::Look;
use crate::classify::evidence::{Claim, Evidence, Source};

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    let done = look.obs.done.seen().filter(|done| done.run_id == look.obs.run_id);
    let Some(done) = done else { return Vec::new() };
    let quote = match (done.code, done.signal) {
        (_, Some(signal)) => format!("{} ended by signal {signal}", done.run_id),
        (Some(code), None) => format!("{} ended with code {code}", done.run_id),
        (None, None) => format!("{} ended", done.run_id),
    };
    let claim = Claim::RunDone { code: done.code, signal: done.signal };
    vec![Evidence::new(Source::DoneFile, done.at, claim, quote)]
}
