//! A home for agents: settings that give a silent start, an environment that leads nowhere but to the model server.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Agent, AgentKind};
use crate::model_server::ModelServer;

/// The key that Claude Code is told to accept. It is stored whole, being short.
const KEY: &str = "sk-ant-dummy-local";

/// Nothing that the agents would send elsewhere.
const QUIET: [(&str, &str); 5] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    // Any proxy would get requests that are meant for loopback.
    ("NO_PROXY", "*"),
];

/// How a home differs from the usual one, which starts without a dialog.
#[derive(Clone, Debug)]
pub struct HomeOptions {
    /// The project is trusted; without it both agents ask at the start.
    pub trust: bool,
    /// Claude Code may use the key from the environment; without it, it asks at the start.
    pub approve_key: bool,
    /// MCP servers that both agents know.
    pub mcp: Vec<McpServer>,
    /// The directory agents work in; an empty repository in the home if not given. Codex asks for trust in repositories
    /// only.
    pub project: Option<PathBuf>,
}

impl Default for HomeOptions {
    fn default() -> Self {
        Self { trust: true, approve_key: true, mcp: Vec::new(), project: None }
    }
}

/// An MCP server on standard input and output.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// What the agents call it; its tools are `mcp__<name>__<tool>`.
    pub name: String,
    /// The program, absolute, and its arguments.
    pub command: Vec<String>,
    /// Variables for it; Codex gives a server no others.
    pub env: Vec<(String, String)>,
    /// Its tools run without a question; otherwise both agents ask for those that change something.
    pub approved: bool,
}

/// A private home with settings for both agents; removed when dropped.
#[derive(Debug)]
pub struct AgentHome {
    root: TempDir,
    project: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl AgentHome {
    /// A home in which both agents start without a dialog and talk to `server`.
    pub fn new(server: &ModelServer) -> io::Result<Self> {
        Self::with(server, HomeOptions::default())
    }

    /// A home that differs from the usual one.
    pub fn with(server: &ModelServer, options: HomeOptions) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("lisa-home-").tempdir()?;
        // Agents look a project up by its real path; the temporary directory may be a link.
        let base = root.path().canonicalize()?;
        let project = options.project.clone().unwrap_or_else(|| base.join("project"));
        for directory in [&base.join("bin"), &base.join("claude"), &base.join("codex"), &project] {
            fs::create_dir_all(directory)?;
        }
        let project = project.canonicalize()?;
        if options.project.is_none() {
            empty_repository(&project)?;
        }
        fs::write(base.join("claude/.claude.json"), claude_settings(&project, &options).to_string())?;
        fs::write(base.join("claude/settings.json"), claude_permissions(&options).to_string())?;
        fs::write(base.join("codex/config.toml"), codex_settings(server, &project, &options))?;
        let env = environment(server, &base)?;
        Ok(Self { root, project, env })
    }

    /// Makes an agent known by its usual name on the home's `PATH`.
    pub fn link(&self, agent: &Agent) -> io::Result<()> {
        std::os::unix::fs::symlink(&agent.program, self.path().join("bin").join(agent.kind.command()))
    }

    /// The home directory.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The directory agents work in.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The agent's own directory: `CLAUDE_CONFIG_DIR` or `CODEX_HOME`.
    pub fn config_dir(&self, kind: AgentKind) -> PathBuf {
        self.path().join(kind.command())
    }

    /// The whole environment of a child: every variable it gets.
    pub fn env(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.env.clone().into_iter()
    }

    /// Adds a variable, or changes one.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
    }
}

/// Makes a directory what `git init` would make of it, for machines without git.
pub fn empty_repository(project: &Path) -> io::Result<()> {
    let directory = project.join(".git");
    for inner in ["objects", "refs/heads"] {
        fs::create_dir_all(directory.join(inner))?;
    }
    fs::write(directory.join("HEAD"), "ref: refs/heads/main\n")?;
    fs::write(directory.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
}

fn environment(server: &ModelServer, base: &Path) -> io::Result<Vec<(OsString, OsString)>> {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(base.join("bin")).chain(std::env::split_paths(&own)))
        .map_err(io::Error::other)?;
    let mut env: Vec<(OsString, OsString)> = vec![
        ("HOME".into(), base.into()),
        ("PATH".into(), path),
        ("CLAUDE_CONFIG_DIR".into(), base.join("claude").into()),
        ("CODEX_HOME".into(), base.join("codex").into()),
        ("ANTHROPIC_BASE_URL".into(), server.anthropic_url().into()),
    ];
    let fixed =
        [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("ANTHROPIC_API_KEY", KEY), ("FAKE_KEY", "dummy")];
    env.extend(fixed.iter().chain(&QUIET).map(|(name, value)| (name.into(), value.into())));
    Ok(env)
}

fn claude_settings(project: &Path, options: &HomeOptions) -> Value {
    let mut settings = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "lastOnboardingVersion": AgentKind::Claude.version(),
    });
    if options.approve_key {
        settings["customApiKeyResponses"] = json!({"approved": [KEY], "rejected": []});
    }
    if options.trust {
        let project = project.to_string_lossy();
        settings["projects"] = json!({project: {"hasTrustDialogAccepted": true, "allowedTools": []}});
    }
    for server in &options.mcp {
        let env: Value =
            server.env.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        settings["mcpServers"][&server.name] = json!({"type": "stdio", "command": server.command.first(),
            "args": server.command.get(1..).unwrap_or_default(), "env": env});
    }
    settings
}

fn claude_permissions(options: &HomeOptions) -> Value {
    let approved = options.mcp.iter().filter(|server| server.approved);
    let tools: Vec<_> = approved.map(|server| format!("mcp__{}", server.name)).collect();
    let mut permissions = json!({"allow": tools});
    // A newer Claude decides by itself what to ask, with a check that runs on the real servers only.
    if crate::report::only_reports() {
        permissions["disableAutoMode"] = "disable".into();
    }
    json!({"permissions": permissions})
}

fn codex_settings(server: &ModelServer, project: &Path, options: &HomeOptions) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut lines = vec![
        "model = \"gpt-6-astra\"".to_owned(),
        "model_provider = \"fake\"".to_owned(),
        "check_for_update_on_startup = false".to_owned(),
        "[analytics]\nenabled = false".to_owned(),
        "[model_providers.fake]\nname = \"fake\"\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\""
            .to_owned(),
        format!("base_url = {}", quoted(&server.openai_url())),
    ];
    if options.trust {
        lines.push(format!("[projects.{}]\ntrust_level = \"trusted\"", quoted(&project.to_string_lossy())));
    }
    for server in &options.mcp {
        let (program, arguments) =
            server.command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let arguments: Vec<_> = arguments.iter().map(|argument| quoted(argument)).collect();
        let env: Vec<_> =
            server.env.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value))).collect();
        lines.push(format!("[mcp_servers.{}]\ncommand = {}", quoted(&server.name), quoted(program)));
        lines.push(format!("args = [{}]\nenv = {{{}}}", arguments.join(", "), env.join(", ")));
        if server.approved {
            lines.push("default_tools_approval_mode = \"approve\"".to_owned());
        }
    }
    lines.join("\n") + "\n"
}
