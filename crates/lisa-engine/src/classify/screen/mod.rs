//! The structure of a screen: rows, the input box, the blocks of the conversation above it, the footer below.
//!
//! Everything read from a screen is read from a place in this structure. So the same words in prose, in tool output or
//! in a quoted dialog mean nothing.

mod colour;

pub use colour::{Cell, cells};

use crate::classify::observation::Pane;
use crate::classify::profile::{Colour, InputShape, Region, Screen, Sign, SignSays};
use std::cell::OnceCell;
use std::ops::Range;

/// How many rows above the input box count as just above it.
const NEAR_ROWS: usize = 14;

/// A parsed screen.
#[derive(Debug)]
pub struct Layout<'a> {
    rows: Vec<&'a str>,
    input: Option<InputBox>,
    /// The rows of the conversation, block by block.
    blocks: Vec<Range<usize>>,
    ansi: Option<&'a str>,
    cells: OnceCell<Vec<Vec<Cell>>>,
}

/// The box that takes input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputBox {
    /// Its rows, including its frame.
    pub rows: Range<usize>,
    /// Unsent text in it.
    pub draft: Option<String>,
}

/// A sign that was found.
#[derive(Debug, Clone)]
pub struct Found<'a> {
    /// The sign.
    pub sign: &'a Sign,
    /// Its row.
    pub row: usize,
    /// The line.
    pub line: String,
    /// The message in it, if the pattern has a group for that.
    pub message: Option<String>,
}

impl<'a> Layout<'a> {
    /// Parses a screen as the profile describes it.
    pub fn read(shape: &Screen, text: &'a str, ansi: Option<&'a str>, pane: Option<&Pane>) -> Self {
        // A no-break space is significant and stays.
        let mut rows: Vec<&str> = text.lines().map(|row| row.trim_end_matches([' ', '\t', '\r'])).collect();
        while rows.last().is_some_and(|row| row.is_empty()) {
            rows.pop();
        }
        let mut layout = Self { rows, input: None, blocks: Vec::new(), ansi, cells: OnceCell::new() };
        layout.input = shape.input.as_ref().and_then(|input| layout.find_input(input, pane));
        let end = layout.input.as_ref().map_or(layout.rows.len(), |input| input.rows.start);
        layout.blocks = layout.find_blocks(shape, end);
        layout
    }

    /// The rows, top to bottom.
    pub fn rows(&self) -> &[&'a str] {
        &self.rows
    }

    /// The input box, if there is one.
    pub const fn input(&self) -> Option<&InputBox> {
        self.input.as_ref()
    }

    /// The rows of the conversation's blocks, top to bottom.
    pub fn blocks(&self) -> &[Range<usize>] {
        &self.blocks
    }

    /// Whether the screen is empty.
    pub fn is_blank(&self) -> bool {
        self.rows.is_empty()
    }

