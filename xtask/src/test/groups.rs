//! The groups of checks, cheap ones first, and which test file belongs to which.

use crate::failure::{Failure, Result};
use std::{fs, path::Path};

/// One group of checks.
pub(super) struct Group {
    pub(super) name: &'static str,
    /// What a pass of it shows.
    pub(super) what: &'static str,
    /// Tools without which it is skipped.
    pub(super) needs: &'static [&'static str],
    /// Programs of other crates that its tests start, which must be built before.
    pub(super) programs: &'static [&'static str],
    pub(super) work: Work,
}

/// What a group does.
pub(super) enum Work {
    /// One cargo command that succeeds or fails.
    Check(&'static [&'static str]),
    /// The house rules.
    Tidy,
    /// The tests beside the code of every crate.
    Unit,
    /// The corpus of every fuzz target, and some seconds of fuzzing each.
    Fuzz,
    /// The test files that [`test_files`] gives to the group.
    Files,
}

/// What tests of the engine start: the scripted agent, and a process of Lisa's that they disturb and kill.
const ENGINE: &[&str] = &["lisa-demo-agent", "lisa-test-process"];
/// The agent that most tests start.
const DEMO: &[&str] = &["lisa-demo-agent"];
/// That, and both front ends.
const LISA: &[&str] = &["lisa-demo-agent", "lisa-mcp", "nu_plugin_lisa"];

/// What compares all scenarios of the agents' tests with what is published.
pub(super) const AGENTS_TABLE: &str = "agents-table";

/// Every group, in the order in which they run.
pub(super) const GROUPS: &[Group] = &[
    Group {
        name: "fmt",
        what: "the code is formatted",
        needs: &[],
        programs: &[],
        work: Work::Check(&["fmt", "--all", "--check"]),
    },
    Group {
        name: "tidy",
        what: "the house rules hold: layers, sizes, names, documentation",
        needs: &[],
        programs: &[],
        work: Work::Tidy,
    },
    Group {
        name: "clippy",
        what: "the compiler and clippy have nothing to say",
        needs: &[],
        programs: &[],
        work: Work::Check(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ]),
    },
    Group {
        name: "unit",
        what: "every part does alone what it says",
        needs: &[],
        programs: &[],
        work: Work::Unit,
    },
    Group {
        name: "fuzz",
        what: "no input makes a parser of foreign bytes fail, hang or grow",
        needs: &[],
        programs: &[],
        work: Work::Fuzz,
    },
    Group {
        name: "demo-agent",
        what: "the scripted agent plays its part in a real terminal",
        needs: &["tmux"],
        programs: &[],
        work: Work::Files,
    },
    Group {
        name: "engine",
        what: "the engine starts, watches, drives and ends sessions in a real tmux",
        needs: &["tmux"],
        programs: ENGINE,
        work: Work::Files,
    },
    Group {
        name: "faults",
        what: "full disks, torn files, kills, malformed messages and other people's keys lose and double nothing",
        needs: &["tmux"],
        programs: ENGINE,
        work: Work::Files,
    },
    Group {
        name: "mcp",
        what: "the MCP server serves a client from its first word to its last",
        needs: &["tmux"],
        programs: DEMO,
        work: Work::Files,
    },
    Group {
        name: "nu",
        what: "every command of the plugin works in a real nu",
        needs: &["tmux", "nu"],
        programs: LISA,
        work: Work::Files,
    },
    Group {
        name: "conformance",
        what: "the MCP server passes the protocol's own conformance suites",
        needs: &["tmux", "node"],
        programs: DEMO,
        work: Work::Files,
    },
    Group {
        name: "agents",
        what: "the real agents, on a scripted model, are seen and driven rightly",
        needs: &["tmux", "nu", "claude", "codex"],
        programs: &["lisa-demo-agent", "lisa-mcp", "nu_plugin_lisa", AGENTS_TABLE],
        work: Work::Files,
    },
];

/// A file of tests that cargo builds into a program of its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestFile {
    /// The name of cargo's test target.
    pub(crate) name: String,
    /// The group that runs it.
    pub(crate) group: &'static str,
    /// The file below the workspace's directory.
    pub(crate) path: String,
}

impl TestFile {
    /// Whether a test whose name has one of these filters in it may be here, going by the text of the file and of those
    /// beside it that belong to it. Cargo then links only what may run; without a filter, everything may.
    pub(crate) fn may_have(&self, root: &Path, filters: &[String]) -> bool {
        let names: Vec<&str> = filters
            .iter()
            .filter(|filter| !filter.starts_with('-'))
            .filter_map(|filter| filter.rsplit("::").next())
            .collect();
        let text = match self.path.strip_suffix("/main.rs") {
            Some(directory) => {
                let files = names_in(&root.join(directory)).unwrap_or_default();
                files.iter().map(|file| read(&root.join(directory).join(file))).collect()
            }
            None => read(&root.join(&self.path)),
        };
        names.is_empty() || names.iter().any(|name| text.contains(name))
    }
}

