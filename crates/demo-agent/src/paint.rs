//! Writes rows to the terminal with as few bytes as possible, one write per frame.
//!
//! Cursor movement is relative, because the absolute row on the main screen is unknown. Only a resize, after which the
//! terminal has reflowed everything, repaints from the top.

use std::collections::VecDeque;
use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveDown, MoveTo, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::style::{Attribute, Color, SetAttribute, SetForegroundColor};
use crossterm::terminal::{Clear, ClearType};

use crate::screen::{Entry, Live, Size};
use crate::text::{Row, Style, width};

/// Transcript entries kept for a repaint; enough for any terminal size.
const KEPT_ENTRIES: usize = 1000;

/// The current contents of the terminal.
#[derive(Debug)]
pub struct Painter {
    size: Size,
    kept: VecDeque<Entry>,
    printed_any: bool,
    open_printed: usize,
    rows: Vec<Row>,
    cursor_row: usize,
    /// The cursor position; `None` after rows were written.
    cursor: Option<(usize, usize)>,
    hidden: bool,
    title: Option<String>,
    repaint: bool,
}

impl Painter {
    /// A painter for a terminal of this size, with the cursor in the first column.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            size,
            kept: VecDeque::new(),
            printed_any: false,
            open_printed: 0,
            rows: Vec::new(),
            cursor_row: 0,
            cursor: None,
            hidden: false,
            title: None,
            repaint: false,
        }
    }

    /// The terminal's size.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Handles a resize: the next frame repaints everything.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.repaint = true;
    }

    /// Clears the transcript. The next frame starts at the top.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.printed_any = false;
        self.open_printed = 0;
        self.repaint = true;
    }

    /// The bytes of the next frame; empty if nothing changed.
    ///
    /// # Errors
    /// None in practice: the bytes go to memory.
    pub fn frame(
        &mut self,
        new: Vec<Entry>,
        open: Option<&Entry>,
        mut live: Live,
        title: Option<&str>,
    ) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut permanent = self.take_new(new);
        if let Some(open) = open {
            let mut rows = open.rows(self.size.cols, !self.printed_any);
            let last = rows.pop();
            permanent.extend(rows.iter().skip(self.open_printed).cloned());
            self.open_printed = self.open_printed.max(rows.len());
            live.rows.splice(0..0, last);
            live.cursor = live.cursor.map(|(row, col)| (row + 1, col));
            let cut = live.rows.len().saturating_sub(self.size.rows);
            live.rows.drain(..cut);
            live.cursor = live.cursor.map(|(row, col)| (row.saturating_sub(cut), col));
        }
        if self.repaint {
            self.repaint_all(&mut out, open, &live)?;
        } else if !permanent.is_empty() || live.rows.len() != self.rows.len() {
            self.reprint(&mut out, &permanent, &live)?;
        } else {
            self.patch(&mut out, &live)?;
        }
        self.place_cursor(&mut out, &live)?;
        self.rows = live.rows;
        if let Some(title) = title
            && self.title.as_deref() != Some(title)
        {
            write!(out, "\x1b]2;{title}\x07")?;
            self.title = Some(title.to_owned());
        }
        Ok(out)
    }

    /// The bytes that remove the live region and leave the cursor below the transcript.
    ///
    /// # Errors
    /// None in practice: the bytes go to memory.
    pub fn farewell(&mut self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        self.move_rows(&mut out, 0)?;
        queue!(out, MoveToColumn(0), Clear(ClearType::FromCursorDown), Show)?;
        if self.title.take().is_some() {
            out.extend_from_slice(b"\x1b]2;\x07");
        }
        self.rows.clear();
        Ok(out)
    }

    fn take_new(&mut self, new: Vec<Entry>) -> Vec<Row> {
        let mut rows = Vec::new();
        for entry in new {
            let all = entry.rows(self.size.cols, !self.printed_any);
            // The first entry completes the open line; part of it may already be printed.
            rows.extend(all.into_iter().skip(std::mem::take(&mut self.open_printed)));
            self.printed_any = true;
            if self.kept.len() == KEPT_ENTRIES {
                self.kept.pop_front();
            }
            self.kept.push_back(entry);
        }
        rows
    }

    fn repaint_all(&mut self, out: &mut Vec<u8>, open: Option<&Entry>, live: &Live) -> io::Result<()> {
        let Size { cols, rows: height } = self.size;
        let room = height.saturating_sub(live.rows.len());
        let mut above: VecDeque<Row> = VecDeque::new();
        if let Some(open) = open {
            let mut rows = open.rows(cols, !self.printed_any);
            rows.pop();
            self.open_printed = rows.len();
            above.extend(rows);
        }
        for (index, entry) in self.kept.iter().enumerate().rev() {
            if above.len() >= room {
                break;
            }
            for row in entry.rows(cols, index == 0).into_iter().rev() {
                above.push_front(row);
            }
        }
        while above.len() > room {
            above.pop_front();
        }
        queue!(out, MoveTo(0, 0))?;
        self.cursor_row = 0;
        for row in &above {
            self.write_row(out, row)?;
            out.extend_from_slice(b"\r\n");
        }
        self.write_live(out, live)?;
        if above.len() + live.rows.len() < height {
            self.clear_below(out)?;
        }
        self.repaint = false;
        Ok(())
    }

    fn reprint(&mut self, out: &mut Vec<u8>, permanent: &[Row], live: &Live) -> io::Result<()> {
        self.move_rows(out, 0)?;
        queue!(out, MoveToColumn(0))?;
        for row in permanent {
            self.write_row(out, row)?;
            out.extend_from_slice(b"\r\n");
        }
        self.write_live(out, live)?;
        if permanent.len() + live.rows.len() < self.rows.len() {
            self.clear_below(out)?;
        }
        Ok(())
    }

    /// Clears leftover rows of a taller frame. Called only if there is a row below.
    fn clear_below(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(b"\r\n");
        self.cursor_row += 1;
        queue!(out, Clear(ClearType::FromCursorDown))
    }

    fn write_live(&mut self, out: &mut Vec<u8>, live: &Live) -> io::Result<()> {
        for (index, row) in live.rows.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b"\r\n");
            }
            self.write_row(out, row)?;
        }
        self.cursor_row = live.rows.len().saturating_sub(1);
        self.cursor = None;
        Ok(())
    }

    fn patch(&mut self, out: &mut Vec<u8>, live: &Live) -> io::Result<()> {
        for (index, row) in live.rows.iter().enumerate() {
            if self.rows.get(index) != Some(row) {
                self.move_rows(out, index)?;
                queue!(out, MoveToColumn(0))?;
                self.write_row(out, row)?;
                self.cursor = None;
            }
        }
        Ok(())
    }

    fn place_cursor(&mut self, out: &mut Vec<u8>, live: &Live) -> io::Result<()> {
        if let Some((row, col)) = live.cursor {
            if self.cursor != live.cursor {
                self.move_rows(out, row)?;
                queue!(out, MoveToColumn(clamp(col)))?;
            }
            if self.hidden {
                queue!(out, Show)?;
            }
        } else if !self.hidden {
            queue!(out, Hide)?;
        }
        self.hidden = live.cursor.is_none();
        self.cursor = live.cursor;
        Ok(())
    }

    fn move_rows(&mut self, out: &mut Vec<u8>, to: usize) -> io::Result<()> {
        if to < self.cursor_row {
            queue!(out, MoveUp(clamp(self.cursor_row - to)))?;
        } else if to > self.cursor_row {
            queue!(out, MoveDown(clamp(to - self.cursor_row)))?;
        }
        self.cursor_row = to;
        Ok(())
    }

    fn write_row(&self, out: &mut Vec<u8>, row: &Row) -> io::Result<()> {
        match row.style {
            Style::Plain => {}
            Style::Dim => queue!(out, SetAttribute(Attribute::Dim))?,
            Style::Bold => queue!(out, SetAttribute(Attribute::Bold))?,
            Style::Accent => queue!(out, SetForegroundColor(Color::Cyan))?,
            Style::Good => queue!(out, SetForegroundColor(Color::Green))?,
            Style::Bad => queue!(out, SetForegroundColor(Color::Red))?,
        }
        out.extend_from_slice(row.text.as_bytes());
        if row.style != Style::Plain {
            queue!(out, SetAttribute(Attribute::Reset))?;
        }
        // In the last column the cursor is on the last character, so clearing would erase it.
        if width(&row.text) < self.size.cols {
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        Ok(())
    }
}

