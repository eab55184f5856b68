//! The door to tmux: the only code that starts `tmux`.
//!
//! A [`Tmux`] talks to one private server in one of two ways that give the same answers. A one-shot caller forks
//! `tmux` once for a whole batch of commands; a resident keeps one control-mode connection ([`control`]) and
//! pipelines them. Parsers take bytes ([`proto`], [`pane`]) and know nothing of either.
//!
//! What the door guards against, because tmux does not:
//! - a name that is a prefix of another hits the other: targets are `=name` or ids, never bare names;
//! - `capture-pane -p` leaks over control mode: residents capture through a buffer;
//! - a paste into a dead pane kills the server, and a key can meet another screen than the one that was looked at:
//!   whatever is typed is guarded in the same command list ([`typing`]);
//! - a lost SIGCHLD leaves an exit status empty: the server is told to look again;
//! - a server without file descriptors hangs every client: its limit is raised, every command has a time-out;
//! - a client that stops reading freezes the panes: a thread does nothing but read;
//! - a client whose reader was killed stays for good, and keeps the server from ending: the next one ends it ([`clients`]).

pub mod control;
pub mod pane;
pub mod proto;

mod attach;
mod clients;
mod command;
mod fork;
mod typing;
mod version;

pub use clients::end_own_clients;
pub use command::Cmd;
pub use typing::{Guard, Typed};
pub use version::{MINIMUM, Version};

use crate::{
    config::{Environment, Socket},
    error::{Error, Kind, Result},
};
use control::Control;
use pane::PaneRow;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// How long any one exchange with tmux may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The session that residents attach to. It has no process: its only pane is a corpse that is kept.
pub const KEEPER: &str = "_lisa";

/// The longest path that fits a socket address.
const SOCKET_PATH_MAX: usize = 107;

/// What one command printed, or what tmux said against it.
pub type Reply = std::result::Result<Vec<u8>, String>;

/// One private tmux server, and how to talk to it.
#[derive(Debug)]
pub struct Tmux {
    socket: Socket,
    env: Vec<(OsString, OsString)>,
    search_path: OsString,
    timeout: Duration,
    control: Option<Control>,
    new_enough: OnceLock<()>,
}

impl Tmux {
    /// The server as a one-shot caller sees it: one fork for each batch of commands.
    pub fn new(socket: Socket, env: &Environment) -> Result<Self> {
        let tmux = Self {
            env: server_environment(env),
            search_path: env.get("PATH").cloned().unwrap_or_else(|| "/usr/bin:/bin".into()),
            socket,
            timeout: TIMEOUT,
            control: None,
            new_enough: OnceLock::new(),
        };
        tmux.check_socket()?;
        Ok(tmux)
    }

    /// The server as a resident sees it: one control-mode connection, made when first used and made again when the
    /// server died and came back.
    pub fn resident(socket: Socket, env: &Environment) -> Result<Self> {
        let mut tmux = Self::new(socket, env)?;
        tmux.control = Some(Control::default());
        Ok(tmux)
    }

    /// Runs commands one after the other; one that fails does not keep the rest from running.
    ///
    /// `Ok(None)` means that no server is running.
    pub fn call(&self, commands: &[Cmd]) -> Result<Option<Vec<Reply>>> {
        match self.control.as_ref().map(|control| control.call(self, commands)).transpose()?.flatten() {
            Some(replies) => Ok(Some(replies)),
            // That no connection can be made does not mean that no server runs: only a call of its own can tell.
            None => {
                let _alone = self.hold_for(commands);
                fork::call(self, commands)
            }
        }
    }

    /// Runs commands as one list that nothing can come between; the first that fails ends it.
    ///
    /// Returns what they printed, joined. `Ok(None)` means that no server is running.
    pub fn call_atomic(&self, commands: &[Cmd]) -> Result<Option<Reply>> {
        match self.control.as_ref().map(|control| control.call_atomic(self, commands)).transpose()?.flatten()
        {
            Some(reply) => Ok(Some(reply)),
            None => {
                let _alone = self.hold_for(commands);
                fork::call_atomic(self, commands)
            }
        }
    }

    /// Runs commands as one list and starts the server if it is not running. Always forks, so that the server is
    /// never the child of a connection.
    pub fn call_starting(&self, commands: &[Cmd]) -> Result<Reply> {
        self.check_version()?;
        let mut list = vec![Cmd::new("start-server")];
        list.extend(server_options());
        list.push(keeper_unless_there());
        list.extend_from_slice(commands);
        list.push(Cmd::new("display-message").args(["-p", "#{pid}"]));
        let deadline = Instant::now() + self.timeout;
        let _alone = self.hold_for(commands);
        loop {
            match fork::call_list(self, self.command_starting(), &list)? {
                Some(Ok(printed)) => return Ok(Ok(self.take_server_pid(printed))),
                Some(Err(why)) => return Ok(Err(why)),
                // A server that is on its way out refuses connections for up to a second.
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
                None => return Err(timeout_error(self.timeout)),
            }
        }
    }

