//! Where `cargo xtask record` leaves recordings: `VERSION/SCENARIO.jsonl` below a directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The plain recordings below a directory, in order.
pub fn plain(directory: &Path) -> Vec<PathBuf> {
    let inside = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut found: Vec<PathBuf> = inside(directory).iter().flat_map(|version| inside(version)).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    found.sort();
    found
}
