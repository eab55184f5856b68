//! The only code that starts `tmux` or talks to a server.
//!
//! A [`Tmux`] represents one private server. Every call is one short exchange over the server's socket ([`wire`]), for
//! one-shot commands and long-lived processes alike. Nothing is kept open, no client ever attaches, and a killed Lisa
//! process leaves nothing on the server. Only starting the server takes a `tmux` process.
//!
//! Workarounds for problems of tmux:
//! - Before 3.7, a server crashes if it sends a notification while a control client attaches (tmux issues 4980, 5004).
//!   Lisa uses no control clients.
//! - A name that is a prefix of another one can hit the wrong target. Targets are `=name` or ids, never bare names.
//! - Before 3.4, a paste into a dead pane crashes the server. Also, a dialog may open between a snapshot and a key
//!   press (race). Everything typed is guarded in the same command list ([`typing`]).
//! - Debian's build loses SIGCHLDs (its libutempter ignores them for a moment), which leaves exit statuses empty. Lisa
//!   sends the server another SIGCHLD.
//! - A server without free file descriptors hangs every client. Lisa raises its limit, and every exchange has a
//!   timeout.
//! - A server that was ended but still has an attached client keeps its socket. [`server`] kills it.

pub mod pane;

mod command;
pub(crate) mod exchange;
pub(crate) mod looks;
mod server;
mod typing;
mod version;
pub(crate) mod wire;

pub use command::Cmd;
pub use looks::{PaneSnapshot, Shown};
pub use typing::{Guard, Typed};
pub use version::{MINIMUM, Version};

use crate::{
    classify::observation::At,
    config::{Environment, Socket},
    error::{Error, Kind, Result},
};
use pane::{AgentPane, PaneRow};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Duration,
};

/// Timeout of any one exchange with tmux.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest path that fits into a socket address.
const SOCKET_PATH_MAX: usize = 107;

/// How often to ask again about a dead pane without an exit status (backoff: the delay doubles).
const REAP_ATTEMPTS: u32 = 8;

/// The output of one command, or tmux's error message.
pub type Reply = std::result::Result<Vec<u8>, String>;

/// A private tmux server.
#[derive(Debug)]
pub struct Tmux {
    socket: Socket,
    env: Vec<(OsString, OsString)>,
    search_path: OsString,
    timeout: Duration,
    new_enough: OnceLock<()>,
    /// Whether the server speaks another protocol version, so that every call has to fork `tmux`.
    forks: AtomicBool,
    /// Whether captures have a different number of rows than their panes, so that they need markers.
    marks: AtomicBool,
    /// Whether this process has set the server's options.
    prepared: AtomicBool,
    /// How many panes the last list of all panes had.
    panes_seen: AtomicUsize,
}

impl Tmux {
    /// The server on a socket. Starts nothing and asks nothing.
    pub fn new(socket: Socket, env: &Environment) -> Result<Self> {
        let tmux = Self {
            env: server_environment(env),
            search_path: env.get("PATH").cloned().unwrap_or_else(|| "/usr/bin:/bin".into()),
            socket,
            timeout: TIMEOUT,
            new_enough: OnceLock::new(),
            forks: AtomicBool::new(false),
            marks: AtomicBool::new(false),
            prepared: AtomicBool::new(false),
            panes_seen: AtomicUsize::new(0),
        };
        tmux.check_socket()?;
        Ok(tmux)
    }

    /// The same server, but every call forks `tmux`, as for a server with another protocol version.
    #[must_use]
    pub fn by_forks(self) -> Self {
        Self { forks: AtomicBool::new(true), ..self }
    }

    /// Runs commands one after the other; a failed command doesn't stop the rest.
    ///
    /// `Ok(None)` means that no server is running.
    pub fn call(&self, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
        exchange::call(self, commands)
    }

    /// Runs commands as one atomic list; the first failure ends it.
    ///
    /// Returns their joined output. `Ok(None)` means that no server is running.
    pub fn call_atomic(&self, commands: &[Cmd]) -> Result<Option<Reply>> {
        exchange::call_atomic(self, commands, &[])
    }

