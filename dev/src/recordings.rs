//! Where `cargo xtask record` leaves recordings: `VERSION/SCENARIO.jsonl` below a directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The plain recordings below a directory, in order.
pub fn plain(folder: &Path) -> Vec<PathBuf> {
    let inside = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut found: Vec<PathBuf> = inside(folder).iter().flat_map(|version| inside(version)).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    found.sort();
    found
}
