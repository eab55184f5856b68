//! The bearer token file: leftovers of a crash are replaced, and files that are not private to the user are rejected.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod common;

use common::{
    Sandbox, ends_within,
    http::{Server, hello},
};
use std::{
    fs,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};

/// A sandbox with a private state directory, and the path of its token file.
fn sandbox() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    let state = sandbox.path().join("state");
    fs::DirBuilder::new().mode(0o700).create(&state).unwrap();
    let path = state.join("mcp-token");
    (sandbox, path)
}

fn write(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path).unwrap().write_all(bytes).unwrap();
}

/// Starts a server that must fail to start. Returns its standard error.
fn refusal(sandbox: &Sandbox, options: &[&str]) -> String {
    let mut command = sandbox.command();
    command.args(["--http", "127.0.0.1:0"]).args(options).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let code = ends_within(&mut child, common::TIMEOUT);
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!(code, Some(1), "{said}");
    said
}

#[test]
fn an_unusable_token_left_by_a_crash_is_replaced_and_the_log_says_so() {
    for left in [&b""[..], b"\n", b"0123", b"\xff\xfe\x00 no text at all", &[0; 64], &[b'x'; 9000]] {
        let (sandbox, path) = sandbox();
        write(&path, left);
        let server = Server::start_in(sandbox, &[], None);
        let token = fs::read_to_string(&path).unwrap();
        assert_eq!(token.trim().len(), 64, "{left:?}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let said = server.said().join("\n");
        assert!(said.contains("replaced") && said.contains(path.to_str().unwrap()), "{said}");
        assert!(!said.contains(token.trim()), "the token itself is not printed");
        let shown = format!("Bearer {}", token.trim());
        assert_eq!(server.post(&[("Authorization", &shown)], &hello()).status, 200);
    }
}

#[test]
fn a_usable_token_is_kept() {
    let (sandbox, path) = sandbox();
    write(&path, b"0123456789abcdef\n");
    let server = Server::start_in(sandbox, &[], None);
    assert_eq!(server.post(&[("Authorization", "Bearer 0123456789abcdef")], &hello()).status, 200);
    assert!(!server.said().join("\n").contains("replaced"));
}

#[test]
fn servers_that_start_concurrently_share_one_token() {
    let (sandbox, path) = sandbox();
    write(&path, b"");
    let starting: Vec<_> = (0..4)
        .map(|_| {
            let mut command = sandbox.command();
            command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
            std::thread::spawn(move || Server::spawn(&mut command))
        })
        .collect();
    let mut children: Vec<_> = starting.into_iter().map(|server| server.join().unwrap()).collect();
    let token = fs::read_to_string(&path).unwrap();
    let shown = format!("Bearer {}", token.trim());
    for (_, address, _) in &children {
        assert_eq!(common::http::post(address, &[("Authorization", &shown)], &hello()).status, 200);
    }
    for (child, ..) in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
    let left: Vec<_> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("token") && name.contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_fifo_or_symlink_is_rejected_at_once_and_left_alone() {
    let (first, path) = sandbox();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let said = refusal(&first, &[]);
    assert!(said.contains("is not a regular file") && said.contains("remove"), "{said}");
    assert!(path.exists());

    let (second, path) = sandbox();
    let target = second.path().join("elsewhere");
    write(&target, b"");
    symlink(&target, &path).unwrap();
    let said = refusal(&second, &[]);
    assert!(said.contains("is a symbolic link") && said.contains("remove"), "{said}");
    assert_eq!(fs::read(&target).unwrap(), b"", "nothing is written through a link");

    let fifo = second.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let said = refusal(&second, &["--token-file", fifo.to_str().unwrap()]);
    assert!(said.contains("is not a regular file"), "{said}");
}

#[test]
fn a_token_file_of_another_user_is_rejected() {
    let (sandbox, path) = sandbox();
    write(&path, b"");
    if chown(&path, Some(12_345), None).is_err() {
        // Only root can change a file's owner. A unit test covers the rule itself.
        return;
    }
    let said = refusal(&sandbox, &[]);
    assert!(said.contains("belongs to another user (uid 12345)") && said.contains("remove"), "{said}");
}

#[test]
fn the_users_own_token_file_is_never_written() {
    let (sandbox, _) = sandbox();
    let own = sandbox.path().join("own");
    write(&own, b"short");
    let said = refusal(&sandbox, &["--token-file", own.to_str().unwrap()]);
    assert!(said.contains("at least 16"), "{said}");
    assert_eq!(fs::read(&own).unwrap(), b"short");
}
