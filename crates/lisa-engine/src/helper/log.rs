//! Saves the output of an exec run, up to a maximum size; the oldest output is dropped first.

use crate::disk;
use std::{
    fs,
    io::{self, Read, Write},
    path::Path,
    process::ExitCode,
};

/// Maximum size; the file is then cut to its second half.
const MAX: u64 = 32 << 20;

/// `helper log FILE`: copies standard input to a file until it ends.
pub(super) fn main(path: &Path) -> Result<ExitCode, String> {
    copy(&mut io::stdin().lock(), path, MAX)
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| format!("could not write {}: {error}", path.display()))
}

fn copy(input: &mut impl Read, path: &Path, max: u64) -> io::Result<()> {
    let open = || disk::open_private(path, |options| options.create(true).append(true));
    let mut file = open()?;
    let mut size = file.metadata()?.len();
    let mut chunk = vec![0; 65536];
    loop {
        let n = match input.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The pane's end closes the pipe with different errors.
            Err(_) => return Ok(()),
        };
        file.write_all(&chunk[..n])?;
        size += n as u64;
        if size > max {
            size = keep_second_half(path)?;
            file = open()?;
        }
    }
}

fn keep_second_half(path: &Path) -> io::Result<u64> {
    let mut bytes = Vec::new();
    disk::open_read(path)?.read_to_end(&mut bytes)?;
    let half = bytes.len() / 2;
    let cut = bytes[half..].iter().position(|byte| *byte == b'\n').map_or(half, |newline| half + newline + 1);
    let shorter = path.with_extension("tmp");
    let mut file = disk::open_private(&shorter, |options| options.create(true).truncate(true).write(true))?;
    file.write_all(&bytes[cut..])?;
    fs::rename(&shorter, path)?;
    Ok((bytes.len() - cut) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.txt");
        let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        copy(&mut text.as_bytes(), &path, 50_000).unwrap();
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept.len() <= 50_000 + 65_536 && kept.ends_with("line 19999\n"));
        assert!(kept.starts_with("line "));
    }
}
