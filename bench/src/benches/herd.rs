//! Sessions to look at: a private place with real sessions of Lisa's, a small program in each.

use super::{
    PROGRAMS,
    trial::{LANES, command_session, lanes, numbered, pause, server_pid},
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    run,
    stage::Stage,
};
use lisa_engine::{
    config::{Environment, Socket},
    engine::Engine,
    tmux::{Reply, Tmux},
    watch::Caller,
};
use std::{
    process::Command,
    time::{Duration, Instant},
};

/// Fills a screen and then does nothing, as an agent that waits for somebody does.
const IDLE: &str = "i=0; while [ $i -lt 50 ]; do echo \"line $i of a screen that an agent might have left\"; \
                    i=$((i+1)); done; exec sleep 86400";
/// The same, and then a line every second, as an agent at work might.
const BUSY: &str = "i=0; while :; do echo \"line $i of what an agent might say at its work\"; i=$((i+1)); \
                    [ $i -lt 50 ] || sleep 1; done";
/// One in so many is busy.
const BUSY_EVERY: usize = 10;
/// How long all programs may take to fill their screens.
const FILL_LIMIT: Duration = Duration::from_secs(60);

/// A private tmux server and its sessions. Dropping it ends them.
pub(super) struct Herd {
    /// The sessions, one pane each.
    pub(super) names: Vec<String>,
    /// The server's process, whose work is work for us.
    pub(super) server: u32,
    /// Ends what is left of the server, and removes its socket.
    stage: Stage,
}

impl Herd {
    /// Starts a server with this many sessions, and waits until each shows something.
    pub(super) fn start(context: &Context, sessions: usize) -> Result<Self> {
        let stage = Stage::set(context, &format!("herd{sessions}"), &PROGRAMS)?;
        let engine = Engine::open(stage.caller())?;
        lanes(LANES, |lane| {
            for number in (1..=sessions).skip(lane).step_by(LANES) {
                context.go_on()?;
                let program = if number.is_multiple_of(BUSY_EVERY) { BUSY } else { IDLE };
                engine.spawn(&command_session(&numbered(number), &["sh", "-c", program]))?;
            }
            Ok(())
        })?;
        let server = server_pid(&stage.socket())?;
        let herd = Self { names: (1..=sessions).map(numbered).collect(), server, stage };
        herd.until_filled(context)?;
        Ok(herd)
    }

    fn until_filled(&self, context: &Context) -> Result<()> {
        let (tmux, began) = (self.door()?, Instant::now());
        while showing(&tmux)? < self.names.len() {
            if began.elapsed() > FILL_LIMIT {
                return Err(Failure::new("not all sessions show something"));
            }
            pause(context, Duration::from_millis(100))?;
        }
        Ok(())
    }

    /// The engine's own way to the server.
    pub(super) fn door(&self) -> Result<Tmux> {
        Ok(Tmux::new(Socket::Path(self.stage.socket()), &Environment::of_this_process())?)
    }

    /// Who calls the engine here.
    pub(super) fn caller(&self) -> Caller {
        self.stage.caller()
    }

    /// A tmux command on this server, as one program that is started and ends.
    pub(super) fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(self.stage.socket());
        command.args(arguments).env_remove("TMUX");
        let output = run::output(&mut command)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("tmux {}: {}", arguments.first().unwrap_or(&""), said.trim())))
    }
}

/// How many panes show something.
fn showing(tmux: &Tmux) -> Result<usize> {
    let rows = tmux.panes(false)?;
    let ids: Vec<&str> = rows.iter().map(|row| row.pane_id.as_str()).collect();
    Ok(tmux.screens(&ids, true)?.iter().filter(|screen| has_text(screen)).count())
}

/// Whether a screen that was asked for shows text.
pub(super) fn has_text(screen: &Reply) -> bool {
    screen.as_ref().is_ok_and(|bytes| !bytes.trim_ascii().is_empty())
}
