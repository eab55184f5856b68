//! Text utilities.

/// Removes escape sequences and carriage returns.
pub fn strip_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Control sequences start with one of these bytes; the text between them is copied.
    let special = |byte: u8| byte < 0x20 || matches!(byte, 0x7f | 0xc2);
    while let Some(at) = rest.bytes().position(special) {
        out.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        match chars.next() {
            Some('\u{1b}') => {
                skip_escape(&mut chars);
            }
            Some(c) if c.is_control() && c != '\n' && c != '\t' => {}
            other => out.extend(other),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

/// Skips the rest of an escape sequence whose first character was taken; returns the parameters of a sequence that
/// sets colours.
///
/// An incomplete one ends where the next one or the next row starts.
pub(crate) fn skip_escape<'a>(chars: &mut std::str::Chars<'a>) -> Option<&'a str> {
    match chars.clone().next()? {
        '\n' | '\u{1b}' => return None,
        _ => {}
    }
    match chars.next()? {
        // A control sequence ends with a letter or one of a few other characters.
        '[' => {
            let parameters = chars.as_str();
            let last = |c: char| ('\u{40}'..='\u{7e}').contains(&c);
            let end = parameters.find(|c| last(c) || matches!(c, '\n' | '\u{1b}'));
            let (taken, rest) = parameters.split_at(end.unwrap_or(parameters.len()));
            *chars = rest.chars();
            let colours = rest.starts_with('m');
            if rest.starts_with(last) {
                chars.next();
            }
            return Some(taken).filter(|_| colours);
        }
        // A string ends with BEL or with ESC and a backslash.
        ']' | 'P' | '_' | '^' | 'X' => {
            while let Some(c) = chars.next() {
                let ends = c == '\u{1b}' && chars.as_str().starts_with('\\');
                if ends {
                    chars.next();
                }
                if ends || c == '\u{7}' {
                    break;
                }
            }
        }
        '(' | ')' | '*' | '+' | '#' if !chars.as_str().starts_with(['\n', '\u{1b}']) => {
            chars.next();
        }
        _ => {}
    }
    None
}

/// Replaces the tabs in a captured screen by spaces. Escape sequences take no columns.
pub fn expand_tabs(screen: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(screen);
    let rows: Vec<String> = text.split('\n').map(expand_row).collect();
    rows.join("\n").into_bytes()
}

fn expand_row(row: &str) -> String {
    use unicode_width::UnicodeWidthStr;
    let mut out = String::with_capacity(row.len() + 8);
    let mut column = 0;
    for (at, part) in row.split('\t').enumerate() {
        if at > 0 {
            let spaces = 8 - column % 8;
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        }
        out.push_str(part);
        column += strip_escapes(part).width();
    }
    out
}

/// Removes control characters other than tab and newline, so that the text may be pasted into a terminal. If it
/// contained the end marker of a bracketed paste, the rest would be taken for keys.
pub fn without_controls(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n')).collect()
}

/// Converts text to one line of at most `max` characters: removes escape sequences and control characters, and marks
/// truncation with `…`.
pub fn one_line(text: &str, max: usize) -> String {
    let clean = strip_escapes(text);
    let line: String = clean.chars().map(|c| if c.is_control() { ' ' } else { c }).take(max + 1).collect();
    match line.char_indices().nth(max.saturating_sub(1)) {
        Some((cut, _)) if line.chars().count() > max => format!("{}…", &line[..cut]),
        _ => line,
    }
}

/// Makes control characters other than tab and newline visible (`\u{1b}`): whoever decides based on this text must see
/// what it really contains, not what a terminal makes of it.
pub fn with_visible_controls(text: &str) -> String {
    let hidden = |c: char| c.is_control() && !matches!(c, '\t' | '\n');
    if !text.contains(hidden) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.replace("\r\n", "\n").chars() {
        if hidden(c) {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_titles_are_taken_out() {
        assert_eq!(strip_escapes("\u{1b}[31mred\u{1b}[0m\r\n\u{1b}]2;title\u{7}x\u{1b}(By\tz"), "red\nxy\tz");
        assert_eq!(strip_escapes("\u{1b}]8;;u\u{1b}\\link\u{1b}"), "link");
        assert_eq!(strip_escapes("\u{1b}Pq#0\u{1b}\\a\u{1b}^b\u{7}c"), "ac");
    }

    #[test]
    fn a_sequence_that_is_broken_off_ends_with_its_row() {
        assert_eq!(strip_escapes("a\u{1b}[38;5\nb\u{1b}\nc\u{1b}(\nd\u{1b}[3\u{1b}[0me"), "a\nb\nc\nde");
    }

    #[test]
    fn one_line_is_one_line_and_no_longer_than_it_may_be() {
        assert_eq!(one_line("a\u{1b}[1mb\n\tc\u{0}", 10), "ab  c");
        assert_eq!(one_line("ééééé", 5), "ééééé");
        assert_eq!(one_line("éééééé", 5), "éééé…");
    }

    #[test]
    fn a_tab_stands_for_the_spaces_up_to_the_next_column_of_eight() {
        assert_eq!(expand_tabs(b"a\tb\n\tc"), b"a       b\n        c");
        assert_eq!(
            expand_tabs("\u{1b}[1m中\u{1b}[0m\tx".as_bytes()),
            "\u{1b}[1m中\u{1b}[0m      x".as_bytes()
        );
    }

    #[test]
    fn control_characters_are_written_out_where_somebody_decides_by_a_text() {
        assert_eq!(with_visible_controls("rm x\r\n\ty"), "rm x\n\ty");
        assert_eq!(with_visible_controls("rm x\r\u{1b}[2Kls\u{9b}"), "rm x\\r\\u{1b}[2Kls\\u{9b}");
    }

    #[test]
    fn a_pasted_text_can_not_end_its_own_paste() {
        assert_eq!(without_controls("a\u{1b}[201~\nb\r\nc\u{0}\t\u{9b}d"), "a[201~\nb\nc\td");
    }
}
