//! A person at a terminal: real `tmux attach` clients, which need one, run in a tmux server of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a person looks before they do the next thing.
const LOOK: Duration = Duration::from_millis(120);

/// A person who looks at the sessions of a tmux server. They leave when this is dropped.
#[derive(Debug)]
pub struct Person {
    terminal: PathBuf,
    socket: PathBuf,
    visits: u64,
}

impl Person {
    /// Sits down at a terminal in a directory, in front of the server at `socket`.
    pub fn new(directory: &Path, socket: &Path) -> Self {
        Self { terminal: directory.join("terminal"), socket: socket.to_owned(), visits: 0 }
    }

    /// Attaches to a session, does something there and goes: splits the window and closes it again, scrolls, or
    /// renames the window, each visit something else.
    pub fn visit(&mut self, session: &str) {
        self.visits += 1;
        let attach =
            format!("exec env -u TMUX tmux -S {} attach-session -t '={session}'", self.socket.display());
        self.at_terminal(&["new-session", "-d", "-x", "100", "-y", "30", "-s", "visit", "sh", "-c", &attach]);
        std::thread::sleep(LOOK);
        let keys: &[&[&str]] = match self.visits % 4 {
            0 => &[&["C-b", "%"], &["C-b", "x"], &["y"]],
            1 => &[&["C-b", "["], &["PageUp"], &["q"]],
            2 => &[&["C-b", ","], &["-", "m", "i", "n", "e", "Enter"]],
            _ => &[&["C-b", "c"], &["C-b", "&"], &["y"]],
        };
        for keys in keys {
            let mut command = vec!["send-keys", "-t", "=visit:"];
            command.extend(*keys);
            self.at_terminal(&command);
            std::thread::sleep(LOOK / 2);
        }
        match self.visits % 2 {
            0 => self.at_terminal(&["send-keys", "-t", "=visit:", "C-b", "d"]),
            // The terminal is closed without a word.
            _ => self.at_terminal(&["kill-session", "-t", "=visit"]),
        }
        std::thread::sleep(LOOK / 2);
        self.at_terminal(&["kill-session", "-t", "=visit"]);
    }

    /// How often they came.
    pub fn visits(&self) -> u64 {
        self.visits
    }

    fn at_terminal(&self, arguments: &[&str]) {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-S"]).arg(&self.terminal).args(arguments);
        tmux.env_remove("TMUX").env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        // The session may have ended while they looked.
        let _ = tmux.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.at_terminal(&["kill-server"]);
    }
}
