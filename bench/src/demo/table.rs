//! A table of sessions that lives: drawn over itself on a terminal, one line for each change elsewhere.

use crate::progress::clip;
use std::{
    collections::BTreeMap,
    env,
    io::{self, Write},
    time::Duration,
};

const PLAIN_WIDTH: usize = 80;
const WIDEST: usize = 120;
const HEADS: [&str; 6] = ["name", "agent", "status", "state", "for", "doing"];
/// How wide each column may become; the last takes what is left.
const MOST: [usize; 5] = [16, 8, 13, 19, 6];

/// What is shown of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) agent: String,
    pub(crate) status: String,
    pub(crate) state: String,
    /// How long it is in this state.
    pub(crate) age: Duration,
    /// What it is busy with, or what it asks.
    pub(crate) doing: String,
}

/// The table on a screen or in a log.
pub(crate) struct Live {
    terminal: bool,
    colours: bool,
    /// How many lines stand on the screen, to be drawn over.
    drawn: usize,
    /// What a log has been told of each session.
    told: BTreeMap<String, Row>,
}

impl Live {
    pub(crate) fn new(terminal: bool) -> Self {
        let colours = terminal && env::var_os("NO_COLOR").is_none();
        Self { terminal, colours, drawn: 0, told: BTreeMap::new() }
    }

    /// Shows the sessions as they are now.
    pub(crate) fn draw(&mut self, rows: &[Row]) {
        let text = if self.terminal { self.redrawn(rows, columns()) } else { self.news(rows) };
        print!("{text}");
        // A terminal that went away is noticed elsewhere.
        let _ = io::stdout().flush();
    }

    /// Prints a line above the table, where it stays.
    pub(crate) fn say(&mut self, line: &str) {
        let up = self.back_to_top();
        println!("{up}{line}");
    }

    /// Leaves the table where it stands: what comes next stands below it.
    pub(crate) fn keep(&mut self) {
        self.drawn = 0;
    }

    /// The whole table, over the one that stands there.
    fn redrawn(&mut self, rows: &[Row], width: usize) -> String {
        let mut text = self.back_to_top();
        let lines = lines(rows, width);
        for (at, line) in lines.iter().enumerate() {
            let colour = at.checked_sub(1).and_then(|at| rows.get(at)).map_or("1", |row| colour(&row.status));
            if self.colours {
                text += &format!("\x1b[{colour}m{line}\x1b[0m\n");
            } else {
                text += &format!("{line}\n");
            }
        }
        self.drawn = lines.len();
        text
    }

    /// Moves to where the table begins and clears it away.
    fn back_to_top(&mut self) -> String {
        let lines = std::mem::take(&mut self.drawn);
        if lines == 0 { String::new() } else { format!("\x1b[{lines}A\r\x1b[J") }
    }

    /// A line for each session of which there is something new to say.
    fn news(&mut self, rows: &[Row]) -> String {
        let mut text = String::new();
        for row in rows {
            let now = Row { age: Duration::ZERO, ..row.clone() };
            if self.told.get(&row.name) != Some(&now) {
                let line =
                    format!("{}  {}  {}/{}  {}", row.name, row.agent, row.status, row.state, row.doing);
                text += &clip(line.trim_end(), PLAIN_WIDTH);
                text.push('\n');
                self.told.insert(row.name.clone(), now);
            }
        }
        text
    }
}

/// The table's lines, none longer than `width`.
fn lines(rows: &[Row], width: usize) -> Vec<String> {
    let mut table: Vec<[String; 6]> = vec![HEADS.map(str::to_owned)];
    table.extend(rows.iter().map(cells));
    let mut widths = [0; 6];
    for (at, most) in MOST.iter().enumerate() {
        let widest = table.iter().filter_map(|cells| cells.get(at)).map(|cell| cell.chars().count()).max();
        widths[at] = widest.unwrap_or(0).min(*most);
    }
    let taken: usize = widths.iter().map(|width| width + 2).sum::<usize>() - 2;
    widths[5] = width.saturating_sub(taken);
    let line = |cells: &[String; 6]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{:width$}", clip(cell, width)));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    table.iter().map(line).collect()
}

fn cells(row: &Row) -> [String; 6] {
    let one_line = row.doing.split_whitespace().collect::<Vec<_>>().join(" ");
    [row.name.clone(), row.agent.clone(), row.status.clone(), row.state.clone(), age(row.age), one_line]
}

/// `7s`, `4m`, `2h`: what fits in a narrow column and still tells.
fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}

/// A terminal's colour for a status: blue works, yellow wants somebody, red is wrong.
fn colour(status: &str) -> &'static str {
    match status {
        "in_progress" => "34",
        "waiting_input" => "33",
        "completed" => "32",
        "crashed" | "stuck" | "degraded" | "not_found" => "31",
        _ => "0",
    }
}

/// How wide the table may be.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(PLAIN_WIDTH, |size| usize::from(size.ws_col).clamp(PLAIN_WIDTH, WIDEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, status: &str, state: &str, doing: &str) -> Row {
        let [name, status, state, doing] = [name, status, state, doing].map(str::to_owned);
        Row { name, agent: "demo".into(), status, state, age: Duration::from_secs(7), doing }
    }

    #[test]
    fn the_longest_words_still_fit_eighty_columns() {
        let rows = [
            row(
                "a-name-that-goes-on-and-on",
                "waiting_input",
                "awaiting_permission",
                "rm -rf target/debug/deps",
            ),
            row("short", "in_progress", "working", "thinking\nhard"),
        ];
        let lines = lines(&rows, 80);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        assert!(
            lines[1].starts_with("a-name-that-goe…  demo   waiting_input  awaiting_permission  7s"),
            "{lines:#?}"
        );
        assert!(lines[2].ends_with("thinking hard"), "{lines:#?}");
    }

    #[test]
    fn a_redraw_begins_where_the_last_one_did() {
        let mut live = Live { terminal: true, colours: false, drawn: 0, told: BTreeMap::new() };
        let rows = [row("a", "in_progress", "working", "")];
        assert!(live.redrawn(&rows, 80).starts_with("name"));
        assert!(live.redrawn(&rows, 80).starts_with("\x1b[2A\r\x1b[J"));
    }

    #[test]
    fn a_log_hears_of_changes_and_not_of_time() {
        let mut live = Live::new(false);
        let mut rows = [row("a", "in_progress", "working", "thinking")];
        assert_eq!(live.news(&rows), "a  demo  in_progress/working  thinking\n");
        rows[0].age = Duration::from_secs(9);
        assert_eq!(live.news(&rows), "");
        rows[0].state = "ready".into();
        assert_eq!(live.news(&rows).lines().count(), 1);
    }

    #[test]
    fn ages_stay_short() {
        let told: Vec<_> = [0, 119, 120, 7200].map(Duration::from_secs).map(age).into();
        assert_eq!(told, ["0s", "119s", "2m", "2h"]);
    }
}