    /// Every pane of the server; empty if no server is running.
    ///
    /// tmux hasn't reaped a pane that is dead without an exit status. The server is then reminded, so that the status
    /// is known within a second.
    pub fn panes(&self, with_command: bool) -> Result<Vec<PaneRow>> {
        let list = Cmd::new("list-panes").arg("-a").arg("-F").arg(pane::format(with_command));
        let mut found = Vec::new();
        for attempt in 0..REAP_ATTEMPTS {
            let Some(replies) = self.call(std::slice::from_ref(&list))? else { return Ok(Vec::new()) };
            found = pane::parse(&listed(&list, replies)?, with_command)?;
            if !self.resend_sigchld(found.iter(), attempt) {
                break;
            }
        }
        Ok(found)
    }

    /// The panes of agents, by what identifies them. Empty if no server is running.
    pub fn agent_panes(&self) -> Result<Vec<AgentPane>> {
        let list = Cmd::new("list-panes").args(["-a", "-F"]).arg(pane::agent_format());
        let Some(replies) = self.call(std::slice::from_ref(&list))? else { return Ok(Vec::new()) };
        Ok(pane::parse_agents(&listed(&list, replies)?))
    }

    /// The ids of all panes, each with whether it had output since that second or its program has ended. The server
    /// does the comparison, so a thousand silent panes cost a few milliseconds. Empty if no server is running.
    pub fn panes_moved(&self, since_second: i64) -> Result<Vec<(String, bool)>> {
        let moved = format!("#{{||:#{{pane_dead}},#{{e|>=:#{{window_activity}},{since_second}}}}}");
        let list = Cmd::new("list-panes").args(["-a", "-F"]).arg(format!("#{{pane_id}} {moved}"));
        let Some(replies) = self.call(std::slice::from_ref(&list))? else { return Ok(Vec::new()) };
        let text = listed(&list, replies)?;
        let text = String::from_utf8_lossy(&text);
        let rows = text.lines().filter_map(|line| line.split_once(' '));
        Ok(rows.map(|(pane, moved)| (pane.to_owned(), moved == "1")).collect())
    }

