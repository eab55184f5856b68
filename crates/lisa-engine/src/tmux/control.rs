//! The long-lived connection of a resident: control mode, commands pipelined, replies matched in order.
//!
//! Every request is followed by a line that prints a mark of its own; all blocks up to that mark belong to the
//! request, however many a command makes. A thread does nothing but read, so that the server is never held up.

use super::{
    Capture, Cmd, KEEPER, Reply, Tmux, attach, clients,
    command::line,
    means_no_server,
    proto::{Message, Parser},
    timeout_error,
};
use crate::{
    disk::Lock,
    error::{Error, Result},
};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    collections::VecDeque,
    fmt,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// What a resident may want to hear beside replies.
pub type Listener = Box<dyn Fn(&Message) + Send>;

/// A connection that is made when first used and made again after it broke.
#[derive(Default)]
pub struct Control {
    connection: Mutex<Option<Arc<Connection>>>,
    listener: Arc<Mutex<Option<Listener>>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

impl Control {
    pub(super) fn call(&self, tmux: &Tmux, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
        let lines = commands.iter().map(|command| line(std::slice::from_ref(command))).collect();
        self.exchange(tmux, lines, commands)
    }

    pub(super) fn call_atomic(&self, tmux: &Tmux, commands: &[Cmd]) -> Result<Option<Reply>> {
        let Some(replies) = self.exchange(tmux, vec![line(commands)], commands)? else { return Ok(None) };
        let mut printed = Vec::new();
        for reply in replies {
            match reply {
                Ok(bytes) => printed.extend(bytes),
                Err(why) => return Ok(Some(Err(why))),
            }
        }
        Ok(Some(Ok(printed)))
    }

    /// Commands, and captures after them. Captures go through a buffer: printed ones would leak in the server.
    pub(super) fn captures(
        &self,
        tmux: &Tmux,
        first: &[Cmd],
        captures: &[Capture<'_>],
    ) -> Result<Option<Vec<Reply>>> {
        let buffer = format!("lisa-{}", uuid::Uuid::new_v4().simple());
        let show = Cmd::new("show-buffer").arg("-b").arg(&buffer);
        let delete = Cmd::new("delete-buffer").arg("-b").arg(&buffer);
        // Each capture makes two blocks where it works, and one error where the pane is gone; an empty screen makes
        // no buffer, so that `show-buffer` fails: three lines keep the count the same in all cases.
        let three = captures
            .iter()
            .flat_map(|capture| [capture.command(Some(&buffer)), show.clone(), delete.clone()]);
        let commands: Vec<Cmd> = first.iter().cloned().chain(three).collect();
        let Some(mut replies) = self.call(tmux, &commands)? else { return Ok(None) };
        let captured = replies.split_off(first.len().min(replies.len()));
        let screens = captured.chunks(3).map(|three| match three {
            [Err(why), ..] => Err(why.clone()),
            [Ok(_), Ok(screen), _] => Ok(unescape(screen)),
            _ => Ok(Vec::new()),
        });
        replies.extend(screens);
        Ok(Some(replies))
    }

    /// Calls `listener` for every notification, on the reading thread: it must not block.
    pub fn listen(&self, listener: Listener) {
        *lock(&self.listener) = Some(listener);
    }

    /// Whether a connection stands.
    pub fn connected(&self) -> bool {
        lock(&self.connection).as_ref().is_some_and(|connection| !connection.broken())
    }

    fn exchange(&self, tmux: &Tmux, lines: Vec<String>, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
        // A connection can break between two calls, when the server died and came back: then a new one is tried.
        for _ in 0..2 {
            let Some(connection) = self.connect(tmux)? else { return Ok(None) };
            let _alone = tmux.hold_for(commands);
            match connection.exchange(&lines, tmux) {
                Ok(replies) => return Ok(Some(replies)),
                Err(Broken::Gone) => *lock(&self.connection) = None,
                Err(Broken::Late) => {
                    *lock(&self.connection) = None;
                    return Err(timeout_error(tmux.timeout));
                }
            }
        }
        Ok(None)
    }

    fn connect(&self, tmux: &Tmux) -> Result<Option<Arc<Connection>>> {
        let mut slot = lock(&self.connection);
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.broken()) {
            return Ok(Some(Arc::clone(connection)));
        }
        *slot = None;
        let alone = tmux.hold_attaching();
        tmux.await_orphans();
        let Some(connection) = Connection::open(tmux, alone.as_ref(), Arc::clone(&self.listener))? else {
            return Ok(None);
        };
        let connection = Arc::new(connection);
        *slot = Some(Arc::clone(&connection));
        Ok(Some(connection))
    }
}

/// Undoes what control mode makes of a buffer: `\ooo` for control bytes, a doubled backslash, and one before a `$` that
/// a shell would take for a variable.
fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        let byte;
        (byte, rest) = match tail {
            [escaped @ (b'\\' | b'$'), after @ ..] if first == b'\\' => (*escaped, after),
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] if first == b'\\' => {
                ((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'), after)
            }
            after => (first, after),
        };
        out.push(byte);
    }
    out
}

enum Broken {
    /// The server or the client ended.
    Gone,
    /// No answer in time.
    Late,
}

struct Pending {
    mark: String,
    blocks: Vec<Reply>,
    answer: Sender<Vec<Reply>>,
}

struct Connection {
    child: Mutex<Child>,
    stdin: Mutex<ChildStdin>,
    pending: Arc<Mutex<VecDeque<Pending>>>,
    broken: Arc<AtomicBool>,
    next_mark: AtomicU64,
    mark_base: String,
    attaching: PathBuf,
}