fn clamp(cells: usize) -> u16 {
    u16::try_from(cells).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { cols: 20, rows: 10 };

    fn region(rows: &[&str]) -> Live {
        Live { rows: rows.iter().map(|text| Row::plain(*text)).collect(), cursor: Some((1, 2)) }
    }

    fn frame(painter: &mut Painter, new: Vec<Entry>, rows: &[&str]) -> String {
        let bytes = painter.frame(new, None, region(rows), Some("demo")).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_unchanged_screen_costs_nothing() {
        let mut painter = Painter::new(SIZE);
        assert!(frame(&mut painter, vec![], &["status", "box"]).ends_with("\x1b]2;demo\x07"));
        assert_eq!(frame(&mut painter, vec![], &["status", "box"]), "");
    }

    #[test]
    fn a_spinner_writes_only_its_own_row() {
        let mut painter = Painter::new(SIZE);
        frame(&mut painter, vec![], &["⣾ Thinking", "box"]);
        let bytes = frame(&mut painter, vec![], &["⣽ Thinking", "box"]);
        assert_eq!(bytes, "\x1b[1A\x1b[1G⣽ Thinking\x1b[K\x1b[1B\x1b[3G");
    }

    #[test]
    fn transcript_rows_push_the_live_region_down() {
        let mut painter = Painter::new(SIZE);
        frame(&mut painter, vec![], &["status", "box"]);
        let bytes =
            frame(&mut painter, vec![Entry::Answer { first: true, line: "hi".into() }], &["status", "box"]);
        assert!(bytes.starts_with("\x1b[1A\x1b[1G◆ hi\x1b[K\r\nstatus\x1b[K\r\nbox\x1b[K"), "{bytes:?}");
    }

    #[test]
    fn a_finished_line_is_not_printed_twice() {
        let mut painter = Painter::new(SIZE);
        let line = |text: &str| Entry::Answer { first: true, line: text.to_owned() };
        let open = line("aaaaaaaaaaaaaaaa bbb");
        let first = painter.frame(vec![], Some(&open), region(&["", "box"]), None).unwrap();
        assert!(String::from_utf8(first).unwrap().contains("aaaa"));
        let rest =
            painter.frame(vec![line("aaaaaaaaaaaaaaaa bbb c")], None, region(&["", "box"]), None).unwrap();
        let rest = String::from_utf8(rest).unwrap();
        assert!(rest.contains("  bbb c") && !rest.contains("aaaa"), "{rest:?}");
    }

    #[test]
    fn a_full_row_keeps_its_last_character() {
        let mut painter = Painter::new(SIZE);
        let full = "x".repeat(20);
        assert!(!frame(&mut painter, vec![], &[&full, &full]).contains("\x1b[K"));
    }
}
