//! The door to tmux: the only code that starts `tmux` or talks to a server.
//!
//! A [`Tmux`] stands for one private server. Every call is one short exchange over the server's socket ([`wire`]), the
//! same for a process that looks once and for one that stays: nothing is kept open, no client ever attaches, and nothing
//! of Lisa's is left on the server when a process dies. Only starting the server takes a `tmux` process.
//!
//! What the door guards against, because tmux does not:
//! - a control client that is attaching when anything is told to it takes a server before 3.7 down (tmux 4980, 5004):
//!   there are none;
//! - a name that is a prefix of another hits the other: targets are `=name` or ids, never bare names;
//! - a paste into a dead pane kills a server before 3.4, and a key can meet another screen than the one that was looked
//!   at: whatever is typed is guarded in the same command list ([`typing`]);
//! - a lost SIGCHLD leaves an exit status empty (Debian's build, with libutempter): the server is told to look again;
//! - a server without file descriptors hangs every client: its limit is raised, every exchange has a time-out;
//! - a server that was ended but lingers (a client of somebody's holds it) keeps the socket's name: [`server`] ends it.

pub mod pane;

mod command;
pub(crate) mod exchange;
pub(crate) mod looks;
mod server;
mod typing;
mod version;
pub(crate) mod wire;

pub use command::Cmd;
pub use looks::{PaneLook, Shown};
pub use typing::{Guard, Typed};
pub use version::{MINIMUM, Version};

use crate::{
    config::{Environment, Socket},
    error::{Error, Kind, Result},
    observation::At,
};
use pane::PaneRow;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Duration,
};

/// How long any one exchange with tmux may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest path that fits a socket address.
const SOCKET_PATH_MAX: usize = 107;

/// How often a pane that is dead without a status is asked again; the pauses double.
const REAP_ATTEMPTS: u32 = 8;

/// What one command printed, or what tmux said against it.
pub type Reply = std::result::Result<Vec<u8>, String>;

/// One private tmux server, and how to talk to it.
#[derive(Debug)]
pub struct Tmux {
    socket: Socket,
    env: Vec<(OsString, OsString)>,
    search_path: OsString,
    timeout: Duration,
    new_enough: OnceLock<()>,
    /// Whether the server speaks another protocol, so that every call takes a `tmux` process.
    forks: AtomicBool,
    /// Whether captures have another number of rows than their panes, so that each is marked.
    marks: AtomicBool,
    /// Whether this process has given the server its options.
    prepared: AtomicBool,
    /// How many panes there were when all were listed last.
    panes_seen: AtomicUsize,
}

impl Tmux {
    /// The server on a socket. Nothing is started and nothing is asked.
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

    /// The same server, asked through a `tmux` process for every call, as one that speaks another protocol would be.
    #[must_use]
    pub fn by_forks(self) -> Self {
        Self { forks: AtomicBool::new(true), ..self }
    }

    /// Runs commands one after the other; one that fails does not keep the rest from running.
    ///
    /// `Ok(None)` means that no server is running.
    pub fn call(&self, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
        exchange::call(self, commands)
    }

    /// Runs commands as one list that nothing can come between; the first that fails ends it.
    ///
    /// Returns what they printed, joined. `Ok(None)` means that no server is running.
    pub fn call_atomic(&self, commands: &[Cmd]) -> Result<Option<Reply>> {
        exchange::call_atomic(self, commands, &[])
    }

    /// Every pane of the server; empty when none is running.
    ///
    /// A pane that is dead without a status has not been reaped: the server is told to look again, so that the
    /// status is known within a second.
    pub fn panes(&self, with_command: bool) -> Result<Vec<PaneRow>> {
        let list = Cmd::new("list-panes").arg("-a").arg("-F").arg(pane::format(with_command));
        let mut found = Vec::new();
        for attempt in 0..REAP_ATTEMPTS {
            let Some(replies) = self.call(std::slice::from_ref(&list))? else { return Ok(Vec::new()) };
            found = pane::parse(&listed(&list, replies)?, with_command)?;
            if !self.remind_of_unreaped(found.iter(), attempt) {
                break;
            }
        }
        Ok(found)
    }

    /// The ids of all panes, each with whether it had output since a second or its program has ended. The server
    /// compares, so that a thousand silent panes cost a few milliseconds. Empty when no server is running.
    pub fn panes_moved(&self, since_second: i64) -> Result<Vec<(String, bool)>> {
        let moved = format!("#{{||:#{{pane_dead}},#{{e|>=:#{{window_activity}},{since_second}}}}}");
        let list = Cmd::new("list-panes").args(["-a", "-F"]).arg(format!("#{{pane_id}} {moved}"));
        let Some(replies) = self.call(std::slice::from_ref(&list))? else { return Ok(Vec::new()) };
        let text = listed(&list, replies)?;
        let text = String::from_utf8_lossy(&text);
        let rows = text.lines().filter_map(|line| line.split_once(' '));
        Ok(rows.map(|(pane, moved)| (pane.to_owned(), moved == "1")).collect())
    }

