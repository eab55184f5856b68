//! The server's own life: how it is started, with which options, and how it is ended for good.

use super::{Cmd, Reply, Tmux, Version, exchange, pane::INPUTS, timeout_error};
use crate::{error::Result, process::Handle};
use rustix::process::Signal;
use std::{
    os::unix::net::UnixStream,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// The first tmux that tells a program that has ended nothing about who looks at it.
const FIXED: Version = Version::new(3, 4);
/// How long a server that was ended may take to go by itself: after `kill-server` the process lives for over a second.
const GOING: Duration = Duration::from_millis(1_500);

impl Tmux {
    /// Runs commands as one list and starts the server if it is not running.
    ///
    /// A server that this process has seen before has its options: setting one takes longer the more sessions there are,
    /// and so does a `tmux` process.
    pub fn call_starting(&self, commands: &[Cmd]) -> Result<Reply> {
        self.check_version()?;
        let pid = Cmd::new("display-message").args(["-p", "#{?@lisa,#{pid},0}"]);
        let prepared = self.prepared.load(Ordering::Relaxed);
        if prepared && let Some(reply) = self.call_atomic(&[commands, std::slice::from_ref(&pid)].concat())? {
            // Another may have taken its place that somebody else has started.
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
                    // One that does not know how to count is typed into with less certainty.
                    let _ = self.call(&counting());
                    return Ok(Ok(take_server_pid(printed)));
                }
                Some(Err(why)) => return Ok(Err(why)),
                None if began.elapsed() >= self.timeout => return Err(timeout_error(self.timeout)),
                // A server that is on its way out answers nobody, and no other can start before it is gone.
                None if began.elapsed() >= GOING => self.end_lingering(),
                None => {}
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A server that was told to end and cannot, because a client of somebody's does not leave: it listens and answers
    /// nothing. `None` where the server answers, or there is none.
    pub fn lingering(&self) -> Option<Handle> {
        let stream = UnixStream::connect(self.socket_path()).ok()?;
        let holder = listener(&stream)?;
        let ask = Cmd::new("display-message").args(["-p", "#{pid}"]);
        matches!(self.call(&[ask]), Ok(None)).then_some(holder)
    }

    /// Ends a server that lingers; its sessions are gone already. Says whether there was one.
    pub fn end_lingering(&self) {
        if let Some(server) = self.lingering() {
            // It may have gone in the meantime.
            let _ = server.signal(Signal::KILL);
        }
    }

    /// Ends a session.
    ///
    /// A tmux before 3.4 tells the program in a pane when nobody looks at it any more, if it asked for that; if it has
    /// ended in the meantime, the server dies of it with every session. So what it asked for is forgotten first, in the
    /// same command list.
    pub fn end_session(&self, id: &str) -> Result<()> {
        let forget = Cmd::new("send-keys").args(["-R", "-t"]).arg(format!("{id}:"));
        self.call_atomic(&[forget, Cmd::new("kill-session").arg("-t").arg(id)])?;
        Ok(())
    }

    /// Whether the server outlives a client that comes to look at a pane whose program has ended.
    pub fn survives_a_look(&self) -> Result<bool> {
        Ok(self.version()? >= FIXED)
    }

    /// Ends the server with every session in it, and waits until it is gone; says whether it is.
    ///
    /// A server goes only after its last client. One that a client holds back is killed, with nothing lost: its sessions
    /// have ended by then.
    pub fn end_server(&self, limit: Duration) -> Result<bool> {
        let Some(server) = self.server() else { return Ok(true) };
        // It may go before it has answered.
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

    /// The process of the server, also of one that answers nobody.
    pub fn server(&self) -> Option<Handle> {
        listener(&UnixStream::connect(self.socket_path()).ok()?)
    }
}

/// The process that listens at the other end.
#[cfg(target_os = "linux")]
fn listener(stream: &UnixStream) -> Option<Handle> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    Handle::open(u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?).ok()
}

/// Elsewhere only a server that answers can be named.
#[cfg(not(target_os = "linux"))]
fn listener(_stream: &UnixStream) -> Option<Handle> {
    None
}

/// Cuts off the last line that a start prints, the server's process id, and gives that server more descriptors.
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

/// The server needs about one descriptor for each pane; out of them, it spins and answers nobody. Its limit is only ever
/// raised: a caller may have fewer itself.
#[cfg(target_os = "linux")]
fn raise_descriptor_limit(server: i32) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let Some(pid) = Pid::from_raw(server) else { return };
    let own = getrlimit(Resource::Nofile).maximum;
    let limits = std::fs::read_to_string(format!("/proc/{server}/limits")).unwrap_or_default();
    let Some((_, hard)) = open_files(&limits) else { return };
    // `None` stands for no limit.
    let most = own.zip(hard).map(|(own, hard)| own.max(hard));
    // Best effort: where it is not allowed, the session limit and the time-outs still stand.
    let _ = prlimit(Some(pid), Resource::Nofile, Rlimit { current: most, maximum: most });
}

/// The limits of open files in `/proc/PID/limits`: the one in force, and the highest that it can be set to.
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

/// Has the server count what is typed into the panes of agents: keys of a person who is attached, `send-keys` and
/// `paste-buffer` of anybody. A key that is decided on from a look then goes only into a pane that nothing has been
/// typed into since: what was typed and is not drawn yet cannot be seen in any other way.
///
/// The count is a hidden variable of the session. An option would be as exact, but setting one makes tmux draw every
/// client anew.
fn counting() -> Vec<Cmd> {
    let count = format!("set-environment -hF {INPUTS} '#{{e|+:#{{{INPUTS}}},1}}'");
    let counts = Cmd::new("if-shell").args(["-F", "#{@lisa_run}"]).arg(&count);
    let hook = |name: &'static str| {
        let counted = format!("if-shell -F '#{{@lisa_run}}' \"{count}\"");
        Cmd::new("set-hook").args(["-g", name]).arg(counted)
    };
    let forward = Cmd::new("send-keys");
    let bind = Cmd::new("bind-key").args(["-n", "Any"]).list(&[counts, forward]);
    vec![bind, hook("after-send-keys"), hook("after-paste-buffer")]
}

/// The options of the private server: corpses stay, nothing is renamed, sizes are ours, and it stays when it is empty.
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
        // Says that the others are set.
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
