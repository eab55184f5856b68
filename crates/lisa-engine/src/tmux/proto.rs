//! The control-mode protocol: bytes in, messages out.
//!
//! A reply stands between `%begin T N F` and `%end T N F` (or `%error`). A screen can contain lines that look just
//! like these, so a block ends only at the time and number of its own beginning.

/// The longest line that is kept; a longer one can only be garbage.
const LINE_MAX: usize = 64 << 20;

/// One message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The answer to a command.
    Block {
        /// Whether the command came from this connection (and not from a hook or the attach itself).
        own: bool,
        /// What it printed, or what tmux said against it.
        reply: Result<Vec<u8>, String>,
    },
    /// A pane wrote something.
    Output {
        /// The pane's id.
        pane: String,
        /// The bytes it wrote.
        bytes: Vec<u8>,
    },
    /// The connection is over.
    Exit {
        /// tmux's words for why, where it has any.
        reason: String,
    },
    /// Any other notification.
    Notice {
        /// Its name without the `%`.
        name: String,
        /// The rest of the line.
        rest: String,
    },
}

#[derive(Debug)]
struct Open {
    guard: Vec<u8>,
    own: bool,
    body: Vec<u8>,
}

/// Turns a stream of bytes into messages, however it is cut.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    open: Option<Open>,
}

impl Parser {
    /// Takes the next bytes and returns the messages that they complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = bytes.split_at(end);
            bytes = &tail[1..];
            let message = if self.line.is_empty() {
                self.take_line(head)
            } else {
                self.line.extend_from_slice(head);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line)
            };
            messages.extend(message);
        }
        if self.line.len() + bytes.len() <= LINE_MAX {
            self.line.extend_from_slice(bytes);
        }
        messages
    }

    fn take_line(&mut self, line: &[u8]) -> Option<Message> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(open) = &mut self.open {
            for (word, ok) in [(&b"%end "[..], true), (&b"%error "[..], false)] {
                if line.strip_prefix(word) == Some(open.guard.as_slice()) {
                    let Open { own, mut body, .. } = self.open.take()?;
                    let reply = if ok {
                        Ok(body)
                    } else {
                        body.pop_if(|byte| *byte == b'\n');
                        Err(String::from_utf8_lossy(&body).into_owned())
                    };
                    return Some(Message::Block { own, reply });
                }
            }
            open.body.extend_from_slice(line);
            open.body.push(b'\n');
            return None;
        }
        let text = line.strip_prefix(b"%")?;
        let (name, rest) = split_word(text);
        match name {
            b"begin" => {
                let flags = rest.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
                self.open = Some(Open { guard: rest.to_vec(), own: flags == b"1", body: Vec::new() });
                None
            }
            b"output" => {
                let (pane, data) = split_word(rest);
                Some(Message::Output { pane: lossy(pane), bytes: unescape(data) })
            }
            b"extended-output" => {
                let (pane, data) = split_word(rest);
                let start = data.windows(3).position(|window| window == b" : ")?;
                Some(Message::Output { pane: lossy(pane), bytes: unescape(data.get(start + 3..)?) })
            }
            b"exit" => Some(Message::Exit { reason: lossy(rest) }),
            _ => Some(Message::Notice { name: lossy(name), rest: lossy(rest) }),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn split_word(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b' ') {
        Some(space) => (&bytes[..space], &bytes[space + 1..]),
        None => (bytes, &[]),
    }
}

/// Undoes tmux's `\ooo` for bytes below space and for the backslash; anything else stands for itself.
fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'\\'
            && let Some([a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7']) = tail.get(..3)
        {
            out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
            rest = &tail[3..];
        } else {
            out.push(first);
            rest = tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8]) -> Vec<Message> {
        Parser::default().feed(bytes)
    }

    #[test]
    fn a_screen_that_shows_the_protocol_does_not_end_its_block() {
        let bytes = b"%begin 1700000000 12 1\n%end 1700000000 11 1\n%exit\n%output %1 x\n%error 1 2 3\n%end 1700000000 12 1\n";
        let body = b"%end 1700000000 11 1\n%exit\n%output %1 x\n%error 1 2 3\n".to_vec();
        assert_eq!(all(bytes), [Message::Block { own: true, reply: Ok(body) }]);
    }

    #[test]
    fn an_error_carries_what_tmux_said() {
        let bytes = b"%begin 5 7 1\ncan't find pane: %9\n%error 5 7 1\n";
        assert_eq!(all(bytes), [Message::Block { own: true, reply: Err("can't find pane: %9".into()) }]);
    }

    #[test]
    fn output_is_unescaped_to_the_bytes_the_pane_wrote() {
        let bytes = b"%output %3 a\\033[1m\\134\\012\xe2\x9c\x93\n%extended-output %4 12 : x\\015\n";
        assert_eq!(
            all(bytes),
            [
                Message::Output { pane: "%3".into(), bytes: b"a\x1b[1m\\\n\xe2\x9c\x93".to_vec() },
                Message::Output { pane: "%4".into(), bytes: b"x\r".to_vec() },
            ]
        );
    }

    #[test]
    fn an_exit_says_why() {
        let reason = "server exited unexpectedly".to_owned();
        assert_eq!(
            all(b"%exit server exited unexpectedly\n%exit\n"),
            [Message::Exit { reason }, Message::Exit { reason: String::new() }]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic_and_cuts_do_not_matter(
            bytes in proptest::collection::vec(
                prop_oneof![any::<u8>().prop_map(|b| vec![b]), Just(b"\n".to_vec()), Just(b"%begin 1 2 1\n".to_vec()),
                    Just(b"%end 1 2 1\n".to_vec()), Just(b"%error 1 2 1\n".to_vec()), Just(b"%output %1 \\0".to_vec()),
                    Just(b"%extended-output %1 : ".to_vec()), Just(b"%exit\n".to_vec())], 0..60)
                .prop_map(|parts| parts.concat()),
            cut in 0usize..200,
        ) {
            let whole = all(&bytes);
            let mut parser = Parser::default();
            let cut = cut.min(bytes.len());
            let mut parts = parser.feed(&bytes[..cut]);
            parts.extend(parser.feed(&bytes[cut..]));
            prop_assert_eq!(whole, parts);
        }

        #[test]
        fn what_a_command_prints_comes_back_whole(body in proptest::collection::vec("[ -~]{0,30}", 0..20)) {
            let body: String = body.iter().map(|line| format!("{line}\n")).collect();
            let bytes = format!("%begin 1 999999 1\n{body}%end 1 999999 1\n");
            let reply = Ok(body.into_bytes());
            prop_assert_eq!(all(bytes.as_bytes()), [Message::Block { own: true, reply }]);
        }
    }
}
