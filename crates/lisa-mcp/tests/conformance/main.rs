//! Other people's clients and suites against this server: the protocol's own conformance suites, the inspector, and
//! parents built on the two large SDKs.
//!
//! Packages are installed into `target/tools`, each once, by name and version. Where one can not be had, the test says
//! why and passes; on a build server (`CI=true`) it fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails loudly")]
#![allow(clippy::print_stderr, reason = "a test that could not run says why")]
#![allow(deprecated, reason = "the suites still test logging")]

#[path = "../common/mod.rs"]
mod common;
mod fixture;

use common::{World, http::Server};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
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

/// A tool, or why it can not be had.
type Tool = Result<PathBuf, String>;

/// Goes on with what is there; where something is missing, says so, and fails on a build server.
macro_rules! needs {
    ($tool:expr) => {
        match $tool {
            Ok(tool) => tool,
            Err(why) => {
                let strict = std::env::var("CI").is_ok_and(|ci| !matches!(ci.as_str(), "" | "0" | "false"));
                assert!(!strict, "{why}");
                eprintln!("not run: {why}");
                return;
            }
        }
    };
}

/// A folder below `target/tools` into which `install` was run once; a stamp says with what.
fn once(name: &str, stamp: &str, install: impl FnOnce(&Path) -> Result<(), String>) -> Tool {
    let _one = INSTALLING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tools().join(name);
    let file = folder.join(".stamp");
    if std::fs::read_to_string(&file).is_ok_and(|text| text == stamp) {
        return Ok(folder);
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    install(&folder).map_err(|why| format!("{stamp} can not be had: {why}"))?;
    std::fs::write(file, stamp).unwrap();
    Ok(folder)
}

fn succeeds(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Err(format!("{command:?}: {}\n{out}\n{err}", output.status))
}

fn must(command: &mut Command) -> Output {
    succeeds(command).unwrap_or_else(|why| panic!("{why}"))
}

/// A Node that is new enough: the one on the search path, or one that npm brings.
fn node() -> Tool {
    let version = Command::new("node").arg("--version").output();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|n| n.parse::<u32>().ok());
    if major.is_some_and(|major| major >= 22) {
        return Ok(PathBuf::from("node"));
    }
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let package = format!("node-{system}-{machine}@22");
    let folder = once("node", &package, |folder| install(Command::new("npm"), folder, &package))?;
    Ok(folder.join("node_modules/.bin/node"))
}

fn install(mut npm: Command, folder: &Path, package: &str) -> Result<(), String> {
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(folder).arg(package);
    succeeds(&mut npm).map(drop)
}

/// A program of an npm package, which Node runs.
fn npm(node: &Path, name: &str, package: &str) -> Tool {
    let npm = with(node, "npm");
    once(name, package, |folder| install(npm, folder, package))
}

/// A program that finds this Node first.
fn with(node: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some(folder) = node.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut path = folder.as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path);
    }
    command
}

fn python() -> Tool {
    let folder = once("python", "mcp==2.3.0", |folder| {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        succeeds(Command::new(folder.join("bin/pip")).args(["install", "--quiet", "mcp==2.3.0"])).map(drop)
    })?;
    Ok(folder.join("bin/python"))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(name)
}

/// The server itself, reachable without a token.
fn lisa() -> (Server, String) {
    let server = Server::start(&["--no-auth"], None);
    let url = format!("http://{}/mcp", server.address);
    (server, url)
}

/// The suites, and how each is asked for the revision of the protocol that it tests.
const OLDER: (&str, &[&str]) = ("0.1.16", &["--suite", "all"]);
const NEWER: (&str, &[&str]) = ("0.2.0-alpha.12", &["--requirements", "2026-07-28"]);

/// Runs a suite; its summary.
fn suite((version, options): (&str, &[&str]), url: &str) -> Result<String, String> {
    let node = node()?;
    let package = format!("@modelcontextprotocol/conformance@{version}");
    let folder = npm(&node, &format!("conformance-{version}"), &package)?;
    let results = tempfile::tempdir().unwrap();
    let output = Command::new(&node)
        .arg(folder.join("node_modules/.bin/conformance"))
        .args(["server", "--url", url, "-o"])
        .arg(results.path())
        .args(options)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split_once("=== SUMMARY ===").map_or(text.clone(), |(_, summary)| summary.to_owned()))
}

fn passed(summary: &str) -> Vec<&str> {
    summary.lines().filter_map(|line| line.strip_prefix("✓ ")?.split(':').next()).collect()
}

