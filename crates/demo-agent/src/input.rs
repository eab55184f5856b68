//! Decodes terminal bytes into keys, text and pastes.
//!
//! Not an event library, because the decoder needs two things that libraries hide: which bytes came in *one* read (like
//! real agents, it treats a burst of text with Enter at its end as a paste), and the exact bytes of a paste of any size.

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// After more bytes than this in one read, Enter in the same read is a line break.
const BURST_BYTES: usize = 100;

/// Decoded terminal input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Printable characters from one read.
    Text(String),
    /// A bracketed paste, with line endings normalized to `\n`.
    Paste(String),
    /// A key.
    Key(Key),
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Enter.
    Enter {
        /// Whether it came at the end of a long text in one read, as in an unbracketed paste.
        burst: bool,
    },
    /// Alt-Enter or Ctrl-J.
    Newline,
    /// Escape.
    Esc,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// Ctrl-C.
    CtrlC,
    /// Ctrl-D.
    CtrlD,
    /// Ctrl-U.
    CtrlU,
    /// Any other key, ignored.
    Other,
}

impl Key {
    /// Its name in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Key::Enter { burst: false } => "enter",
            Key::Enter { burst: true } => "enter_in_burst",
            Key::Newline => "newline",
            Key::Esc => "esc",
            Key::Up => "up",
            Key::Down => "down",
            Key::Left => "left",
            Key::Right => "right",
            Key::Tab => "tab",
            Key::Backspace => "backspace",
            Key::CtrlC => "ctrl-c",
            Key::CtrlD => "ctrl-d",
            Key::CtrlU => "ctrl-u",
            Key::Other => "other",
        }
    }
}

/// Decodes reads into [`Input`]s. Buffers sequences that are split between reads.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
    paste: Option<Vec<u8>>,
}

impl Decoder {
    /// Decodes one read.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        let mut out = Out::default();
        let mut data = std::mem::take(&mut self.held);
        data.extend_from_slice(bytes);
        let mut rest = &data[..];
        loop {
            if let Some(mut paste) = self.paste.take() {
                let from = paste.len().saturating_sub(PASTE_END.len() - 1);
                paste.extend_from_slice(rest);
                let Some(end) = find(&paste[from..], PASTE_END).map(|at| at + from) else {
                    self.paste = Some(paste);
                    rest = &[];
                    break;
                };
                let used = end + PASTE_END.len() - (paste.len() - rest.len());
                rest = &rest[used..];
                paste.truncate(end);
                out.paste(&paste);
            }
            match next(rest, &mut out) {
                Next::Took(n) => rest = &rest[n..],
                Next::PasteStart => {
                    rest = &rest[PASTE_START.len()..];
                    self.paste = Some(Vec::new());
                }
                Next::NeedMore => break,
            }
        }
        self.held = rest.to_vec();
        out.finish()
    }

    /// Whether an escape byte may be the start of a sequence, so the caller should set a timeout.
    #[must_use]
    pub fn wants_timeout(&self) -> bool {
        self.held.first() == Some(&0x1b)
    }

    /// The timeout has passed: the escape byte was the Escape key.
    pub fn timeout(&mut self) -> Vec<Input> {
        let held = std::mem::take(&mut self.held);
        match held.as_slice() {
            [] => Vec::new(),
            [0x1b] => vec![Input::Key(Key::Esc)],
            _ => vec![Input::Key(Key::Other)],
        }
    }
}

#[derive(Default)]
struct Out {
    inputs: Vec<Input>,
    text: String,
    typed: usize,
}

impl Out {
    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.inputs.push(Input::Text(std::mem::take(&mut self.text)));
        }
    }

    fn key(&mut self, key: Key) {
        self.flush();
        self.inputs.push(Input::Key(key));
    }

    fn paste(&mut self, bytes: &[u8]) {
        self.flush();
        let text = String::from_utf8_lossy(bytes);
        let text = if text.contains('\r') {
            text.replace("\r\n", "\n").replace('\r', "\n")
        } else {
            text.into_owned()
        };
        self.inputs.push(Input::Paste(text));
    }

    fn finish(mut self) -> Vec<Input> {
        self.flush();
        self.inputs
    }
}

enum Next {
    Took(usize),
    PasteStart,
    NeedMore,
}

fn next(bytes: &[u8], out: &mut Out) -> Next {
    let Some(&first) = bytes.first() else { return Next::NeedMore };
    match first {
        0x1b => return escape(bytes, out),
        b'\r' => out.key(Key::Enter { burst: out.typed > BURST_BYTES }),
        b'\n' => out.key(Key::Newline),
        b'\t' => out.key(Key::Tab),
        0x7f | 0x08 => out.key(Key::Backspace),
        0x03 => out.key(Key::CtrlC),
        0x04 => out.key(Key::CtrlD),
        0x15 => out.key(Key::CtrlU),
        0x00..=0x1f => out.key(Key::Other),
        _ => return characters(bytes, out),
    }
    Next::Took(1)
}

