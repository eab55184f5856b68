//! Plans a spawn before anything is done, so that every mistake in a request is found here.

use super::{Meta, SCHEMA, names};
use crate::{
    api::{Size, SpawnRequest, words::Mode},
    classify::{
        observation::At,
        profile::{
            Profile,
            launch::{Launch, PromptWay, Template, Values},
        },
    },
    config::{Config, Environment, NOT_INHERITED},
    error::{Error, Kind, Result, near_matches, printable},
    process::Identity,
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Maximum size of a prompt.
pub const PROMPT_MAX: usize = 1 << 20;
/// Linux allows 128 KiB per argument; a longer prompt goes another way.
const ARGV_PROMPT_MAX: usize = 100_000;
/// The default size of an agent's terminal.
pub(super) const SIZE: Size = Size { columns: 220, rows: 60 };

/// Who requests a session.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// Their environment.
    pub env: &'a Environment,
    /// Their working directory.
    pub cwd: &'a Path,
    /// A directory that is searched for programs after their PATH: where Lisa itself is.
    pub beside: Option<&'a Path>,
    /// The session that they are in, with its nesting depth.
    pub parent: Option<(&'a str, u32)>,
    /// The time of the request.
    pub now: jiff::Timestamp,
}

/// What a spawn will do.
#[derive(Debug)]
pub struct Plan {
    /// The session's metadata.
    pub meta: Meta,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its environment, without the variables of the session itself.
    pub env: Vec<(OsString, OsString)>,
    /// The prompt, unless it is one of the arguments.
    pub prompt: Option<(PromptWay, String)>,
    /// The caller's own arguments for the program.
    args: Vec<String>,
}

/// Paths of one session that a template can refer to.
#[derive(Debug, Clone, Default)]
pub struct SessionPaths {
    /// The session's directory.
    pub dir: String,
    /// The settings file written for this launch.
    pub settings: Option<String>,
}

impl Plan {
    /// Plans a spawn. Creates and starts nothing.
    pub fn new(
        request: &SpawnRequest,
        profile: &Profile,
        launch: &Launch,
        config: &Config,
        requester: Requester<'_>,
    ) -> Result<Self> {
        let template = template(launch, request.mode, &request.agent)?;
        Self::with(request, (profile, launch, template), config, requester)
    }

    /// Plans a start with a given template.
    pub fn with(
        request: &SpawnRequest,
        (profile, launch, template): (&Profile, &Launch, &Template),
        config: &Config,
        requester: Requester<'_>,
    ) -> Result<Self> {
        check_policy(request, config)?;
        let cwd = working_dir(request.cwd.as_deref(), requester.cwd)?;
        check_roots(&cwd, config)?;
        let size = check_size(request.size.unwrap_or(SIZE))?;
        check_prompt(request)?;
        check_env(request)?;
        super::flags::check(request, template, launch, config)?;
        super::policy::check(request, launch)?;
        let project_root = names::project_root(&cwd);
        let name = match request.name.as_deref() {
            Some(name) => names::check(name).map(|()| name.to_owned())?,
            None => names::make(
                &project_root,
                &request.agent,
                request.mode,
                request.tag.as_deref(),
                requester.now,
            ),
        };
        let program = find_program(launch, request, requester)?;
        let agent_session_id = launch.chooses_session_id.then(|| uuid::Uuid::new_v4().to_string());
        let way = request.prompt.as_deref().map(|prompt| match template.prompt {
            PromptWay::Argv if prompt.len() > ARGV_PROMPT_MAX || prompt.contains('\0') => PromptWay::Paste,
            way => way,
        });
        let parent = requester.parent;
        let depth = parent.map_or(0, |(_, depth)| depth + 1);
        if depth > config.max_depth {
            return Err(Error::new(
                Kind::DepthLimit,
                format!(
                    "this session would have nesting depth {depth}, and the limit is {}",
                    config.max_depth
                ),
                "raise LISA_MAX_DEPTH (or max_depth in config.toml), or start it outside of a session",
            ));
        }
        let env = environment(requester.env, launch, &request.env);
        let meta = Meta {
            schema: SCHEMA,
            name,
            agent: request.agent.clone(),
            mode: request.mode,
            run_id: uuid::Uuid::new_v4().simple().to_string(),
            host: host(),
            cwd,
            project_root,
            tag: request.tag.clone(),
            parent: parent.map(|(name, _)| name.to_owned()),
            depth,
            started_at: At(requester.now.as_millisecond()),
            argv: Vec::new(),
            model: request.model.clone(),
            size,
            agent_session_id,
            trust: request.trust,
            dangerous: request.dangerous,
            policy: request.policy.clone(),
            env_names: request.env.keys().cloned().collect(),
            places: super::files::env_dirs(profile, &env),
            starter: Identity::own(),
            pane: None,
            pane_id: None,
            terminal: None,
            server: None,
            rebuilt: false,
        };
        // A profile without a program of its own takes it from the caller's arguments.
        let own_program = usize::from(launch.executable.names.is_empty());
        let args = request.args.iter().skip(own_program).cloned().collect();
        let mut plan = Self { meta, argv: vec![program.into()], env, prompt: None, args };
        plan.prompt = match (way, &request.prompt) {
            (Some(way @ (PromptWay::Stdin | PromptWay::Paste)), Some(prompt)) => Some((way, prompt.clone())),
            _ => None,
        };
        Ok(plan)
    }

    /// Fills in the arguments, once the paths of the session's files are known.
    pub fn fill(
        &mut self,
        request: &SpawnRequest,
        template: &Template,
        launch: &Launch,
        paths: &SessionPaths,
    ) {
        let mut values = Values::new();
        let by_argv = template.prompt == PromptWay::Argv && self.prompt.is_none();
        let optional = [
            ("model", request.model.as_deref()),
            ("session_id", self.meta.agent_session_id.as_deref()),
            ("settings", paths.settings.as_deref()),
            ("directory", Some(paths.dir.as_str())),
            ("decides", launch.decides.as_deref().filter(|_| request.policy.is_some())),
            ("dangerous", request.dangerous.then(|| launch.dangerous.first().map(String::as_str)).flatten()),
        ];
        values.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
        // The command in the metadata leaves out the prompt.
        let words = template.fill(&values, &self.args);
        self.meta.argv =
            self.argv.iter().take(1).map(|p| p.to_string_lossy().into_owned()).chain(words).collect();
        if by_argv && let Some(prompt) = request.prompt.as_deref() {
            values.insert("prompt", prompt);
        }
        self.argv.truncate(1);
        self.argv.extend(template.fill(&values, &self.args).into_iter().map(OsString::from));
    }
}

/// The template for a mode, if the agent has one.
pub fn template<'a>(launch: &'a Launch, mode: Mode, agent: &str) -> Result<&'a Template> {
    match mode {
        Mode::Interactive => Ok(&launch.interactive),
        Mode::Exec => launch.exec.as_ref().ok_or_else(|| {
            Error::new(
                Kind::NotOffered,
                format!("`{agent}` has no exec mode"),
                "start it in interactive mode, or add a [launch.exec] table to its profile",
            )
            .about(agent)
        }),
    }
}

