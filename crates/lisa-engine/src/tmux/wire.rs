//! One exchange with the server over its socket, without forking `tmux`.
//!
//! A tmux client connects to the server's socket, identifies itself, sends one command list and copies the reply to
//! its standard output. This module does the same inside Lisa: an exchange takes a few hundred microseconds instead of
//! a fork and exec.
//!
//! The messages are those of an ordinary client without a terminal (`tmux … </dev/null`), in the order in which tmux's
//! own client sends them, and without descriptors. A server aborts on a message of the wrong size, so only the command
//! list is computed from foreign input. The protocol (version 8) is the same from tmux 2.9 to 3.7. A server with
//! another version says so; Lisa then forks `tmux` for every call.
//!
//! Such a client never attaches. It isn't a control client, so the server sends it no notifications and can't crash
//! while it connects or leaves (tmux issues 4980, 5004: half-attached control clients crash servers before 3.7).

use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType},
};
use std::{
    io,
    os::fd::OwnedFd,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// The protocol version of every supported tmux; part of each message.
const PROTOCOL: u32 = 8;
/// Type, length, version and process id of a message, four bytes each.
const HEADER: usize = 16;
/// The longest message that a server accepts.
const MESSAGE_MAX: usize = 16384;
/// Client flags: don't start a server; UTF-8.
const FLAGS: u32 = 0x1000 | 0x10000;
/// Streams of a client.
const STDOUT: i32 = 1;
const STDERR: i32 = 2;
/// `EBADF`, for a file that the client is asked for and doesn't have.
const NO_FILE: i32 = 9;

/// Message types, as tmux numbers them.
mod kind {
    pub(super) const VERSION: u32 = 12;
    pub(super) const IDENTIFY_FLAGS: u32 = 100;
    pub(super) const IDENTIFY_TERM: u32 = 101;
    pub(super) const IDENTIFY_TTYNAME: u32 = 102;
    pub(super) const IDENTIFY_DONE: u32 = 106;
    pub(super) const IDENTIFY_CLIENTPID: u32 = 107;
    pub(super) const IDENTIFY_CWD: u32 = 108;
    pub(super) const IDENTIFY_FEATURES: u32 = 109;
    pub(super) const IDENTIFY_LONGFLAGS: u32 = 111;
    pub(super) const COMMAND: u32 = 200;
    pub(super) const EXIT: u32 = 203;
    pub(super) const SHUTDOWN: u32 = 210;
    pub(super) const READ_OPEN: u32 = 300;
    pub(super) const READ: u32 = 301;
    pub(super) const READ_DONE: u32 = 302;
    pub(super) const WRITE_OPEN: u32 = 303;
    pub(super) const WRITE: u32 = 304;
    pub(super) const WRITE_READY: u32 = 305;
}

/// Maximum size of the words of a command list, each with its terminating zero byte.
pub(super) const WORDS_MAX: usize = MESSAGE_MAX - HEADER - 4;

/// How an exchange ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server ran the commands.
    Done(Printed),
    /// No server listens on the socket, or it exited before it answered.
    NoServer,
    /// The server speaks another protocol version.
    OtherProtocol,
    /// No answer before the timeout.
    TimedOut,
}

/// The output of a command list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Whether every command succeeded.
    pub(crate) success: bool,
}

/// Runs one command list, given as words with `;` between commands. `input` is what a command reads from `-`.
pub(super) fn exchange(socket: &Path, words: &[String], input: &[u8], limit: Duration) -> io::Result<Ended> {
    let began = Instant::now();
    let deadline = began + limit;
    let stream = match connect(socket, deadline) {
        Ok(stream) => stream,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(Ended::NoServer),
                io::ErrorKind::TimedOut => Ok(Ended::TimedOut),
                _ => Err(error),
            };
        }
    };
    let ended = Conversation { stream, deadline, listener: Listener::new(input) }.hold(&opening(words));
    tracing::trace!(us = began.elapsed().as_micros(), first = words.first(), words = words.len(), "exchange");
    match ended {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(Ended::TimedOut),
        // The server exited or was killed during the exchange.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
            ) =>
        {
            Ok(Ended::NoServer)
        }
        other => other,
    }
}

