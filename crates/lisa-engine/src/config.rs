//! Paths and limits: read once from the environment and `config.toml`, then passed around as data. No other module
//! reads the environment.

use crate::{
    disk,
    error::{Error, Kind, Result},
};
use serde::Deserialize;
use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

/// One environment variable that Lisa reads or sets.
#[derive(Debug, Clone, Copy)]
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// Its default, in readable form.
    pub default: &'static str,
    /// What it does.
    pub what: &'static str,
}

/// Every environment variable that Lisa reads, in the order of the documentation.
pub const ENVIRONMENT: &[EnvVar] = &[
    EnvVar {
        name: "LISA_STATE_DIR",
        default: "$XDG_STATE_HOME/lisa",
        what: "directory for session state and the journal",
    },
    EnvVar {
        name: "LISA_CONFIG_DIR",
        default: "$XDG_CONFIG_HOME/lisa",
        what: "directory of config.toml and agents/*.toml",
    },
    EnvVar {
        name: "LISA_TMUX_SOCKET",
        default: "lisa",
        what: "name of the private tmux server, or a socket path",
    },
    EnvVar { name: "LISA_MAX_SESSIONS", default: "64", what: "maximum number of live sessions" },
    EnvVar {
        name: "LISA_MAX_DEPTH",
        default: "3",
        what: "how deeply sessions may be nested (a session that starts a session)",
    },
    EnvVar { name: "LISA_LOG", default: "warn", what: "log filter for standard error (tracing syntax)" },
    EnvVar {
        name: "LISA_EVENTS_MAX_BYTES",
        default: "16777216",
        what: "maximum size of the journal; the oldest part is dropped",
    },
    EnvVar {
        name: "LISA_EVENTS_MAX_LINES",
        default: "100000",
        what: "maximum number of events in the journal",
    },
    EnvVar {
        name: "LISA_OUTPUT_STALE_SECONDS",
        default: "240",
        what: "how long output may stand still before a session counts as stuck",
    },
    EnvVar {
        name: "LISA_HEARTBEAT_STALE_SECONDS",
        default: "8",
        what: "age at which a heartbeat counts as stale",
    },
    EnvVar {
        name: "LISA_STATE_LOCK_TIMEOUT_MS",
        default: "2500",
        what: "timeout for a session's state lock",
    },
    EnvVar {
        name: "LISA_PROCESS_SCAN_INTERVAL_SECONDS",
        default: "8",
        what: "how often the observer rescans the process trees of unchanged sessions",
    },
    EnvVar {
        name: "LISA_MCP_TOKEN",
        default: "",
        what: "bearer token for `lisa-mcp --http` (default: a generated one)",
    },
];

/// Every environment variable that a session's process gets.
pub const SESSION_ENVIRONMENT: &[EnvVar] = &[
    EnvVar { name: "LISA_SESSION", default: "", what: "the session's name" },
    EnvVar { name: "LISA_RUN_ID", default: "", what: "the id of this run" },
    EnvVar { name: "LISA_AGENT", default: "", what: "the agent's profile" },
    EnvVar { name: "LISA_MODE", default: "", what: "interactive or exec" },
    EnvVar {
        name: "LISA_PROJECT_HASH",
        default: "",
        what: "the project: the first 8 hex digits of the MD5 of its root directory",
    },
    EnvVar { name: "LISA_PARENT", default: "", what: "the session that started this one, if any" },
];

/// Variables of a caller's environment that a session doesn't inherit: they would point its programs at another tmux
/// server, or at another session.
pub const NOT_INHERITED: &[&str] = &[
    "TMUX",
    "TMUX_PANE",
    "LISA_SESSION",
    "LISA_RUN_ID",
    "LISA_AGENT",
    "LISA_MODE",
    "LISA_PROJECT_HASH",
    "LISA_PARENT",
];

/// The environment of a caller. The Nushell plugin passes its caller's, not its own.
#[derive(Debug, Clone, Default)]
pub struct Environment(HashMap<OsString, OsString>);

/// Maximum size of a configuration file.
const FILE_MAX: u64 = 1 << 20;

/// Variables that are only taken from the process's own environment, not from its ancestors.
const OWN_ONLY: &[&str] = &["LISA_MCP_TOKEN", "LISA_LOG"];

impl Environment {
    /// This process's environment; missing Lisa variables are taken from the nearest ancestor process that has some.
    ///
    /// Some clients start their MCP servers with only a few variables. Such a server would look for its sessions in a
    /// different state directory than everybody else. It also wouldn't know that it runs inside a session, so the
    /// nesting limit wouldn't apply.
    pub fn of_this_process() -> Self {
        let mut own: HashMap<OsString, OsString> = std::env::vars_os().collect();
        let wanted: Vec<&str> = ENVIRONMENT.iter().chain(SESSION_ENVIRONMENT).map(|var| var.name).collect();
        let lacking = wanted.into_iter().filter(|name| !OWN_ONLY.contains(name));
        let lacking: Vec<&str> = lacking.filter(|name| !own.contains_key(OsStr::new(name))).collect();
        // Variables of the nearest process are meant for this one; those further up are meant for others.
        let above = crate::process::ancestors().map(|pid| crate::process::variables(pid, &lacking));
        let nearest = above.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
        own.extend(nearest.into_iter().map(|(name, value)| (name.into(), value.into())));
        Self(own)
    }

