//! A prompt that Lisa just submitted.

use super::{Look, Sensor, nothing_to_show};
use crate::classify::evidence::{Claim, Evidence, Source};

/// How long a submitted prompt may take to have any effect.
const EFFECT_MS: u64 = 3_000;

pub(super) const SENSOR: Sensor = Sensor { sense, show: nothing_to_show };

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    let sent = look.obs.prompt_sent_at.filter(|at| look.now().since(*at) < EFFECT_MS);
    let Some(at) = sent else { return Vec::new() };
    vec![Evidence::new(Source::Sent, at, Claim::Sent, format!("sent {} ms ago", look.now().since(at)))]
}

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{ClaimKind, Source},
        observation::At,
        sensors::testing::*,
    };

    #[test]
    fn a_prompt_counts_as_just_sent_for_three_seconds() {
        let said = |at: i64| {
            let mut obs = blank(at);
            obs.prompt_sent_at = Some(At(1_000));
            claims(&Session::new("claude").look(&obs), Source::Sent)
        };
        assert_eq!(said(3_999), [ClaimKind::Sent]);
        assert_eq!(said(4_000), []);
        assert_eq!(claims(&Session::new("claude").look(&blank(1_000)), Source::Sent), []);
    }
}
