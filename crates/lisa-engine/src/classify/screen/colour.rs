//! Colours of a screen, from the escape sequences in tmux's captures.

/// One character of a screen with its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The character.
    pub text: char,
    /// Its colour, if it has one of its own.
    pub colour: Option<(u8, u8, u8)>,
    /// Whether it is dim.
    pub dim: bool,
}

/// Parses a screen with escape sequences into cells, row by row. Colours persist across rows.
pub fn cells(ansi: &str) -> Vec<Vec<Cell>> {
    let mut rows = vec![Vec::new()];
    let (mut colour, mut dim) = (None, false);
    let mut chars = ansi.chars();
    while let Some(text) = chars.next() {
        match text {
            '\u{1b}' => {
                if let Some(parameters) = crate::classify::text::skip_escape(&mut chars) {
                    apply(parameters, &mut colour, &mut dim);
                }
            }
            '\n' => rows.push(Vec::new()),
            _ => {
                if let Some(row) = rows.last_mut() {
                    row.push(Cell { text, colour, dim });
                }
            }
        }
    }
    rows
}

fn apply(parameters: &str, colour: &mut Option<(u8, u8, u8)>, dim: &mut bool) {
    let numbers: Vec<u16> = parameters.split([';', ':']).map(|part| part.parse().unwrap_or(0)).collect();
    let mut rest = numbers.as_slice();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            0 => (*colour, *dim) = (None, false),
            2 => *dim = true,
            22 => *dim = false,
            30..=37 => *colour = Some(sixteen(first - 30)),
            90..=97 => *colour = Some(sixteen(first - 90 + 8)),
            39 => *colour = None,
            38 | 48 => {
                let (value, used) = extended(after);
                if *first == 38 {
                    *colour = value;
                }
                rest = after.get(used..).unwrap_or_default();
            }
            _ => {}
        }
    }
}

/// A colour from the 256-colour or true-colour palette, and how many parameters it takes.
fn extended(parameters: &[u16]) -> (Option<(u8, u8, u8)>, usize) {
    let byte = |value: u16| u8::try_from(value).unwrap_or(u8::MAX);
    match parameters {
        [5, index, ..] => (Some(indexed(*index)), 2),
        [2, red, green, blue, ..] => (Some((byte(*red), byte(*green), byte(*blue))), 4),
        _ => (None, parameters.len()),
    }
}

fn indexed(index: u16) -> (u8, u8, u8) {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |value: u16| STEPS.get(usize::from(value)).copied().unwrap_or(0);
    match index {
        0..=15 => sixteen(index),
        16..=231 => (step((index - 16) / 36), step((index - 16) / 6 % 6), step((index - 16) % 6)),
        _ => {
            let grey = u8::try_from(8 + 10 * (index.min(255) - 232)).unwrap_or(u8::MAX);
            (grey, grey, grey)
        }
    }
}

fn sixteen(index: u16) -> (u8, u8, u8) {
    let bright = if index >= 8 { 255 } else { 192 };
    let part = |bit: u16| if index % 8 / bit % 2 == 1 { bright } else { 0 };
    match index {
        7 => (192, 192, 192),
        8 => (128, 128, 128),
        _ => (part(1), part(2), part(4)),
    }
}

/// Whether a row starts in red, orange or yellow.
pub(super) fn is_alarming(row: &[Cell]) -> bool {
    let first = row.iter().find(|cell| !cell.text.is_whitespace());
    first
        .and_then(|cell| cell.colour)
        .is_some_and(|(red, _, blue)| red >= 150 && red.saturating_sub(blue) >= 60)
}

/// Whether this text at the end of a row is dim, i.e. a placeholder.
pub(super) fn is_dim(row: &[Cell], text: &str) -> bool {
    let text = text.trim();
    let Some(first) = text.chars().next() else { return false };
    let length = text.chars().count();
    let end = row.iter().rposition(|cell| !cell.text.is_whitespace()).map_or(0, |last| last + 1);
    let Some(start) = end.checked_sub(length) else { return false };
    let shown = row.get(start..end).unwrap_or_default();
    // The agent's own cursor may be on the first character and draw it in normal brightness.
    let faint = shown.iter().skip(1).all(|cell| cell.dim || cell.text == ' ');
    length > 1 && faint && shown.first().is_some_and(|cell| cell.text == first)
}

#[cfg(test)]
mod tests {
    use super::cells;

    #[test]
    fn cells_are_the_characters_that_the_plain_text_has() {
        for text in
            ["\u{1b}[31ma\u{1b}[0mb", "\u{1b}Pq#0\u{1b}\\a\u{1b}_b\u{7}c", "\u{1b}[3\n1ma", "\u{1b}*Ba"]
        {
            let rows =
                cells(text).into_iter().map(|row| row.into_iter().map(|cell| cell.text).collect::<String>());
            assert_eq!(
                rows.collect::<Vec<_>>().join("\n"),
                crate::classify::text::strip_escapes(text),
                "{text:?}"
            );
        }
    }
}
