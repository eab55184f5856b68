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

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{Claim, ClaimKind, Source},
        observation::{At, Done, Reading},
        resolve::Outcome,
        sensors::testing::*,
    };

    fn look(done: Reading<Done>) -> Outcome {
        let mut obs = blank(1_000);
        obs.done = done;
        Session::new("demo").look(&obs)
    }

    fn done(run: &str, code: Option<i32>, signal: Option<i32>) -> Reading<Done> {
        Reading::Seen(Done { run_id: run.to_owned(), code, signal, at: At(900) })
    }

    #[test]
    fn a_done_file_ends_its_run_with_a_code_or_a_signal() {
        for (code, signal, shown) in
            [(Some(7), None, "7"), (None, Some(9), "signal 9"), (None, None, "unknown")]
        {
            let outcome = look(done("run", code, signal));
            let said = from(&outcome, Source::DoneFile);
            assert_eq!((said[0].claim.clone(), said[0].since), (Claim::RunDone { code, signal }, At(900)));
            assert_eq!(outcome.signals.done_file.as_deref(), Some(shown));
        }
    }

    #[test]
    fn the_done_file_of_another_run_says_and_shows_nothing() {
        let outcome = look(done("another", Some(0), None));
        assert_eq!((claims(&outcome, Source::DoneFile), outcome.signals.done_file), (vec![], None));
    }

    #[test]
    fn a_torn_done_file_is_unreadable_not_absent() {
        let outcome = look(Reading::Unavailable { why: "incomplete".to_owned() });
        assert_eq!(claims(&outcome, Source::DoneFile), [ClaimKind::Unreadable]);
        assert_eq!(outcome.signals.done_file_read_error.as_deref(), Some("incomplete"));
        assert_eq!(claims(&look(Reading::Absent), Source::DoneFile), []);
    }
}