    /// The terminal, start time and working directory of a pane.
    pub fn place(&self, pane: &str) -> Result<Place> {
        let itself = format!("#{{==:#{{pane_id}},{pane}}}");
        let list = Cmd::new("list-panes").args(["-t", pane, "-f"]).arg(itself);
        let list = list.args(["-F", "#{pane_tty}\t#{session_created}\t#{pane_current_path}"]);
        let replies = self.call(std::slice::from_ref(&list))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&listed(&list, replies)?).into_owned();
        let mut fields = text.trim_end_matches('\n').splitn(3, '\t').map(str::to_owned);
        let mut next = || fields.next().filter(|field| !field.is_empty());
        let terminal = next().map(PathBuf::from);
        let created =
            At(next().and_then(|second| second.parse::<i64>().ok()).unwrap_or(0).saturating_mul(1000));
        Ok(Place { terminal, created, cwd: next().map(PathBuf::from) })
    }

    /// Sends the server a SIGCHLD if a row shows a dead pane without an exit status; returns whether to ask again. The
    /// first retry is immediate: the server handles the signal before the next command.
    fn resend_sigchld<'a>(&self, mut rows: impl Iterator<Item = &'a PaneRow>, attempt: u32) -> bool {
        let Some(row) = rows.find(|row| row.pane.dead && !row.pane.reaped()) else { return false };
        send_sigchld(row.server_pid);
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(1 << attempt));
        }
        true
    }

    /// The visible screens of panes, in the given order: plain, or with colours and other escape sequences.
    pub fn screens(&self, panes: &[&str], ansi: bool) -> Result<Vec<Reply>> {
        let captures: Vec<Capture<'_>> =
            panes.iter().map(|pane| Capture { pane, ansi, history: 0 }).collect();
        self.captures(&captures)
    }

    /// Captures of panes, in the given order.
    pub fn captures(&self, captures: &[Capture<'_>]) -> Result<Vec<Reply>> {
        let commands: Vec<Cmd> = captures.iter().map(Capture::command).collect();
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let Some(replies) = self.call(&commands)? else {
            return Ok(captures.iter().map(|_| no_server()).collect());
        };
        Ok(replies.into_iter().map(|reply| reply.map(without_blank_end)).collect())
    }

    /// Sets the timeout of an exchange.
    pub fn set_timeout(&mut self, limit: Duration) {
        self.timeout = limit;
    }

    /// The installed tmux's version.
    pub fn version(&self) -> Result<Version> {
        let mut command = self.command();
        command.arg("-V");
        let output = self.run(&mut command, &[])?;
        Version::parse(&output.stdout).ok_or_else(|| {
            Error::new(
                Kind::TmuxTooOld,
                format!("`tmux -V` printed `{}`", String::from_utf8_lossy(&output.stdout).trim()),
                format!("install tmux {MINIMUM} or newer"),
            )
        })
    }

    /// Checks only once: a tmux that is new enough doesn't become older.
    fn check_version(&self) -> Result<()> {
        if self.new_enough.get().is_some() {
            return Ok(());
        }
        let version = self.version()?;
        if version >= MINIMUM {
            let _ = self.new_enough.set(());
            return Ok(());
        }
        Err(Error::new(
            Kind::TmuxTooOld,
            format!("tmux {version} is installed, but Lisa needs {MINIMUM} or newer"),
            "upgrade tmux with your system's package manager",
        ))
    }

    /// The command line that attaches a terminal to a session, for a person.
    pub fn attach_command(&self, session: &str) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec!["tmux".into(), "-u".into()];
        argv.extend(self.socket_arguments());
        argv.extend(["attach-session", "-t"].map(OsString::from));
        argv.push(format!("={session}").into());
        argv
    }

    /// The path of the server's socket.
    pub fn socket_path(&self) -> PathBuf {
        match &self.socket {
            Socket::Path(path) => path.clone(),
            Socket::Name(name) => socket_dir(&self.env).join(name),
        }
    }

    fn socket_arguments(&self) -> [OsString; 2] {
        match &self.socket {
            Socket::Name(name) => ["-L".into(), name.into()],
            Socket::Path(path) => ["-S".into(), path.into()],
        }
    }

    fn check_socket(&self) -> Result<()> {
        let path = self.socket_path();
        if path.as_os_str().len() <= SOCKET_PATH_MAX {
            return Ok(());
        }
        Err(Error::new(
            Kind::InvalidConfig,
            format!("the socket path {} is longer than {SOCKET_PATH_MAX} bytes", path.display()),
            "set LISA_TMUX_SOCKET to a shorter name or path",
        ))
    }

    /// A `tmux` process for the private server that never starts the server: queries have no side effects.
    fn command(&self) -> std::process::Command {
        let mut command = self.command_starting();
        command.arg("-N");
        command
    }

    /// A `tmux` process for the private server, with a clean environment: the environment that starts the server leaks
    /// into every pane.
    fn command_starting(&self) -> std::process::Command {
        let mut command = std::process::Command::new(self.program());
        command.env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).current_dir("/");
        command.args(["-u", "-f", "/dev/null"]).args(self.socket_arguments());
        command
    }

    /// The caller's tmux, from the caller's PATH, not from the PATH of this process.
    fn program(&self) -> PathBuf {
        std::env::split_paths(&self.search_path)
            .map(|dir| dir.join("tmux"))
            .find(|path| path.is_file())
            .unwrap_or_else(|| PathBuf::from("/nonexistent/tmux"))
    }

    fn run(&self, command: &mut std::process::Command, input: &[u8]) -> Result<crate::process::Output> {
        match crate::process::run(command, input, self.timeout) {
            Ok(Some(output)) => Ok(output),
            Ok(None) => Err(timeout_error(self.timeout)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::new(
                Kind::TmuxMissing,
                "tmux is not installed or not on PATH",
                "install it: `apt-get install tmux`, `dnf install tmux` or `brew install tmux`",
            )),
            Err(error) => Err(Error::io("run", Path::new("tmux"), &error)),
        }
    }
}