    /// The profile's signs that are in their places. Each line is at most one sign: the first match.
    pub fn signs<'s>(&self, shape: &'s Screen) -> Vec<Found<'s>> {
        let mut found: Vec<Found<'s>> = Vec::new();
        for sign in &shape.sign {
            if let Some(next) =
                self.find_sign(shape, sign).filter(|next| found.iter().all(|known| known.row != next.row))
            {
                found.push(next);
            }
        }
        found
    }

    fn find_sign<'s>(&self, shape: &'s Screen, sign: &'s Sign) -> Option<Found<'s>> {
        self.region(shape, sign.region).into_iter().find_map(|row| {
            let line = self.rows.get(row)?;
            let found = sign.pattern.captures(line)?;
            let coloured = match sign.colour {
                None => true,
                Some(Colour::Alarm) => self.is_alarming(row),
                Some(Colour::AlarmingMessage) => {
                    found.get(1).is_some_and(|group| self.is_alarming_from(row, &line[..group.start()]))
                }
            };
            if !coloured {
                return None;
            }
            let message = found.get(1).map(|group| group.as_str().trim().to_owned());
            Some(Found { sign, row, line: (*line).to_owned(), message })
        })
    }

    /// The rows of a region, last one first: lower rows are newer.
    fn region(&self, shape: &Screen, region: Region) -> Vec<usize> {
        let end = match (&self.input, &shape.input) {
            (Some(input), _) => input.rows.start,
            // A screen without its input box shows a dialog or is being drawn, so nothing on it is in its place.
            (None, Some(_)) => return Vec::new(),
            (None, _) => self.rows.len(),
        };
        let whole = |block: Range<usize>| block.rev().collect::<Vec<_>>();
        let mut blocks = self.blocks.iter().rev().skip_while(|block| self.is_note(shape, block)).peekable();
        let notes = self.blocks.last() != blocks.peek().copied();
        match region {
            Region::LastHead => blocks.next().map(|block| block.start).into_iter().collect(),
            Region::LastBlock => blocks.next().cloned().map(whole).unwrap_or_default(),
            Region::LastLine => {
                let end = blocks.next().filter(|_| notes).map_or(end, |block| block.end);
                (0..end).rev().find(|row| !self.rows[*row].trim().is_empty()).into_iter().collect()
            }
            Region::LastMessage => self.last_message_block(shape).map(whole).unwrap_or_default(),
            Region::BelowPrompt => {
                let block = self.last_message_block(shape);
                let prompt = |block: &Range<usize>| {
                    let echo = shape.prompt.as_ref().zip(self.rows.get(block.start));
                    echo.is_some_and(|(prompt, row)| prompt.is_match(row))
                };
                block.filter(prompt).map(whole).unwrap_or_default()
            }
            Region::AboveBox => (end.saturating_sub(NEAR_ROWS)..end)
                .rev()
                .filter(|row| self.rows[*row].starts_with(|first: char| !first.is_whitespace()))
                .collect(),
            Region::Footer => match &self.input {
                Some(input) => (input.rows.end..self.rows.len()).rev().collect(),
                None => Vec::new(),
            },
        }
    }

    fn is_note(&self, shape: &Screen, block: &Range<usize>) -> bool {
        let first = self.rows.get(block.start).copied().unwrap_or_default();
        shape.note.as_ref().is_some_and(|note| note.is_match(first))
    }

    /// The banner's line, if nothing has been asked since: there is no prompt and no message.
    pub fn untouched_banner(&self, shape: &Screen) -> Option<&'a str> {
        let banner = shape.banner.as_ref()?;
        let shown = self.rows.iter().copied().find(|row| banner.is_match(row))?;
        let starts = [shape.prompt.as_ref(), shape.message.as_ref()];
        let asked = self.blocks.iter().any(|block| {
            let first = self.rows.get(block.start).copied().unwrap_or_default();
            starts.into_iter().flatten().any(|start| start.is_match(first))
        });
        Some(shown).filter(|_| !asked)
    }

    /// The echo of a command of the agent itself, if the conversation ends in it and in the program's answer.
    pub fn last_command(&self, shape: &Screen) -> Option<&'a str> {
        let (command, reply) = shape.command.as_ref().zip(shape.reply.as_ref())?;
        let block = self.blocks.iter().rev().find(|block| !self.is_note(shape, block))?;
        let (first, rest) = self.rows.get(block.clone())?.split_first()?;
        let answered = command.is_match(first) && rest.iter().any(|row| reply.is_match(row));
        answered.then_some(*first)
    }

    /// Whether the last prompt of the conversation has no end: neither a sign of the end in a later block, nor another
    /// one in its place.
    pub fn ends_in_open_turn(&self, shape: &Screen) -> bool {
        let first = |block: &Range<usize>| self.rows.get(block.start).copied().unwrap_or_default();
        let Some(prompt) = shape.prompt.as_ref() else { return false };
        let Some(last) = self.blocks.iter().rposition(|block| prompt.is_match(first(block))) else {
            return false;
        };
        !self.blocks.iter().skip(last + 1).any(|block| self.ends_turn(shape, block))
    }

    /// Whether a block is itself a sign of the turn's end.
    fn ends_turn(&self, shape: &Screen, block: &Range<usize>) -> bool {
        let line = self.rows.get(block.start).copied().unwrap_or_default();
        let over = |sign: &&Sign| matches!(sign.says, SignSays::TurnOver | SignSays::Background);
        shape.sign.iter().filter(over).any(|sign| sign.pattern.is_match(line))
    }

    /// The last block that isn't itself a sign of the turn's end.
    fn last_message_block(&self, shape: &Screen) -> Option<Range<usize>> {
        let ends = |block: &&Range<usize>| {
            let line = self.rows.get(block.start).copied().unwrap_or_default();
            shape.end.as_ref().is_some_and(|end| end.is_match(line))
                || self.ends_turn(shape, block)
                || self.is_note(shape, block)
        };
        self.blocks.iter().rev().find(|block| !ends(block)).cloned()
    }

    /// The agent's last message on the screen.
    pub fn last_message(&self, shape: &Screen) -> Option<String> {
        let begins = shape.message.as_ref()?;
        let block = self.last_message_block(shape)?;
        let first = begins.captures(self.rows.get(block.start)?)?;
        let first = first.get(1).map_or("", |group| group.as_str());
        let rest = self.rows.get(block.start + 1..block.end)?.iter().map(|row| row.trim());
        let text: Vec<&str> = std::iter::once(first.trim()).chain(rest).collect();
        Some(text.join("\n").trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn find_input(&self, shape: &InputShape, pane: Option<&Pane>) -> Option<InputBox> {
        if shape.cursor_shown && !pane.is_some_and(|pane| pane.cursor_visible) {
            return None;
        }
        let cursor = pane.map(|pane| usize::from(pane.cursor.1));
        let first = (0..self.rows.len()).rev().find(|row| {
            let fits = shape.first.is_match(self.rows[*row]);
            let framed = shape.above.as_ref().is_none_or(|above| {
                row.checked_sub(1).is_some_and(|before| above.is_match(self.rows[before]))
            });
            let here = !shape.cursor_row || cursor == Some(*row);
            fits && framed && here
        })?;
        let (last, end) = match &shape.below {
            Some(below) => {
                let closing = (first + 1..self.rows.len()).find(|row| below.is_match(self.rows[*row]))?;
                (closing, closing + 1)
            }
            None => {
                // A draft may have blank lines; it extends at least to the cursor.
                let from = cursor.filter(|row| shape.cursor_inside && *row > first).unwrap_or(first) + 1;
                let blank = (from..self.rows.len()).find(|row| self.rows[*row].trim().is_empty());
                let end = blank.unwrap_or(self.rows.len());
                (end, end)
            }
        };
        if shape.cursor_inside && !cursor.is_some_and(|row| (first..last.max(first + 1)).contains(&row)) {
            return None;
        }
        let belongs = |row: &usize| shape.body.as_ref().is_some_and(|body| body.is_match(self.rows[*row]));
        let above = (0..first).rev().take_while(belongs).count();
        let start = if shape.above.is_some() { first - 1 } else { first - above };
        Some(InputBox { rows: start..end, draft: self.draft(shape, first, last) })
    }

    fn draft(&self, shape: &InputShape, first: usize, last: usize) -> Option<String> {
        let found = shape.first.captures(self.rows[first])?;
        let head = found.get(1).map_or("", |group| group.as_str());
        if shape.placeholder.as_ref().is_some_and(|pattern| pattern.is_match(head)) && last <= first + 1 {
            return None;
        }
        if self.cell_rows().and_then(|rows| rows.get(first)).is_some_and(|row| colour::is_dim(row, head)) {
            return None;
        }
        let last = if shape.cursor_row { first + 1 } else { last };
        let rest = self.rows.get(first + 1..last)?.iter();
        let rest = rest.map(|row| row.get(shape.indent..).unwrap_or_else(|| row.trim_start()));
        let text: Vec<&str> = std::iter::once(head).chain(rest).collect();
        Some(text.join("\n").trim_end().to_owned()).filter(|draft| !draft.trim().is_empty())
    }

    fn find_blocks(&self, shape: &Screen, end: usize) -> Vec<Range<usize>> {
        let mut blocks: Vec<Range<usize>> = Vec::new();
        let mut blank_before = true;
        for row in 0..end {
            let line = self.rows[row];
            let blank = line.trim().is_empty();
            let begins = match &shape.head {
                Some(head) => head.is_match(line),
                None => !blank && blank_before,
            };
            match blocks.last_mut() {
                _ if begins => blocks.push(row..row + 1),
                Some(block) if !blank => block.end = row + 1,
                _ => {}
            }
            blank_before = blank;
        }
        blocks
    }

    fn cell_rows(&self) -> Option<&Vec<Vec<Cell>>> {
        let ansi = self.ansi?;
        Some(self.cells.get_or_init(|| cells(ansi)))
    }

    /// Whether the text after these first words of a row has a warning colour.
    fn is_alarming_from(&self, row: usize, before: &str) -> bool {
        let cells = self.cell_rows().and_then(|rows| rows.get(row));
        cells.and_then(|cells| cells.get(before.chars().count()..)).is_some_and(colour::is_alarming)
    }

    /// Whether a row has a warning colour; also true if the screen has no colours at all.
    fn is_alarming(&self, row: usize) -> bool {
        let Some(rows) = self.cell_rows() else { return true };
        if rows.iter().flatten().all(|cell| cell.colour.is_none()) {
            return true;
        }
        rows.get(row).is_some_and(|row| colour::is_alarming(row))
    }
}
