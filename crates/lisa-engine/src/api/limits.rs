//! Limits that callers give as numbers.

use crate::error::{Error, Result};
use std::time::Duration;

/// Converts a number of seconds to a duration; rejects negative, infinite and excessive values.
pub(crate) fn seconds(given: Option<f64>, default: Duration) -> Result<Duration> {
    match given {
        None => Ok(default),
        Some(given) => Duration::try_from_secs_f64(given)
            .ok()
            .filter(|limit| *limit <= Duration::from_secs(3600))
            .ok_or_else(|| {
                Error::invalid(format!("{given} is not a valid number of seconds"), "give 0 to 3600 seconds")
            }),
    }
}
