//! Figures, once: as a table for people and as JSON for programs.

use serde_json::{Map, Value, json};
use std::{process::Command, thread};

/// A column: its name, and the unit of what stands in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Empty for words and counts.
    pub(super) unit: &'static str,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Word(String),
    Count(u64),
    Number(f64),
    /// This machine cannot tell.
    Unknown,
}

/// What a bench found.
pub(super) struct Report {
    columns: &'static [Column],
    rows: Vec<Vec<Cell>>,
    ratios: Vec<(String, f64)>,
    notes: Vec<String>,
}

impl Report {
    pub(super) fn new(columns: &'static [Column]) -> Self {
        Self { columns, rows: Vec::new(), ratios: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row: a cell for each column, in their order.
    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Adds how many times more one thing is than another.
    pub(super) fn ratio(&mut self, name: impl Into<String>, more: f64, less: f64) {
        if less > 0.0 {
            self.ratios.push((name.into(), more / less));
        }
    }

    /// Adds a sentence about what the figures do not say.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let heads =
            self.columns.iter().map(|column| format!("{} {}", column.name, column.unit).trim().to_owned());
        let mut lines: Vec<Vec<String>> = vec![heads.collect()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(Cell::text).collect()));
        let width = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|t| t.chars().count()).max();
        let widths: Vec<usize> = (0..self.columns.len()).map(|at| width(at).unwrap_or(0)).collect();
        let mut text = String::new();
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                if at == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            });
            text += &cells.collect::<Vec<_>>().join("  ");
            text.push('\n');
        }
        for (name, ratio) in &self.ratios {
            text += &format!("{name}: {} times\n", number(*ratio));
        }
        for note in &self.notes {
            text += &format!("{note}\n");
        }
        text + &format!("on {}\n", machine_line())
    }

    /// For programs: one line.
    pub(super) fn json(&self, bench: &str) -> Value {
        let rows = self.rows.iter().map(|row| {
            let pairs = self.columns.iter().zip(row).map(|(column, cell)| (column.key(), cell.json()));
            Value::Object(pairs.collect::<Map<_, _>>())
        });
        let ratios: Map<_, _> = self
            .ratios
            .iter()
            .map(|(name, ratio)| (name.replace(',', "").replace(' ', "_"), json!(rounded(*ratio))))
            .collect();
        let rows: Vec<Value> = rows.collect();
        json!({"bench": bench, "machine": machine(), "rows": rows, "ratios": ratios, "notes": self.notes})
    }
}

impl Column {
    fn key(&self) -> String {
        format!("{} {}", self.name, self.unit).trim().replace(' ', "_")
    }
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Count(count) => count.to_string(),
            Self::Number(value) => number(*value),
            Self::Unknown => "-".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Word(word) => json!(word),
            Self::Count(count) => json!(count),
            Self::Number(value) => json!(rounded(*value)),
            Self::Unknown => Value::Null,
        }
    }
}

impl From<&str> for Cell {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Unknown, Self::Number)
    }
}

/// Three digits that count: more would claim a precision that no run repeats.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The figure of the table as a number, so that both say the same.
fn rounded(value: f64) -> f64 {
    number(value).parse().unwrap_or(value)
}

fn machine() -> Value {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let output = Command::new("tmux").arg("-V").output().map(|output| output.stdout).unwrap_or_default();
    let tmux = String::from_utf8_lossy(&output).trim().trim_start_matches("tmux ").to_owned();
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().and_then(|load| load.parse::<f64>().ok());
    json!({
        "os": std::env::consts::OS, "arch": std::env::consts::ARCH, "cores": cores, "load": load, "tmux": tmux,
        "build": profile,
    })
}

fn machine_line() -> String {
    let machine = machine();
    let text = |key: &str| machine.get(key).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned));
    let part = |key: &str| text(key).unwrap_or_default();
    format!(
        "{} {}, {} cores, load {}, tmux {}, {} build",
        part("os"),
        part("arch"),
        part("cores"),
        part("load"),
        part("tmux"),
        part("build")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[Column { name: "way", unit: "" }, Column { name: "wall p50", unit: "ms" }];

    fn report() -> Report {
        let mut report = Report::new(COLUMNS);
        report.row(vec!["classic".into(), Some(1234.56).into()]);
        report.row(vec!["new".into(), None.into()]);
        report.ratio("cpu, 10 sessions", 50.0, 4.0);
        report
    }

    #[test]
    fn the_table_lines_up_and_names_units() {
        let table = report().table();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[..3], ["way      wall p50 ms", "classic         1235", "new                -"]);
        assert_eq!(lines[3], "cpu, 10 sessions: 12.5 times");
    }

    #[test]
    fn the_json_has_the_same_figures_under_keys_with_units() {
        let json = report().json("sweep");
        assert_eq!(json["bench"], "sweep");
        assert_eq!(json["rows"][0], json!({"way": "classic", "wall_p50_ms": 1235.0}));
        assert_eq!(json["rows"][1]["wall_p50_ms"], Value::Null);
        assert_eq!(json["ratios"]["cpu_10_sessions"], 12.5);
        assert!(!json.to_string().contains('\n'));
    }

    #[test]
    fn a_ratio_to_nothing_is_left_out() {
        let mut report = Report::new(COLUMNS);
        report.ratio("cpu", 3.0, 0.0);
        assert!(report.ratios.is_empty());
    }
}
