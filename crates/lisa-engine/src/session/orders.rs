//! What a pane's process should run, and how it gets there.
//!
//! The orders go through a named pipe and are never written to disk: they can have arguments of any length and bytes,
//! and an environment with secrets. The helper in the pane reads them and becomes the agent.

use crate::process::Identity;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    ffi::{OsStr, OsString},
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// Variables of tmux's panes that an agent should have: they describe the terminal. `TMUX` and `TMUX_PANE` are left
/// out, so that no agent talks to Lisa's tmux server by accident.
const FROM_TMUX: &[&str] = &["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];

/// How long either side waits for the other.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

const MAGIC: &[u8] = b"lisa-launch-1";

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// A file for its standard input, removed once opened; if `None`, the terminal.
    pub stdin: Option<PathBuf>,
    /// The limit of open files that its caller had.
    pub nofile: Option<u64>,
}

impl Spec {
    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut put = |bytes: &[u8]| {
            body.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            body.extend_from_slice(bytes);
        };
        put(self.argv.len().to_string().as_bytes());
        self.argv.iter().for_each(|arg| put(arg.as_bytes()));
        put(self.env.len().to_string().as_bytes());
        for (name, value) in &self.env {
            put(name.as_bytes());
            put(value.as_bytes());
        }
        put(self.cwd.as_os_str().as_bytes());
        put(self.stdin.as_ref().map_or(&[], |path| path.as_os_str().as_bytes()));
        put(self.nofile.map(|limit| limit.to_string()).unwrap_or_default().as_bytes());
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend(body);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (length, mut rest) = rest.split_first_chunk::<8>()?;
        if u64::from_le_bytes(*length) != rest.len() as u64 {
            return None;
        }
        let mut take = || {
            let (length, tail) = rest.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (item, tail) = tail.split_at_checked(length)?;
            rest = tail;
            Some(OsString::from_vec(item.to_vec()))
        };
        let number = |text: &OsStr| text.to_str()?.parse::<usize>().ok();
        let argc = number(&take()?)?;
        let argv = (0..argc).map(|_| take()).collect::<Option<Vec<_>>>()?;
        let envc = number(&take()?)?;
        let env = (0..envc).map(|_| Some((take()?, take()?))).collect::<Option<Vec<_>>>()?;
        let cwd = PathBuf::from(take()?);
        let stdin = Some(take()?).filter(|path| !path.is_empty()).map(PathBuf::from);
        let nofile = take()?.to_str()?.parse().ok();
        (!argv.is_empty()).then_some(Self { argv, env, cwd, stdin, nofile })
    }

    /// The command to start, with the caller's environment and limits and the terminal of this pane.
    pub(crate) fn command(&self) -> Result<Command, String> {
        let (program, args) = self.argv.split_first().ok_or("there is nothing to run")?;
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd);
        for name in FROM_TMUX {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(path) = &self.stdin {
            let file =
                File::open(path).map_err(|error| format!("could not open {}: {error}", path.display()))?;
            let _ = std::fs::remove_file(path);
            command.stdin(file);
        }
        if let Some(limit) = self.nofile {
            let maximum = getrlimit(Resource::Nofile).maximum;
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum });
        }
        Ok(command)
    }
}

/// Creates the pipe that a pane reads its orders from.
pub(crate) fn make_fifo(path: &Path) -> io::Result<()> {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o600)).map_err(io::Error::from)
}

/// Passes the orders to a pane's process and removes the pipe. Fails if that process ends or doesn't take them in
/// time.
pub(crate) fn feed(fifo: &Path, spec: &Spec, pane: Option<Identity>) -> io::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    let written = open_when_read(fifo, deadline, pane).and_then(|mut pipe| {
        let mut rest = &spec.encode()[..];
        while !rest.is_empty() {
            match pipe.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    });
    let _ = std::fs::remove_file(fifo);
    written
}

/// Opens the writing end as soon as the pane has opened the reading end.
fn open_when_read(fifo: &Path, deadline: Instant, pane: Option<Identity>) -> io::Result<File> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    loop {
        match OpenOptions::new().write(true).custom_flags(nonblocking).open(fifo) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                let failed = |kind, why: &str| Err(io::Error::new(kind, why));
                if !pane.is_some_and(Identity::alive) {
                    return failed(io::ErrorKind::BrokenPipe, "the pane's process ended at once");
                }
                if Instant::now() >= deadline {
                    return failed(io::ErrorKind::TimedOut, "the pane did not read its orders in time");
                }
                thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}

/// Reads the orders; gives up if the process that should write them is gone.
pub(crate) fn receive(fifo: &Path) -> Result<Spec, String> {
    // Opening blocks until the other side opens too; if it never does, nobody is left to report to.
    let (done, finished) = std::sync::mpsc::channel();
    let path = fifo.to_owned();
    thread::spawn(move || {
        let read = File::open(&path).and_then(|mut pipe| {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).map(|_| bytes)
        });
        let _ = done.send(read);
    });
    let bytes = finished
        .recv_timeout(TIMEOUT)
        .map_err(|_| "there are no orders for this session: the process that started it is gone".to_owned())?
        .map_err(|error| format!("could not read {}: {error}", fifo.display()))?;
    Spec::decode(&bytes).ok_or_else(|| "the orders for this session are incomplete".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            argv: vec![
                "agent".into(),
                OsString::from_vec(vec![b'a', 0xff, b'\n']),
                "#{x};".into(),
                "x".repeat(300_000).into(),
            ],
            env: vec![("SECRET".into(), "v=1".into()), ("EMPTY".into(), "".into())],
            cwd: "/tmp/x y".into(),
            stdin: None,
            nofile: Some(1024),
        }
    }

    #[test]
    fn orders_of_any_bytes_and_length_arrive_whole() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        make_fifo(&fifo).unwrap();
        let reader = thread::spawn({
            let fifo = fifo.clone();
            move || receive(&fifo)
        });
        feed(&fifo, &spec(), Identity::own()).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), spec());
        assert!(!fifo.exists());
    }

    #[test]
    fn orders_that_were_cut_short_are_not_followed() {
        let bytes = spec().encode();
        assert_eq!(Spec::decode(&bytes), Some(spec()));
        for cut in [0, 5, MAGIC.len(), MAGIC.len() + 8, bytes.len() - 1] {
            assert_eq!(Spec::decode(&bytes[..cut]), None);
        }
    }
}
