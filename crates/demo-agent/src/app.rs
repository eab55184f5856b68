//! The terminal front end: one thread that sleeps in `poll` until input, a signal, an event or the next frame.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::queue;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};

use crate::agent::{Agent, ExternalEvent};
use crate::effect::Effect;
use crate::input::{Decoder, Input};
use crate::paint::Painter;
use crate::screen::{Entry, Size, live};
use crate::side_effects::SideEffects;

/// Timeout for the rest of an escape sequence.
const ESCAPE_WAIT: Duration = Duration::from_millis(25);
/// Maximum delay of a frame while input is arriving.
const LATE_FRAME: Duration = Duration::from_millis(100);

/// Terminal options.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Use the alternate screen.
    pub alt_screen: bool,
    /// Set the title.
    pub title: bool,
    /// Delay before anything is drawn.
    pub boot: Duration,
}

/// Why the loop ended.
enum LoopExit {
    Quit { code: i32, reason: &'static str },
    Signal(i32),
    Hang { hard: bool },
    Abort,
}

/// Runs the agent on the terminal; returns the exit code.
///
/// # Errors
/// If the terminal cannot be used.
pub fn run(
    agent: Agent,
    side_effects: SideEffects,
    events: Receiver<ExternalEvent>,
    bell: (UnixStream, UnixStream),
    how: Terminal,
) -> io::Result<i32> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(io::Error::other("not on a terminal (use --exec to run without one)"));
    }
    let signals = Signals::register(&bell.1)?;
    let screen = Screen::enter(how.alt_screen)?;
    let mut app = App {
        agent,
        side_effects,
        events,
        bell: bell.0,
        signals,
        painter: Painter::new(screen.size()),
        screen,
        decoder: Decoder::default(),
        escape_since: None,
        early: Vec::new(),
        booted: false,
        new: Vec::new(),
        painted: Instant::now(),
        started: Instant::now(),
        how,
    };
    let end = app.run();
    app.finish(end)
}

struct App {
    agent: Agent,
    side_effects: SideEffects,
    events: Receiver<ExternalEvent>,
    bell: UnixStream,
    signals: Signals,
    painter: Painter,
    screen: Screen,
    decoder: Decoder,
    escape_since: Option<Duration>,
    /// Input typed before the agent was up.
    early: Vec<Input>,
    booted: bool,
    new: Vec<Entry>,
    painted: Instant,
    started: Instant,
    how: Terminal,
}

impl App {
    fn run(&mut self) -> io::Result<LoopExit> {
        loop {
            let now = self.started.elapsed();
            if let Some(signal) = self.signals.fatal() {
                return Ok(LoopExit::Signal(signal));
            }
            if !self.booted && now >= self.how.boot {
                self.booted = true;
                self.agent.boot(now);
                // Draw before handling input from the start-up time, because it was typed blindly.
                if let Some(end) = self.show(now)? {
                    return Ok(end);
                }
                for input in std::mem::take(&mut self.early) {
                    self.agent.input(input, now);
                }
            }
            if self.booted {
                self.agent.tick(now);
                if let Some(end) = self.show(now)? {
                    return Ok(end);
                }
            }
            self.wait()?;
        }
    }

    /// Performs the agent's effects and draws.
    fn show(&mut self, now: Duration) -> io::Result<Option<LoopExit>> {
        let mut end = None;
        for effect in self.agent.take_effects() {
            match effect {
                Effect::Print(entry) => self.new.push(entry),
                Effect::ClearScreen => {
                    self.new.clear();
                    self.painter.clear();
                }
                Effect::Quit { code, reason } => end = Some(LoopExit::Quit { code, reason }),
                Effect::Abort => end = Some(LoopExit::Abort),
                Effect::Hang { hard } => end = Some(LoopExit::Hang { hard }),
                other => self.side_effects.perform(other),
            }
        }
        self.side_effects.publish(self.agent.status().as_ref());
        if end.is_some() || !self.input_waits()? || self.painted.elapsed() > LATE_FRAME {
            self.paint(now)?;
        }
        self.side_effects.flush();
        Ok(end)
    }

    fn paint(&mut self, now: Duration) -> io::Result<()> {
        if self.signals.resized.swap(false, Ordering::Relaxed) {
            self.painter.resize(self.screen.size());
        }
        let view = self.agent.view(now);
        let rows = live(&view, self.painter.size());
        let title = self.how.title.then_some(view.title.as_str());
        let bytes = self.painter.frame(std::mem::take(&mut self.new), view.open.as_ref(), rows, title)?;
        self.painted = Instant::now();
        if bytes.is_empty() { Ok(()) } else { self.screen.out.write_all(&bytes) }
    }

