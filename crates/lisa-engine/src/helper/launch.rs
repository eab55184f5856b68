//! The last step of a spawn, inside the pane: exec the agent, so that the agent is the pane's own process.

use crate::session::orders;
use std::{os::unix::process::CommandExt, path::Path, process::ExitCode};

/// `helper launch FIFO MARK`: becomes the agent.
pub(super) fn main(fifo: &Path) -> Result<ExitCode, String> {
    let spec = orders::receive(fifo)?;
    let error = spec.command()?.exec();
    Err(format!("could not start {}: {error}", spec.argv[0].display()))
}
