//! Lisa's own programs, as cargo built them beside the test that runs.

use lisa_dev::context::Context;
use std::{
    collections::BTreeSet,
    env, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Set by `cargo xtask test`, which builds the programs of a group before its tests.
const BUILT: &str = "LISA_TESTS_RUN";

/// A program of this workspace. Whoever runs a test by hand gets it built here, once for each test program.
///
/// # Errors
/// When it cannot be built.
pub fn built(program: &str) -> io::Result<PathBuf> {
    static DONE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let path = directory()?.join(format!("{program}{}", env::consts::EXE_SUFFIX));
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if env::var_os(BUILT).is_none() && done.insert(program.to_owned()) {
        // In the whole workspace, so that its dependencies get the features that they have anyhow.
        let mut cargo = Context::deaf().cargo();
        cargo.args(["build", "--quiet", "--workspace", "--bin", program]);
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let status = cargo.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("cargo did not build {program}: {status}")));
        }
    }
    match path.is_file() {
        true => Ok(path),
        false => Err(io::Error::other(format!("{} is not there", path.display()))),
    }
}

/// Makes sure that the demo agent is beside Lisa's other programs, where `agent = "demo"` finds it.
///
/// # Panics
/// When it cannot be built.
pub fn demo_agent() -> PathBuf {
    built("lisa-demo-agent").unwrap()
}

/// Where cargo puts programs: above the directory of the test program.
fn directory() -> io::Result<PathBuf> {
    let test = env::current_exe()?;
    let directory = test.ancestors().nth(2).map(Path::to_path_buf);
    directory.ok_or_else(|| io::Error::other("the test program is in no build directory"))
}

/// Where tests leave what people should read: cargo's build directory.
pub fn target_dir() -> PathBuf {
    Context::deaf().target
}
