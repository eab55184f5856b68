//! What many measurements of one thing say.

use std::time::Duration;

/// Measurements of one thing.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<f64>);

impl Samples {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a duration, kept in milliseconds.
    pub(super) fn add(&mut self, took: Duration) {
        self.0.push(took.as_secs_f64() * 1000.0);
    }

    /// Adds what somebody else measured.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value that half of the measurements do not exceed.
    pub(super) fn p50(&self) -> Option<f64> {
        self.rank(50)
    }

    /// The value that all but one in a hundred do not exceed; with few measurements, the largest.
    pub(super) fn p99(&self) -> Option<f64> {
        self.rank(99)
    }

    /// By nearest rank: always a value that was measured.
    fn rank(&self, percent: usize) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut samples = Samples::default();
        assert_eq!(samples.p50(), None);
        for ms in (1..=200).rev() {
            samples.add(Duration::from_millis(ms));
        }
        assert_eq!((samples.len(), samples.p50(), samples.p99()), (200, Some(100.0), Some(198.0)));
    }

    #[test]
    fn of_few_measurements_p99_is_the_largest() {
        let mut samples = Samples::default();
        for ms in [3, 1, 2] {
            samples.add(Duration::from_millis(ms));
        }
        assert_eq!((samples.p50(), samples.p99()), (Some(2.0), Some(3.0)));
    }
}