    /// Cuts off the last line that a start prints, the server's process id, and gives that server more descriptors.
    fn take_server_pid(&self, mut printed: Vec<u8>) -> Vec<u8> {
        let text = String::from_utf8_lossy(&printed).into_owned();
        if let Some(last) = text.lines().last() {
            printed.truncate(printed.len().saturating_sub(last.len() + 1));
            if let Ok(pid) = last.parse() {
                raise_descriptor_limit(pid);
            }
        }
        printed
    }

    /// Every pane of the server; empty when none is running.
    ///
    /// A pane that is dead without a status has not been reaped: the server is told to look again, so that the
    /// status is known within a second.
    pub fn panes(&self, with_command: bool) -> Result<Vec<PaneRow>> {
        self.list(Cmd::new("list-panes").arg("-a"), with_command)
    }

    /// The pane of one session by its exact name: the server looks at no other, however many there are.
    pub fn pane_of(&self, session: &str, with_command: bool) -> Result<Option<PaneRow>> {
        // Somebody may have split the window: the first is the one that Lisa made.
        Ok(self.list(list_of(session), with_command)?.into_iter().next())
    }

    /// The pane of one session by its exact name, and in the same exchange what the pane with that id shows, with
    /// colours. Whether it is the same pane, the caller sees from the row.
    pub fn pane_shown(&self, session: &str, id: &str) -> Result<(Option<PaneRow>, Reply)> {
        let list = list_of(session).arg("-F").arg(pane::format(true));
        let capture = Capture { pane: id, ansi: true, history: 0 };
        let (listed, screens) = self.captures_after(std::slice::from_ref(&list), &[capture])?;
        let mut row = rows(&list, listed, true)?.into_iter().next();
        if row.as_ref().is_some_and(is_unreaped) {
            row = self.pane_of(session, true)?;
        }
        Ok((row, screens.into_iter().next().unwrap_or_else(no_server)))
    }

    fn list(&self, list: Cmd, with_command: bool) -> Result<Vec<PaneRow>> {
        let list = list.arg("-F").arg(pane::format(with_command));
        let mut found = Vec::new();
        for attempt in 0..8 {
            let Some(replies) = self.call(std::slice::from_ref(&list))? else { return Ok(Vec::new()) };
            found = rows(&list, replies, with_command)?;
            let Some(unreaped) = found.iter().find(|row| is_unreaped(row)) else { break };
            remind_of_children(unreaped.server_pid);
            std::thread::sleep(Duration::from_millis(2 << attempt));
        }
        found.retain(|row| row.session != KEEPER);
        Ok(found)
    }

    /// The visible screens of panes, in the order given: plain, or with colours and other escapes.
    pub fn screens(&self, panes: &[&str], ansi: bool) -> Result<Vec<Reply>> {
        let captures: Vec<Capture<'_>> =
            panes.iter().map(|pane| Capture { pane, ansi, history: 0 }).collect();
        self.captures(&captures)
    }

