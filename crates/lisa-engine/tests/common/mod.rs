//! A private corner of the machine for one test: its own state directory, tmux server and environment.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

pub mod check;
pub mod driving;
pub mod faults;

use lisa_engine::{
    config::{Config, Environment, Socket},
    session::Store,
    tmux::{Cmd, Tmux},
};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
pub use test_support::until;
use test_support::{
    place::{end_server, environment},
    programs,
};

/// Removed, with its tmux server, when dropped.
pub struct Lab {
    pub dir: tempfile::TempDir,
    pub env: Environment,
    pub config: Config,
}

impl Lab {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// A lab whose environment has these variables too.
    pub fn with(extra: &[(&str, &str)]) -> Self {
        let dir = tempfile::Builder::new().prefix("lisa-").tempdir().unwrap();
        let mut pairs = environment(dir.path());
        pairs.extend(extra.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let env = Environment::from_pairs(pairs);
        let config = Config::load(&env).unwrap();
        Self { dir, env, config }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn socket(&self) -> PathBuf {
        match &self.config.socket {
            Socket::Path(path) => path.clone(),
            Socket::Name(_) => unreachable!("a lab has a socket path"),
        }
    }

    pub fn tmux(&self) -> Tmux {
        Tmux::new(self.config.socket.clone(), &self.env).unwrap()
    }

    pub fn store(&self) -> Store {
        Store::open(&self.config.state_dir).unwrap()
    }

    /// A process of Lisa's in this lab, which tests disturb and kill: what `lisa-test-process` is to do there.
    pub fn process(&self, words: &[&str]) -> Command {
        let mut command = Command::new(programs::built("lisa-test-process").unwrap());
        command.arg(self.path()).args(words).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a session that runs a program directly.
    pub fn run(&self, name: &str, argv: &[&str]) -> String {
        let new = Cmd::new("new-session").args([
            "-d",
            "-P",
            "-F",
            "#{pane_id}",
            "-x",
            "80",
            "-y",
            "24",
            "-s",
            name,
        ]);
        let new = argv.iter().fold(new, |new, word| new.arg(*word));
        let printed = self.tmux().call_starting(&[new]).unwrap().unwrap();
        String::from_utf8(printed).unwrap().trim().to_owned()
    }

    /// The pane of a session.
    pub fn pane(&self, session: &str) -> lisa_engine::tmux::pane::PaneRow {
        let rows = self.tmux().panes(true).unwrap();
        rows.into_iter().find(|row| row.session == session).unwrap()
    }

    /// The server's process, if one runs.
    pub fn server_pid(&self) -> Option<u32> {
        let replies = self.tmux().call(&[Cmd::new("display-message").args(["-p", "#{pid}"])]).ok()??;
        String::from_utf8(replies.into_iter().next()?.ok()?).ok()?.trim().parse().ok()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        end_server(&self.socket());
    }
}

/// The helper that a front end would be.
pub fn helper() -> Vec<String> {
    vec![env!("CARGO_BIN_EXE_lisa-helper").to_owned()]
}

/// An engine whose caller is this lab.
impl Lab {
    pub fn caller(&self) -> lisa_engine::watch::Caller {
        lisa_engine::watch::Caller {
            env: self.env.clone(),
            cwd: self.path().to_owned(),
            helper: helper(),
            policy: None,
        }
    }

    pub fn engine(&self) -> lisa_engine::engine::Engine {
        lisa_engine::engine::Engine::open(self.caller()).unwrap()
    }
}

/// A request to run any command.
pub fn command(name: &str, argv: &[&str]) -> lisa_engine::api::SpawnRequest {
    lisa_engine::api::SpawnRequest {
        agent: "generic".to_owned(),
        name: Some(name.to_owned()),
        args: argv.iter().map(|word| (*word).to_owned()).collect(),
        ..lisa_engine::api::SpawnRequest::default()
    }
}

/// Names of what is in a directory.
pub fn entries(path: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A request for a demo agent whose log is in the lab.
pub fn demo(lab: &Lab, name: &str, prompt: Option<&str>) -> lisa_engine::api::SpawnRequest {
    programs::demo_agent();
    lisa_engine::api::SpawnRequest {
        agent: "demo".to_owned(),
        name: Some(name.to_owned()),
        prompt: prompt.map(str::to_owned),
        args: vec!["--log".to_owned(), log_path(lab, name).display().to_string()],
        wait_ready_s: Some(15.0),
        ..lisa_engine::api::SpawnRequest::default()
    }
}

/// Where a demo agent of this lab writes what it was given.
pub fn log_path(lab: &Lab, name: &str) -> PathBuf {
    lab.path().join(format!("{name}.log"))
}

/// What a demo agent was given, line by line.
pub fn log(lab: &Lab, name: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(log_path(lab, name)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
