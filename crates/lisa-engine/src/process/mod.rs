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

mod end;
mod run;

pub use end::end_all;
pub use platform::{Handle, cpu_ms, group_members, start_time, tree, variable};
pub use run::{Output, run};

/// How many bytes were typed into a terminal that its program has not read yet.
pub fn unread(terminal: &std::path::Path) -> std::io::Result<u64> {
    use rustix::fs::{Mode, OFlags};
    // Neither to wait for the terminal nor to make it this process's own.
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(terminal, flags, Mode::empty())?;
    Ok(rustix::io::ioctl_fionread(&file)?)
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
