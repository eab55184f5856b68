//! Small things about text that several modules need.

/// A text without escape sequences and without the carriage returns of a terminal.
pub fn strip_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Control characters begin with one of these bytes; what stands between them is taken as it is.
    let special = |byte: u8| byte < 0x20 || matches!(byte, 0x7f | 0xc2);
    while let Some(at) = rest.bytes().position(special) {
        out.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        match chars.next() {
            Some('\u{1b}') => skip_escape(&mut chars),
            Some(c) if c.is_control() && c != '\n' && c != '\t' => {}
            other => out.extend(other),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

fn skip_escape(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        // A control sequence ends with a letter or one of a few signs.
        Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
        // A string ends with BEL or with ESC and a backslash.
        Some(']' | 'P' | '_' | '^' | 'X') => {
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
        Some('(' | ')' | '*' | '+' | '#') => {
            chars.next();
        }
        _ => {}
    }
}

/// A captured screen with the spaces that its tabs stand for. Escapes take no columns.
pub fn expand_tabs(screen: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(screen);
    let rows: Vec<String> = text.split('\n').map(expand_row).collect();
    rows.join("\n").into_bytes()
}

fn expand_row(row: &str) -> String {
    use unicode_width::UnicodeWidthStr;
    let mut out = String::with_capacity(row.len() + 8);
    for (at, part) in row.split('\t').enumerate() {
        if at > 0 {
            let column = strip_escapes(&out).width();
            out.push_str(&" ".repeat(8 - column % 8));
        }
        out.push_str(part);
    }
    out
}

/// A text without control characters other than tab and newline: what may be pasted into a terminal. A literal end of
/// a bracketed paste in it would let the rest be taken for keys.
pub fn without_controls(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n')).collect()
}

/// A text as one line of at most so many characters: without escapes and control characters, and with `…` where it was
/// cut.
pub fn one_line(text: &str, max: usize) -> String {
    let clean = strip_escapes(text);
    let line: String = clean.chars().map(|c| if c.is_control() { ' ' } else { c }).take(max + 1).collect();
    match line.char_indices().nth(max.saturating_sub(1)) {
        Some((cut, _)) if line.chars().count() > max => format!("{}…", &line[..cut]),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_titles_are_taken_out() {
        assert_eq!(strip_escapes("\u{1b}[31mred\u{1b}[0m\r\n\u{1b}]2;title\u{7}x\u{1b}(By\tz"), "red\nxy\tz");
        assert_eq!(strip_escapes("\u{1b}]8;;u\u{1b}\\link\u{1b}"), "link");
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
    fn a_pasted_text_can_not_end_its_own_paste() {
        assert_eq!(without_controls("a\u{1b}[201~\nb\r\nc\u{0}\t\u{9b}d"), "a[201~\nb\nc\td");
    }
}