impl Connection {
    /// Attaches to the keeper session. `Ok(None)` when no server runs.
    fn open(
        tmux: &Tmux,
        alone: Option<&Lock>,
        listener: Arc<Mutex<Option<Listener>>>,
    ) -> Result<Option<Self>> {
        let mut command = tmux.command();
        command.args(["-C", "attach-session", "-f", "no-output,ignore-size", "-t"]).arg(format!("={KEEPER}"));
        clients::mark(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(tmux.attaching_stderr(alone));
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The same words as everywhere else.
                return tmux.version().map(|_| None);
            }
            Err(error) => return Err(Error::io("run", Path::new("tmux"), &error)),
        };
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { return Ok(None) };
        rustix::io::ioctl_fionbio(&stdin, true)
            .map_err(|error| Error::io("use", Path::new("a pipe to tmux"), &error.into()))?;
        let pending: Arc<Mutex<VecDeque<Pending>>> = Arc::default();
        let broken = Arc::new(AtomicBool::new(false));
        let (ready, attached) = channel();
        let reader = Reader {
            pending: Arc::clone(&pending),
            broken: Arc::clone(&broken),
            listener,
            ready: Some(ready),
        };
        thread::Builder::new()
            .name("lisa-tmux-reader".to_owned())
            .spawn(move || reader.run(stdout))
            .map_err(|error| Error::io("start", Path::new("a thread"), &error))?;
        let connection = Self {
            child: Mutex::new(child),
            stdin: Mutex::new(stdin),
            pending,
            broken,
            next_mark: AtomicU64::new(0),
            mark_base: uuid::Uuid::new_v4().simple().to_string(),
            attaching: tmux.attaching(),
        };
        let greeting = attached.recv_timeout(tmux.timeout);
        if !matches!(greeting, Ok(Ok(()))) {
            // It never attached: nobody is told that it leaves.
            let mut child = lock(&connection.child);
            let _ = child.kill();
            let _ = child.wait();
        }
        match greeting {
            Ok(Ok(())) => Ok(Some(connection)),
            Ok(Err(why)) if means_no_server(&why) || why.contains("can't find session") => Ok(None),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(timeout_error(tmux.timeout)),
        }
    }

    fn broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    fn exchange(&self, lines: &[String], tmux: &Tmux) -> std::result::Result<Vec<Reply>, Broken> {
        let mark = format!("lisa-{}-{}", self.mark_base, self.next_mark.fetch_add(1, Ordering::Relaxed));
        let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum::<usize>() + 100);
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("display-message -p ");
        text.push_str(&mark);
        text.push('\n');
        let answer = self.submit(mark, &text, tmux.timeout).map_err(|error| {
            // What was written of it can not be taken back: this connection is over.
            self.broken.store(true, Ordering::SeqCst);
            if error.kind() == io::ErrorKind::TimedOut { Broken::Late } else { Broken::Gone }
        })?;
        match answer.recv_timeout(tmux.timeout) {
            Ok(blocks) => Ok(blocks),
            Err(RecvTimeoutError::Disconnected) => Err(Broken::Gone),
            Err(RecvTimeoutError::Timeout) => {
                // Its answer may still come and must not be taken for another's: this connection is over.
                self.broken.store(true, Ordering::SeqCst);
                Err(Broken::Late)
            }
        }
    }

    /// Queues the request and writes it under one lock, so that replies come in the order of the queue.
    fn submit(&self, mark: String, text: &str, limit: Duration) -> io::Result<Receiver<Vec<Reply>>> {
        let (answer, receiver) = channel();
        let mut stdin = lock(&self.stdin);
        lock(&self.pending).push_back(Pending { mark, blocks: Vec::new(), answer });
        if self.broken() {
            lock(&self.pending).clear();
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        write_within(&mut stdin, text.as_bytes(), limit)?;
        Ok(receiver)
    }
}

/// Writes all of it, unless nobody reads for too long: a pipe holds less than a look at hundreds of sessions asks.
fn write_within(pipe: &mut ChildStdin, mut bytes: &[u8], limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    while !bytes.is_empty() {
        match pipe.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                let mut fds = [PollFd::new(&*pipe, PollFlags::OUT)];
                match poll(&mut fds, Some(&left.try_into().unwrap_or_default())) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Drop for Connection {
    fn drop(&mut self) {
        attach::leave(&mut lock(&self.child), &mut lock(&self.stdin), &self.attaching);
    }
}

struct Reader {
    pending: Arc<Mutex<VecDeque<Pending>>>,
    broken: Arc<AtomicBool>,
    listener: Arc<Mutex<Option<Listener>>>,
    ready: Option<Sender<std::result::Result<(), String>>>,
}

impl Reader {
    fn run(mut self, mut stdout: ChildStdout) {
        let mut parser = Parser::default();
        let mut chunk = vec![0; 65536];
        loop {
            match stdout.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => parser.feed(&chunk[..n]).into_iter().for_each(|message| self.take(message)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.broken.store(true, Ordering::SeqCst);
        lock(&self.pending).clear();
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Block { reply, .. } if self.ready.is_some() => {
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(reply.map(|_| ()));
                }
            }
            Message::Block { own: true, reply } => {
                let mut pending = lock(&self.pending);
                let Some(request) = pending.front_mut() else { return };
                let marked =
                    reply.as_ref().is_ok_and(|body| body.trim_ascii_end() == request.mark.as_bytes());
                if !marked {
                    request.blocks.push(reply);
                } else if let Some(Pending { blocks, answer, .. }) = pending.pop_front() {
                    let _ = answer.send(blocks);
                }
            }
            other => {
                if let Some(listener) = lock(&self.listener).as_ref() {
                    listener(&other);
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
