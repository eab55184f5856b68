//! The Linux implementation: `/proc`, process clocks and pidfds.

use super::{Identity, Tree};
use crate::classify::observation::Proc;
use nix::{time::clock_getcpuclockid, unistd::Pid};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::{
    collections::HashSet,
    fs, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

/// A handle on one process; never refers to another process, even after its pid is reused.
#[derive(Debug)]
pub struct Handle {
    fd: OwnedFd,
    identity: Identity,
}

impl Handle {
    /// Opens a running process.
    pub fn open(pid: u32) -> io::Result<Self> {
        let raw = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .ok_or(io::ErrorKind::NotFound)?;
        let fd = pidfd_open(raw, PidfdFlags::NONBLOCK)?;
        let identity = Identity::of(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { fd, identity })
    }

    /// Which process this is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Sends a signal; can't hit another process.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.fd, signal)?)
    }

    /// A descriptor that becomes readable when the process ends.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The fields of `/proc/PID/stat` that matter here.
struct Stat {
    name: String,
    state: u8,
    ppid: u32,
    group: u32,
    session: u32,
    /// The foreground process group of its terminal.
    foreground: Option<u32>,
    cpu_ticks: u64,
    threads: u64,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&read(&format!("/proc/{pid}/stat"))?)
}

/// Reads a file of `/proc`. These files don't report their length, but a read returns as much as fits; if most of the
/// buffer stays free, that was the whole file.
fn read(path: &str) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut room = [0; 2048];
    let mut file = fs::File::open(path).ok()?;
    let read = file.read(&mut room).ok()?;
    let mut bytes = room.get(..read)?.to_vec();
    if read > room.len() / 2 {
        file.take(1 << 20).read_to_end(&mut bytes).ok()?;
    }
    Some(bytes)
}

/// The name and the parent from a line of `/proc/PID/stat`.
#[cfg(feature = "fuzz")]
pub(crate) fn name_and_parent(bytes: &[u8]) -> Option<(String, u32)> {
    parse_stat(bytes).map(|stat| (stat.name, stat.ppid))
}

/// The name is in parentheses and may contain any byte, so the last `)` ends it.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let open = bytes.iter().position(|b| *b == b'(')?;
    let close = bytes.iter().rposition(|b| *b == b')')?;
    let name = String::from_utf8_lossy(bytes.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    let id = |index: usize| number(index).and_then(|n| u32::try_from(n).ok());
    Some(Stat {
        name,
        state: *fields.first()?.as_bytes().first()?,
        ppid: id(1)?,
        group: id(2)?,
        session: id(3)?,
        foreground: id(5),
        cpu_ticks: number(11)?.saturating_add(number(12)?),
        threads: number(17)?,
        started: number(19)?,
    })
}

/// When a process started, in clock ticks since boot; `None` if it isn't running (a zombie has ended).
pub fn start_time(pid: u32) -> Option<u64> {
    stat(pid).filter(|stat| stat.state != b'Z' && stat.state != b'X').map(|stat| stat.started)
}

/// The parent of a process: the one that started it, or that adopted it later.
pub(super) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.ppid)
}

/// Reads some of the environment variables that a process was started with.
pub fn variables(pid: u32, names: &[&str]) -> Vec<(String, String)> {
    let all = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let pairs =
        all.split(|byte| *byte == 0).filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='));
    let wanted = pairs.filter(|(name, _)| names.contains(name));
    wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The CPU time that a process has used, in milliseconds.
pub fn cpu_ms(pid: u32) -> Option<u64> {
    u64::try_from(cpu(pid)?.as_millis()).ok()
}

/// The CPU time that a process has used, from its own CPU clock.
pub(super) fn cpu(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    Some(clock.now().ok()?.into())
}

/// `root` and all its descendants, parents before children.
///
/// A child forked by a thread is listed under that thread only, so this reads the list of every thread.
pub fn tree(root: u32) -> io::Result<Tree> {
    let mut found = Tree::default();
    let mut seen = HashSet::new();
    let mut queue = vec![root];
    while let Some(pid) = queue.pop() {
        if !seen.insert(pid) {
            continue;
        }
        // Before the process itself: if it runs in between, the clock has moved at the next look.
        let clock = cpu(pid);
        let Some(stat) = stat(pid) else {
            if pid == root && !std::path::Path::new("/proc/self/stat").exists() {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "/proc is not available"));
            }
            continue;
        };
        if pid == root {
            found.foreground = stat.foreground;
        }
        found.procs.push(Proc {
            pid,
            ppid: stat.ppid,
            name: stat.name,
            zombie: stat.state == b'Z',
            stopped: stat.state == b'T',
            cpu_ms: clock
                .map_or(stat.cpu_ticks * 10, |clock| u64::try_from(clock.as_millis()).unwrap_or(u64::MAX)),
        });
        found.clocks.extend(clock.map(|clock| (pid, clock)));
        queue.extend(children(pid, stat.threads));
    }
    Ok(found)
}

fn children(pid: u32, threads: u64) -> Vec<u32> {
    let of = |thread: &str| read(&format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
    let lists = match threads {
        1 => of(&pid.to_string()),
        _ => {
            let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
            tasks.flatten().flat_map(|task| of(&task.file_name().to_string_lossy())).collect()
        }
    };
    // Each list ends in a space.
    String::from_utf8_lossy(&lists).split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Every process whose group or terminal session is one of `leaders`, including orphans.
pub fn group_members(leaders: &[u32]) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut leaders = leaders.to_vec();
    leaders.sort_unstable();
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let led = |id: u32| leaders.binary_search(&id).is_ok();
            stat(*pid).is_some_and(|stat| stat.state != b'Z' && (led(stat.group) || led(stat.session)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_and_spaces_is_read_whole() {
        let line = b"42 (a) b (c)) S 7 42 42 34816 57 4194560 1 0 0 0 12 30 0 0 20 0 1 0 98765 0 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.name.as_str(), stat.ppid, stat.cpu_ticks, stat.started), ("a) b (c)", 7, 42, 98765));
        assert_eq!((stat.foreground, stat.threads), (Some(57), 1));
    }

    #[test]
    fn a_torn_line_is_no_process() {
        assert!(parse_stat(b"42 (sleep").is_none());
        assert!(parse_stat(b"42 (sleep) S 1").is_none());
        assert!(parse_stat(b"").is_none());
    }

    #[test]
    fn the_tree_of_this_process_has_a_child_that_was_started_by_another_thread() {
        let mut child = std::thread::spawn(|| std::process::Command::new("sleep").arg("30").spawn().unwrap())
            .join()
            .unwrap();
        let pids: Vec<u32> = tree(std::process::id()).unwrap().procs.iter().map(|proc| proc.pid).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(pids.contains(&child.id()));
        assert_eq!(start_time(child.id()), None);
    }
}
