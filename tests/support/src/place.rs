//! A private place for one test: a home, Lisa's state and configuration, and a tmux server of its own.

use lisa_engine::{
    config::{Environment, Socket},
    tmux::{Cmd, Tmux},
};
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// How long a tmux server may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A private place. Dropping it ends its tmux server, with everything that runs there, and removes it.
#[derive(Debug)]
pub struct Place {
    dir: TempDir,
}

impl Place {
    /// An empty place.
    ///
    /// # Panics
    /// When there is no room for it.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        // The path is short: a socket's may have 107 bytes.
        Self { dir: tempfile::Builder::new().prefix("lisa-").tempdir().unwrap() }
    }

    /// Its directory, which is the home.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The socket of its tmux server.
    pub fn socket(&self) -> PathBuf {
        self.path().join("tmux")
    }

    /// The environment of everything that runs here: no variable of the caller's but `PATH`.
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        environment(self.path())
    }

    /// Its tmux server.
    pub fn tmux(&self) -> Tmux {
        tmux(&self.socket())
    }

    /// The process of its tmux server, if one runs.
    pub fn server_pid(&self) -> Option<u32> {
        let printed = self.tmux().call(&[Cmd::new("display-message").args(["-p", "#{pid}"])]).ok()??;
        String::from_utf8(printed.into_iter().next()?.ok()?).ok()?.trim().parse().ok()
    }

    /// Ends its tmux server, and waits until it is gone.
    pub fn end_server(&self) {
        end_server(&self.socket());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end_server();
    }
}

/// The environment of everything that runs in a private place with this home.
pub fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let below = |name: &str| home.join(name).into_os_string();
    let pairs = [
        ("HOME", home.as_os_str().to_owned()),
        ("PATH", env::var_os("PATH").unwrap_or_default()),
        ("LANG", "C.UTF-8".into()),
        ("LISA_STATE_DIR", below("state")),
        ("LISA_CONFIG_DIR", below("config")),
        ("LISA_TMUX_SOCKET", below("tmux")),
    ];
    pairs.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// Ends the tmux server behind a socket, if there is one, and waits until it is gone.
///
/// # Panics
/// When it does not end, unless the test has failed already.
pub fn end_server(socket: &Path) {
    let gone = tmux(socket).end_server(PATIENCE);
    assert!(
        matches!(gone, Ok(true)) || thread::panicking(),
        "the tmux server of this test did not end: {gone:?}"
    );
}

/// The machine's own tmux: a test may have another one on its `PATH`, or none.
fn tmux(socket: &Path) -> Tmux {
    Tmux::new(Socket::Path(socket.to_owned()), &Environment::of_this_process()).unwrap()
}