fn assert_passed(summary: &str, scenarios: &[&str]) {
    let passed = passed(summary);
    let missing: Vec<_> = scenarios.iter().filter(|scenario| !passed.contains(scenario)).collect();
    assert!(missing.is_empty(), "{missing:?}: {summary}");
}

#[test]
fn the_fixture_conforms_to_2025_11_25() {
    let summary = needs!(suite(OLDER, &fixture::start()));
    assert!(!summary.contains('✗'), "{summary}");
    assert_eq!(passed(&summary).len(), 32, "{summary}");
}

#[test]
fn the_fixture_conforms_to_2026_07_28() {
    let summary = needs!(suite(NEWER, &fixture::start()));
    let failed: Vec<&str> = summary.lines().filter(|line| line.starts_with('✗')).collect();
    // The tasks extension is not scored, and wants a server whose tools are tasks.
    assert!(failed.iter().all(|line| line.contains("tasks-")), "{summary}");
    assert!(passed(&summary).len() >= 40, "{summary}");
}

#[test]
fn the_server_passes_what_needs_no_fixture_of_2025_11_25() {
    let (_server, url) = lisa();
    let summary = needs!(suite(OLDER, &url));
    assert_passed(
        &summary,
        &[
            "server-initialize",
            "ping",
            "completion-complete",
            "tools-list",
            "server-sse-polling",
            "server-sse-multiple-streams",
            "resources-list",
            // Subscribing is tested with a resource that only the fixture has.
            "prompts-list",
            "dns-rebinding-protection",
        ],
    );
}

#[test]
fn the_server_passes_what_needs_no_fixture_of_2026_07_28() {
    let (_server, url) = lisa();
    let summary = needs!(suite(NEWER, &url));
    assert_passed(
        &summary,
        &[
            "completion-complete",
            "tools-list",
            "server-sse-multiple-streams",
            "resources-list",
            "sep-2164-resource-not-found",
            "prompts-list",
            "dns-rebinding-protection",
            "caching",
            "input-required-result-missing-input-response",
            "input-required-result-unsupported-methods",
            "input-required-result-ignore-extra-params",
            "input-required-result-validate-input",
            "http-header-validation",
        ],
    );
}

#[test]
fn the_inspector_finds_no_fault_with_the_schemas() {
    let node = needs!(node());
    let folder = needs!(npm(&node, "inspector", "@modelcontextprotocol/inspector@2.12.0"));
    let world = World::new();
    let inspector = folder.join("node_modules/.bin/mcp-inspector");
    let inspect = |arguments: &[&str]| {
        let mut command = with(&node, &node);
        command.arg(&inspector).args(["--cli", LISA]).args(arguments);
        let private = world.command();
        let private = private.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(private.filter(|(name, _)| *name != "PATH"));
        String::from_utf8_lossy(&must(&mut command).stderr).into_owned()
    };
    let said = inspect(&["--method", "tools/list", "--strict"]);
    assert!(!said.contains("portab"), "{said}");
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        inspect(&["--method", method]);
    }
    inspect(&["--method", "tools/call", "--tool-name", "doctor"]);
    inspect(&["--method", "tools/call", "--tool-name", "list_sessions", "--tool-arg", "limit=5"]);
}

/// Runs the script of a parent in a world of its own.
fn parent(mut command: Command, mode: &str) {
    common::build_demo_agent();
    let world = World::new();
    let private = world.command();
    let private = private.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(private.filter(|(name, _)| *name != "PATH"));
    must(command.args([mode, LISA]).current_dir(world.path()));
}

fn on_python() -> Result<Command, String> {
    let mut command = Command::new(python()?);
    command.arg(script("flow.py"));
    Ok(command)
}

fn on_typescript() -> Result<Command, String> {
    let node = node()?;
    let sdk = npm(&node, "sdk", "@modelcontextprotocol/client@2.4.0")?;
    let mut command = with(&node, &node);
    command.arg(script("flow.mjs")).env("LISA_SDK", sdk);
    Ok(command)
}

#[test]
fn the_python_sdk_understands_the_server() {
    parent(needs!(on_python()), "smoke");
}

#[test]
fn the_typescript_sdk_understands_the_server() {
    parent(needs!(on_typescript()), "smoke");
}

#[test]
fn a_parent_on_the_python_sdk_drives_an_agent() {
    parent(needs!(on_python()), "flow");
}

#[test]
fn a_parent_on_the_typescript_sdk_drives_an_agent() {
    parent(needs!(on_typescript()), "flow");
}
