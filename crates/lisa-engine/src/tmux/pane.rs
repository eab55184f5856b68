//! One row of `list-panes`: the fields to ask for, and parsing them.

use crate::{
    classify::observation::{At, Pane},
    error::{Error, Kind, Result},
};

/// The fields, in order. The command is by far the most expensive one and only asked for when needed. The title is
/// last, because it is the only one whose text the program in the pane controls.
const FIELDS: &[&str] = &[
    "session_name",
    "session_id",
    "window_id",
    "pane_id",
    MARK_FIELD,
    "pid",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "pane_pid",
    "cursor_x",
    "cursor_y",
    "cursor_flag",
    "alternate_on",
    "pane_in_mode",
    "history_size",
    "window_activity",
    "pane_width",
    "pane_height",
    INPUTS,
];
/// The end of a pane's command line: its mark. The command line moves with the pane and nobody can change it. (An option
/// of the pane does the same, but setting one makes the server recalculate the size of every window.)
const MARK_FIELD: &str = "=-41:pane_start_command";
/// A mark without its run id, which has 32 characters.
const MARK: &str = "lisa-run-";
/// A format that is 1 for the panes of agents.
pub(super) const IS_AGENT: &str = "#{m:lisa-run-*,#{=-41:pane_start_command}}";
/// How often something was typed into the pane: a variable of its session that the server counts up (see `server`).
pub(super) const INPUTS: &str = "lisa_inputs";
const COMMAND: &str = "pane_current_command";
const TITLE: &str = "pane_title";

/// A pane, with its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneRow {
    /// The session's name.
    pub session: String,
    /// The session's id (`$3`).
    pub session_id: String,
    /// The window's id (`@3`).
    pub window_id: String,
    /// The pane's id (`%3`).
    pub pane_id: String,
    /// The run id in the pane's mark; empty if the pane isn't an agent's.
    pub run_id: String,
    /// The process id of the server.
    pub server_pid: u32,
    /// What tmux reports about the pane.
    pub pane: Pane,
}

impl Pane {
    /// Whether tmux knows how the dead process ended.
    pub fn reaped(&self) -> bool {
        self.exit_status.is_some() || self.exit_signal.is_some()
    }
}

/// The last word of the command line of an agent's pane.
pub(crate) fn mark(run_id: &str) -> String {
    format!("{MARK}{run_id}")
}

/// The run id in a mark; `None` if this is none.
pub(crate) fn marked(word: &str) -> Option<&str> {
    word.strip_prefix(MARK)
}

/// The pane of an agent, by what identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPane {
    /// The run id in the pane's mark.
    pub run_id: String,
    /// The pane's id (`%3`).
    pub pane_id: String,
    /// The name of its tmux session.
    pub session: String,
}

/// The format for a list of [`AgentPane`]s. Asks for little, because each field of a thousand panes takes the server
/// milliseconds.
pub(super) fn agent_format() -> String {
    format!("#{{{MARK_FIELD}}} #{{pane_id}} #{{session_name}}")
}

/// Parses a list in that format; other panes are left out.
pub(super) fn parse_agents(bytes: &[u8]) -> Vec<AgentPane> {
    let text = String::from_utf8_lossy(bytes);
    let agent = |line: &str| {
        let mut words = marked(line)?.splitn(3, ' ').map(str::to_owned);
        Some(AgentPane { run_id: words.next()?, pane_id: words.next()?, session: words.next()? })
    };
    text.lines().filter_map(agent).collect()
}

/// The format for `list-panes -F`.
pub fn format(with_command: bool) -> String {
    let command = with_command.then_some(COMMAND);
    let fields: Vec<String> =
        FIELDS.iter().copied().chain(command).chain([TITLE]).map(|field| format!("#{{{field}}}")).collect();
    fields.join("\t")
}

/// Parses the output of `list-panes` in that format.
pub fn parse(bytes: &[u8], with_command: bool) -> Result<Vec<PaneRow>> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(|line| parse_line(line, with_command).ok_or_else(|| garbled(line))).collect()
}

fn garbled(line: &str) -> Error {
    Error::new(
        Kind::TmuxFailed,
        format!("tmux printed a malformed pane line: `{}`", crate::error::printable(line)),
        "run `lisa doctor` to check that server and client are the same version",
    )
}