/// The text of a file; empty if it is a directory or cannot be read.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Every test file of the workspace. Each has a group, so none is forgotten.
pub(crate) fn test_files(root: &Path) -> Result<Vec<TestFile>> {
    let mut packages = ["bench", "dev", "tests", "tests/support", "xtask"].map(str::to_owned).to_vec();
    packages.extend(names_in(&root.join("crates"))?.into_iter().map(|name| format!("crates/{name}")));
    packages.sort();
    let mut files = Vec::new();
    for package in packages {
        let directory = root.join(&package).join("tests");
        if !directory.is_dir() {
            continue;
        }
        for entry in names_in(&directory)? {
            let (name, file) = match entry.strip_suffix(".rs") {
                Some(stem) => (stem.to_owned(), entry.clone()),
                None if directory.join(&entry).join("main.rs").is_file() => {
                    (entry.clone(), format!("{entry}/main.rs"))
                }
                None => continue,
            };
            let group = group_of(&package, &name);
            files.push(TestFile { name, group, path: format!("{package}/tests/{file}") });
        }
    }
    Ok(files)
}

/// The group of a test file: its crate's; in the crate of the end-to-end tests, the one its name begins with.
fn group_of(package: &str, name: &str) -> &'static str {
    match package {
        _ if name.starts_with("fuzz_corpus") => return "fuzz",
        _ if name.starts_with("faults_") => return "faults",
        "crates/lisa-engine" | "bench" | "dev" | "tests/support" | "xtask" => return "engine",
        "crates/lisa-mcp" if name == "conformance" => return "conformance",
        "crates/lisa-mcp" => return "mcp",
        "crates/nu_plugin_lisa" => return "nu",
        "crates/demo-agent" => return "demo-agent",
        _ => {}
    }
    let begins =
        |prefix: &str| name == prefix || name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'));
    const BEGINNINGS: &[(&str, &str)] = &[
        ("conformance", "conformance"),
        ("demo", "demo-agent"),
        ("engine", "engine"),
        ("mcp", "mcp"),
        ("nu", "nu"),
        ("recordings", "engine"),
    ];
    BEGINNINGS.iter().find(|(prefix, _)| begins(prefix)).map_or("agents", |(_, group)| group)
}

fn names_in(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).map_err(|error| Failure::io("read", directory, &error))?;
    let mut names: Vec<_> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_file_goes_to_its_crate_s_group_or_to_the_one_it_is_named_for() {
        assert_eq!(group_of("crates/lisa-mcp", "anything"), "mcp");
        assert_eq!(group_of("crates/lisa-mcp", "conformance"), "conformance");
        assert_eq!(group_of("crates/lisa-engine", "fuzz_corpus"), "fuzz");
        assert_eq!(group_of("crates/lisa-engine", "faults_ends"), "faults");
        assert_eq!(group_of("crates/lisa-mcp", "faults_limits"), "faults");
        assert_eq!(group_of("tests", "conformance"), "conformance");
        assert_eq!(group_of("tests", "nu_pipelines"), "nu");
        assert_eq!(group_of("tests", "number"), "agents");
        assert_eq!(group_of("tests", "models"), "agents");
    }

    #[test]
    fn a_filter_leaves_out_the_files_that_cannot_have_the_test() {
        let root = lisa_dev::context::Context::deaf().root;
        let file = |name: &str, path: &str| TestFile { name: name.into(), group: "unit", path: path.into() };
        let own = file("groups", "xtask/src/test/groups.rs");
        let other = file("outcome", "xtask/src/test/outcome.rs");
        let filters = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let name = filters(&["tests::a_filter_leaves_out_the_files", "--nocapture"]);
        assert!(own.may_have(&root, &name) && !other.may_have(&root, &name));
        assert!(other.may_have(&root, &filters(&["--nocapture"])) && other.may_have(&root, &[]));
    }

    #[test]
    fn every_group_a_file_can_go_to_exists() {
        for (package, name) in [
            ("crates/lisa-engine", "x"),
            ("crates/lisa-engine", "faults_x"),
            ("crates/demo-agent", "x"),
            ("tests", "recordings"),
        ] {
            assert!(GROUPS.iter().any(|group| group.name == group_of(package, name)));
        }
    }
}
