//! Lisa's own programs, as cargo built them beside the test that runs.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The program of a package of this workspace; built if it is not there yet.
///
/// `cargo xtask test` builds all programs before any test. Whoever runs one test by hand gets what is missing here,
/// but nothing is built anew because it is old.
pub fn built(package: &str, program: &str) -> io::Result<PathBuf> {
    static BUILDING: Mutex<()> = Mutex::new(());
    let path = folder()?.join(format!("{program}{}", std::env::consts::EXE_SUFFIX));
    let _one_at_a_time = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    if path.is_file() {
        return Ok(path);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--package", package]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    match command.status()? {
        status if status.success() && path.is_file() => Ok(path),
        status => Err(io::Error::other(format!("cargo did not build {program}: {status}"))),
    }
}

/// A real Nushell: the one that `cargo xtask` names, or the one that `cargo xtask setup nu` has installed.
pub fn nushell() -> io::Result<PathBuf> {
    if let Some(named) = std::env::var_os("XTASK_NU") {
        return Ok(named.into());
    }
    let folders =
        |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let installed = folders(target_dir().join("tools")).filter(|tool| tool.join(".installed").is_file());
    let programs = installed.flat_map(|tool| folders(tool.join("node_modules/@nushell")));
    let mut programs = programs.map(|platform| platform.join("bin/nu"));
    let missing = || io::Error::other("there is no Nushell: run `cargo xtask setup nu`");
    programs.find(|nu| nu.is_file()).ok_or_else(missing)
}

/// Where cargo puts programs: above the folder of the test program.
fn folder() -> io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.ancestors().nth(2).map(Path::to_path_buf);
    folder.ok_or_else(|| io::Error::other("the test program stands in no build directory"))
}

/// Where tests leave what people should read: cargo's build directory.
pub fn target_dir() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"))
}
