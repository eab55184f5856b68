//! How much processor time something takes: ours, that of the children we waited for, and that of a server which does
//! work for us. Only where the system tells (Linux); elsewhere the figure is unknown, not zero.

use std::{fs, time::Duration};

/// Counts processor time from its start on.
pub(super) struct Meter {
    others: Vec<u32>,
    begin: Option<Duration>,
}

impl Meter {
    /// Starts to count this process with its children, and the processes `others` with theirs.
    pub(super) fn start(others: &[u32]) -> Self {
        Self { others: others.to_vec(), begin: total(others) }
    }

    /// Processor time since the start, in milliseconds. Children count once they have ended and been waited for.
    pub(super) fn ms(&self) -> Option<f64> {
        let spent = total(&self.others)?.checked_sub(self.begin?)?;
        Some(spent.as_secs_f64() * 1000.0)
    }
}

fn total(others: &[u32]) -> Option<Duration> {
    let mut sum = of("self")?;
    for pid in others {
        sum += of(&pid.to_string())?;
    }
    Some(sum)
}

/// The processor time of a process and of its children that were waited for.
fn of(process: &str) -> Option<Duration> {
    let ticks = ticks_in(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
    let per_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_nanos(ticks.saturating_mul(1_000_000_000).checked_div(per_second)?))
}

/// The sum of utime, stime, cutime and cstime. The name before them may hold spaces and brackets, so they are counted
/// from its last closing bracket on.
fn ticks_in(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<u64> = fields.split_whitespace().skip(11).take(4).map_while(|f| f.parse().ok()).collect();
    (fields.len() == 4).then(|| fields.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_times_are_found_behind_a_name_with_brackets() {
        let stat = "7 (tmux: (odd) x) S 1 7 7 0 -1 4194624 2 3 4 5 11 22 33 44 20 0 1 0 100 200 300";
        assert_eq!(ticks_in(stat), Some(110));
        assert_eq!(ticks_in("7 (short) S 1 7"), None);
    }

    #[test]
    fn work_is_counted_and_a_process_that_is_gone_is_unknown() {
        if cfg!(target_os = "linux") {
            let meter = Meter::start(&[]);
            let busy = std::time::Instant::now();
            while busy.elapsed() < Duration::from_millis(60) {}
            assert!(meter.ms().unwrap() >= 10.0);
            assert_eq!(Meter::start(&[u32::MAX - 1]).ms(), None);
        }
    }
}
