//! The observer's socket: other Lisa processes ask here what the observer knows, instead of looking themselves.
//!
//! A Unix socket in the state directory with one JSON line per question and per answer. A process that gets no answer
//! in time, or `Unknown`, looks for itself. The socket saves work, but nothing depends on it.

use super::table::{Table, Wanted};
use crate::{api::Session, disk::Stamp};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, PipeReader, Read, Write},
    os::{
        fd::AsFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Questions of another version aren't answered: processes of two builds may run side by side.
const PROTOCOL: &str = concat!("1 ", env!("CARGO_PKG_VERSION"));
/// Timeout for an answer; longer than the observer waits for looks that are due.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// How long an observer that didn't answer isn't asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long to pause after a connection couldn't be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum length of a question.
const QUESTION_MAX: usize = 1 << 20;

/// Maximum length of an answer.
const ANSWER_MAX: usize = 64 << 20;

/// Questions to the observer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Sessions as they are now.
    Sessions(Wanted),
    /// A session, if the last look at it is still valid.
    Current(String),
    /// These sessions changed: look at them.
    Wake(Vec<String>),
    /// The observer's health.
    Health,
}

#[derive(Debug, Serialize, Deserialize)]
struct Question {
    protocol: String,
    ask: Ask,
}

/// Answers of the observer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Sessions, with their signals.
    Sessions(Vec<Session>),
    /// The observer's health.
    Health(Health),
    /// Done.
    Done,
    /// The observer doesn't know: it has just started, is behind, or doesn't understand the question.
    Unknown,
}

/// The observer's health.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Health {
    /// Its process id.
    pub pid: u32,
    /// Sessions that it can't watch properly, and why.
    pub troubles: Vec<(String, String)>,
}

/// Answers questions until `stop` is closed. Returns at once if the socket can't be created.
pub(super) fn serve(path: &Path, table: &Table, stop: &PipeReader) {
    // The previous owner is gone, or hung.
    let _ = std::fs::remove_file(path);
    let listener =
        match UnixListener::bind(path).and_then(|bound| bound.set_nonblocking(true).map(|()| bound)) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "other processes cannot ask the observer");
                return;
            }
        };
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let mut fds = vec![
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
        ];
        fds.extend(
            connections
                .iter()
                .map(|connection| PollFd::from_borrowed_fd(connection.stream.as_fd(), PollFlags::IN)),
        );
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                tracing::warn!(%error, "other processes can no longer ask the observer");
                return;
            }
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if ready[0] {
            return;
        }
        let mut at = 1;
        connections.retain_mut(|connection| {
            at += 1;
            !ready[at] || connection.read(table)
        });
        if ready[1] {
            let accepted = listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
                Ok(Connection { stream, heard: Vec::new() })
            });
            match accepted {
                Ok(connection) => connections.push(connection),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Without descriptors, the caller would be announced again at once. It looks for itself meanwhile.
                Err(error) => {
                    tracing::warn!(%error, "could not answer another process");
                    std::thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }
}

/// A connected process.
struct Connection {
    stream: UnixStream,
    heard: Vec<u8>,
}

impl Connection {
    /// Reads from it and answers complete questions; returns whether it is still connected.
    fn read(&mut self, table: &Table) -> bool {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => return false,
            Ok(read) => self.heard.extend_from_slice(&chunk[..read]),
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
        while let Some(line) = next_line(&mut self.heard) {
            if self.say(&answer(&line, table)).is_err() {
                return false;
            }
        }
        self.heard.len() <= QUESTION_MAX
    }

    fn say(&mut self, answer: &Answer) -> io::Result<()> {
        let line = written(answer)?;
        // An answer about a thousand sessions is larger than a socket's buffer.
        self.stream.set_nonblocking(false)?;
        let said = self.stream.write_all(&line);
        self.stream.set_nonblocking(true)?;
        said
    }
}

/// Takes the first complete line.
fn next_line(heard: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = memchr::memchr(b'\n', heard)?;
    Some(heard.drain(..=end).collect())
}

fn written(answer: &Answer) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    Ok(line)
}

fn answer(line: &[u8], table: &Table) -> Answer {
    match serde_json::from_slice::<Question>(line) {
        Ok(Question { protocol, ask }) if protocol == PROTOCOL => match ask {
            Ask::Sessions(wanted) => table.answer(&wanted).map_or(Answer::Unknown, Answer::Sessions),
            Ask::Current(name) => {
                table.current(&name).map_or(Answer::Unknown, |session| Answer::Sessions(vec![session]))
            }
            Ask::Wake(names) => {
                names.iter().for_each(|name| table.wake(name));
                Answer::Done
            }
            Ask::Health => Answer::Health(Health { pid: std::process::id(), troubles: table.troubles() }),
        },
        _ => Answer::Unknown,
    }
}

/// Another process's connection to the observer.
#[derive(Debug)]
pub(crate) struct ObserverClient {
    path: PathBuf,
    line: Mutex<ClientState>,
}

#[derive(Debug, Default)]
struct ClientState {
    stream: Option<UnixStream>,
    /// An observer that didn't answer: when to ask again, and its socket.
    silent: Option<(Instant, Option<Stamp>)>,
}