/// The terminal, start time and working directory of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its terminal.
    pub terminal: Option<PathBuf>,
    /// When its session was created.
    pub created: At,
    /// The working directory of its program.
    pub cwd: Option<PathBuf>,
}

/// What to capture of a pane.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    /// The pane's id.
    pub pane: &'a str,
    /// Whether to keep colours and other escape sequences.
    pub ansi: bool,
    /// How many lines of scrollback to include.
    pub history: u32,
}

impl Capture<'_> {
    fn command(&self) -> Cmd {
        let mut command = Cmd::new("capture-pane").arg("-p");
        if self.ansi {
            command = command.arg("-e");
        }
        if self.history > 0 {
            command = command.arg("-S").arg(format!("-{}", self.history));
        }
        command.arg("-t").arg(self.pane)
    }
}

/// The result of a capture if no server is running.
fn no_server() -> Reply {
    Err("no server running".to_owned())
}

/// Cuts off the blank rows at the end of a screen, and expands tabs: tmux 3.7 keeps tabs where older versions print
/// spaces, and columns must be the same everywhere.
pub(crate) fn without_blank_end(mut screen: Vec<u8>) -> Vec<u8> {
    screen.truncate(screen.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1));
    if screen.contains(&b'\t') { crate::classify::text::expand_tabs(&screen) } else { screen }
}

/// The output of a list of all panes. A server without sessions has no target for the list and reports an error; that
/// is an empty list.
fn listed(list: &Cmd, replies: Vec<Reply>) -> Result<Vec<u8>> {
    match replies.into_iter().next() {
        Some(Ok(bytes)) => Ok(bytes),
        Some(Err(why)) if why.contains("no current target") || why.contains("no sessions") => Ok(Vec::new()),
        Some(Err(why)) => Err(refused(list, &why)),
        None => Ok(Vec::new()),
    }
}

/// Sends the server a SIGCHLD. Debian's build of tmux loses many of them: it calls libutempter when a pane closes,
/// which ignores SIGCHLD meanwhile.
pub(crate) fn send_sigchld(server: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(pid) = i32::try_from(server).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::CHILD);
    }
}

fn refused(command: &Cmd, why: &str) -> Error {
    Error::new(
        Kind::TmuxFailed,
        format!("tmux rejected `{}`: {why}", command.name()),
        "run `lisa doctor`, or inspect the server with `tmux -L lisa list-sessions`",
    )
}

fn timeout_error(limit: Duration) -> Error {
    Error::new(
        Kind::TmuxTimeout,
        format!("the tmux server did not answer within {} s", limit.as_secs()),
        "it may be out of memory or file descriptors: run `lisa doctor`, or end it with `tmux -L lisa kill-server`",
    )
}

fn server_environment(env: &Environment) -> Vec<(OsString, OsString)> {
    let mut clean: Vec<(OsString, OsString)> = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMUX_TMPDIR"]
        .iter()
        .filter_map(|name| env.get(name).map(|value| (OsString::from(name), value.clone())))
        .collect();
    clean.push(("LC_ALL".into(), utf8_locale(env)));
    clean.push(("TERM".into(), "xterm-256color".into()));
    clean
}

fn utf8_locale(env: &Environment) -> OsString {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| env.text(name))
        .find(|value| value.to_lowercase().replace('-', "").contains("utf8"))
        .map_or_else(|| OsString::from("C.UTF-8"), OsString::from)
}

fn socket_dir(env: &[(OsString, OsString)]) -> PathBuf {
    let base =
        env.iter().find(|(name, _)| name == "TMUX_TMPDIR").map_or_else(|| "/tmp".into(), |(_, v)| v.clone());
    PathBuf::from(base).join(format!("tmux-{}", rustix::process::geteuid().as_raw()))
}
