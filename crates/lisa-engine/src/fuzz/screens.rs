//! What is on the screen.

use super::input;
use crate::{
    classify::{memory::Memory, observation::Pane, screen, text},
    observe::{Screens, plain},
};

/// Text with escape sequences: stripped, as cells, with tabs expanded, and made safe to paste.
pub(super) fn escapes(bytes: &[u8]) {
    let raw = String::from_utf8_lossy(bytes);
    let stripped = text::strip_escapes(&raw);
    input::check_text(&stripped);
    assert!(stripped.len() <= raw.len(), "it has grown");
    assert!(text::strip_escapes(&stripped) == stripped, "{stripped:?} still has escapes");
    let rows = screen::cells(&raw);
    let cells: usize = rows.iter().map(Vec::len).sum();
    assert!(cells <= raw.chars().count(), "{cells} cells");
    let shown: Vec<String> = rows.iter().map(|row| row.iter().map(|cell| cell.text).collect()).collect();
    let shown = text::strip_escapes(&shown.join("\n"));
    assert!(shown == stripped, "{raw:?} is {shown:?} with colours, {stripped:?} without");
    let expanded = text::expand_tabs(bytes);
    assert!(!expanded.contains(&b'\t'), "a tab is left");
    input::check_text(&text::without_controls(&raw));
    input::check_text(&plain(&raw));
}

/// Consecutive screens: the first byte selects the agent, each part is a frame.
pub(super) fn judged(bytes: &[u8]) {
    let Some((profile, rest)) = input::profile(bytes) else { return };
    let mut memory = Memory::default();
    let mut at = 0;
    for part in input::parts(rest) {
        let Some(frame) = Frame::read(part) else { continue };
        at += frame.later_ms;
        let screens = Screens::from_reply(Some(Ok(crate::tmux::without_blank_end(frame.screen.to_vec()))));
        let look = input::look(at, frame.pane, screens);
        let outcome = input::judge(profile, memory, &look);
        if let Some(draft) = &outcome.signals.draft {
            input::check_text(draft);
        }
        memory = outcome.memory;
    }
    input::same_when_read_again(&memory);
}

/// One frame: its delay, the cursor, flags, then the title, a zero byte and the screen.
struct Frame<'a> {
    later_ms: i64,
    pane: Pane,
    screen: &'a [u8],
}

impl<'a> Frame<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&[later, column, row, flags], rest) = bytes.split_first_chunk()?;
        let (title, screen) = match rest.iter().position(|byte| *byte == 0) {
            Some(end) => (rest.get(..end)?, rest.get(end + 1..)?),
            None => (&b"agent"[..], rest),
        };
        let flag = |bit: u8| flags & bit != 0;
        let pane = Pane {
            cursor: (column.into(), row.into()),
            cursor_visible: flag(1),
            alternate: flag(2),
            in_mode: flag(4),
            dead: flag(8),
            exit_status: flag(16).then_some(i32::from(column)),
            exit_signal: flag(32).then_some(i32::from(row)),
            title: text::strip_escapes(&String::from_utf8_lossy(title)),
            ..input::pane()
        };
        Some(Self { later_ms: i64::from(later) * 250, pane, screen })
    }
}
