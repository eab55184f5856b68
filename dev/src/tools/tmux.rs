//! tmux, from the system's package manager where it is not there yet.

use super::Ready;
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
    run::{self, Event},
};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// The oldest tmux that has what Lisa needs.
pub(super) const MINIMUM: &str = "3.2";
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Makes sure that tmux is there and new enough.
pub(super) fn ensure(context: &Context, name: &'static str) -> Result<Ready> {
    let mut program = on_path(name);
    if program.is_none() {
        install(context)?;
        program = on_path(name);
    }
    let program = program.ok_or_else(|| Failure::new("tmux was installed but is not on PATH"))?;
    let output = run::output(Command::new(&program).arg("-V"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("tmux ").to_owned();
    if !new_enough(&version) {
        return Err(Failure::new(format!("{} is version {version}", program.display()))
            .hint(format!("Lisa needs tmux {MINIMUM} or newer: install one and put it first on PATH")));
    }
    Ok(Ready { name, version, program })
}

fn install(context: &Context) -> Result<()> {
    let by_hand = || {
        Failure::new("tmux is not installed").hint(
            "install it: `sudo apt-get install tmux` (Debian), `brew install tmux` (macOS), or your system's way",
        )
    };
    for line in ways() {
        let (program, arguments) = line.split_first().ok_or_else(by_hand)?;
        let mut command = Command::new(program);
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        let mut progress = Progress::start(context.terminal, format!("installing tmux: {}", line.join(" ")));
        let mut said = Vec::new();
        let status = run::watch(context, command, LIMIT, &mut |event| match event {
            Event::Line(line) => said.push(line.to_owned()),
            Event::Tick => progress.tick(),
        })?;
        if status.success() {
            progress.finish(&format!("done: {}", line.join(" ")));
        } else if line.contains(&"update") {
            // What is listed already may do; the installation says whether it does.
            progress.finish("could not refresh the list of packages");
        } else {
            let last = said.last().map_or("", String::as_str);
            return Err(Failure::new(format!("`{}` ended with {status}: {last}", line.join(" ")))
                .hint("install tmux by hand"));
        }
    }
    if on_path("tmux").is_some() { Ok(()) } else { Err(by_hand()) }
}

/// The command lines that install tmux on this machine without asking anybody; none where there is no such way.
fn ways() -> Vec<Vec<&'static str>> {
    if on_path("brew").is_some() {
        return vec![vec!["brew", "install", "tmux"]];
    }
    if on_path("apt-get").is_none() {
        return Vec::new();
    }
    let prefix: &[&str] = if rustix::process::geteuid().is_root() {
        &[]
    } else if sudo_without_password() {
        &["sudo", "-n"]
    } else {
        return Vec::new();
    };
    let lines: [&[&str]; 2] = [
        &["apt-get", "update", "-q"],
        &["apt-get", "install", "-y", "-q", "--no-install-recommends", "tmux"],
    ];
    lines.iter().map(|line| [prefix, line].concat()).collect()
}

fn sudo_without_password() -> bool {
    on_path("sudo").is_some()
        && run::output(Command::new("sudo").args(["-n", "true"])).is_ok_and(|output| output.status.success())
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// `3.3a`, `3.10`, `next-3.6` and `master` against the minimum.
fn new_enough(version: &str) -> bool {
    let version = version.trim_start_matches("next-");
    if version == "master" || version.starts_with("openbsd-") {
        return true;
    }
    numbers(version).is_some_and(|have| numbers(MINIMUM).is_some_and(|want| have >= want))
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers_and_letters_do_not_matter() {
        for good in ["3.2", "3.2a", "3.10", "4.0", "next-3.6", "master"] {
            assert!(new_enough(good), "{good}");
        }
        for old in ["3.1c", "2.9a", "", "unknown"] {
            assert!(!new_enough(old), "{old}");
        }
    }
}