    /// An environment from pairs.
    pub fn from_pairs<K: Into<OsString>, V: Into<OsString>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// A variable, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&OsString> {
        self.0.get(OsStr::new(name)).filter(|value| !value.is_empty())
    }

    /// A variable, if it is set, not empty and valid UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| value.to_str())
    }

    /// All variables.
    pub fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }
}

/// The maximum of any duration: a century. Adding more can overflow a clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The contents of `config.toml`; environment variables take precedence.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    tmux_socket: Option<String>,
    max_sessions: Option<u32>,
    keep_ended: Option<u32>,
    keep_ended_days: Option<u32>,
    max_depth: Option<u32>,
    events_max_bytes: Option<u64>,
    events_max_lines: Option<u64>,
    events_max_days: Option<u64>,
    output_stale_seconds: Option<u64>,
    heartbeat_stale_seconds: Option<u64>,
    state_lock_timeout_ms: Option<u64>,
    process_scan_interval_seconds: Option<u64>,
    policy: Policy,
}

/// What callers may do, from the `[policy]` table of `config.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Agents that may be started (default: all).
    pub agents: Vec<String>,
    /// Directories in which sessions may be started (default: all).
    pub roots: Vec<PathBuf>,
    /// Arguments to refuse, in addition to those that a profile marks as dangerous.
    pub denied_flags: Vec<String>,
    /// Whether a caller may ask for flags that switch off an agent's safety checks.
    pub allow_dangerous: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { agents: Vec::new(), roots: Vec::new(), denied_flags: Vec::new(), allow_dangerous: true }
    }
}

/// Which tmux server is Lisa's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    /// A name in tmux's own socket directory (`tmux -L`).
    Name(String),
    /// A path (`tmux -S`).
    Path(PathBuf),
}

/// The complete configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directory for session state and the journal.
    pub state_dir: PathBuf,
    /// Directory of `config.toml` and the user's own profiles.
    pub config_dir: PathBuf,
    /// Which tmux server is Lisa's.
    pub socket: Socket,
    /// Maximum number of live sessions.
    pub max_sessions: u32,
    /// How deeply sessions may be nested.
    pub max_depth: u32,
    /// How many ended sessions to keep, so that they can be read and resumed.
    pub ended_max: usize,
    /// How long to keep ended sessions.
    pub ended_max_age: Duration,
    /// Maximum size of the journal; the oldest part is dropped.
    pub events_max_bytes: u64,
    /// Maximum number of events in the journal.
    pub events_max_lines: u64,
    /// How long the journal keeps an event.
    pub events_max_age: Duration,
    /// How long output may stand still before a session counts as stuck.
    pub output_stale: Duration,
    /// Age at which a heartbeat counts as stale.
    pub heartbeat_stale: Duration,
    /// Timeout for a session's state lock.
    pub lock_timeout: Duration,
    /// How often the observer rescans the process trees of unchanged sessions.
    pub process_scan_interval: Duration,
    /// What callers may do.
    pub policy: Policy,
}

