//! Snapshots of many panes (their fields and screens) in one exchange.
//!
//! A capture prints one line per row of its pane, and the fields contain the number of rows. So captures can follow
//! each other without separators; a marker after each would cost as much as the fields of all panes. If the line
//! counts don't add up, the panes are read again with markers.

use super::{
    Capture, Cmd, REAP_ATTEMPTS, Reply, Tmux,
    exchange::{call, call_atomic},
    no_server,
    pane::{self, PaneRow},
    without_blank_end,
};
use crate::error::Result;
use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

/// Listing one pane by its id costs about as much as this many panes in a list of all.
const ONE_COSTS: usize = 3;
/// How many panes fit into one exchange: its commands must fit into one message, whether panes are listed one by one
/// or all together.
const CHUNK: usize = 32;
const CHUNK_ALL: usize = 400;

/// How much of a pane to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Only its fields.
    Nothing,
    /// Its fields, and its screen with colours.
    Screen,
}

impl Shown {
    /// Whether to ask tmux for the foreground program, which costs a third of all fields. Not needed where `/proc`
    /// tells.
    pub(crate) fn with_command(self) -> bool {
        self == Self::Screen && !crate::process::TELLS_FOREGROUND
    }
}

/// A snapshot of one pane.
#[derive(Debug, Clone)]
pub struct PaneSnapshot {
    /// Its fields; `None` if the pane is gone.
    pub row: Option<PaneRow>,
    /// Its screen, if it was asked for.
    pub screen: Reply,
}

impl Tmux {
    /// A pane by its id; `None` if it is gone.
    pub fn pane(&self, id: &str) -> Result<Option<PaneRow>> {
        Ok(self.pane_snapshots(&[id], Shown::Nothing)?.pop().and_then(|look| look.row))
    }

    /// Snapshots of panes, by their ids.
    pub fn pane_snapshots(&self, ids: &[&str], shown: Shown) -> Result<Vec<PaneSnapshot>> {
        let mut looks = self.snapshots_once(ids, shown)?;
        for attempt in 0..REAP_ATTEMPTS {
            if !self.resend_sigchld(looks.iter().filter_map(|look| look.row.as_ref()), attempt) {
                break;
            }
            looks = self.snapshots_once(ids, shown)?;
        }
        Ok(looks)
    }

    fn snapshots_once(&self, ids: &[&str], shown: Shown) -> Result<Vec<PaneSnapshot>> {
        let mut looks = Vec::with_capacity(ids.len());
        let all = ids.len() > 1 && ids.len() * ONE_COSTS > self.panes_seen.load(Ordering::Relaxed);
        for chunk in ids.chunks(if all { CHUNK_ALL } else { CHUNK }) {
            let unmarked = match self.marks.load(Ordering::Relaxed) {
                true => None,
                false => self.unmarked(chunk, all, shown)?,
            };
            looks.extend(match unmarked {
                Some(looks) => looks,
                None => self.snapshots_of_existing(chunk, all, shown)?,
            });
        }
        Ok(looks)
    }

    /// Like `snapshots_once`, for when some of the panes may be gone, for example after their server died. tmux drops all
    /// commands after one that names a missing pane, so missing panes are filtered out first.
    fn snapshots_of_existing(&self, ids: &[&str], all: bool, shown: Shown) -> Result<Vec<PaneSnapshot>> {
        let list = Cmd::new("list-panes").args(["-a", "-F", "#{pane_id}"]);
        let listed = call(self, std::slice::from_ref(&list))?.and_then(|mut replies| replies.pop()?.ok());
        let listed = String::from_utf8(listed.unwrap_or_default()).unwrap_or_default();
        let listed: HashSet<&str> = listed.lines().collect();
        let there: Vec<&str> = ids.iter().copied().filter(|id| listed.contains(id)).collect();
        let gone = || PaneSnapshot { row: None, screen: Err("there is no such pane".to_owned()) };
        if there.is_empty() {
            return Ok(ids.iter().map(|_| gone()).collect());
        }
        let unmarked = match there.len() < ids.len() && !self.marks.load(Ordering::Relaxed) {
            true => self.unmarked(&there, all, shown)?,
            false => None,
        };
        let found = match unmarked {
            Some(found) => found,
            None => self.marked(&there, shown)?,
        };
        let mut found: HashMap<&str, PaneSnapshot> = there.iter().copied().zip(found).collect();
        Ok(ids.iter().map(|id| found.remove(id).unwrap_or_else(gone)).collect())
    }