impl ObserverClient {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, line: Mutex::default() }
    }

    /// Asks the observer; `None` if there is none, or it doesn't answer in time.
    pub(crate) fn ask(&self, ask: Ask) -> Option<Answer> {
        let question = Question { protocol: PROTOCOL.to_owned(), ask };
        let mut text = serde_json::to_vec(&question).ok()?;
        text.push(b'\n');
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = self.socket();
        if line.silent.is_some_and(|(until, silent)| Instant::now() < until && silent == socket) {
            return None;
        }
        // A connection to an observer that has exited only fails when it is used.
        let anew = std::iter::once_with(|| UnixStream::connect(&self.path).ok());
        for stream in std::iter::once(line.stream.take()).chain(anew).flatten() {
            match exchange(&stream, &text) {
                Ok(answer) => {
                    line.stream = Some(stream);
                    return Some(answer);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    line.silent = Some((Instant::now() + RETRY_AFTER, socket));
                    return None;
                }
                Err(_) => {}
            }
        }
        None
    }

    /// The current socket; each observer creates a new one.
    fn socket(&self) -> Option<Stamp> {
        Stamp::of(&self.path)
    }
}

fn exchange(mut stream: &UnixStream, question: &[u8]) -> io::Result<Answer> {
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(question)?;
    let mut heard = Vec::with_capacity(4096);
    let mut chunk = vec![0; 64 << 10];
    loop {
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => heard.extend_from_slice(&chunk[..read]),
        }
        if heard.last() == Some(&b'\n') {
            return Ok(serde_json::from_slice(&heard)?);
        }
        if heard.len() > ANSWER_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// The answers of an observer without sessions to each question in `bytes`.
#[cfg(feature = "fuzz")]
pub(crate) fn answers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut heard = bytes.to_vec();
    let lines = std::iter::from_fn(|| next_line(&mut heard));
    let said = lines.filter_map(|line| {
        // Each gets a table of its own: a question about a session that was just woken waits for the look at it.
        let table = Table::new(std::sync::Arc::default());
        table.complete();
        written(&answer(&line, &table)).ok()
    });
    said.collect()
}

/// Parses an answer as a caller does, and serializes it again.
#[cfg(feature = "fuzz")]
pub(crate) fn answer_line(bytes: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice(bytes).ok().and_then(|answer| written(&answer).ok())
}

#[cfg(test)]
mod tests {
    use super::{super::wake::Bell, *};
    use std::sync::Arc;

    fn with_door(test: impl FnOnce(&ObserverClient, &Path, &Table)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("door");
        let table = Table::new(Arc::new(Bell::default()));
        let (stop, writer) = io::pipe().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&path, &table, &stop));
            while !path.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            test(&ObserverClient::new(path.clone()), &path, &table);
            drop(writer);
        });
    }

    #[test]
    fn an_observer_says_what_it_knows_and_that_it_does_not() {
        with_door(|client, _, table| {
            let ask = || client.ask(Ask::Sessions(Wanted::All));
            assert!(matches!(ask(), Some(Answer::Unknown)), "it has not looked at anything yet");
            table.complete();
            assert!(matches!(ask(), Some(Answer::Sessions(sessions)) if sessions.is_empty()));
            assert!(
                matches!(client.ask(Ask::Health), Some(Answer::Health(health)) if health.troubles.is_empty())
            );
        });
    }

    #[test]
    fn nonsense_and_other_versions_get_an_answer_and_do_no_harm() {
        with_door(|client, path, table| {
            table.complete();
            let stream = UnixStream::connect(path).unwrap();
            for question in ["nonsense\n", "{\"protocol\":\"0 9.9\",\"ask\":\"health\"}\n", "\u{0}\n"] {
                assert!(matches!(exchange(&stream, question.as_bytes()), Ok(Answer::Unknown)), "{question}");
            }
            assert!(matches!(client.ask(Ask::Sessions(Wanted::All)), Some(Answer::Sessions(_))));
        });
    }

    #[test]
    fn an_observer_that_does_not_answer_is_not_asked_again_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("door");
        let client = ObserverClient::new(path.clone());
        assert!(client.ask(Ask::Health).is_none(), "there is none");
        let _silent = UnixListener::bind(&path).unwrap();
        assert!(client.ask(Ask::Health).is_none());
        let began = Instant::now();
        assert!(client.ask(Ask::Health).is_none());
        assert!(began.elapsed() < ANSWER_TIMEOUT);
        // The next observer is asked at once.
        let silent = client.socket();
        let table = Table::new(Arc::new(Bell::default()));
        let (stop, writer) = io::pipe().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&path, &table, &stop));
            while client.socket().is_none() || client.socket() == silent {
                std::thread::sleep(Duration::from_millis(1));
            }
            // The socket file may exist a moment before somebody listens on it.
            let began = Instant::now();
            while client.ask(Ask::Health).is_none() {
                assert!(began.elapsed() < RETRY_AFTER);
            }
            drop(writer);
        });
    }
}
