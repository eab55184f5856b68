//! The real agents, at the versions that the profiles were recorded with.
//!
//! They come from npm into a folder of the build directory, once, and are started as the native programs they
//! are: no node is needed to run them, and nothing of the user's own installation is touched.

mod home;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use home::{AgentHome, HomeOptions, McpServer, empty_repository};

/// An agent that tests can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

impl AgentKind {
    /// Every agent.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    /// The name of the command.
    pub fn command(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The version that is installed.
    pub fn version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.197",
            Self::Codex => "0.166.0",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
        }
    }

    fn folder(self, version: &str) -> String {
        let name = self.package().rsplit('/').next().unwrap_or_default();
        format!("{name}-{version}")
    }

    /// The native program inside an installation. It is in a package for this platform, beside the one asked for.
    fn binary(self, folder: &Path) -> Option<PathBuf> {
        let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
        let machine = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        let native = folder.join("node_modules").join(format!("{}-{system}-{machine}", self.package()));
        match self {
            Self::Claude => Some(native.join("claude")),
            Self::Codex => {
                let targets = fs::read_dir(native.join("vendor")).ok()?;
                let binaries = targets.flatten().map(|target| target.path().join("bin/codex"));
                binaries.into_iter().find(|binary| binary.is_file())
            }
        }
        .filter(|binary| binary.is_file())
    }
}

/// An installed agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Which one.
    pub kind: AgentKind,
    /// Its program.
    pub program: PathBuf,
}

impl Agent {
    /// Installs the pinned version below `tools` unless it is there.
    ///
    /// Two callers at once are safe: the second waits for the first. A broken attempt leaves no stamp, so the next
    /// call starts again. Where `XTASK_CLAUDE` or `XTASK_CODEX` names a program, it is that one, whatever its version:
    /// `cargo xtask test` has installed and checked it.
    pub fn install(kind: AgentKind, tools: &Path) -> Result<Self, Unavailable> {
        let named = std::env::var_os(format!("XTASK_{}", kind.command().to_uppercase()));
        if let Some(program) = named.map(PathBuf::from).filter(|program| program.is_file()) {
            return Ok(Self { kind, program });
        }
        Self::install_release(kind, kind.version(), tools)
    }

    fn install_release(kind: AgentKind, wanted: &str, tools: &Path) -> Result<Self, Unavailable> {
        let unavailable = |why: String| Unavailable { kind, version: wanted.to_owned(), why };
        let failed = |what: &str, error: &dyn fmt::Display| unavailable(format!("{what}: {error}"));
        let folder = tools.join(kind.folder(wanted));
        let stamp = folder.join(".installed");
        fs::create_dir_all(&folder).map_err(|error| failed("create the tools folder", &error))?;
        let lock = File::create(tools.join(format!("{}.lock", kind.folder(wanted))))
            .and_then(|file| file.lock().map(|()| file))
            .map_err(|error| failed("lock the tools folder", &error))?;
        if !stamp.is_file() {
            npm_install(kind, wanted, &folder).map_err(unavailable)?;
        }
        let program = kind
            .binary(&folder)
            .ok_or_else(|| failed("find the program", &"npm installed no package for this platform"))?;
        let agent = Self { kind, program };
        if !stamp.is_file() {
            let version = agent.version().map_err(|error| failed("ask for the version", &error))?;
            if version != wanted {
                return Err(failed("check the version", &format!("it is {version}, not {wanted}")));
            }
            fs::write(&stamp, version).map_err(|error| failed("write the stamp", &error))?;
        }
        drop(lock);
        Ok(agent)
    }

    /// For tests: the pinned agent; or nothing, with the reason on standard error, where it cannot be had. On a build
    /// server (`CI` is set) that is an error: a test that is skipped there checks nothing.
    pub fn for_test(kind: AgentKind) -> Result<Option<Self>, Unavailable> {
        Self::or_skipped(Self::install(kind, &tools_dir()))
    }

    /// For tests: another release than the pinned one, where a test is about what only that one does.
    pub fn release_for_test(kind: AgentKind, version: &str) -> Result<Option<Self>, Unavailable> {
        Self::or_skipped(Self::install_release(kind, version, &tools_dir()))
    }

    fn or_skipped(installed: Result<Self, Unavailable>) -> Result<Option<Self>, Unavailable> {
        match installed {
            Ok(agent) => Ok(Some(agent)),
            Err(unavailable) if std::env::var_os("CI").is_some_and(|value| value != "false") => {
                Err(unavailable)
            }
            Err(unavailable) => {
                // A test's own output; there is nowhere to report a failure to write it.
                let _ = writeln!(io::stderr(), "skipped: {unavailable}");
                Ok(None)
            }
        }
    }

    /// The version the program gives for itself: `2.1.197 (Claude Code)`, `codex-cli 0.166.0`.
    pub fn version(&self) -> io::Result<String> {
        let output = Command::new(&self.program).arg("--version").stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version =
            text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        version
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other(format!("no version in {:?}, {}", text.trim(), output.status)))
    }

    /// A command for the agent that sees the home's environment and nothing else, in the home's project.
    pub fn command(&self, home: &AgentHome) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(home.env()).current_dir(home.project()).stdin(Stdio::null());
        command
    }
}

/// Why an agent cannot be had.
#[derive(Debug)]
pub struct Unavailable {
    kind: AgentKind,
    version: String,
    why: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, version, why } = self;
        write!(formatter, "no {} {version} from npm: {why}", kind.command())
    }
}

impl std::error::Error for Unavailable {}

/// Where installations are kept: in the build directory, so that `cargo clean` removes them.
pub fn tools_dir() -> PathBuf {
    crate::programs::target_dir().join("tools")
}

fn npm_install(kind: AgentKind, version: &str, folder: &Path) -> Result<(), String> {
    let package = format!("{}@{version}", kind.package());
    let flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    let output = Command::new("npm")
        .args([OsStr::new("install"), OsStr::new("--prefix"), folder.as_os_str()])
        .args(flags)
        .arg(&package)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "npm install ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}