    /// One command list whose output is split by line counts: the fields of `all` panes or of these, then their
    /// screens. `None` if that isn't possible, for example because a pane is gone.
    fn unmarked(&self, ids: &[&str], all: bool, shown: Shown) -> Result<Option<Vec<PaneSnapshot>>> {
        let mut commands = match all {
            true => vec![list_all(shown)],
            false => ids.iter().map(|id| list_one(id, shown)).collect(),
        };
        // A marker for the end of the fields, if the number of panes isn't known.
        let mark = all.then(|| uuid::Uuid::new_v4().simple().to_string());
        commands.extend(mark.as_ref().map(|mark| Cmd::new("display-message").arg("-p").arg(mark)));
        if shown == Shown::Screen {
            commands.extend(ids.iter().map(|id| capture(id)));
        }
        let Some(reply) = call_atomic(self, &commands, &[])? else {
            let gone = || PaneSnapshot { row: None, screen: no_server() };
            return Ok(Some(ids.iter().map(|_| gone()).collect()));
        };
        let Ok(output) = reply else { return Ok(None) };
        let Some((looks, panes)) = take(&output, ids, mark.as_deref(), shown) else {
            tracing::warn!(
                "tmux captures a different number of rows than a pane has; using markers from now on"
            );
            self.marks.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        if all {
            self.panes_seen.store(panes, Ordering::Relaxed);
        }
        Ok(Some(looks))
    }

    /// The same with a marker after each command, so that a failed command doesn't stop the rest.
    fn marked(&self, ids: &[&str], shown: Shown) -> Result<Vec<PaneSnapshot>> {
        let each = if shown == Shown::Screen { 2 } else { 1 };
        let commands: Vec<Cmd> =
            ids.iter().flat_map(|id| [list_one(id, shown), capture(id)].into_iter().take(each)).collect();
        let mut replies = call(self, &commands)?.unwrap_or_default().into_iter();
        let looks = ids.iter().map(|id| {
            let listed = replies.next().and_then(Reply::ok).unwrap_or_default();
            let rows = pane::parse(&listed, shown.with_command()).unwrap_or_default();
            let screen = (each == 2).then(|| replies.next()).flatten().unwrap_or_else(no_server);
            PaneSnapshot {
                row: rows.into_iter().find(|row| row.pane_id == **id),
                screen: screen.map(without_blank_end),
            }
        });
        Ok(looks.collect())
    }
}

/// The fields of one pane. Uses `list-panes` because `display-message` of tmux 3.4 adds backslashes. Filters by pane
/// id, because a person may have split the window.
fn list_one(id: &str, shown: Shown) -> Cmd {
    let itself = format!("#{{==:#{{pane_id}},{id}}}");
    let list = Cmd::new("list-panes").args(["-t", id, "-f"]).arg(itself);
    list.arg("-F").arg(pane::format(shown.with_command()))
}

fn list_all(shown: Shown) -> Cmd {
    Cmd::new("list-panes").args(["-a", "-F"]).arg(pane::format(shown.with_command()))
}

fn capture(id: &str) -> Cmd {
    Capture { pane: id, ansi: true, history: 0 }.command()
}

/// Splits output into the fields and, for each pane, as many lines as it has rows. Also returns how many panes were
/// listed. `None` if that doesn't add up.
pub(crate) fn take(
    output: &[u8],
    ids: &[&str],
    mark: Option<&str>,
    shown: Shown,
) -> Option<(Vec<PaneSnapshot>, usize)> {
    let mut lines = Lines { rest: output };
    let fields = match mark {
        None => lines.take(ids.len())?,
        Some(mark) => lines.take_until(mark.as_bytes())?,
    };
    let rows = pane::parse(fields, shown.with_command()).ok()?;
    let mut rows: HashMap<String, PaneRow> = rows.into_iter().map(|row| (row.pane_id.clone(), row)).collect();
    let listed = rows.len();
    let mut looks = Vec::with_capacity(ids.len());
    for id in ids {
        let row = rows.remove(*id)?;
        let screen = match shown {
            Shown::Nothing => no_server(),
            Shown::Screen => Ok(without_blank_end(lines.take(row.pane.size.1.into())?.to_vec())),
        };
        looks.push(PaneSnapshot { row: Some(row), screen });
    }
    lines.rest.is_empty().then_some((looks, listed))
}

/// Takes whole lines from the front.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let mut end = 0;
        for _ in 0..count {
            end += memchr::memchr(b'\n', self.rest.get(end..)?)? + 1;
        }
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(taken)
    }

    /// Takes the lines before the marker line, and drops the marker.
    fn take_until(&mut self, mark: &[u8]) -> Option<&'a [u8]> {
        let whole = self.rest;
        loop {
            let before = whole.len() - self.rest.len();
            let line = self.take(1)?;
            if line.strip_suffix(b"\n") == Some(mark) {
                return whole.get(..before);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of fields as tmux prints it, for a pane with this many rows.
    fn fields(id: u32, rows: u32) -> String {
        let words =
            format!("s\t$1\t@1\t%{id}\trun\t7\t0\t\t\t8\t0\t0\t1\t0\t0\t0\t1700000000\t80\t{rows}\t0");
        let command = if Shown::Screen.with_command() { "\tsh" } else { "" };
        format!("{words}{command}\ttitle\n")
    }

    fn screens(output: &str, ids: &[&str], mark: Option<&str>) -> Option<Vec<String>> {
        let (looks, _) = take(output.as_bytes(), ids, mark, Shown::Screen)?;
        Some(looks.into_iter().map(|look| String::from_utf8(look.screen.unwrap()).unwrap()).collect())
    }

    #[test]
    fn captures_are_told_apart_by_the_rows_of_their_panes() {
        let output = fields(1, 2) + &fields(2, 3) + "a\nb\n" + "c\n\n\n";
        assert_eq!(screens(&output, &["%1", "%2"], None).unwrap(), ["a\nb", "c"]);
        let output = fields(3, 1) + &fields(1, 2) + "mark\n" + "a\nb\n" + "x\n";
        assert_eq!(screens(&output, &["%1", "%3"], Some("mark")).unwrap(), ["a\nb", "x"]);
    }

    #[test]
    fn what_does_not_add_up_is_not_guessed() {
        let short = fields(1, 2) + "a\n";
        let long = fields(1, 2) + "a\nb\nc\n";
        let torn = fields(1, 2) + "a\nb";
        let another = fields(2, 1) + "a\n";
        for output in [short, long, torn, another, String::new(), "nonsense\na\nb\n".to_owned()] {
            assert_eq!(screens(&output, &["%1"], None), None, "{output:?}");
        }
        assert_eq!(screens(&(fields(1, 1) + "a\n"), &["%1"], Some("mark")), None);
    }
}