fn connect(socket: &Path, deadline: Instant) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&stream, &address) {
            Ok(()) => return Ok(stream),
            // The server's backlog of connections is full.
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(rustix::io::Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Everything that a client sends before it hears anything: its identity and its commands.
fn opening(words: &[String]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256 + words.iter().map(|word| word.len() + 1).sum::<usize>());
    put(&mut bytes, kind::IDENTIFY_FLAGS, &FLAGS.to_ne_bytes());
    put(&mut bytes, kind::IDENTIFY_LONGFLAGS, &u64::from(FLAGS).to_ne_bytes());
    put(&mut bytes, kind::IDENTIFY_TERM, b"dumb\0");
    put(&mut bytes, kind::IDENTIFY_FEATURES, &0_i32.to_ne_bytes());
    // A server reads the terminal's name even if there is none.
    put(&mut bytes, kind::IDENTIFY_TTYNAME, b"\0");
    put(&mut bytes, kind::IDENTIFY_CWD, b"/\0");
    put(&mut bytes, kind::IDENTIFY_CLIENTPID, &std::process::id().to_ne_bytes());
    put(&mut bytes, kind::IDENTIFY_DONE, &[]);
    let mut command = i32::try_from(words.len()).unwrap_or(0).to_ne_bytes().to_vec();
    for word in words {
        // A zero byte would end the word.
        command.extend(word.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
        command.push(0);
    }
    put(&mut bytes, kind::COMMAND, &command);
    bytes
}

fn put(bytes: &mut Vec<u8>, kind: u32, data: &[u8]) {
    let length = u32::try_from(HEADER + data.len()).unwrap_or(u32::MAX);
    for field in [kind, length, PROTOCOL, u32::MAX] {
        bytes.extend_from_slice(&field.to_ne_bytes());
    }
    bytes.extend_from_slice(data);
}

struct Conversation<'a> {
    stream: OwnedFd,
    deadline: Instant,
    listener: Listener<'a>,
}

/// The client's side of the protocol without a connection: collects the output and produces the answers.
#[derive(Debug)]
pub(crate) struct Listener<'a> {
    /// Bytes of an incomplete message.
    received: Vec<u8>,
    printed: Printed,
    input: &'a [u8],
    /// Streams that the server opened and that aren't acknowledged yet.
    opened: Vec<i32>,
}

impl<'a> Listener<'a> {
    /// A client with `input` for a command that reads from `-`.
    pub(crate) const fn new(input: &'a [u8]) -> Self {
        let printed = Printed { stdout: Vec::new(), stderr: Vec::new(), success: false };
        Self { received: Vec::new(), printed, input, opened: Vec::new() }
    }

    /// Processes bytes from the server; returns how the exchange ended, or the messages to answer with.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> io::Result<Heard> {
        self.received.extend_from_slice(bytes);
        let received = std::mem::take(&mut self.received);
        let mut answers = Vec::new();
        let mut used = 0;
        while let Some((kind, data, length)) = message(&received[used..])? {
            used += length;
            if let Some(ended) = self.take(kind, data, &mut answers) {
                return Ok(Heard::Ended(ended));
            }
        }
        self.received.extend_from_slice(&received[used..]);
        self.acknowledge(&mut answers);
        Ok(Heard::Answers(answers))
    }

    /// Acknowledges the streams that the server has opened. The server holds back only buffered output; most command
    /// lists finish in one go, and then no acknowledgement is needed. That matters because every message makes the
    /// server list its own descriptors (imsg, in tmux 3.3a to 3.5a), which takes longer the more panes it has.
    fn acknowledge(&mut self, answers: &mut Vec<u8>) {
        for stream in std::mem::take(&mut self.opened) {
            let mut ready = stream.to_ne_bytes().to_vec();
            ready.extend_from_slice(&0_i32.to_ne_bytes());
            put(answers, kind::WRITE_READY, &ready);
        }
    }

    /// Processes one message of the server; the last one tells how the exchange ended.
    fn take(&mut self, kind: u32, data: &[u8], answers: &mut Vec<u8>) -> Option<Ended> {
        let number =
            |at: usize| data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
        let stream = number(0);
        match kind {
            kind::WRITE_OPEN => self.opened.push(stream.unwrap_or(STDOUT)),
            kind::WRITE => {
                let text = data.get(4..).unwrap_or_default();
                match stream {
                    Some(STDERR) => self.printed.stderr.extend_from_slice(text),
                    _ => self.printed.stdout.extend_from_slice(text),
                }
            }
            kind::READ_OPEN => {
                self.read_open(stream.unwrap_or_default(), data.get(8..).unwrap_or_default(), answers);
            }
            kind::EXIT => {
                let success = number(0).unwrap_or(0) == 0;
                return Some(Ended::Done(Printed { success, ..std::mem::take(&mut self.printed) }));
            }
            kind::SHUTDOWN => return Some(Ended::NoServer),
            kind::VERSION => return Some(Ended::OtherProtocol),
            // All other messages are for clients with a terminal.
            _ => {}
        }
        None
    }

    /// The server asks for a file; the only one is the input.
    fn read_open(&self, stream: i32, path: &[u8], answers: &mut Vec<u8>) {
        let known = matches!(path, b"" | b"-" | b"\0" | b"-\0");
        if known {
            for part in self.input.chunks(MESSAGE_MAX - HEADER - 4) {
                let mut data = stream.to_ne_bytes().to_vec();
                data.extend_from_slice(part);
                put(answers, kind::READ, &data);
            }
        }
        let mut done = stream.to_ne_bytes().to_vec();
        done.extend_from_slice(&if known { 0 } else { NO_FILE }.to_ne_bytes());
        put(answers, kind::READ_DONE, &done);
    }
}

