//! Processes: trees, CPU time, ends, signals, and running a program with a time limit.
//!
//! Platform differences are behind one interface, `platform`: Linux reads `/proc` and holds pidfds, other systems use
//! portable crates. Nothing outside this module knows which.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "portable.rs"]
mod platform;

#[cfg(target_os = "linux")]
#[path = "sentinel_linux.rs"]
mod sentinel;
#[cfg(not(target_os = "linux"))]
#[path = "sentinel_portable.rs"]
mod sentinel;

mod end;
mod run;
mod trees;

pub use end::end_all;
#[cfg(all(feature = "fuzz", target_os = "linux"))]
pub(crate) use platform::name_and_parent;
pub use platform::{Handle, cpu_ms, group_members, start_time, tree, variables};
pub use run::{Output, run};
pub use sentinel::Sentinel;
pub use trees::Trees;

use crate::classify::observation::Proc;
use std::time::Duration;

/// An event from a [`Sentinel`], with the key that was given for the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentinelEvent {
    /// The process ended and is no longer watched.
    Ended(u64),
    /// The terminal was written to.
    Output(u64),
}

/// The soft limit of open descriptors before this process raised its own; children should get this one.
static DESCRIPTORS: std::sync::OnceLock<Option<u64>> = std::sync::OnceLock::new();

/// Raises the limit of open descriptors as far as the system allows: watching a process takes one descriptor.
pub fn raise_own_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    DESCRIPTORS.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile);
        // If this fails, watches that fail are retried and reported.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        limit.current
    });
}

/// The limit of open descriptors that this process was started with.
pub fn own_descriptor_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    DESCRIPTORS.get().copied().unwrap_or_else(|| getrlimit(Resource::Nofile).current)
}

/// How many bytes were typed into a terminal that its program hasn't read yet.
pub fn unread(terminal: &std::path::Path) -> std::io::Result<u64> {
    use rustix::fs::{Mode, OFlags};
    // Don't block on the terminal, and don't make it the controlling terminal of this process.
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(terminal, flags, Mode::empty())?;
    Ok(rustix::io::ioctl_fionread(&file)?)
}

/// Whether a [`Tree`] knows the foreground process of its terminal.
pub const TELLS_FOREGROUND: bool = cfg!(target_os = "linux");

/// A process and all its descendants.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The processes, parents before children.
    pub procs: Vec<Proc>,
    /// The foreground process group of its terminal, if the system tells.
    foreground: Option<u32>,
    /// The CPU clock of each process, read before the process was; empty if the system has none to read.
    clocks: Vec<(u32, Duration)>,
}

impl Tree {
    /// Whether nothing in it has run since it was read.
    fn is_current(&self) -> bool {
        let same = |(pid, clock): &(u32, Duration)| platform::cpu(*pid) == Some(*clock);
        self.clocks.len() == self.procs.len() && !self.clocks.is_empty() && self.clocks.iter().all(same)
    }

    /// The foreground program of the terminal.
    pub fn in_front(&self) -> Option<&str> {
        let front = self.procs.iter().find(|proc| Some(proc.pid) == self.foreground)?;
        Some(&front.name)
    }
}

/// Limit for walking up; no real tree is that deep.
const GENERATIONS_MAX: usize = 64;

/// The ancestors of this process, nearest first.
pub fn ancestors() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(std::process::id()), |pid| platform::parent(*pid).filter(|parent| *parent > 0))
        .skip(1)
        .take(GENERATIONS_MAX)
}

/// A variable that a process was started with.
pub fn variable(pid: u32, name: &str) -> Option<String> {
    variables(pid, &[name]).pop().map(|(_, value)| value)
}

/// A process id with its start time, so that it can't be mistaken for a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// When it started, in the platform's own unit; only for comparison.
    pub started: u64,
}

impl Identity {
    /// The process that has this pid now, if any.
    pub fn of(pid: u32) -> Option<Self> {
        start_time(pid).map(|started| Self { pid, started })
    }

    /// This process.
    pub fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Whether this very process is still running.
    pub fn alive(self) -> bool {
        start_time(self.pid) == Some(self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_ancestor_is_the_parent() {
        assert_eq!(ancestors().next(), Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn variables_are_those_that_a_process_was_started_with() {
        let mut child =
            std::process::Command::new("sleep").arg("30").env("LISA_TEST_A", "x=y").spawn().unwrap();
        // A process that was just forked may not have exec'd the other program yet.
        let mut found = Vec::new();
        for _ in 0..500 {
            found = variables(child.id(), &["LISA_TEST_A", "LISA_TEST"]);
            if !found.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [("LISA_TEST_A".to_owned(), "x=y".to_owned())]);
    }
}
