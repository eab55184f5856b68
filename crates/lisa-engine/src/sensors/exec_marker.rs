//! The marker that a run in `exec` mode prints at its very end.

use super::Look;
use crate::evidence::{Claim, Evidence, Source};
use crate::observation::Mode;

/// What stands before the exit code.
pub(crate) const MARKER: &str = "__LISA_EXEC_DONE__:";
/// How many lines a shell may print after the marker: its prompt.
const LINES_AFTER: usize = 3;

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.obs.mode != Mode::Exec {
        return Vec::new();
    }
    let Some(code) = look.obs.screen.seen().and_then(|screen| find(screen)) else { return Vec::new() };
    let claim = Claim::RunDone { code: Some(code), signal: None };
    vec![look.standing(Source::ExecMarker, claim, &format!("{MARKER}{code}"))]
}

/// The exit code in the marker that ends this output: a line of its own, with at most a shell's prompt after it.
/// One further up is from an earlier run, or from somebody who talks about markers.
pub(crate) fn find(output: &str) -> Option<i32> {
    let written = output.lines().map(strip_escapes);
    let lines: Vec<String> = written.filter(|line| !line.trim().is_empty()).collect();
    let tail = lines.iter().rev().take(LINES_AFTER + 1);
    tail.filter_map(|line| line.trim().strip_prefix(MARKER)?.parse().ok()).next()
}

/// A line without its escape sequences.
fn strip_escapes(line: &str) -> String {
    crate::screen::cells(line)
        .into_iter()
        .flatten()
        .map(|cell| cell.text)
        .filter(|c| !c.is_control())
        .collect()
}
