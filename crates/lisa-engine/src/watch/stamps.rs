//! Whether files are as they were.

use crate::disk::Stamp;
use std::path::PathBuf;

/// Some files as they were at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Files as they are now; one that is not there is worth knowing of, too.
    pub(super) fn of(paths: impl Iterator<Item = PathBuf>) -> Self {
        Self(paths.map(|path| (Stamp::of(&path), path)).map(|(stamp, path)| (path, stamp)).collect())
    }

    /// Whether they are still the same.
    pub(super) fn hold(&self) -> bool {
        self.0.iter().all(|(path, before)| Stamp::of(path) == *before)
    }
}
