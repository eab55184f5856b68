//! Detects whether files have changed.

use crate::disk::Stamp;
use std::path::PathBuf;

/// The stamps of some files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// Takes the stamps now; a missing file counts too.
    pub(super) fn of(paths: impl Iterator<Item = PathBuf>) -> Self {
        Self(paths.map(|path| (Stamp::of(&path), path)).map(|(stamp, path)| (path, stamp)).collect())
    }

    /// Whether all files are unchanged.
    pub(super) fn hold(&self) -> bool {
        self.0.iter().all(|(path, before)| Stamp::of(path) == *before)
    }
}
