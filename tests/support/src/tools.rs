//! The programs of others that tests run: pinned, and installed below `target/tools` when they are not there yet.

use lisa_dev::{
    context::Context,
    tools::{Release, find},
};
use std::{env, path::PathBuf};

/// A tool's program: the one that `cargo xtask test` names in `XTASK_<TOOL>`, or the pinned one, installed if need be.
///
/// # Errors
/// When it cannot be had here, with the reason.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let variable = format!("XTASK_{}", name.to_uppercase().replace('-', "_"));
    if let Some(program) = env::var_os(variable).map(PathBuf::from).filter(|program| program.is_file()) {
        return Ok(program);
    }
    let ready = find(name).and_then(|tool| tool.ensure(&Context::deaf(), Release::Pinned));
    ready.map(|ready| ready.program).map_err(|failure| format!("there is no {name}: {}", failure.line()))
}

/// The version at which a tool is pinned; empty for a tool that does not exist.
pub fn pinned(name: &str) -> String {
    find(name).map(|tool| tool.wanted()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::{classify::profile::Profiles, tmux::MINIMUM};

    #[test]
    fn what_is_pinned_is_what_the_engine_was_made_for() {
        for agent in ["claude", "codex"] {
            let profile = Profiles::shipped().get(agent).unwrap();
            assert!(profile.recorded_with.contains(&pinned(agent)), "{agent} {}", pinned(agent));
        }
        assert_eq!(pinned("tmux"), format!(">= {MINIMUM}"));
    }
}