impl Config {
    /// Reads the configuration for a caller with this environment.
    pub fn load(env: &Environment) -> Result<Self> {
        Self::load_with(env, |path| match disk::read_foreign(path, FILE_MAX) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", path, &error)),
        })
    }

    /// Like [`Self::load`], but `read` provides the text of `config.toml`.
    pub(crate) fn load_with(
        env: &Environment,
        read: impl FnOnce(&Path) -> Result<Option<String>>,
    ) -> Result<Self> {
        let home = env.path("HOME");
        let base = |own: &str, xdg: &str, below_home: &str| -> Result<PathBuf> {
            if let Some(path) = env.path(own) {
                return absolute(own, path);
            }
            let base = env.path(xdg).filter(|path| path.is_absolute());
            base.or_else(|| home.as_ref().map(|home| home.join(below_home)))
                .map(|base| base.join("lisa"))
                .ok_or_else(|| {
                    Error::new(
                        Kind::InvalidConfig,
                        format!("neither {own} nor {xdg} nor HOME is set"),
                        format!("set {own} to a directory of your own"),
                    )
                })
        };
        let state_dir = base("LISA_STATE_DIR", "XDG_STATE_HOME", ".local/state")?;
        let config_dir = base("LISA_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")?;
        let path = config_dir.join("config.toml");
        let file = read(&path)?.map_or_else(|| Ok(File::default()), |text| parse(&path, &text))?;
        let number = |name: &str, from_file: Option<u64>, default: u64| -> Result<u64> {
            match env.get(name) {
                None => Ok(from_file.unwrap_or(default)),
                Some(text) => text.to_str().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
                    Error::new(
                        Kind::InvalidConfig,
                        format!("{name} is `{}`, which is not a whole number", text.display()),
                        format!("unset {name}, or set it to a number such as {default}"),
                    )
                }),
            }
        };
        let limit = |name: &str, from_file: Option<u32>, default: u32| -> Result<u32> {
            number(name, from_file.map(u64::from), u64::from(default))
                .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
        };
        let seconds = |name: &str, from_file: Option<u64>, default: u64| -> Result<Duration> {
            number(name, from_file, default).map(|n| Duration::from_secs(n).min(LONGEST))
        };
        Ok(Self {
            socket: socket(env.text("LISA_TMUX_SOCKET").or(file.tmux_socket.as_deref()).unwrap_or("lisa")),
            ended_max: file.keep_ended.unwrap_or(200) as usize,
            ended_max_age: Duration::from_secs(u64::from(file.keep_ended_days.unwrap_or(30)) * 24 * 60 * 60),
            max_sessions: limit("LISA_MAX_SESSIONS", file.max_sessions, 64)?,
            max_depth: limit("LISA_MAX_DEPTH", file.max_depth, 3)?,
            events_max_bytes: number("LISA_EVENTS_MAX_BYTES", file.events_max_bytes, 16 << 20)?,
            events_max_lines: number("LISA_EVENTS_MAX_LINES", file.events_max_lines, 100_000)?,
            events_max_age: Duration::from_secs(file.events_max_days.unwrap_or(30).saturating_mul(86_400)),
            output_stale: seconds("LISA_OUTPUT_STALE_SECONDS", file.output_stale_seconds, 240)?,
            heartbeat_stale: seconds("LISA_HEARTBEAT_STALE_SECONDS", file.heartbeat_stale_seconds, 8)?,
            lock_timeout: Duration::from_millis(number(
                "LISA_STATE_LOCK_TIMEOUT_MS",
                file.state_lock_timeout_ms,
                2500,
            )?)
            .min(LONGEST),
            process_scan_interval: seconds(
                "LISA_PROCESS_SCAN_INTERVAL_SECONDS",
                file.process_scan_interval_seconds,
                8,
            )?,
            policy: file.policy,
            state_dir,
            config_dir,
        })
    }
}

fn absolute(name: &str, path: PathBuf) -> Result<PathBuf> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(Error::new(
        Kind::InvalidConfig,
        format!("{name} is `{}`, which is not an absolute path", path.display()),
        format!("set {name} to a path that starts with `/`"),
    ))
}

fn socket(given: &str) -> Socket {
    if given.contains('/') { Socket::Path(PathBuf::from(given)) } else { Socket::Name(given.to_owned()) }
}

fn parse(path: &Path, text: &str) -> Result<File> {
    toml::from_str(text).map_err(|error| {
        Error::new(
            Kind::InvalidConfig,
            format!("{} is malformed: {}", path.display(), error.to_string().trim_end()),
            "fix that line, or move the file away to use the defaults",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        Environment::from_pairs(pairs.iter().copied())
    }

    #[test]
    fn defaults_stand_below_home() {
        let config = Config::load(&env(&[("HOME", "/nowhere")])).unwrap();
        assert_eq!(config.state_dir, Path::new("/nowhere/.local/state/lisa"));
        assert_eq!(config.socket, Socket::Name("lisa".into()));
        assert_eq!((config.max_sessions, config.max_depth), (64, 3));
    }

    #[test]
    fn the_environment_overrules_the_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), "max_sessions = 5\nmax_depth = 1\n").unwrap();
        let dir = dir.path().to_str().unwrap();
        let config =
            Config::load(&env(&[("HOME", "/nowhere"), ("LISA_CONFIG_DIR", dir), ("LISA_MAX_SESSIONS", "7")]))
                .unwrap();
        assert_eq!((config.max_sessions, config.max_depth), (7, 1));
    }

    #[test]
    fn a_value_that_is_no_number_names_the_variable_and_a_way_out() {
        let error = Config::load(&env(&[("HOME", "/nowhere"), ("LISA_MAX_SESSIONS", "many")])).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidConfig);
        assert!(error.to_string().contains("LISA_MAX_SESSIONS is `many`"), "{error}");
    }

    #[test]
    fn a_time_beyond_all_clocks_is_cut_to_one_that_can_be_waited_for() {
        let most = u64::MAX.to_string();
        let vars = [
            ("HOME", "/nowhere"),
            ("LISA_PROCESS_SCAN_INTERVAL_SECONDS", most.as_str()),
            ("LISA_STATE_LOCK_TIMEOUT_MS", most.as_str()),
        ];
        let config = Config::load(&env(&vars)).unwrap();
        for wait in [config.process_scan_interval, config.lock_timeout] {
            assert!(std::time::Instant::now().checked_add(wait).is_some(), "{wait:?}");
        }
    }

    #[test]
    fn a_misspelt_key_in_the_file_is_an_error_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), "max_session = 5\n").unwrap();
        let error =
            Config::load(&env(&[("HOME", "/nowhere"), ("LISA_CONFIG_DIR", dir.path().to_str().unwrap())]))
                .unwrap_err();
        assert!(error.to_string().contains("max_session"), "{error}");
    }
}