fn check_policy(request: &SpawnRequest, config: &Config) -> Result<()> {
    let allowed = &config.policy.agents;
    if !allowed.is_empty() && !allowed.contains(&request.agent) {
        return Err(Error::new(
            Kind::NotAllowed,
            format!("the policy does not allow the agent `{}`", printable(&request.agent)),
            format!("allowed agents: {}", allowed.join(", ")),
        )
        .about(&request.agent));
    }
    if request.dangerous && !config.policy.allow_dangerous {
        return Err(Error::new(
            Kind::NotAllowed,
            "the policy does not allow switching off an agent's safety checks",
            "remove `dangerous`, or set allow_dangerous in the [policy] table of config.toml",
        )
        .about("dangerous"));
    }
    Ok(())
}

fn check_roots(cwd: &Path, config: &Config) -> Result<()> {
    let roots = &config.policy.roots;
    let below = |root: &PathBuf| std::fs::canonicalize(root).is_ok_and(|root| cwd.starts_with(root));
    if roots.is_empty() || roots.iter().any(below) {
        return Ok(());
    }
    let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    Err(Error::new(
        Kind::NotAllowed,
        format!("the policy does not allow sessions in {}", cwd.display()),
        format!("allowed directories: {} and below", roots.join(", ")),
    )
    .about(cwd.display().to_string()))
}

fn check_size(size: Size) -> Result<Size> {
    if (20..=1000).contains(&size.columns) && (5..=500).contains(&size.rows) {
        return Ok(size);
    }
    Err(Error::invalid(
        format!("{} x {} is not a valid terminal size", size.columns, size.rows),
        "use 20 to 1000 columns and 5 to 500 rows",
    ))
}

