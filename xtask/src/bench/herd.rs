//! Sessions to look at: a private tmux server with a small program in each pane.

use crate::{
    context::Context,
    failure::{Failure, Result},
    run,
    scratch::Scratch,
};
use lisa_engine::{
    config::{Environment, Socket},
    tmux::{Cmd, Tmux},
};
use std::{path::PathBuf, process::Command, time::Duration};

/// Fills a screen and then does nothing, as an agent that waits for somebody does.
const IDLE: &str = "i=0; while [ $i -lt 50 ]; do echo \"line $i of a screen that an agent might have left\"; \
                    i=$((i+1)); done; exec sleep 86400";
/// The same, and then a line every second, as an agent at work might.
const BUSY: &str = "i=0; while :; do echo \"line $i of what an agent might say at its work\"; i=$((i+1)); \
                    [ $i -lt 50 ] || sleep 1; done";
/// One in so many is busy.
const BUSY_EVERY: usize = 10;
/// How many sessions are started with one command line.
const BATCH: usize = 25;
/// How long the server may take to end.
const GONE: Duration = Duration::from_secs(5);

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
    /// Starts a server with this many sessions, as the engine would set it up.
    pub(super) fn start(context: &Context, sessions: usize) -> Result<Self> {
        let scratch = Scratch::create(context, &format!("herd{sessions}"))?;
        let socket = scratch.path().join("tmux");
        let mut herd = Self { socket, names: Vec::new(), server: 0, _scratch: scratch };
        let tmux = Tmux::new(herd.engine_socket(), &Environment::of_this_process())?;
        let numbers: Vec<usize> = (1..=sessions).collect();
        for batch in numbers.chunks(BATCH) {
            context.go_on()?;
            let commands: Vec<Cmd> = batch.iter().map(|number| new_session(*number)).collect();
            tmux.call_starting(&commands)?.map_err(Failure::new)?;
            herd.names.extend(batch.iter().map(|number| name(*number)));
        }
        let answer = herd.tmux(&["display-message", "-p", "#{pid}"])?;
        herd.server = answer.trim().parse().map_err(|_| Failure::new("tmux does not say its process id"))?;
        Ok(herd)
    }

    /// The server's socket in the engine's words.
    pub(super) fn engine_socket(&self) -> Socket {
        Socket::Path(self.socket.clone())
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
        let tmux = Tmux::new(self.engine_socket(), &Environment::of_this_process());
        let _ = tmux.and_then(|tmux| tmux.end_server(GONE));
    }
}

fn name(number: usize) -> String {
    format!("bench-{number:04}")
}

fn new_session(number: usize) -> Cmd {
    let program = if number.is_multiple_of(BUSY_EVERY) { BUSY } else { IDLE };
    let place = ["-d", "-x", "220", "-y", "60", "-s"];
    Cmd::new("new-session").args(place).arg(name(number)).args(["sh", "-c", program])
}
