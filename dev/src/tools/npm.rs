//! Packages from npm, each in a directory of its own below `target/tools`.

use super::{Npm, Ready, download::Download, stamp, version_in};
use crate::{
    context::Context,
    failure::{Failure, Result},
    run,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const NEEDED: &str = "npm must be there (Debian: apt-get install npm, macOS: brew install node) and reach its registry: \
                      see `npm ping`";

/// Makes sure that a package's native program is there, and that it is the version that was asked for.
pub(super) fn ensure(context: &Context, name: &'static str, package: &Npm, latest: bool) -> Result<Ready> {
    let id = fill(package.package);
    let wanted = if latest { newest(context, &id)? } else { package.version.to_owned() };
    let find = |directory: &Path| locate(directory, package.program);
    stamp::once(context, name, &directory_name(&id, &wanted), find, |directory| {
        install(context, directory, name, &format!("{id}@{wanted}"), package.size, &["--ignore-scripts"])?;
        let program = find(directory).ok_or_else(|| {
            Failure::new(format!("{id} {wanted} brings no program for {}", platform()))
                .hint(format!("install {name} {wanted} by hand and put it on PATH"))
        })?;
        let version = ask_version(&program, directory)?;
        if version != wanted && !version.starts_with(&format!("{wanted}.")) {
            return Err(Failure::new(format!("npm brought {name} {version} where {wanted} was asked for")));
        }
        Ok(version)
    })
}

/// Makes sure that a package is there that runs on node.
pub(super) fn ensure_script(context: &Context, name: &'static str, package: &Npm) -> Result<Ready> {
    let directory = directory_name(package.package, package.version);
    let find = |directory: &Path| locate(directory, package.program);
    stamp::once(context, name, &directory, find, |directory| {
        install(
            context,
            directory,
            name,
            &format!("{}@{}", package.package, package.version),
            package.size,
            &[],
        )?;
        Ok(package.version.to_owned())
    })
}

fn install(
    context: &Context,
    directory: &Path,
    name: &str,
    package: &str,
    size: &str,
    flags: &[&str],
) -> Result<()> {
    let doing = format!("installing {name} (npm {package}, {size} on disk)");
    let done = format!("installed {name} into {}", context.short(directory));
    npm(&Download::new(context, doing), Some(&done), || {
        let mut command = Command::new("npm");
        command.arg("install").arg("--prefix").arg(directory);
        command.args(["--no-audit", "--no-fund", "--loglevel=error"]).args(flags).arg(package);
        command.current_dir(directory);
        command
    })?;
    Ok(())
}

/// The newest version that npm has of a package.
fn newest(context: &Context, package: &str) -> Result<String> {
    let doing = format!("asking npm for the newest version of {package}");
    let said = npm(&Download::new(context, doing), None, || {
        let mut command = Command::new("npm");
        command.args(["view", package, "version", "--loglevel=error"]);
        command
    })?;
    let newest = said.iter().find_map(|line| version_in(line));
    newest.map(str::to_owned).ok_or_else(|| {
        Failure::new(format!("npm does not say which version of {package} is the newest"))
            .hint("check that npm reaches its registry: `npm ping`")
    })
}

/// Runs npm, and says what to do where it is not there or finds nothing.
fn npm(download: &Download<'_>, done: Option<&str>, make: impl Fn() -> Command) -> Result<Vec<String>> {
    download.run(done, make).map_err(|failure| failure.hint(NEEDED))
}

/// The version that a program gives for itself, asked with a home that is not the user's.
fn ask_version(program: &Path, directory: &Path) -> Result<String> {
    let home = directory.join("home");
    fs::create_dir_all(&home).map_err(|error| Failure::io("create", &home, &error))?;
    let output = run::output(Command::new(program).arg("--version").env("HOME", &home).current_dir(&home))?;
    let text = String::from_utf8_lossy(&output.stdout);
    version_in(&text).map(str::to_owned).ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        Failure::new(format!("{} does not run: {} {}", program.display(), output.status, said.trim()))
    })
}

/// `claude-code-2.1.197` for `@anthropic-ai/claude-code`.
fn directory_name(package: &str, version: &str) -> String {
    format!("{}-{version}", package.rsplit('/').next().unwrap_or(package))
}

fn locate(directory: &Path, pattern: &str) -> Option<PathBuf> {
    let mut found = vec![directory.join("node_modules")];
    for part in fill(pattern).split('/') {
        found = match part {
            "*" => found
                .iter()
                .filter_map(|dir| fs::read_dir(dir).ok())
                .flatten()
                .flatten()
                .map(|e| e.path())
                .collect(),
            part => found.iter().map(|dir| dir.join(part)).collect(),
        };
    }
    found.into_iter().find(|path| path.is_file())
}

fn fill(pattern: &str) -> String {
    pattern.replace("{platform}", &platform())
}

/// This machine as npm packages name it.
fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{machine}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_by_package_and_version() {
        assert_eq!(directory_name("@anthropic-ai/claude-code", "2.1.197"), "claude-code-2.1.197");
        assert_eq!(directory_name("nushell", "0.115.1"), "nushell-0.115.1");
    }

    #[test]
    fn a_program_is_found_through_a_directory_of_any_name() {
        let directory = std::env::temp_dir().join(format!("xtask-locate-{}", std::process::id()));
        let program = directory.join("node_modules/pkg").join(platform()).join("some-triple/bin/tool");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "").unwrap();
        assert_eq!(locate(&directory, "pkg/{platform}/*/bin/tool"), Some(program));
        assert_eq!(locate(&directory, "pkg/{platform}/*/bin/other"), None);
        fs::remove_dir_all(&directory).unwrap();
    }
}
