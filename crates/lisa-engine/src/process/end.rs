//! Ending processes: SIGHUP first, then SIGKILL.

use super::{Handle, group_members, tree};
use rustix::process::Signal;
use std::{
    collections::HashMap,
    thread,
    time::{Duration, Instant},
};

/// How often to poll the ending processes.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Ends the processes `leaders`, all their descendants, and every process of their groups or terminal sessions.
///
/// Unless `grace` is zero, they first get a SIGHUP and that much time to exit. Returns how many had to be killed. Each
/// process is held by a [`Handle`] before it is signalled, so a reused pid is never hit (race).
pub fn end_all(leaders: &[u32], grace: Duration) -> usize {
    let mut held: HashMap<u32, Handle> = HashMap::new();
    let gather = |held: &mut HashMap<u32, Handle>| {
        let below =
            leaders.iter().flat_map(|leader| tree(*leader).unwrap_or_default().procs).map(|proc| proc.pid);
        for pid in below.chain(group_members(leaders)) {
            if !held.contains_key(&pid)
                && let Ok(handle) = Handle::open(pid)
            {
                held.insert(pid, handle);
            }
        }
    };
    if !grace.is_zero() {
        gather(&mut held);
        signal_all(&held, Signal::HUP);
        signal_all(&held, Signal::CONT);
        wait_until_gone(&held, grace);
    }
    let mut killed = 0;
    // A process that forks while it is being ended can have children that the first pass missed.
    for _ in 0..10 {
        gather(&mut held);
        held.retain(|_, handle| handle.identity().alive());
        if held.is_empty() {
            break;
        }
        killed += held.len();
        signal_all(&held, Signal::KILL);
        wait_until_gone(&held, Duration::from_secs(2));
    }
    killed
}

fn signal_all(held: &HashMap<u32, Handle>, signal: Signal) {
    for handle in held.values() {
        // A process that is already gone needs no signal; one of another user can't be ours to end.
        let _ = handle.signal(signal);
    }
}

fn wait_until_gone(held: &HashMap<u32, Handle>, limit: Duration) {
    let deadline = Instant::now() + limit;
    while held.values().any(|handle| handle.identity().alive()) && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::process::CommandExt, process::Command};

    /// A process group whose leader has a child that ignores SIGHUP.
    fn stubborn_group() -> std::process::Child {
        Command::new("sh")
            .args(["-c", "(trap '' HUP; sleep 60) & sleep 60"])
            .process_group(0)
            .spawn()
            .unwrap()
    }

    #[test]
    fn what_ignores_the_hang_up_is_killed() {
        let mut leader = stubborn_group();
        thread::sleep(Duration::from_millis(100));
        let members = group_members(&[leader.id()]);
        assert!(members.len() >= 3, "{members:?}");
        let reaper = thread::spawn(move || leader.wait().unwrap());
        let killed = end_all(&[*members.iter().min().unwrap()], Duration::from_millis(200));
        reaper.join().unwrap();
        assert!(killed >= 1);
        assert!(members.iter().all(|pid| super::super::start_time(*pid).is_none()));
    }

    #[test]
    fn orphans_of_the_group_are_ended_too() {
        let mut leader =
            Command::new("sh").args(["-c", "sleep 60 & sleep 0.05"]).process_group(0).spawn().unwrap();
        let id = leader.id();
        leader.wait().unwrap();
        let orphans = group_members(&[id]);
        assert_eq!(orphans.len(), 1);
        end_all(&[id], Duration::from_millis(500));
        assert!(group_members(&[id]).is_empty());
    }
}