fn parse_line(line: &str, with_command: bool) -> Option<PaneRow> {
    let columns = FIELDS.len() + usize::from(with_command) + 1;
    let mut fields = line.splitn(columns, '\t');
    let mut next = || fields.next();
    let session = next()?.to_owned();
    let session_id = next()?.to_owned();
    let window_id = next()?.to_owned();
    let pane_id = next()?.to_owned();
    let run_id = marked(next()?).unwrap_or_default().to_owned();
    let server_pid = next()?.parse().ok()?;
    let dead = next()? == "1";
    let exit_status = next()?.parse().ok();
    let exit_signal = signal_number(next()?);
    let pid = next()?.parse().ok()?;
    let cursor = (next()?.parse().ok()?, next()?.parse().ok()?);
    let cursor_visible = next()? == "1";
    let alternate = next()? == "1";
    let in_mode = !matches!(next()?, "" | "0");
    let history = next()?.parse().ok()?;
    let activity = At(next()?.parse::<i64>().ok()?.checked_mul(1000)?);
    let size = (next()?.parse().ok()?, next()?.parse().ok()?);
    let inputs = next()?.parse().unwrap_or(0);
    let command = if with_command { next()?.to_owned() } else { String::new() };
    let title = next()?.to_owned();
    let pane = Pane {
        dead,
        exit_status,
        exit_signal,
        command,
        pid,
        cursor,
        cursor_visible,
        alternate,
        in_mode,
        history,
        activity,
        size,
        inputs,
        title,
    };
    Some(PaneRow { session, session_id, window_id, pane_id, run_id, server_pid, pane })
}

/// tmux prints the signal's number up to 3.4 and its name in some later versions.
fn signal_number(text: &str) -> Option<i32> {
    text.parse().ok().or_else(|| {
        let name = text.trim_start_matches("SIG").to_ascii_uppercase();
        let known = [
            ("HUP", 1),
            ("INT", 2),
            ("QUIT", 3),
            ("ABRT", 6),
            ("KILL", 9),
            ("SEGV", 11),
            ("PIPE", 13),
            ("TERM", 15),
        ];
        known.iter().find(|(word, _)| *word == name).map(|(_, number)| *number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "s-1\t$4\t@5\t%6\tlisa-run-7\t99\t1\t\t9\t1234\t2\t14\t0\t1\t0\t120\t1700000000\t220\t60\t7\tclaude\t⠂ a title with #{x}";

    #[test]
    fn a_row_is_read_with_all_its_fields() {
        let row = parse(LINE.as_bytes(), true).unwrap().remove(0);
        assert_eq!((row.session.as_str(), row.pane_id.as_str(), row.run_id.as_str()), ("s-1", "%6", "7"));
        assert_eq!((row.pane.dead, row.pane.exit_status, row.pane.exit_signal), (true, None, Some(9)));
        assert_eq!((row.pane.pid, row.pane.cursor, row.pane.cursor_visible), (1234, (2, 14), false));
        assert_eq!((row.pane.activity, row.pane.size), (At(1_700_000_000_000), (220, 60)));
        assert_eq!(row.pane.inputs, 7);
        assert_eq!((row.pane.command.as_str(), row.pane.title.as_str()), ("claude", "⠂ a title with #{x}"));
    }

    #[test]
    fn a_pane_whose_command_has_no_mark_is_no_agent_s() {
        for command in ["", "sleep 86400", "echo lisa-run-7"] {
            let row = parse(LINE.replace("lisa-run-7", command).as_bytes(), true).unwrap().remove(0);
            assert_eq!(row.run_id, "", "{command}");
        }
        let run = uuid::Uuid::new_v4().simple().to_string();
        assert!(MARK_FIELD.starts_with(&format!("=-{}:", mark(&run).len())));
        assert_eq!(marked(&mark(&run)), Some(run.as_str()));
    }

    #[test]
    fn an_empty_status_is_unknown_and_not_zero() {
        let row = parse(LINE.replace("\t9\t1234", "\t\t1234").as_bytes(), true).unwrap().remove(0);
        assert!(row.pane.dead && !row.pane.reaped());
    }

    #[test]
    fn a_torn_row_is_an_error_that_shows_it() {
        let error = parse(b"s-1\t$4\t@5", true).unwrap_err();
        assert!(error.to_string().contains("s-1"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), command: bool) {
            let _ = parse(&bytes, command);
        }
    }
}
