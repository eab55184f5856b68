//! Processes: trees, CPU time, ends, signals, and running a program with a time limit.
//!
//! What differs between platforms stands behind one seam, `platform`: Linux reads `/proc` and holds pidfds, other
//! systems go through portable crates. Nothing outside this module knows which.

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

pub use end::end_all;
#[cfg(all(feature = "fuzz", target_os = "linux"))]
pub(crate) use platform::name_and_parent;
pub use platform::{Handle, cpu_ms, group_members, start_time, tree, variables};
pub use run::{Output, run};
pub use sentinel::Sentinel;

use crate::observation::Proc;

/// What a [`Sentinel`] tells of what it watches under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The process has ended. It is not watched any more.
    Ended(u64),
    /// The terminal was written to.
    Output(u64),
}

/// The limit of open descriptors before this process raised its own: what its children should have.
static DESCRIPTORS: std::sync::OnceLock<Option<u64>> = std::sync::OnceLock::new();

/// Raises the limit of open descriptors to what the system allows: watching a process takes one.
pub fn raise_own_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    DESCRIPTORS.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile);
        // Where it may not be raised, what cannot be watched is tried again and told.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        limit.current
    });
}

/// The limit of open descriptors that this process was started with.
pub fn own_descriptor_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    DESCRIPTORS.get().copied().unwrap_or_else(|| getrlimit(Resource::Nofile).current)
}

/// How many bytes were typed into a terminal that its program has not read yet.
pub fn unread(terminal: &std::path::Path) -> std::io::Result<u64> {
    use rustix::fs::{Mode, OFlags};
    // Neither to wait for the terminal nor to make it this process's own.
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(terminal, flags, Mode::empty())?;
    Ok(rustix::io::ioctl_fionread(&file)?)
}

/// Whether a tree knows what is in front on its terminal.
pub const TELLS_FOREGROUND: bool = cfg!(target_os = "linux");

/// A process and everything below it.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The processes, parents before children.
    pub procs: Vec<Proc>,
    /// The process group that is in front on its terminal, where the system tells.
    foreground: Option<u32>,
}

impl Tree {
    /// The program that is in front on the terminal.
    pub fn in_front(&self) -> Option<&str> {
        let front = self.procs.iter().find(|proc| Some(proc.pid) == self.foreground)?;
        Some(&front.name)
    }
}

/// More generations than any real tree has.
const GENERATIONS_MAX: usize = 64;

/// The processes above this one, nearest first.
pub fn ancestors() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(std::process::id()), |pid| platform::parent(*pid).filter(|parent| *parent > 0))
        .skip(1)
        .take(GENERATIONS_MAX)
}

/// A variable that a process was started with.
pub fn variable(pid: u32, name: &str) -> Option<String> {
    variables(pid, &[name]).pop().map(|(_, value)| value)
}

/// A process that can not be mistaken for a later one with the same number: its id and when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// When it started, in the platform's own unit; only ever compared.
    pub started: u64,
}

impl Identity {
    /// The process that has this id now, if there is one.
    pub fn of(pid: u32) -> Option<Self> {
        start_time(pid).map(|started| Self { pid, started })
    }

    /// This process.
    pub fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Whether this very process still runs.
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
        // A process that was only just forked may not have become the other program yet.
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
