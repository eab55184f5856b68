//! What processes use: processor time (ours, that of the children we waited for, and that of others which do work for
//! us), memory and threads. Only where the system tells (Linux); elsewhere the figure is unknown, not zero.

use lisa_engine::process;
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

/// The processor time of these processes so far, without their children, in milliseconds.
pub(super) fn spent_ms(pids: &[u32]) -> Option<f64> {
    let whole = |pid: u32| process::cpu_ms(pid).map(|ms| ms as f64);
    pids.iter().map(|pid| by_threads(*pid).or_else(|| whole(*pid))).sum()
}

/// The processor time of the threads that a process has now, to the nanosecond.
fn by_threads(pid: u32) -> Option<f64> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // One that has ended since counts no more.
        let Ok(stat) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        nanos += stat.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    (nanos > 0).then_some(nanos as f64 / 1_000_000.0)
}

/// The memory that a process holds.
pub(super) fn memory_mb(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}

/// How many threads a process has.
pub(super) fn threads(pid: u32) -> Option<usize> {
    fs::read_dir(format!("/proc/{pid}/task")).ok().map(Iterator::count)
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
            let own = std::process::id();
            let (meter, before) = (Meter::start(&[]), spent_ms(&[own]).unwrap());
            let busy = std::time::Instant::now();
            while busy.elapsed() < Duration::from_millis(60) {}
            assert!(meter.ms().unwrap() >= 10.0);
            assert!(spent_ms(&[own]).unwrap() > before);
            assert!(memory_mb(own).unwrap() > 0.0 && threads(own).unwrap() > 0);
            let gone = u32::MAX - 1;
            assert_eq!(Meter::start(&[gone]).ms(), None);
            assert_eq!((spent_ms(&[gone]), memory_mb(gone), threads(gone)), (None, None, None));
        }
    }
}