fn check_prompt(request: &SpawnRequest) -> Result<()> {
    match &request.prompt {
        Some(prompt) if prompt.len() > PROMPT_MAX => Err(Error::invalid(
            format!("the prompt has {} bytes, and the limit is {PROMPT_MAX}", prompt.len()),
            "put the text into a file in the working directory and refer to it in the prompt",
        )),
        None if request.mode == Mode::Exec && request.args.is_empty() => Err(Error::invalid(
            "exec mode needs a prompt",
            "give one, or start the agent in interactive mode",
        )),
        _ => Ok(()),
    }
}

/// Only Lisa sets Lisa's own variables: a caller's could lift its limits or impersonate another session.
fn check_env(request: &SpawnRequest) -> Result<()> {
    let mut texts = request.args.iter().chain(&request.model).chain(request.env.values());
    if texts.any(|text| text.contains('\0')) {
        return Err(Error::invalid(
            "an argument or a variable contains a NUL character, which cannot be passed to a program",
            "remove it; only a prompt may contain any character",
        ));
    }
    match request
        .env
        .keys()
        .find(|name| name.starts_with("LISA_") || name.is_empty() || name.contains(['=', '\0']))
    {
        Some(name) => Err(Error::invalid(
            format!("`{}` cannot be set for a session", printable(name)),
            "remove it; variables that start with LISA_ are reserved",
        )
        .about(name)),
        None => Ok(()),
    }
}

/// The working directory, absolute and canonical.
pub fn working_dir(given: Option<&str>, caller: &Path) -> Result<PathBuf> {
    let path = given.map_or_else(|| caller.to_owned(), |given| caller.join(given));
    let invalid = |what: &str| {
        Err(Error::new(
            Kind::InvalidCwd,
            format!("the working directory {} {what}", printable(&path.display().to_string())),
            "give a directory that exists",
        )
        .about(given.unwrap_or_default()))
    };
    match std::fs::canonicalize(&path) {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => invalid("is not a directory"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => invalid("does not exist"),
        Err(error) => invalid(&format!("cannot be used: {error}")),
    }
}

/// The agent's program on the caller's PATH. A profile without a program runs what the caller gives.
fn find_program(launch: &Launch, request: &SpawnRequest, requester: Requester<'_>) -> Result<PathBuf> {
    let path = request.env.get("PATH").map(OsString::from).or_else(|| requester.env.get("PATH").cloned());
    let names: Vec<&str> = if launch.executable.names.is_empty() {
        let first = request.args.first().ok_or_else(|| {
            Error::invalid(
                format!("`{}` needs a command to run", request.agent),
                "pass the command as arguments",
            )
            .about(&request.agent)
        })?;
        vec![first]
    } else {
        launch.executable.names.iter().map(String::as_str).collect()
    };
    let beside = |name: &&str| requester.beside.map(|dir| dir.join(name)).filter(|path| runs(path));
    let found = names.iter().find_map(|name| which(name, path.as_ref(), requester.cwd));
    found.or_else(|| names.iter().find_map(beside)).ok_or_else(|| {
        Error::new(
            Kind::AgentMissing,
            format!("`{}` is not installed or not on PATH", names.join("` or `")),
            launch.executable.install.clone(),
        )
        .about(names[0])
        .about(&request.agent)
    })
}

/// Finds a program as a shell would.
pub fn which(name: &str, path: Option<&OsString>, cwd: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(cwd.join(name)).filter(|path| runs(path));
    }
    std::env::split_paths(path?).map(|dir| cwd.join(dir).join(name)).find(|path| runs(path))
}

fn runs(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn environment(
    caller: &Environment,
    launch: &Launch,
    added: &BTreeMap<String, String>,
) -> Vec<(OsString, OsString)> {
    let mut env: BTreeMap<OsString, OsString> = caller
        .iter()
        .filter(|(name, _)| !NOT_INHERITED.iter().any(|not| name == not))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.extend(launch.env.iter().map(|(name, value)| (name.into(), value.into())));
    env.extend(added.iter().map(|(name, value)| (name.into(), value.into())));
    env.into_iter().collect()
}

/// This machine's name.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// No profile has this id.
pub fn unknown_agent(given: &str, known: &[String]) -> Error {
    let near = near_matches(given, known);
    let hint = match near.first() {
        Some(near) => format!("did you mean {near}? Known agents: {}", known.join(", ")),
        None => format!("known agents: {}", known.join(", ")),
    };
    Error::new(Kind::UnknownAgent, format!("there is no agent `{}`", printable(given)), hint).about(given)
}
