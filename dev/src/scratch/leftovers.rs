//! What still runs in a sandbox after its tests have ended: found by the directory, ended by process id.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    os::unix::{fs::FileTypeExt, net::UnixStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A tmux server that was told to end lives on for a second or two: that is not yet left behind.
const PATIENCE: Duration = Duration::from_secs(4);
const GRACE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// Ends every process that belongs to the directory, and names those that did not go by themselves.
pub(super) fn end_all(directory: &Path) -> Vec<String> {
    let mut found = gone_within(directory, PATIENCE);
    let names = found.values().cloned().collect();
    for signal in [Signal::TERM, Signal::KILL] {
        if found.is_empty() {
            break;
        }
        for pid in found.keys().filter_map(|pid| Pid::from_raw(*pid)) {
            // It may have ended between the look and the signal.
            let _ = kill_process(pid, signal);
        }
        found = gone_within(directory, GRACE);
    }
    names
}

/// Whether a process of this id exists.
pub(super) fn is_alive(pid: Pid) -> bool {
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

fn gone_within(directory: &Path, patience: Duration) -> BTreeMap<i32, String> {
    let started = Instant::now();
    loop {
        let found = look(directory);
        if found.is_empty() || started.elapsed() >= patience {
            return found;
        }
        thread::sleep(PAUSE);
    }
}

/// Process ids, each with what to call it.
fn look(directory: &Path) -> BTreeMap<i32, String> {
    let mut found = by_environment(directory);
    let mut sockets = Vec::new();
    find_sockets(directory, &mut sockets);
    for socket in sockets {
        if let Some(pid) = server_behind(&socket) {
            found.entry(pid).or_insert_with(|| format!("tmux server on {}", socket.display()));
        }
    }
    found
}

/// Processes whose command line or environment names the directory, where the system lets one look (Linux).
fn by_environment(directory: &Path) -> BTreeMap<i32, String> {
    let mut found = BTreeMap::new();
    let needle = directory.as_os_str().as_encoded_bytes();
    let Ok(entries) = fs::read_dir("/proc") else { return found };
    let own = i32::try_from(std::process::id()).ok();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let line = read("cmdline");
        if Some(pid) != own && (names(&line, needle) || names(&read("environ"), needle)) {
            let words = String::from_utf8_lossy(&line).replace('\0', " ");
            found.insert(pid, format!("`{}`, process {pid}", crate::progress::clip(words.trim(), 60)));
        }
    }
    found
}

/// Whether `text` has the directory in it, and not just one whose name begins the same.
fn names(text: &[u8], directory: &[u8]) -> bool {
    let ends = |rest: &[u8]| rest.first().is_none_or(|next| matches!(next, b'/' | 0 | b':' | b' '));
    (0..text.len())
        .any(|at| text.get(at..).is_some_and(|tail| tail.strip_prefix(directory).is_some_and(ends)))
}

fn find_sockets(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => find_sockets(&entry.path(), found),
            Ok(kind) if kind.is_socket() => found.push(entry.path()),
            _ => {}
        }
    }
}

/// The tmux server that listens on a socket, if one does.
fn server_behind(socket: &Path) -> Option<i32> {
    // A socket that nobody listens on refuses at once; asking tmux about it would start nothing, but cost a process.
    UnixStream::connect(socket).ok()?;
    let mut client = Command::new("tmux")
        .arg("-S")
        .arg(socket)
        .args(["display-message", "-p", "#{pid}"])
        .env_remove("TMUX")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // Whoever listens may be no tmux, and then never answers.
    let asked = Instant::now();
    while client.try_wait().ok()?.is_none() {
        if asked.elapsed() > GRACE {
            let _ = client.kill();
        }
        thread::sleep(Duration::from_millis(5));
    }
    let mut answer = String::new();
    client.stdout?.read_to_string(&mut answer).ok()?;
    answer.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_found_whole_and_not_as_the_beginning_of_another() {
        assert!(names(b"A=1\0HOME=/t/run/7/h\0", b"/t/run/7"));
        assert!(names(b"HOME=/t/run/7", b"/t/run/7"));
        assert!(!names(b"HOME=/t/run/77/h\0", b"/t/run/7"));
        assert!(!names(b"", b"/t/run/7"));
    }
}