/// The result of processing bytes from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The exchange is over.
    Ended(Ended),
    /// The exchange continues with these messages of the client.
    Answers(Vec<u8>),
}

impl Conversation<'_> {
    fn hold(mut self, opening: &[u8]) -> io::Result<Ended> {
        self.send(opening)?;
        let mut chunk = vec![0; 65536];
        loop {
            let read = self.receive(&mut chunk)?;
            match self.listener.hear(&chunk[..read])? {
                Heard::Ended(ended) => return Ok(ended),
                Heard::Answers(answers) => self.answer(&answers)?,
            }
        }
    }

    /// Sends messages. The server may already have closed the connection if it has everything it needs.
    fn answer(&mut self, messages: &[u8]) -> io::Result<()> {
        match self.send(messages) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.stream, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(rustix::io::Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.stream, &mut *chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => return Ok(read),
                Err(rustix::io::Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn wait(&self, direction: PollFlags) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut fds = [PollFd::new(&self.stream, direction)];
        match poll(&mut fds, left.try_into().ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The first complete message in `bytes`: its type, data and length.
pub(crate) fn message(bytes: &[u8]) -> io::Result<Option<(u32, &[u8], usize)>> {
    let field =
        |at: usize| bytes.get(at..at + 4).and_then(|field| field.try_into().ok()).map(u32::from_ne_bytes);
    let (Some(kind), Some(length)) = (field(0), field(4)) else { return Ok(None) };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if !(HEADER..=MESSAGE_MAX).contains(&length) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "tmux sent a message with an invalid length"));
    }
    Ok(bytes.get(HEADER..length).map(|data| (kind, data, length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut found = Vec::new();
        while let Some((kind, data, length)) = message(bytes).unwrap() {
            found.push((kind, data.to_vec()));
            bytes = &bytes[length..];
        }
        assert!(bytes.is_empty());
        found
    }

    #[test]
    fn a_client_identifies_itself_with_exactly_the_messages_of_tmux_s_own_without_a_terminal() {
        let sent = kinds(&opening(&["list-panes".to_owned(), "-a".to_owned()]));
        let identify: Vec<u32> = sent.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(identify, [100, 111, 101, 109, 102, 108, 107, 106, 200]);
        let lengths: Vec<usize> = sent[..8].iter().map(|(_, data)| data.len()).collect();
        assert_eq!(lengths, [4, 8, 5, 4, 1, 2, 4, 0], "a server aborts on any other size");
        assert_eq!(sent[8].1, b"\x02\0\0\0list-panes\0-a\0");
    }

    #[test]
    fn a_zero_byte_in_a_word_does_not_make_two_of_it() {
        let sent = kinds(&opening(&["a\0b".to_owned()]));
        assert_eq!(sent.last().unwrap().1, b"\x01\0\0\0a b\0");
    }

    #[test]
    fn a_message_that_is_not_whole_is_waited_for_and_one_of_an_impossible_length_is_an_error() {
        let mut bytes = Vec::new();
        put(&mut bytes, kind::WRITE, b"\x01\0\0\0text");
        for cut in 0..bytes.len() {
            assert!(message(&bytes[..cut]).unwrap().is_none());
        }
        assert_eq!(message(&bytes).unwrap().unwrap(), (kind::WRITE, &b"\x01\0\0\0text"[..], bytes.len()));
        for length in [0_u32, 15, 16385, u32::MAX] {
            let mut wrong = bytes.clone();
            wrong[4..8].copy_from_slice(&length.to_ne_bytes());
            assert!(message(&wrong).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = message(&bytes);
        }
    }
}
