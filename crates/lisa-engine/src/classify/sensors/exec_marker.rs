//! The marker that a run in exec mode prints at its very end.

use super::{Look, Sensor, process::find_agent};
use crate::api::words::{Mode, Signals};
use crate::classify::evidence::{Claim, Evidence, Source};

/// The marker's text before the exit code.
pub(crate) const MARKER: &str = "__LISA_EXEC_DONE__:";
/// How many lines a shell may print after the marker (its prompt).
const LINES_AFTER: usize = 3;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.exec_marker = look.obs.screen.seen().and_then(|screen| find(screen));
}

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.obs.mode != Mode::Exec || !has_ended(look) {
        return Vec::new();
    }
    let Some(code) = look.obs.screen.seen().and_then(|screen| find(screen)) else { return Vec::new() };
    let claim = Claim::RunDone { code: Some(code), signal: None };
    vec![look.standing(Source::ExecMarker, claim, &format!("{MARKER}{code}"))]
}

/// Whether the process of the run has ended: while it lives, anybody can print the marker, also the agent itself.
fn has_ended(look: &Look<'_>) -> bool {
    let Some(pane) = look.pane() else { return true };
    let agent = look.obs.procs.seen().map(|procs| find_agent(look.profile, pane.pid, procs));
    pane.dead || agent.is_some_and(|agent| agent.is_none())
}

/// The exit code in the marker that ends this output: on a line of its own, with at most a shell's prompt after it. A
/// marker further up is from an earlier run, or from a text about markers.
pub(crate) fn find(output: &str) -> Option<i32> {
    let written = output.lines().rev().map(strip_escapes).filter(|line| !line.trim().is_empty());
    written.take(LINES_AFTER + 1).find_map(|line| line.trim().strip_prefix(MARKER)?.parse().ok())
}

/// Removes the escape sequences of a line.
fn strip_escapes(line: &str) -> String {
    crate::classify::screen::cells(line)
        .into_iter()
        .flatten()
        .map(|cell| cell.text)
        .filter(|c| !c.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_marker_at_the_end_gives_the_code() {
        assert_eq!(find("building\n__LISA_EXEC_DONE__:0\n"), Some(0));
        assert_eq!(find("building\n__LISA_EXEC_DONE__:7"), Some(7));
        assert_eq!(find("building\n"), None);
    }

    #[test]
    fn prompts_of_a_shell_may_follow_it() {
        assert_eq!(find("__LISA_EXEC_DONE__:3\n~/src on main\n❯ \n\n"), Some(3));
        assert_eq!(find("__LISA_EXEC_DONE__:3\nuser@host ~>"), Some(3));
    }

    #[test]
    fn escapes_inside_it_do_not_matter() {
        assert_eq!(find("\u{1b}[32m__LISA_EXEC\u{1b}[0m_DONE__:12\u{1b}[K\n"), Some(12));
    }

    #[test]
    fn the_last_of_two_markers_counts() {
        assert_eq!(find("__LISA_EXEC_DONE__:1\nagain\n__LISA_EXEC_DONE__:0\n"), Some(0));
    }

    #[test]
    fn a_marker_of_an_earlier_run_further_up_does_not_count() {
        assert_eq!(find("__LISA_EXEC_DONE__:0\none\ntwo\nthree\nfour\n"), None);
    }

    #[test]
    fn a_line_that_only_looks_like_one_does_not_count() {
        for line in [
            "say __LISA_EXEC_DONE__:0",
            "__LISA_EXEC_DONE__:",
            "__LISA_EXEC_DONE__:x",
            "__LISA_EXEC_DONE__:0 (old)",
        ] {
            assert_eq!(find(line), None, "{line}");
        }
    }
}
