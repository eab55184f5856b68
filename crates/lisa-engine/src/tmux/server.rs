//! The server's life cycle: how it is started, its options, and how it is ended.

use super::{
    Cmd, Reply, Tmux, Version, exchange,
    pane::{INPUTS, IS_AGENT, PaneRow},
    timeout_error,
};
use crate::{error::Result, process::Handle};
use rustix::process::Signal;
use std::{
    os::unix::net::UnixStream,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// The first tmux without the crash on focus events to a dead pane (see `end_pane`).
const FIXED: Version = Version::new(3, 4);
/// How long an ended server may take to exit by itself: its process lives on for over a second after `kill-server`.
const GOING: Duration = Duration::from_millis(1_500);

impl Tmux {
    /// Runs commands as one list and starts the server if it isn't running.
    ///
    /// If this process has seen the server before, its options are already set. Setting an option takes longer the
    /// more sessions there are, and forking `tmux` takes time too.
    pub fn call_starting(&self, commands: &[Cmd]) -> Result<Reply> {
        self.check_version()?;
        let pid = Cmd::new("display-message").args(["-p", "#{?@lisa,#{pid},0}"]);
        let prepared = self.prepared.load(Ordering::Relaxed);
        if prepared && let Some(reply) = self.call_atomic(&[commands, std::slice::from_ref(&pid)].concat())? {
            // Somebody else may have started a new server in the meantime.
            if reply.as_ref().is_ok_and(|printed| printed.ends_with(b"\n0\n")) {
                self.call(&options())?;
                let _ = self.call(&counting());
            }
            return Ok(reply.map(take_server_pid));
        }
        let mut list = vec![Cmd::new("start-server")];
        list.extend(options());
        list.extend_from_slice(commands);
        list.push(pid);
        let began = Instant::now();
        loop {
            match exchange::call_starting(self, &list)? {
                Some(Ok(printed)) => {
                    self.prepared.store(true, Ordering::Relaxed);
                    // If the server can't count, typing into its panes is less certain (see `counting`).
                    let _ = self.call(&counting());
                    return Ok(Ok(take_server_pid(printed)));
                }
                Some(Err(why)) => return Ok(Err(why)),
                None if began.elapsed() >= self.timeout => return Err(timeout_error(self.timeout)),
                // A server that is shutting down answers nobody, and no other can start before it is gone.
                None if began.elapsed() >= GOING => self.end_lingering(),
                None => {}
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A server that was told to end but can't, because a client is still attached: it accepts connections and answers
    /// nothing. `None` if the server answers or there is none.
    pub fn lingering(&self) -> Option<Handle> {
        let stream = UnixStream::connect(self.socket_path()).ok()?;
        let holder = listener(&stream)?;
        let ask = Cmd::new("display-message").args(["-p", "#{pid}"]);
        matches!(self.call(&[ask]), Ok(None)).then_some(holder)
    }

    /// Kills a lingering server; its sessions are already gone. Returns whether there was one.
    pub fn end_lingering(&self) {
        if let Some(server) = self.lingering() {
            // It may have exited in the meantime.
            let _ = server.signal(Signal::KILL);
        }
    }

    /// Ends an agent's pane, and its tmux session with it if there is nothing else in it. What a person or another agent
    /// has there stays. A session `name` that is left is renamed, so that the name is free again.
    ///
    /// Before tmux 3.4, the server sends a focus event to the program in a pane when its last client leaves, if the
    /// program asked for that. If the program has already ended, this crashes the server with every session. So this
    /// resets the pane's modes first, in the same command list.
    pub fn end_pane(&self, row: &PaneRow, name: &str) -> Result<()> {
        let pane = row.pane_id.as_str();
        let forget = Cmd::new("send-keys").args(["-R", "-t", pane]);
        let is_alone = "#{==:#{session_windows}/#{window_panes},1/1}";
        let session = [Cmd::new("kill-session").args(["-t", &row.session_id])];
        let left = format!("{name}-left-{}", pane.trim_start_matches('%'));
        // The last command, because it fails if there is no such session.
        let only_it = [
            Cmd::new("kill-pane").args(["-t", pane]),
            Cmd::new("rename-session").arg("-t").arg(format!("={name}")).arg(left),
        ];
        let end = Cmd::new("if-shell").args(["-F", "-t", pane, is_alone]).list(&session).list(&only_it);
        self.call_atomic(&[forget, end])?;
        Ok(())
    }

    /// Whether the server survives a client that attaches to a pane whose program has ended (tmux 3.4 or newer).
    pub fn survives_attach(&self) -> Result<bool> {
        Ok(self.version()? >= FIXED)
    }

    /// Ends the server with every session in it and waits until it is gone; returns whether it is.
    ///
    /// A server only exits after its last client. If a client keeps it alive, it is killed; nothing is lost, because
    /// its sessions have already ended.
    pub fn end_server(&self, limit: Duration) -> Result<bool> {
        let Some(server) = self.server() else { return Ok(true) };
        // The server may exit before it answers.
        let _ = self.call(&[Cmd::new("kill-server")]);
        let told = Instant::now();
        while server.identity().alive() && told.elapsed() < limit {
            if told.elapsed() > GOING {
                let _ = server.signal(Signal::KILL);
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(!server.identity().alive())
    }

    /// The server's process, even if it answers nobody.
    pub fn server(&self) -> Option<Handle> {
        listener(&UnixStream::connect(self.socket_path()).ok()?)
    }
}

/// The process that listens on the other end of the socket.
#[cfg(target_os = "linux")]
fn listener(stream: &UnixStream) -> Option<Handle> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    Handle::open(u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?).ok()
}

/// On other systems only a server that answers is known.
#[cfg(not(target_os = "linux"))]
fn listener(_stream: &UnixStream) -> Option<Handle> {
    None
}

/// Cuts off the last line that a start prints, the server's pid, and raises that server's descriptor limit.
fn take_server_pid(mut printed: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&printed).into_owned();
    if let Some(last) = text.lines().last() {
        printed.truncate(printed.len().saturating_sub(last.len() + 1));
        if let Ok(pid) = last.parse() {
            raise_descriptor_limit(pid);
        }
    }
    printed
}

/// The server needs about one descriptor per pane; without free ones it spins and answers nobody. The limit is only
/// ever raised, since a caller may have a lower one itself.
#[cfg(target_os = "linux")]
fn raise_descriptor_limit(server: i32) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let Some(pid) = Pid::from_raw(server) else { return };
    let own = getrlimit(Resource::Nofile).maximum;
    let limits = std::fs::read_to_string(format!("/proc/{server}/limits")).unwrap_or_default();
    let Some((_, hard)) = open_files(&limits) else { return };
    // `None` means no limit.
    let most = own.zip(hard).map(|(own, hard)| own.max(hard));
    // Best effort: if it isn't permitted, the session limit and the timeouts still protect.
    let _ = prlimit(Some(pid), Resource::Nofile, Rlimit { current: most, maximum: most });
}

/// The soft and hard limits of open files in `/proc/PID/limits`.
#[cfg(target_os = "linux")]
fn open_files(limits: &str) -> Option<(Option<u64>, Option<u64>)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut numbers = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    });
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(not(target_os = "linux"))]
fn raise_descriptor_limit(_server: i32) {}

