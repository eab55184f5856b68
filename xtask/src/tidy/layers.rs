//! Who may know whom.

use super::source::Tree;

/// Where tmux is started, and nowhere else.
const DOOR: &str = "crates/lisa-engine/src/tmux/";

/// Agents whose names belong into profiles.
const AGENTS: &[&str] = &["claude", "codex", "opencode"];

/// Files that may name an agent all the same, and why.
const MAY_NAME_AGENTS: &[(&str, &str)] = &[
    (
        "crates/lisa-mcp/src/install",
        "writes itself into a client's own configuration, which differs by client",
    ),
    ("crates/lisa-mcp/src/cli.rs", "its help shows how to register with each client"),
    ("crates/lisa-mcp/src/prompts.rs", "gives callers an example of an agent to choose"),
    ("crates/nu_plugin_lisa/src/commands/", "the examples in the help, which are tests, too"),
];

/// Crates of the front ends, which the engine must not use.
const FRONT_ENDS: &[&str] = &["rmcp", "nu_plugin", "nu_protocol", "axum", "tokio"];

/// Crates of Lisa's, which the developer commands must not use: they work while the engine does not compile.
const LISA: &[&str] = &["lisa_engine", "lisa_mcp", "nu_plugin_lisa", "lisa_bench", "test_support"];

pub(super) fn tmux_door(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.shipped().filter(|file| !file.path.starts_with(DOOR)) {
        for (line, code) in file.code() {
            let started = code.split("Command::new(").skip(1).any(|rest| {
                let program = rest.split(')').next().unwrap_or_default();
                program.to_ascii_lowercase().contains("tmux")
            });
            if started {
                places.push(file.at(line, &format!("starts tmux; ask {DOOR} to")));
            }
        }
    }
    places
}

pub(super) fn agent_names(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.shipped() {
        if MAY_NAME_AGENTS.iter().any(|(path, _)| file.path.starts_with(path)) {
            continue;
        }
        for (line, code) in file.code() {
            let code = code.to_ascii_lowercase();
            for agent in AGENTS.iter().filter(|agent| code.contains(**agent)) {
                places.push(file.at(line, &format!("names {agent}; that belongs into its profile")));
            }
        }
    }
    places
}

pub(super) fn front_ends(tree: &Tree) -> Vec<String> {
    dependencies(tree, "crates/lisa-engine/Cargo.toml", FRONT_ENDS)
}

pub(super) fn developer_commands(tree: &Tree) -> Vec<String> {
    let manifests = ["xtask/Cargo.toml", "dev/Cargo.toml"];
    manifests.iter().flat_map(|manifest| dependencies(tree, manifest, LISA)).collect()
}

/// The places in a manifest that name one of these crates.
fn dependencies(tree: &Tree, manifest: &str, unwanted: &[&str]) -> Vec<String> {
    let mut places = Vec::new();
    for (at, line) in tree.text(manifest).lines().enumerate() {
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default().replace('-', "_");
        if unwanted.contains(&name.as_str()) {
            places.push(format!("{manifest}:{}: depends on {name}", at + 1));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{super::source::Source, *};

    fn tree(path: &str, text: &str) -> Tree {
        Tree { root: "/".into(), files: vec![Source { path: path.into(), text: text.into() }] }
    }

    #[test]
    fn tmux_is_started_behind_its_door_only() {
        let code =
            "let c = Command::new(\"tmux\");\nlet d = std::process::Command::new(config.tmux_program());\n";
        assert_eq!(tmux_door(&tree("crates/lisa-engine/src/session/kill.rs", code)).len(), 2);
        assert!(tmux_door(&tree("crates/lisa-engine/src/tmux/door.rs", code)).is_empty());
        let other = "Command::new(program).arg(\"tmux\")";
        assert!(tmux_door(&tree("crates/lisa-mcp/src/a.rs", other)).is_empty());
    }

    #[test]
    fn agents_are_named_in_comments_and_profiles_only() {
        let code = "// claude does so\nif name == \"Codex\" {}\n";
        let places = agent_names(&tree("crates/lisa-engine/src/resolve.rs", code));
        assert_eq!(
            places,
            ["crates/lisa-engine/src/resolve.rs:2: names codex; that belongs into its profile"]
        );
        assert!(agent_names(&tree("crates/lisa-mcp/src/install.rs", code)).is_empty());
    }

    #[test]
    fn the_engine_s_manifest_is_read_by_whole_names() {
        let manifest = "[dependencies]\ntokio-util.workspace = true\nrmcp.workspace = true\n";
        let places = front_ends(&tree("crates/lisa-engine/Cargo.toml", manifest));
        assert_eq!(places, ["crates/lisa-engine/Cargo.toml:3: depends on rmcp"]);
    }

    #[test]
    fn a_developer_command_that_links_the_engine_is_found() {
        let manifest = "[dependencies]\nlisa-dev.workspace = true\nlisa-engine.workspace = true\n";
        let places = developer_commands(&tree("xtask/Cargo.toml", manifest));
        assert_eq!(places, ["xtask/Cargo.toml:3: depends on lisa_engine"]);
    }
}
