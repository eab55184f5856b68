//! Reads the user's own agent profiles.

use crate::{
    classify::profile::{ProfileError, Profiles},
    disk,
};
use std::path::{Path, PathBuf};

/// Maximum size of a profile.
const FILE_MAX: u64 = 1 << 20;

/// Loads the profiles in a directory; they take precedence over those that ship with Lisa. A missing directory is
/// empty.
///
/// # Errors
/// Names the file that cannot be read or is malformed.
pub fn load(dir: &Path) -> Result<Profiles, ProfileError> {
    let fault = |file: &Path, error: &dyn std::fmt::Display| ProfileError {
        file: file.to_owned(),
        line: None,
        problem: format!("cannot be read: {error}"),
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    match std::fs::read_dir(dir) {
        Ok(entries) => {
            for entry in entries {
                paths.push(entry.map_err(|error| fault(dir, &error))?.path());
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(fault(dir, &error)),
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let bytes = disk::read_foreign(&path, FILE_MAX).map_err(|error| fault(&path, &error))?;
        files.push((path, String::from_utf8_lossy(&bytes).into_owned()));
    }
    Profiles::with_own(files)
}
