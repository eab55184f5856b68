//! The last step of a spawn: inside the pane, become the agent.
//!
//! What to run comes through a named pipe and is never written to disk: arguments of any length and any bytes, and
//! an environment that may hold secrets. The helper then replaces itself with the agent, so that the agent is the
//! pane's own process.

use crate::process::Identity;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    ffi::{OsStr, OsString},
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::OpenOptionsExt,
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

/// Variables that tmux sets for its panes and that an agent should have: what kind of terminal this is. The way to
/// the server itself is left out, so that no agent talks to Lisa's tmux by accident.
const FROM_TMUX: &[&str] = &["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];

/// How long either side waits for the other.
pub const PATIENCE: Duration = Duration::from_secs(10);

const MAGIC: &[u8] = b"lisa-launch-1";

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working folder.
    pub cwd: PathBuf,
    /// A file for its standard input, which is removed once opened; the terminal otherwise.
    pub stdin: Option<PathBuf>,
    /// The limit on open files that its caller had.
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

    /// The command to start: caller's environment, caller's limits, the terminal of this pane.
    pub(super) fn command(&self) -> Result<Command, String> {
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

/// Makes the pipe that a pane will read its orders from.
pub fn make_fifo(path: &Path) -> io::Result<()> {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o600)).map_err(io::Error::from)
}

/// Hands the orders over to a pane's process and removes the pipe. Fails if it ends, or does not take them in time.
pub fn feed(fifo: &Path, spec: &Spec, pane: Option<Identity>) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
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
                    return failed(io::ErrorKind::TimedOut, "the pane did not ask for its orders");
                }
                thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}

/// Reads the orders; gives up when whoever was to give them is gone.
pub(super) fn receive(fifo: &Path) -> Result<Spec, String> {
    // Opening blocks until the other side opens too; if it never does, nobody is left to tell.
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
        .recv_timeout(PATIENCE)
        .map_err(|_| "nobody said what to run: the process that started this session is gone".to_owned())?
        .map_err(|error| format!("could not read {}: {error}", fifo.display()))?;
    Spec::decode(&bytes).ok_or_else(|| "the orders for this session were cut short".to_owned())
}

/// `helper launch FIFO`: becomes the agent.
pub(super) fn main(fifo: &Path) -> Result<ExitCode, String> {
    let spec = receive(fifo)?;
    let error = spec.command()?.exec();
    Err(format!("could not start {}: {error}", spec.argv[0].display()))
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