    /// Where a pane is, and since when.
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

    /// Tells the server that a child may have ended, where a row says that it has not heard how; says whether to ask
    /// again. The first time at once: the server hears of it before it comes to the next question.
    fn remind_of_unreaped<'a>(&self, mut rows: impl Iterator<Item = &'a PaneRow>, attempt: u32) -> bool {
        let Some(row) = rows.find(|row| row.pane.dead && !row.pane.reaped()) else { return false };
        remind_of_children(row.server_pid);
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(1 << attempt));
        }
        true
    }

    /// The visible screens of panes, in the order given: plain, or with colours and other escapes.
    pub fn screens(&self, panes: &[&str], ansi: bool) -> Result<Vec<Reply>> {
        let captures: Vec<Capture<'_>> =
            panes.iter().map(|pane| Capture { pane, ansi, history: 0 }).collect();
        self.captures(&captures)
    }

    /// What panes show, in the order given.
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

    /// Changes how long any one exchange may take.
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

    /// Asks once: a tmux that is new enough does not become older.
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

    /// The command line that attaches a terminal to a session, for a person or the foreground of a shell.
    pub fn attach_command(&self, session: &str) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec!["tmux".into(), "-u".into()];
        argv.extend(self.socket_arguments());
        argv.extend(["attach-session", "-t"].map(OsString::from));
        argv.push(format!("={session}").into());
        argv
    }

    /// Where the server's socket is.
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

    /// `tmux` for the private server, which is not started: a look never has an effect.
    fn command(&self) -> std::process::Command {
        let mut command = self.command_starting();
        command.arg("-N");
        command
    }

    /// `tmux` for the private server, with a clean environment: whatever starts the server leaks into every pane.
    fn command_starting(&self) -> std::process::Command {
        let mut command = std::process::Command::new(self.program());
        command.env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).current_dir("/");
        command.args(["-u", "-f", "/dev/null"]).args(self.socket_arguments());
        command
    }

    /// The caller's tmux, not the one of this process's own search path.
    fn program(&self) -> PathBuf {
        std::env::split_paths(&self.search_path)
            .map(|folder| folder.join("tmux"))
            .find(|path| path.is_file())
            .unwrap_or_else(|| PathBuf::from("/nonexistent/tmux"))
    }

    fn run(&self, command: &mut std::process::Command, input: &[u8]) -> Result<crate::process::Output> {
        match crate::process::run(command, input, self.timeout) {
            Ok(Some(output)) => Ok(output),
            Ok(None) => Err(timeout_error(self.timeout)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::new(
                Kind::TmuxMissing,
                "tmux is not installed, or not on PATH",
                "install it: `apt-get install tmux`, `dnf install tmux` or `brew install tmux`",
            )),
            Err(error) => Err(Error::io("run", Path::new("tmux"), &error)),
        }
    }
}

/// Where a pane is, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its terminal.
    pub terminal: Option<PathBuf>,
    /// When its session was made.
    pub created: At,
    /// The directory that its program is in.
    pub cwd: Option<PathBuf>,
}

/// One pane to capture.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    /// The pane's id.
    pub pane: &'a str,
    /// Whether colours and other escapes are kept.
    pub ansi: bool,
    /// Lines of history above the screen.
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

/// What a capture gives where no server runs.
fn no_server() -> Reply {
    Err("no server running".to_owned())
}

/// A screen without the blank rows at its end, which say nothing. tmux 3.7 keeps tabs where older ones print the spaces
/// that they stand for; columns must be the same everywhere.
pub(crate) fn without_blank_end(mut screen: Vec<u8>) -> Vec<u8> {
    screen.truncate(screen.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1));
    if screen.contains(&b'\t') { crate::text::expand_tabs(&screen) } else { screen }
}

/// What a list of all panes has printed. A server without a session has nothing that the list could begin with, and says
/// so.
fn listed(list: &Cmd, replies: Vec<Reply>) -> Result<Vec<u8>> {
    match replies.into_iter().next() {
        Some(Ok(bytes)) => Ok(bytes),
        Some(Err(why)) if why.contains("no current target") || why.contains("no sessions") => Ok(Vec::new()),
        Some(Err(why)) => Err(refused(list, &why)),
        None => Ok(Vec::new()),
    }
}

/// Tells the server that a child may have ended. Debian's build loses the signal of many of them: libutempter, which it
/// calls when a pane closes, ignores children for that time.
pub(crate) fn remind_of_children(server: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(pid) = i32::try_from(server).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::CHILD);
    }
}

fn refused(command: &Cmd, why: &str) -> Error {
    Error::new(
        Kind::TmuxFailed,
        format!("tmux refused `{}`: {why}", command.name()),
        "run `lisa doctor`, and look at the server with `tmux -L lisa list-sessions`",
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
