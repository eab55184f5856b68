//! Panes with what they show, many of them in one exchange.
//!
//! A capture prints one line for each row of its pane, and the fields say how many rows that are, so captures follow each
//! other without anything between them: a mark behind each would cost as much as the fields of all panes. What does not
//! add up is asked for again with marks.

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

/// One pane listed by its id costs about as much as this many in a list of all panes.
const ONE_COSTS: usize = 3;
/// How many panes are looked at in one exchange: its commands must fit one message, whether panes are listed one by one
/// or all together.
const CHUNK: usize = 32;
const CHUNK_ALL: usize = 400;

/// How much of a pane a look takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Its fields only.
    Nothing,
    /// Its fields and its screen with colours.
    Screen,
}

impl Shown {
    /// Asking tmux for the program in front costs a third of all fields: where processes tell it themselves, it is not
    /// asked.
    pub(crate) fn with_command(self) -> bool {
        self == Self::Screen && !crate::process::TELLS_FOREGROUND
    }
}

/// One pane, looked at.
#[derive(Debug, Clone)]
pub struct PaneLook {
    /// Its fields; `None` where it is gone.
    pub row: Option<PaneRow>,
    /// What it shows, where that was asked for.
    pub screen: Reply,
}

impl Tmux {
    /// A pane by its id; `None` where it is gone.
    pub fn pane(&self, id: &str) -> Result<Option<PaneRow>> {
        Ok(self.looks(&[id], Shown::Nothing)?.pop().and_then(|look| look.row))
    }

    /// Panes by their ids, each with what it shows.
    pub fn looks(&self, ids: &[&str], shown: Shown) -> Result<Vec<PaneLook>> {
        let mut looks = self.looks_once(ids, shown)?;
        for attempt in 0..REAP_ATTEMPTS {
            if !self.remind_of_unreaped(looks.iter().filter_map(|look| look.row.as_ref()), attempt) {
                break;
            }
            looks = self.looks_once(ids, shown)?;
        }
        Ok(looks)
    }

    fn looks_once(&self, ids: &[&str], shown: Shown) -> Result<Vec<PaneLook>> {
        let mut looks = Vec::with_capacity(ids.len());
        let all = ids.len() > 1 && ids.len() * ONE_COSTS > self.panes_seen.load(Ordering::Relaxed);
        for chunk in ids.chunks(if all { CHUNK_ALL } else { CHUNK }) {
            let unmarked = match self.marks.load(Ordering::Relaxed) {
                true => None,
                false => self.unmarked(chunk, all, shown)?,
            };
            looks.extend(match unmarked {
                Some(looks) => looks,
                None => self.those_there(chunk, all, shown)?,
            });
        }
        Ok(looks)
    }

    /// The same where some of the panes may be gone, as those of a server that died are: tmux drops everything behind a
    /// command that names one, so they are left out.
    fn those_there(&self, ids: &[&str], all: bool, shown: Shown) -> Result<Vec<PaneLook>> {
        let list = Cmd::new("list-panes").args(["-a", "-F", "#{pane_id}"]);
        let listed = call(self, std::slice::from_ref(&list))?.and_then(|mut replies| replies.pop()?.ok());
        let listed = String::from_utf8(listed.unwrap_or_default()).unwrap_or_default();
        let listed: HashSet<&str> = listed.lines().collect();
        let there: Vec<&str> = ids.iter().copied().filter(|id| listed.contains(id)).collect();
        let gone = || PaneLook { row: None, screen: Err("there is no such pane".to_owned()) };
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
        let mut found: HashMap<&str, PaneLook> = there.iter().copied().zip(found).collect();
        Ok(ids.iter().map(|id| found.remove(id).unwrap_or_else(gone)).collect())
    }

    /// One list of commands whose output is told apart by its lines: the fields of `all` panes or of these, then what
    /// these show. `None` where that is not possible, as with a pane that is gone.
    fn unmarked(&self, ids: &[&str], all: bool, shown: Shown) -> Result<Option<Vec<PaneLook>>> {
        let mut commands = match all {
            true => vec![list_all(shown)],
            false => ids.iter().map(|id| list_one(id, shown)).collect(),
        };
        // The end of the fields, where nobody knows how many panes there are.
        let mark = all.then(|| uuid::Uuid::new_v4().simple().to_string());
        commands.extend(mark.as_ref().map(|mark| Cmd::new("display-message").arg("-p").arg(mark)));
        if shown == Shown::Screen {
            commands.extend(ids.iter().map(|id| capture(id)));
        }
        let Some(reply) = call_atomic(self, &commands, &[])? else {
            let gone = || PaneLook { row: None, screen: no_server() };
            return Ok(Some(ids.iter().map(|_| gone()).collect()));
        };
        let Ok(output) = reply else { return Ok(None) };
        let Some((looks, panes)) = take(&output, ids, mark.as_deref(), shown) else {
            tracing::warn!("tmux captures other rows than a pane has; captures are marked from now on");
            self.marks.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        if all {
            self.panes_seen.store(panes, Ordering::Relaxed);
        }
        Ok(Some(looks))
    }

    /// The same with a mark behind each command: one that fails does not keep the rest from being answered.
    fn marked(&self, ids: &[&str], shown: Shown) -> Result<Vec<PaneLook>> {
        let each = if shown == Shown::Screen { 2 } else { 1 };
        let commands: Vec<Cmd> =
            ids.iter().flat_map(|id| [list_one(id, shown), capture(id)].into_iter().take(each)).collect();
        let mut replies = call(self, &commands)?.unwrap_or_default().into_iter();
        let looks = ids.iter().map(|id| {
            let listed = replies.next().and_then(Reply::ok).unwrap_or_default();
            let rows = pane::parse(&listed, shown.with_command()).unwrap_or_default();
            let screen = (each == 2).then(|| replies.next()).flatten().unwrap_or_else(no_server);
            PaneLook {
                row: rows.into_iter().find(|row| row.pane_id == **id),
                screen: screen.map(without_blank_end),
            }
        });
        Ok(looks.collect())
    }
}

/// The fields of one pane. Not by `display-message`, which tmux 3.4 puts backslashes into. The window may have been split.
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

/// Takes output apart: the fields, then as many lines for each pane as it has rows. Says also how many panes were listed.
/// `None` where that does not add up.
pub(crate) fn take(
    output: &[u8],
    ids: &[&str],
    mark: Option<&str>,
    shown: Shown,
) -> Option<(Vec<PaneLook>, usize)> {
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
        looks.push(PaneLook { row: Some(row), screen });
    }
    lines.rest.is_empty().then_some((looks, listed))
}

/// Whole lines, taken from the front.
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

    /// Takes the lines before the one that is the mark, and drops that.
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

    /// A line of fields as tmux prints it, for a pane of so many rows.
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