/// Makes the server count what is typed into agents' panes: keys of an attached person, and any `send-keys` and
/// `paste-buffer`. A key that was decided on from a snapshot is then only pressed if nothing was typed since. Input
/// that isn't drawn yet can't be detected in any other way.
///
/// The counter is a hidden environment variable of the session. An option would work too, but setting one makes tmux
/// redraw every client.
fn counting() -> Vec<Cmd> {
    let count = format!("set-environment -hF {INPUTS} '#{{e|+:#{{{INPUTS}}},1}}'");
    let counts = Cmd::new("if-shell").args(["-F", IS_AGENT]).arg(&count);
    let hook = |name: &'static str| {
        let counted = format!("if-shell -F '{IS_AGENT}' \"{count}\"");
        Cmd::new("set-hook").args(["-g", name]).arg(counted)
    };
    let forward = Cmd::new("send-keys");
    let bind = Cmd::new("bind-key").args(["-n", "Any"]).list(&[counts, forward]);
    vec![bind, hook("after-send-keys"), hook("after-paste-buffer")]
}

/// The options of the private server: dead panes stay, no automatic renames, fixed sizes, and it keeps running without
/// sessions.
fn options() -> Vec<Cmd> {
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
        // Marks that the other options are set.
        set("-s", "@lisa", "1"),
    ]
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::open_files;

    #[test]
    fn the_limit_of_open_files_is_read_from_the_system_s_own_table() {
        let table = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files     \n";
        assert_eq!(open_files(table), Some((Some(1024), Some(524_288))));
        assert_eq!(open_files("Max open files unlimited unlimited files"), Some((None, None)));
        assert_eq!(open_files("Max processes 1 2"), None);
    }
}
