//! Third-party clients and test suites against this server: the protocol's conformance suites, the inspector, and
//! parents built with the Python and TypeScript SDKs.
//!
//! Packages are installed into `target/tools`, each once. Where one cannot be had, the test is skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails loudly")]
#![allow(deprecated, reason = "the suites still test logging")]

#[path = "../common/mod.rs"]
mod common;
mod fixture;

use common::{Sandbox, http::Server};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};
use test_support::{needs, tools::program};

const LISA: &str = env!("CARGO_BIN_EXE_lisa-mcp");

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

/// A program that finds this Node first.
fn with(node: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some(dir) = node.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        let mut path = dir.as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path);
    }
    command
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(name)
}

/// The server itself, without a token.
fn lisa() -> (Server, String) {
    let server = Server::start(&["--no-auth"], None);
    let url = format!("http://{}/mcp", server.address);
    (server, url)
}

/// The suites, and how each is asked for the revision of the protocol that it tests.
const OLDER: (&str, &[&str]) = ("conformance-2025", &["--suite", "all"]);
const NEWER: (&str, &[&str]) = ("conformance-2026", &["--requirements", "2026-07-28"]);

/// Runs a suite; its summary.
fn suite((name, options): (&str, &[&str]), url: &str) -> Result<String, String> {
    let (node, suite) = (program("node")?, program(name)?);
    let results = tempfile::tempdir().unwrap();
    let output = Command::new(&node)
        .arg(suite)
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
    // The tasks extension is not scored, and needs a server whose tools are tasks.
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
            // The subscription tests need a resource that only the fixture has.
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
    let (node, inspector) = (needs!(program("node")), needs!(program("inspector")));
    let sandbox = Sandbox::new();
    let inspect = |arguments: &[&str]| {
        let mut command = with(&node, &node);
        command.arg(&inspector).args(["--cli", LISA]).args(arguments);
        let private = sandbox.command();
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

/// Runs a parent script in its own sandbox.
fn parent(mut command: Command, mode: &str) {
    test_support::programs::demo_agent();
    let sandbox = Sandbox::new();
    let private = sandbox.command();
    let private = private.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(private.filter(|(name, _)| *name != "PATH"));
    must(command.args([mode, LISA]).current_dir(sandbox.path()));
}

fn on_python() -> Result<Command, String> {
    let mut command = Command::new(program("sdk-python")?);
    command.arg(script("flow.py"));
    Ok(command)
}

fn on_typescript() -> Result<Command, String> {
    let (node, sdk) = (program("node")?, program("sdk-typescript")?);
    let mut command = with(&node, &node);
    command.arg(script("flow.mjs")).env("LISA_SDK", sdk.parent().unwrap_or(&sdk));
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
