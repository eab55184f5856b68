//! The supervisor of an exec run: starts the agent, forwards signals, and records how it ended.
//!
//! It shares the agent's terminal and process group, so keys and resizes reach the agent directly. It adds a heartbeat
//! while the agent runs, and at the end the done file and the marker line.

use crate::{
    classify::{
        observation::{At, Done},
        sensors::exec_marker::MARKER,
    },
    session::orders,
};
use nix::sys::signal::{Signal as NixSignal, raise};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::{
    fs::FileTimes,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitCode, ExitStatus},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, SystemTime},
};

/// Interval of the heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// `helper run FIFO DIR MARK`.
pub(super) fn main(fifo: &Path, dir: &Path, run_id: &str) -> Result<ExitCode, String> {
    let spec = orders::receive(fifo)?;
    // Handlers instead of "ignore": an ignored signal would stay ignored in the agent.
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
        .map_err(|error| format!("could not watch for signals: {error}"))?;
    let started = spec.command()?.spawn();
    let mut child = started.map_err(|error| {
        finish(dir, run_id, Some(127), None);
        format!("could not start {}: {error}", spec.argv[0].display())
    })?;
    let agent = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    thread::spawn(move || {
        for signal in signals.forever() {
            // The terminal sends SIGINT and SIGQUIT to the whole group; these two signals reach only the supervisor.
            let pass_on = match signal {
                SIGHUP => Signal::HUP,
                SIGTERM => Signal::TERM,
                _ => continue,
            };
            if let Some(agent) = agent {
                let _ = kill_process(agent, pass_on);
            }
        }
    });
    let (ended, end) = channel();
    thread::spawn(move || {
        let _ = ended.send(child.wait());
    });
    let heartbeat = crate::disk::open_private(&dir.join("heartbeat"), |options| {
        options.write(true).create(true).truncate(true)
    });
    let status: ExitStatus = loop {
        match end.recv_timeout(HEARTBEAT) {
            Ok(Ok(status)) => break status,
            Ok(Err(error)) => return Err(format!("could not wait for the agent: {error}")),
            Err(RecvTimeoutError::Timeout) => {
                if let Ok(file) = &heartbeat {
                    let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err("could not wait for the agent".to_owned()),
        }
    };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let _ = writeln!(std::io::stdout(), "\n{MARKER}{code}");
    finish(dir, run_id, status.code(), status.signal());
    die_like(status);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn finish(dir: &Path, run_id: &str, code: Option<i32>, signal: Option<i32>) {
    let now = jiff::Timestamp::now().as_millisecond();
    let done = Done { run_id: run_id.to_owned(), code, signal, at: At(now) };
    if let Ok(text) = serde_json::to_string(&done) {
        // If the disk is full, the pane's own exit status still tells.
        let _ = crate::disk::write_atomic(&dir.join("done"), text.as_bytes());
    }
}

/// Ends by the same signal as the agent, so that tmux reports what it would have reported for the agent itself.
fn die_like(status: ExitStatus) {
    if let Some(signal) = status.signal().and_then(|number| NixSignal::try_from(number).ok()) {
        let _ = signal_hook::low_level::emulate_default_handler(signal as i32);
        let _ = raise(signal);
    }
}