    fn input_waits(&self) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).or_else(interrupted)?;
        Ok(fds[0].revents().contains(PollFlags::IN))
    }

    fn wait(&mut self) -> io::Result<()> {
        let now = self.started.elapsed();
        let boot = (!self.booted).then_some(self.how.boot);
        let tick = if self.booted { self.agent.next_tick(now) } else { None };
        let escape = self.escape_since.map(|since| since + ESCAPE_WAIT);
        let next = [boot, tick, escape].into_iter().flatten().min();
        let timeout = next.map(|at| timespec(at.saturating_sub(now)));
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
        poll(&mut fds, timeout.as_ref()).or_else(interrupted)?;
        let (keys, bell) = (fds[0].revents(), fds[1].revents());
        if bell.contains(PollFlags::IN) {
            let _ = self.bell.read(&mut [0; 256]);
            while let Ok(events) = self.events.try_recv() {
                self.agent.handle_event(events, self.started.elapsed());
            }
        }
        if keys.contains(PollFlags::IN) {
            self.read_keys()?;
        } else if keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            self.signals.hangup.store(true, Ordering::Relaxed);
        } else if escape.is_some_and(|at| self.started.elapsed() >= at) {
            self.escape_since = None;
            let inputs = self.decoder.timeout();
            self.typed(inputs);
        }
        Ok(())
    }

    fn read_keys(&mut self) -> io::Result<()> {
        let mut buffer = [0; 65536];
        let count = match rustix::io::read(io::stdin().as_fd(), &mut buffer) {
            Ok(0) | Err(rustix::io::Errno::IO) => {
                self.signals.hangup.store(true, Ordering::Relaxed);
                return Ok(());
            }
            Ok(count) => count,
            Err(error) => interrupted(error).map(|_| 0)?,
        };
        let inputs = self.decoder.feed(&buffer[..count]);
        self.escape_since = self.decoder.wants_timeout().then(|| self.started.elapsed());
        self.typed(inputs);
        Ok(())
    }

    fn typed(&mut self, inputs: Vec<Input>) {
        if !self.booted {
            self.early.extend(inputs);
            return;
        }
        let now = self.started.elapsed();
        for input in inputs {
            self.agent.input(input, now);
        }
    }

    fn finish(mut self, end: io::Result<LoopExit>) -> io::Result<i32> {
        let (code, reason) = match end {
            Ok(LoopExit::Abort) => std::process::abort(),
            Ok(LoopExit::Hang { hard }) => {
                let signal = self.hang(hard);
                self.screen.leave(&mut self.painter);
                return Ok(128 + signal);
            }
            Ok(LoopExit::Quit { code, reason }) => (Ok(code), reason),
            Ok(LoopExit::Signal(signal)) => (Ok(128 + signal), "other"),
            Err(error) => (Err(error), "other"),
        };
        self.screen.leave(&mut self.painter);
        self.side_effects.close(reason);
        code
    }

    /// Hangs until a signal, ignoring input and timers.
    fn hang(&mut self, hard: bool) -> i32 {
        loop {
            match self.signals.fatal() {
                Some(SIGTERM) if hard => {}
                Some(signal) => return signal,
                None => {}
            }
            let mut fds = [PollFd::new(&self.bell, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            let _ = self.bell.read(&mut [0; 256]);
        }
    }
}

fn interrupted(error: rustix::io::Errno) -> io::Result<usize> {
    if error == rustix::io::Errno::INTR { Ok(0) } else { Err(error.into()) }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// Signals as flags, and a byte on the wake-up socket for the loop.
struct Signals {
    terminate: Arc<AtomicBool>,
    hangup: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
}

impl Signals {
    fn register(bell: &UnixStream) -> io::Result<Self> {
        let flag = |signal| {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal, bell.try_clone()?)?;
            io::Result::Ok(flag)
        };
        // In raw mode Ctrl-C is a key. A SIGINT from elsewhere is caught and ignored.
        flag(SIGINT)?;
        Ok(Self { terminate: flag(SIGTERM)?, hangup: flag(SIGHUP)?, resized: flag(SIGWINCH)? })
    }

    fn fatal(&self) -> Option<i32> {
        if self.hangup.load(Ordering::Relaxed) {
            Some(SIGHUP)
        } else {
            self.terminate.load(Ordering::Relaxed).then_some(SIGTERM)
        }
    }
}

/// The terminal in raw mode.
struct Screen {
    out: File,
    alt: bool,
}

impl Screen {
    fn enter(alt: bool) -> io::Result<Self> {
        // Not `io::stdout()`: its line buffering would split a frame into several writes.
        let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        enable_raw_mode()?;
        let mut bytes = Vec::new();
        queue!(bytes, EnableBracketedPaste)?;
        if alt {
            queue!(bytes, EnterAlternateScreen)?;
        }
        out.write_all(&bytes)?;
        Ok(Self { out, alt })
    }

    fn size(&self) -> Size {
        let fallback = Size { cols: 80, rows: 24 };
        rustix::termios::tcgetwinsize(&self.out).map_or(fallback, |size| match (size.ws_col, size.ws_row) {
            (0, _) | (_, 0) => fallback,
            (cols, rows) => Size { cols: cols.into(), rows: rows.into() },
        })
    }

    /// Restores the terminal. Errors are ignored, because it may be gone.
    fn leave(&mut self, painter: &mut Painter) {
        let mut bytes = painter.farewell().unwrap_or_default();
        if self.alt {
            let _ = queue!(bytes, LeaveAlternateScreen);
        }
        let _ = queue!(bytes, DisableBracketedPaste);
        let _ = self.out.write_all(&bytes);
        let _ = disable_raw_mode();
    }
}
