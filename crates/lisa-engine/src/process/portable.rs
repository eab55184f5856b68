//! The portable implementation: `sysinfo` and plain POSIX.

use super::{Identity, Tree};
use crate::classify::observation::Proc;
use rustix::process::{Pid, Signal, getpgid, getsid, kill_process};
use std::{collections::HashSet, io};
use sysinfo::{ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};

/// A handle on one process: its pid and start time.
#[derive(Debug)]
pub struct Handle {
    identity: Identity,
}

impl Handle {
    /// Opens a running process.
    pub fn open(pid: u32) -> io::Result<Self> {
        Identity::of(pid).map(|identity| Self { identity }).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Which process this is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Sends a signal, if it is still the same process.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        if !self.identity.alive() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let pid =
            i32::try_from(self.identity.pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        Ok(kill_process(pid, signal)?)
    }
}

fn refresh(pids: ProcessesToUpdate<'_>) -> System {
    let mut system = System::new();
    system.refresh_processes_specifics(pids, true, ProcessRefreshKind::nothing().with_cpu().without_tasks());
    system
}

/// When a process started, in seconds since the epoch; `None` if it isn't running.
pub fn start_time(pid: u32) -> Option<u64> {
    let pid = sysinfo::Pid::from_u32(pid);
    let system = refresh(ProcessesToUpdate::Some(&[pid]));
    system
        .process(pid)
        .filter(|process| process.status() != ProcessStatus::Zombie)
        .map(sysinfo::Process::start_time)
}

/// The parent of a process: the one that started it, or that adopted it later.
pub(super) fn parent(pid: u32) -> Option<u32> {
    let pid = sysinfo::Pid::from_u32(pid);
    refresh(ProcessesToUpdate::Some(&[pid])).process(pid)?.parent().map(sysinfo::Pid::as_u32)
}

/// Reads some of the environment variables that a process was started with.
pub fn variables(pid: u32, names: &[&str]) -> Vec<(String, String)> {
    let pid = sysinfo::Pid::from_u32(pid);
    let mut system = System::new();
    let environment = ProcessRefreshKind::nothing().with_environ(sysinfo::UpdateKind::Always).without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, environment);
    let all = system.process(pid).map(sysinfo::Process::environ).unwrap_or_default();
    let pairs = all.iter().filter_map(|pair| pair.to_str()?.split_once('='));
    let wanted = pairs.filter(|(name, _)| names.contains(name));
    wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The CPU time that a process has used, in milliseconds.
pub fn cpu_ms(pid: u32) -> Option<u64> {
    let pid = sysinfo::Pid::from_u32(pid);
    refresh(ProcessesToUpdate::Some(&[pid])).process(pid).map(sysinfo::Process::accumulated_cpu_time)
}

/// Other systems have no CPU clock of another process that is cheap to read.
pub(super) fn cpu(_pid: u32) -> Option<std::time::Duration> {
    None
}

/// `root` and all its descendants, parents before children.
pub fn tree(root: u32) -> io::Result<Tree> {
    let system = refresh(ProcessesToUpdate::All);
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut queue = vec![sysinfo::Pid::from_u32(root)];
    while let Some(pid) = queue.pop() {
        let Some(process) = system.process(pid) else { continue };
        if !seen.insert(pid) {
            continue;
        }
        found.push(Proc {
            pid: pid.as_u32(),
            ppid: process.parent().map_or(0, sysinfo::Pid::as_u32),
            name: process.name().to_string_lossy().into_owned(),
            zombie: process.status() == ProcessStatus::Zombie,
            stopped: process.status() == ProcessStatus::Stop,
            cpu_ms: process.accumulated_cpu_time(),
        });
        queue.extend(
            system.processes().iter().filter(|(_, child)| child.parent() == Some(pid)).map(|(pid, _)| *pid),
        );
    }
    // Only tmux knows the foreground process here.
    Ok(Tree { procs: found, ..Tree::default() })
}

/// Every process whose group or terminal session is one of `leaders`.
pub fn group_members(leaders: &[u32]) -> Vec<u32> {
    let leads =
        |pid: Option<Pid>| pid.is_some_and(|pid| leaders.contains(&(pid.as_raw_nonzero().get() as u32)));
    refresh(ProcessesToUpdate::All)
        .processes()
        .keys()
        .map(|pid| pid.as_u32())
        .filter(|pid| {
            let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
            leads(getpgid(pid).ok()) || leads(getsid(pid).ok())
        })
        .collect()
}