fn characters(bytes: &[u8], out: &mut Out) -> Next {
    let run = bytes.iter().position(|b| *b < 0x20 || *b == 0x7f).unwrap_or(bytes.len());
    let (valid, wrong) = match std::str::from_utf8(&bytes[..run]) {
        Ok(text) => (text.len(), None),
        Err(e) => (e.valid_up_to(), Some(e.error_len())),
    };
    if valid > 0 {
        out.text.push_str(&String::from_utf8_lossy(&bytes[..valid]));
        out.typed += valid;
        return Next::Took(valid);
    }
    match wrong {
        // The read ends inside a UTF-8 character.
        Some(None) if run == bytes.len() => Next::NeedMore,
        Some(length) => {
            out.text.push('\u{fffd}');
            Next::Took(length.unwrap_or(run))
        }
        None => Next::NeedMore,
    }
}

fn escape(bytes: &[u8], out: &mut Out) -> Next {
    match bytes.get(1) {
        None => Next::NeedMore,
        Some(0x1b) => {
            out.key(Key::Esc);
            Next::Took(1)
        }
        Some(b'\r' | b'\n') => {
            out.key(Key::Newline);
            Next::Took(2)
        }
        Some(b'[') => {
            let Some(end) = bytes[2..].iter().position(|b| (0x40..=0x7e).contains(b)) else {
                // Too long for a key. Without a limit, a stray `ESC [` would swallow all further input.
                if bytes.len() > 32 {
                    out.key(Key::Other);
                    return Next::Took(2);
                }
                return Next::NeedMore;
            };
            let sequence = &bytes[..end + 3];
            if sequence == PASTE_START {
                return Next::PasteStart;
            }
            out.key(match sequence {
                b"\x1b[A" => Key::Up,
                b"\x1b[B" => Key::Down,
                b"\x1b[C" => Key::Right,
                b"\x1b[D" => Key::Left,
                _ => Key::Other,
            });
            Next::Took(sequence.len())
        }
        Some(b'O') => {
            let Some(last) = bytes.get(2) else { return Next::NeedMore };
            out.key(match last {
                b'A' => Key::Up,
                b'B' => Key::Down,
                b'C' => Key::Right,
                b'D' => Key::Left,
                _ => Key::Other,
            });
            Next::Took(3)
        }
        // Alt with a letter.
        Some(other) => {
            out.key(Key::Other);
            Next::Took(if other.is_ascii() { 2 } else { 1 })
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(s: &str) -> Input {
        Input::Text(s.into())
    }

    #[test]
    fn text_and_keys() {
        let mut d = Decoder::default();
        assert_eq!(d.feed(b"hi\r"), [text("hi"), Input::Key(Key::Enter { burst: false })]);
        assert_eq!(d.feed(b"\x1b[A\x1bOB\x03"), [Key::Up, Key::Down, Key::CtrlC].map(Input::Key));
        assert_eq!(d.feed(b"\x1b\r\n"), [Key::Newline, Key::Newline].map(Input::Key));
    }

    #[test]
    fn a_lone_escape_waits_and_then_is_the_key() {
        let mut d = Decoder::default();
        assert_eq!(d.feed(b"\x1b"), []);
        assert!(d.wants_timeout());
        assert_eq!(d.timeout(), [Input::Key(Key::Esc)]);
        assert_eq!(d.feed(b"\x1b"), []);
        assert_eq!(d.feed(b"[B"), [Input::Key(Key::Down)]);
    }

    #[test]
    fn a_paste_survives_any_cut() {
        let body = "zeile 1\r\nzwei ü\n\x1b[20x \x1b[201 end";
        let mut bytes = PASTE_START.to_vec();
        bytes.extend(body.as_bytes());
        bytes.extend(PASTE_END);
        bytes.extend(b"x\r");
        for cut in 0..bytes.len() {
            let mut d = Decoder::default();
            let mut all = d.feed(&bytes[..cut]);
            all.extend(d.feed(&bytes[cut..]));
            let expected = Input::Paste("zeile 1\nzwei ü\n\x1b[20x \x1b[201 end".into());
            assert_eq!(all[0], expected, "cut at {cut}");
            assert_eq!(all[1], text("x"));
        }
    }

    #[test]
    fn characters_cut_in_two_are_put_together() {
        let mut d = Decoder::default();
        let bytes = "aü漢".as_bytes();
        let mut all = Vec::new();
        for b in bytes {
            all.extend(d.feed(&[*b]));
        }
        assert_eq!(all, [text("a"), text("ü"), text("漢")]);
        assert_eq!(d.feed(b"a\xffb"), [text("a\u{fffd}b")]);
    }

    #[test]
    fn enter_at_the_end_of_a_long_read_is_marked() {
        let mut d = Decoder::default();
        let mut long = vec![b'a'; 101];
        long.push(b'\r');
        assert_eq!(d.feed(&long)[1], Input::Key(Key::Enter { burst: true }));
        assert_eq!(d.feed(&long[1..])[1], Input::Key(Key::Enter { burst: false }));
        d.feed(&long[..101]);
        assert_eq!(d.feed(b"\r"), [Input::Key(Key::Enter { burst: false })]);
    }

    #[test]
    fn a_megabyte_is_linear() {
        let mut d = Decoder::default();
        let mut bytes = PASTE_START.to_vec();
        bytes.extend(std::iter::repeat_n(b'x', 1 << 20));
        bytes.extend(PASTE_END);
        let started = std::time::Instant::now();
        let all: Vec<_> = bytes.chunks(1000).flat_map(|chunk| d.feed(chunk)).collect();
        assert_eq!(all.len(), 1);
        assert!(started.elapsed().as_secs() < 2);
    }
}
