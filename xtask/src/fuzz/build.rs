//! Building the fuzzer, and asking it what it has.

use super::{HOME, make};
use crate::{
    context::Context,
    failure::{Failure, Result},
    run,
};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// What makes the compiler insert coverage counters, and check what a release does not check.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// A target, as the fuzzer lists it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) what: String,
}

/// The built fuzzer.
pub(super) struct Fuzzer {
    program: PathBuf,
    targets: Vec<Listed>,
}

impl Fuzzer {
    /// Builds it, and asks for its targets.
    pub(super) fn build(context: &Context) -> Result<Self> {
        check_compiler()?;
        let host = host()?;
        let target = context.target.join("fuzz");
        make(&target)?;
        let mut cargo = context.cargo();
        // With a target of their own, build scripts and macros get none of the flags.
        cargo.args(["build", "--release", "--locked", "--manifest-path"]);
        cargo
            .arg(context.root.join(HOME).join("Cargo.toml"))
            .args(["--target", &host, "--target-dir"])
            .arg(&target);
        cargo.env("RUSTFLAGS", FLAGS.join(" ")).env_remove("CARGO_ENCODED_RUSTFLAGS");
        run::through(context, cargo, run::BUILD_LIMIT, "building the fuzzer, with coverage counters")?;
        let program = target.join(host).join("release/lisa-fuzz");
        let said = run::output(Command::new(&program).env_remove("FUZZ_TARGET"))?;
        let targets = listed(&String::from_utf8_lossy(&said.stdout));
        if targets.is_empty() {
            return Err(Failure::new(format!("{} lists no targets", context.short(&program))));
        }
        Ok(Self { program, targets })
    }

    pub(super) fn targets(&self) -> &[Listed] {
        &self.targets
    }

    /// The program for one target, with the limits of every run.
    pub(super) fn command(&self, target: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env("FUZZ_TARGET", target).env("RUST_BACKTRACE", "1");
        command.args(["-timeout=2", "-rss_limit_mb=1024", "-malloc_limit_mb=512"]);
        command
    }

    /// Runs one input and shows what comes of it.
    pub(super) fn replay(&self, context: &Context, target: &str, input: &Path) -> Result<()> {
        let mut command = self.command(target);
        command.arg(input);
        let status = run::watch(context, command, run::BUILD_LIMIT, &mut |event| {
            if let run::Event::Line(line) = event {
                println!("{line}");
            }
        })?;
        if status.success() { Ok(()) } else { Err(Failure::Reported) }
    }
}

fn listed(output: &str) -> Vec<Listed> {
    let rows = output.lines().filter_map(|line| line.split_once('\t'));
    rows.map(|(name, what)| Listed { name: name.to_owned(), what: what.to_owned() }).collect()
}

/// The triple that this machine compiles for.
fn host() -> Result<String> {
    let said = run::output(Command::new("rustc").arg("-vV"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::new("`rustc -vV` does not name its host"))
}

/// libFuzzer is C++, and is compiled with the rest.
pub(super) fn check_compiler() -> Result<()> {
    let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    match run::output(Command::new(&compiler).arg("--version")) {
        Ok(said) if said.status.success() => Ok(()),
        _ => Err(Failure::new(format!(
            "there is no C++ compiler (`{}`), which libFuzzer needs",
            compiler.display()
        ))
        .hint("install one: `apt-get install g++`, `dnf install gcc-c++` or `xcode-select --install`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_from_the_fuzzer_s_own_list() {
        let read = listed("WARNING: no such thing\nhooks\twhat hooks say\nscreens\twhat is shown\n");
        let names: Vec<&str> = read.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["hooks", "screens"]);
        assert_eq!(read[0].what, "what hooks say");
    }
}
