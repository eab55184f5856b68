//! Directories below `target/tools` that are installed once. A stamp is written last, so half an installation is never
//! taken for a whole one, and a lock beside the directory makes whoever installs the same thing wait.

use super::Ready;
use crate::{
    context::Context,
    failure::{Failure, Result},
    progress::Progress,
};
use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

const STAMP: &str = ".installed";

/// Makes sure that a tool is in its directory: `locate` finds its program there, `install` puts it there and gives back
/// the version that it is.
pub(super) fn once(
    context: &Context,
    name: &'static str,
    entry: &str,
    locate: impl Fn(&Path) -> Option<PathBuf>,
    install: impl FnOnce(&Path) -> Result<String>,
) -> Result<Ready> {
    let tools = context.tools();
    let directory = tools.join(entry);
    fs::create_dir_all(&directory).map_err(|error| Failure::io("create", &directory, &error))?;
    let _lock = lock(context, &tools.join(format!("{entry}.lock")))?;
    let stamp = directory.join(STAMP);
    if let (Ok(version), Some(program)) = (fs::read_to_string(&stamp), locate(&directory)) {
        return Ok(Ready { name, version: version.trim().to_owned(), program });
    }
    // A stamp without the program is worth nothing; neither is half of an installation.
    let _ = fs::remove_file(&stamp);
    let version = install(&directory)?;
    let program = locate(&directory)
        .ok_or_else(|| Failure::new(format!("{} has no program of {name}", context.short(&directory))))?;
    fs::write(&stamp, &version).map_err(|error| Failure::io("write", &stamp, &error))?;
    Ok(Ready { name, version, program })
}

/// Waits for whoever installs the same thing at this moment.
fn lock(context: &Context, path: &Path) -> Result<File> {
    let failed = |error: &dyn std::fmt::Display| Failure::io("lock", path, error);
    let file = File::create(path).map_err(|error| failed(&error))?;
    let mut waiting = None;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
            Err(TryLockError::WouldBlock) => {
                let label = "waiting for another run that installs the same";
                waiting.get_or_insert_with(|| Progress::start(context.terminal, label)).tick();
                context.go_on()?;
                thread::sleep(Duration::from_millis(200));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_once_is_found_again_and_half_an_installation_is_made_anew() {
        let target = tempfile::tempdir().unwrap();
        let mut context = Context::deaf();
        target.path().clone_into(&mut context.target);
        let locate = |directory: &Path| Some(directory.join("program")).filter(|program| program.is_file());
        let ensure = |install: &dyn Fn(&Path) -> Result<String>| {
            once(&context, "tool", "tool-1", locate, install).map(|ready| ready.version)
        };
        let failed = ensure(&|directory| {
            fs::write(directory.join("program"), "half").unwrap();
            Err(Failure::new("the network is gone"))
        });
        assert_eq!(failed.unwrap_err().line(), "the network is gone");
        let install = |_: &Path| Ok("1.0".to_owned());
        assert_eq!(ensure(&install).unwrap(), "1.0");
        assert_eq!(ensure(&|_| Err(Failure::new("it is there"))).unwrap(), "1.0");
    }
}
