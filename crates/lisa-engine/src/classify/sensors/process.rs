//! The agent's process in the pane's process tree.

use super::{Look, Sensor, failure};
use crate::api::words::{SignalError, Signals};
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::memory::Phase;
use crate::classify::observation::{Pane, Proc};
use crate::classify::profile::Profile;
use std::collections::{BTreeSet, VecDeque};

/// Programs that are a shell, not an agent.
const SHELLS: &[&str] = &["bash", "zsh", "sh", "fish", "dash", "ksh", "nu", "pwsh", "tcsh"];

/// The agent's process: the first one with one of its names, from the pane's own process downwards. Wrappers above it
/// (a shell, env, timeout, npx, node) are skipped; arguments never count.
pub(crate) fn find_agent<'p>(profile: &Profile, root: u32, procs: &'p [Proc]) -> Option<&'p Proc> {
    let mut queue = VecDeque::from([root]);
    let mut visited = BTreeSet::new();
    while let Some(pid) = queue.pop_front() {
        if !visited.insert(pid) {
            continue;
        }
        let here = procs.iter().find(|proc| proc.pid == pid);
        let named = here.filter(|proc| {
            // A profile without names runs any command: the agent is the pane's own process, even a shell.
            let any = profile.process.names.is_empty();
            !proc.zombie && (any || profile.process.names.iter().any(|name| *name == base_name(&proc.name)))
        });
        if named.is_some() {
            return named;
        }
        queue.extend(procs.iter().filter(|proc| proc.ppid == pid).map(|proc| proc.pid));
    }
    None
}

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn show(look: &Look<'_>, signals: &mut Signals) {
    let agent = look.pane().zip(look.obs.procs.seen());
    let agent = agent.and_then(|(pane, procs)| find_agent(look.profile, pane.pid, procs));
    signals.agent_pid = agent.map(|agent| agent.pid);
    let measured = &look.memory.agent;
    signals.agent_cpu_permille = measured.cpu_permille.filter(|_| measured.pid == signals.agent_pid);
    signals.agent_scan_error = failure(&look.obs.procs);
}

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if let Some(why) = look.obs.procs.failure() {
        return vec![look.unreadable(Source::Process, SignalError::AgentScan, why)];
    }
    let (Some(pane), Some(procs)) = (look.pane(), look.obs.procs.seen()) else { return Vec::new() };
    if pane.dead {
        return Vec::new();
    }
    match find_agent(look.profile, pane.pid, procs) {
        Some(agent) if agent.stopped && shell_in_front(pane) => {
            let quote = format!("{} (pid {}) is suspended behind {}", agent.name, agent.pid, pane.command);
            vec![look.standing(Source::Process, Claim::AgentSuspended, &quote)]
        }
        Some(agent) => {
            vec![look.standing(
                Source::Process,
                Claim::AgentAlive,
                &format!("{} (pid {})", agent.name, agent.pid),
            )]
        }
        None => gone(look, pane, procs),
    }
}

/// The agent's process was seen before and is gone now. It exited in an orderly way only if it said so: by an event, by
/// removing its state file, or by clearing its title. A shell sets a title of its own whatever ended the agent.
fn gone(look: &Look<'_>, pane: &Pane, procs: &[Proc]) -> Vec<Evidence> {
    let known = look.memory.agent.pid.is_some() && !look.profile.process.names.is_empty();
    let rest = procs.iter().any(|proc| proc.pid == pane.pid && is_shell(&proc.name));
    if !known || !rest {
        return Vec::new();
    }
    let said = look.memory.feeds.all().into_iter().any(|fold| fold.phase == Phase::Left);
    let said = said || look.memory.native.removed;
    let titled = look.memory.first_title.as_deref().is_some_and(|first| !first.is_empty());
    let clean = said || (titled && pane.title.is_empty());
    let quote = format!(
        "pid {} is gone, {} is in the foreground",
        look.memory.agent.pid.unwrap_or_default(),
        pane.command
    );
    vec![look.standing(Source::Process, Claim::AgentGone { clean }, &quote)]
}

fn shell_in_front(pane: &Pane) -> bool {
    is_shell(&pane.command)
}

fn is_shell(name: &str) -> bool {
    let name = base_name(name);
    SHELLS.contains(&name.trim_start_matches('-'))
}

fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::find_agent;
    use crate::classify::observation::Proc;
    use crate::classify::profile::Profiles;

    fn found(names: &[(u32, u32, &str)]) -> Option<u32> {
        let profile = Profiles::shipped().get("claude").expect("a profile");
        let proc = |(pid, ppid, name): &(u32, u32, &str)| Proc {
            pid: *pid,
            ppid: *ppid,
            name: (*name).to_owned(),
            zombie: false,
            stopped: false,
            cpu_ms: 0,
        };
        let procs: Vec<Proc> = names.iter().map(proc).collect();
        find_agent(&profile, 1, &procs).map(|proc| proc.pid)
    }

    #[test]
    fn the_pane_s_own_process_is_the_agent_even_at_zero_cpu() {
        assert_eq!(found(&[(1, 0, "claude")]), Some(1));
        assert_eq!(found(&[(1, 0, "/usr/local/bin/claude")]), Some(1));
    }

    #[test]
    fn wrappers_are_looked_through() {
        let chain = [
            (1, 0, "bash"),
            (2, 1, "env"),
            (3, 2, "timeout"),
            (4, 3, "npx"),
            (5, 4, "node"),
            (6, 5, "claude"),
        ];
        assert_eq!(found(&chain), Some(6));
    }

    #[test]
    fn the_nearest_one_is_taken_and_a_stranger_s_child_is_not() {
        assert_eq!(found(&[(1, 0, "bash"), (2, 1, "claude"), (3, 2, "claude")]), Some(2));
        assert_eq!(found(&[(1, 0, "bash"), (9, 8, "claude")]), None);
    }

    #[test]
    fn a_name_that_only_contains_the_agent_s_is_another_program() {
        assert_eq!(found(&[(1, 0, "bash"), (2, 1, "claude-log"), (3, 1, "grep")]), None);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        assert_eq!(found(&[(1, 2, "bash"), (2, 1, "bash")]), None);
    }
}
