//! Lists the profiles that ship with Lisa: every file in `profiles/`, so that a new agent is a file and no code.

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let profiles = Path::new(&root).join("profiles");
    println!("cargo::rerun-if-changed={}", profiles.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(&profiles)? {
        let path = entry?.path();
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "toml") {
            entries.push(format!("    ({id:?}, include_str!({path:?})),\n"));
        }
    }
    entries.sort();
    let list = format!("[\n{}]\n", entries.concat());
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("profiles.rs"), list)
}