    /// What panes show, in the order given.
    pub fn captures(&self, captures: &[Capture<'_>]) -> Result<Vec<Reply>> {
        if captures.is_empty() {
            return Ok(Vec::new());
        }
        self.captures_after(&[], captures).map(|(_, screens)| screens)
    }

    /// What commands print, and what panes show after them, in one exchange. Nothing is printed where no server runs.
    fn captures_after(&self, first: &[Cmd], captures: &[Capture<'_>]) -> Result<(Vec<Reply>, Vec<Reply>)> {
        let control = self.control.as_ref();
        let connected = control.map(|control| control.captures(self, first, captures)).transpose()?.flatten();
        let replies = match connected {
            Some(replies) => Some(replies),
            None => {
                let printed = captures.iter().map(|capture| capture.command(None));
                fork::call(self, &first.iter().cloned().chain(printed).collect::<Vec<_>>())?
            }
        };
        let Some(mut printed) = replies else {
            return Ok((Vec::new(), captures.iter().map(|_| no_server()).collect()));
        };
        let mut screens = printed.split_off(first.len().min(printed.len()));
        // Blank rows at the end say nothing, and how many there are depends on the way taken.
        for screen in screens.iter_mut().flatten() {
            screen.truncate(screen.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1));
        }
        Ok((printed, screens))
    }

    /// Calls `listener` for whatever a resident's connection says beside replies, on the reading thread. Nothing is
    /// lost if it is slow: the connection takes no output, so the server has nothing to hold back.
    pub fn on_notice(&self, listener: control::Listener) {
        if let Some(control) = &self.control {
            control.listen(listener);
        }
    }

    /// Changes how long any one exchange may take.
    pub fn set_timeout(&mut self, limit: Duration) {
        self.timeout = limit;
    }

    /// A client that prints what a session's pane writes, for whoever must always read it. Should it fall behind, the
    /// server pauses it rather than the pane.
    pub(crate) fn listen(&self, session: &str) -> std::io::Result<std::process::Child> {
        let mut command = self.command();
        // Whoever comes to look at a pane whose program has ended can end the server: see `end_session`.
        let attach = format!("attach-session -f ignore-size,pause-after=1 -t ={session}");
        command.args(["-C", "if-shell", "-F", "-t"]).arg(format!("={session}:"));
        command.args(["#{pane_dead}", "display-message -p dead"]).arg(attach);
        clients::mark(&mut command);
        let alone = self.hold_attaching();
        self.await_orphans();
        // Its standard input must stay open: a control client ends when it closes.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(self.attaching_stderr(alone.as_ref()));
        let child = command.spawn()?;
        child.stdout.as_ref().map(attach::wait_until_greeted);
        Ok(child)
    }

    /// The installed tmux's version.
    pub fn version(&self) -> Result<Version> {
        let mut command = self.command();
        command.arg("-V");
        let output = self.run(&mut command)?;
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

    fn run(&self, command: &mut std::process::Command) -> Result<crate::process::Output> {
        match crate::process::run(command, self.timeout) {
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

/// The server needs about one descriptor for each pane; out of them, it spins and answers nobody.
#[cfg(target_os = "linux")]
fn raise_descriptor_limit(server: i32) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let Some(pid) = Pid::from_raw(server) else { return };
    let hard = getrlimit(Resource::Nofile).maximum;
    // Best effort: where it is not allowed, the session limit and the time-outs still stand.
    let _ = prlimit(Some(pid), Resource::Nofile, Rlimit { current: hard, maximum: hard });
}

#[cfg(not(target_os = "linux"))]
fn raise_descriptor_limit(_server: i32) {}

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
    /// The capture, into a buffer where one is named, printed otherwise.
    fn command(&self, buffer: Option<&str>) -> Cmd {
        let mut command = Cmd::new("capture-pane");
        command = match buffer {
            Some(name) => command.arg("-b").arg(name),
            None => command.arg("-p"),
        };
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

/// The panes of one session.
fn list_of(session: &str) -> Cmd {
    // With the colon, or a window of that name in another session would do.
    Cmd::new("list-panes").args(["-s", "-t"]).arg(format!("={session}:"))
}

/// What a list of panes has printed; nothing where the session, or the server, is not there.
fn rows(list: &Cmd, replies: Vec<Reply>, with_command: bool) -> Result<Vec<PaneRow>> {
    match replies.into_iter().next() {
        Some(Ok(bytes)) => pane::parse(&bytes, with_command),
        Some(Err(why)) if why.contains("can't find session") => Ok(Vec::new()),
        Some(Err(why)) => Err(refused(list, &why)),
        None => Ok(Vec::new()),
    }
}

/// Whether a pane is dead and its server has not heard yet how it ended.
fn is_unreaped(row: &PaneRow) -> bool {
    row.session != KEEPER && row.pane.dead && !row.pane.reaped()
}

/// Tells the server that a child may have ended: Debian's build loses the signal of up to a third of them.
fn remind_of_children(server: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(pid) = i32::try_from(server).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::CHILD);
    }
}

/// The options of the private server: corpses stay, nothing is renamed, sizes are ours.
fn server_options() -> Vec<Cmd> {
    let set = |flag: &'static str, name: &'static str, value: &'static str| {
        Cmd::new("set-option").args([flag, name, value])
    };
    vec![
        set("-s", "exit-empty", "off"),
        set("-s", "escape-time", "0"),
        set("-g", "remain-on-exit", "on"),
        set("-g", "status", "off"),
        set("-g", "automatic-rename", "off"),
        set("-g", "allow-rename", "off"),
        set("-g", "history-limit", "2000"),
        set("-g", "default-terminal", "screen-256color"),
        set("-g", "detach-on-destroy", "on"),
        set("-g", "set-titles", "off"),
        set("-g", "focus-events", "on"),
    ]
}

/// Makes the keeper session, unless it is there: the condition lists every session's name between two marks.
fn keeper_unless_there() -> Cmd {
    let keeper = Cmd::new("new-session").args(["-d", "-s", KEEPER, "-x", "80", "-y", "24", "true", "keeper"]);
    let there = format!("#{{m:*={KEEPER}=*,#{{S:=#{{session_name}}=}}}}");
    Cmd::new("if-shell").arg("-F").arg(there).list(&[Cmd::new("start-server")]).list(&[keeper])
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

/// Whether tmux says that there is no server. A socket that can not be used for another reason says nothing of the kind.
fn means_no_server(stderr: &str) -> bool {
    let absent = ["(No such file or directory)", "(Connection refused)"];
    let unconnected = stderr.contains("error connecting to") && absent.iter().any(|why| stderr.contains(why));
    unconnected
        || ["no server running", "server exited", "lost server"].iter().any(|phrase| stderr.contains(phrase))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_can_not_be_reached_is_not_one_that_is_gone() {
        assert!(means_no_server("no server running on /tmp/tmux-0/lisa"));
        assert!(means_no_server("error connecting to /x/lisa (No such file or directory)"));
        assert!(!means_no_server("error connecting to /x/lisa (Permission denied)"));
        assert!(!means_no_server("error connecting to /x/lisa (Too many open files)"));
    }
}
