//! Private directories in the build directory: removed with everything in them, and with every process that lives there.

mod leftovers;

use crate::{
    context::Context,
    failure::{Failure, Result},
};
use rustix::process::Pid;
use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process,
};

/// A socket's path may have 107 bytes. What is put below the directory needs the rest.
const LONGEST: usize = 64;

/// A private directory. Dropping it ends what runs there and removes it.
#[derive(Debug)]
pub struct Scratch {
    directory: PathBuf,
}

impl Scratch {
    /// Makes one; `label` is unique in this process.
    pub fn create(context: &Context, label: &str) -> Result<Self> {
        let own = runs(context).join(process::id().to_string()).join(label);
        let directory = if own.as_os_str().len() <= LONGEST {
            own
        } else {
            PathBuf::from(format!("/tmp/lisa-xtask-{}/{label}", process::id()))
        };
        let scratch = Self { directory };
        scratch.directory("")?;
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// A directory below it that nobody else can read, made if it is not there.
    pub fn directory(&self, below: &str) -> Result<PathBuf> {
        let path = self.directory.join(below);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map(|()| path.clone()).map_err(|error| Failure::io("create", &path, &error))
    }

    /// Ends what was left running here, and names it.
    pub fn end_leftovers(&self) -> Vec<String> {
        leftovers::end_all(&self.directory)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Also after a Ctrl-C, when nobody asks what was left.
        leftovers::end_all(&self.directory);
        let _ = fs::remove_dir_all(&self.directory);
        // Only if no other directory of this run is left in it.
        let _ = self.directory.parent().map(fs::remove_dir);
    }
}

/// Removes what runs left that could not clean up after themselves.
pub fn sweep(context: &Context) {
    let Ok(entries) = fs::read_dir(runs(context)) else { return };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if !pid.and_then(Pid::from_raw).is_some_and(leftovers::is_alive) {
            leftovers::end_all(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn runs(context: &Context) -> PathBuf {
    context.target.join("xtask-run")
}
