//! Sessions to look at: a private tmux server with a small program in each pane.

use crate::{
    context::Context,
    failure::{Failure, Result},
    run,
    scratch::Scratch,
};
use std::{path::PathBuf, process::Command};

/// Fills a screen and then does nothing, as an agent that waits for somebody does.
const PROGRAM: &str = "i=0; while [ $i -lt 50 ]; do echo \"line $i of a screen that an agent might have left\"; \
                       i=$((i+1)); done; exec sleep 86400";

/// A private tmux server and its sessions. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Herd {
    /// The server's socket.
    pub(super) socket: PathBuf,
    /// The sessions, one pane each.
    pub(super) names: Vec<String>,
    /// The server's process, whose work is work for us.
    pub(super) server: u32,
    /// Ends what is left of the server, and removes its socket.
    _scratch: Scratch,
}

impl Herd {
    /// Starts a server with this many sessions.
    pub(super) fn start(context: &Context, sessions: usize) -> Result<Self> {
        let scratch = Scratch::create(context, &format!("herd{sessions}"))?;
        let mut herd =
            Self { socket: scratch.path().join("tmux"), names: Vec::new(), server: 0, _scratch: scratch };
        for number in 1..=sessions {
            context.go_on()?;
            let name = format!("bench-{number:04}");
            let place = ["new-session", "-d", "-s", &name, "-x", "220", "-y", "60"];
            herd.tmux(&[place.as_slice(), &["sh", "-c", PROGRAM]].concat())?;
            herd.names.push(name);
        }
        let answer = herd.tmux(&["display-message", "-p", "#{pid}"])?;
        herd.server = answer.trim().parse().map_err(|_| Failure::new("tmux does not say its process id"))?;
        Ok(herd)
    }

    /// A tmux command on this server, as one program that is started and ends.
    pub(super) fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.socket).args(arguments).env_remove("TMUX");
        let output = run::output(&mut command)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("tmux {}: {}", arguments.first().unwrap_or(&""), said.trim())))
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        // What does not go by itself, the scratch folder ends.
        let _ = self.tmux(&["kill-server"]);
    }
}
