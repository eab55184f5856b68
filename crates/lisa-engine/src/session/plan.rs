//! What a spawn will do, worked out before anything is done: every mistake in a request is found here.

use super::{Meta, SCHEMA, names};
use crate::{
    api::{Size, SpawnRequest},
    config::{Config, Environment, NOT_INHERITED},
    error::{Error, Kind, Result, near_matches, printable},
    observation::{At, Mode},
    process::Identity,
    profile::launch::{Launch, PromptWay, Template, Values},
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The largest prompt.
pub const PROMPT_MAX: usize = 1 << 20;
/// A single argument may have 128 KiB on Linux; a longer prompt goes another way.
const ARGV_PROMPT_MAX: usize = 100_000;
/// The terminal that an agent gets unless its caller says otherwise.
pub(super) const SIZE: Size = Size { columns: 220, rows: 60 };

/// Who asks for a session.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Their environment.
    pub env: &'a Environment,
    /// Their folder.
    pub cwd: &'a Path,
    /// A folder that is searched for programs after their own path: where Lisa itself is.
    pub beside: Option<&'a Path>,
    /// The session that they are, with how deep it is nested.
    pub parent: Option<(&'a str, u32)>,
    /// When they ask.
    pub now: jiff::Timestamp,
}

/// What a spawn will do.
#[derive(Debug)]
pub struct Plan {
    /// What will be known of the session.
    pub meta: Meta,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its environment, without what belongs to the session itself.
    pub env: Vec<(OsString, OsString)>,
    /// The prompt, where it does not go by the arguments.
    pub prompt: Option<(PromptWay, String)>,
    /// The caller's own arguments for the program.
    args: Vec<String>,
}

/// Where the files of one session will be: what a template may name.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The session's folder.
    pub folder: String,
    /// The settings file that is written for this launch.
    pub settings: Option<String>,
}

impl Plan {
    /// Works out a spawn. Nothing is made or started yet.
    pub fn new(request: &SpawnRequest, launch: &Launch, config: &Config, asker: Asker<'_>) -> Result<Self> {
        let template = template(launch, request.mode, &request.agent)?;
        Self::with(request, launch, template, config, asker)
    }

    /// Works out a start by a given template.
    pub fn with(
        request: &SpawnRequest,
        launch: &Launch,
        template: &Template,
        config: &Config,
        asker: Asker<'_>,
    ) -> Result<Self> {
        check_policy(request, config)?;
        let cwd = working_folder(request.cwd.as_deref(), asker.cwd)?;
        check_roots(&cwd, config)?;
        let size = check_size(request.size.unwrap_or(SIZE))?;
        check_prompt(request)?;
        check_env(request)?;
        super::flags::check(request, template, launch, config)?;
        super::policy::check(request, launch)?;
        let project_root = names::project_root(&cwd);
        let name = match request.name.as_deref() {
            Some(name) => names::check(name).map(|()| name.to_owned())?,
            None => {
                names::make(&project_root, &request.agent, request.mode, request.tag.as_deref(), asker.now)
            }
        };
        let program = find_program(launch, request, asker)?;
        let agent_session_id = launch.chooses_session_id.then(|| uuid::Uuid::new_v4().to_string());
        let way = request.prompt.as_deref().map(|prompt| match template.prompt {
            PromptWay::Argv if prompt.len() > ARGV_PROMPT_MAX || prompt.contains('\0') => PromptWay::Paste,
            way => way,
        });
        let parent = asker.parent;
        let depth = parent.map_or(0, |(_, depth)| depth + 1);
        if depth > config.max_depth {
            return Err(Error::new(
                Kind::DepthLimit,
                format!("this session would be nested {depth} deep, and the limit is {}", config.max_depth),
                "raise LISA_MAX_DEPTH (or max_depth in config.toml), or start it from outside",
            ));
        }
        let env = environment(asker.env, launch, &request.env);
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
            started_at: At(asker.now.as_millisecond()),
            argv: Vec::new(),
            model: request.model.clone(),
            size,
            agent_session_id,
            trust: request.trust,
            dangerous: request.dangerous,
            policy: request.policy.clone(),
            env_names: request.env.keys().cloned().collect(),
            places: super::files::places(&launch.files, &env),
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

    /// Fills in the arguments, once it is known where the session's files are.
    pub fn fill(&mut self, request: &SpawnRequest, template: &Template, launch: &Launch, places: &Places) {
        let mut values = Values::new();
        let by_argv = template.prompt == PromptWay::Argv && self.prompt.is_none();
        let optional = [
            ("model", request.model.as_deref()),
            ("session_id", self.meta.agent_session_id.as_deref()),
            ("settings", places.settings.as_deref()),
            ("folder", Some(places.folder.as_str())),
            ("decides", launch.decides.as_deref().filter(|_| request.policy.is_some())),
            ("dangerous", request.dangerous.then(|| launch.dangerous.first().map(String::as_str)).flatten()),
        ];
        values.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
        // What is written down of the command leaves the prompt out.
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

/// The template for a mode, where the agent has one.
pub fn template<'a>(launch: &'a Launch, mode: Mode, agent: &str) -> Result<&'a Template> {
    match mode {
        Mode::Interactive => Ok(&launch.interactive),
        Mode::Exec => launch.exec.as_ref().ok_or_else(|| {
            Error::new(
                Kind::NotOffered,
                format!("`{agent}` has no exec mode"),
                "start it in interactive mode, or add a [launch.exec] table to its profile",
            )
        }),
    }
}

fn check_policy(request: &SpawnRequest, config: &Config) -> Result<()> {
    let allowed = &config.policy.agents;
    if !allowed.is_empty() && !allowed.contains(&request.agent) {
        return Err(Error::new(
            Kind::NotAllowed,
            format!("the policy does not allow the agent `{}`", printable(&request.agent)),
            format!("allowed are {}", allowed.join(", ")),
        ));
    }
    if request.dangerous && !config.policy.allow_dangerous {
        return Err(Error::new(
            Kind::NotAllowed,
            "the policy does not allow an agent's safety to be switched off",
            "leave `dangerous` out, or set allow_dangerous in the [policy] table of config.toml",
        ));
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
        format!("allowed are folders below {}", roots.join(", ")),
    ))
}

fn check_size(size: Size) -> Result<Size> {
    if (20..=1000).contains(&size.columns) && (5..=500).contains(&size.rows) {
        return Ok(size);
    }
    Err(Error::invalid(
        format!("a terminal of {} x {} is not possible", size.columns, size.rows),
        "use 20 to 1000 columns and 5 to 500 rows",
    ))
}

fn check_prompt(request: &SpawnRequest) -> Result<()> {
    match &request.prompt {
        Some(prompt) if prompt.len() > PROMPT_MAX => Err(Error::invalid(
            format!("the prompt has {} bytes, and {PROMPT_MAX} are the limit", prompt.len()),
            "put the text into a file in the working folder and name the file in the prompt",
        )),
        None if request.mode == Mode::Exec && request.args.is_empty() => Err(Error::invalid(
            "an exec run needs a prompt",
            "give one, or start the agent in interactive mode",
        )),
        _ => Ok(()),
    }
}

/// Lisa's own variables are set by Lisa: a caller's would lift its limits or claim another session.
fn check_env(request: &SpawnRequest) -> Result<()> {
    let mut texts = request.args.iter().chain(&request.model).chain(request.env.values());
    if texts.any(|text| text.contains('\0')) {
        return Err(Error::invalid(
            "an argument or a variable contains a NUL, which no program can be given",
            "leave it out; a prompt may contain any character",
        ));
    }
    match request
        .env
        .keys()
        .find(|name| name.starts_with("LISA_") || name.is_empty() || name.contains(['=', '\0']))
    {
        Some(name) => Err(Error::invalid(
            format!("`{}` can not be set for a session", printable(name)),
            "leave it out; variables that begin with LISA_ are Lisa's own",
        )),
        None => Ok(()),
    }
}

/// The folder to work in, made absolute and canonical.
pub fn working_folder(given: Option<&str>, caller: &Path) -> Result<PathBuf> {
    let path = given.map_or_else(|| caller.to_owned(), |given| caller.join(given));
    let invalid = |what: &str| {
        Err(Error::new(
            Kind::InvalidCwd,
            format!("the working folder {} {what}", printable(&path.display().to_string())),
            "give a folder that exists",
        ))
    };
    match std::fs::canonicalize(&path) {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => invalid("is not a folder"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => invalid("does not exist"),
        Err(error) => invalid(&format!("can not be used: {error}")),
    }
}

/// The agent's program on the caller's own search path. A profile without a name runs what the caller gives.
fn find_program(launch: &Launch, request: &SpawnRequest, asker: Asker<'_>) -> Result<PathBuf> {
    let path = request.env.get("PATH").map(OsString::from).or_else(|| asker.env.get("PATH").cloned());
    let names: Vec<&str> = if launch.executable.names.is_empty() {
        let first = request.args.first().ok_or_else(|| {
            Error::invalid(
                format!("`{}` needs a command to run", request.agent),
                "give the command as arguments",
            )
        })?;
        vec![first]
    } else {
        launch.executable.names.iter().map(String::as_str).collect()
    };
    let beside = |name: &&str| asker.beside.map(|folder| folder.join(name)).filter(|path| runs(path));
    let found = names.iter().find_map(|name| which(name, path.as_ref(), asker.cwd));
    found.or_else(|| names.iter().find_map(beside)).ok_or_else(|| {
        Error::new(
            Kind::AgentMissing,
            format!("`{}` is not installed, or not on PATH", names.join("` or `")),
            launch.executable.install.clone(),
        )
    })
}

/// Looks a program up as a shell would.
pub fn which(name: &str, path: Option<&OsString>, cwd: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(cwd.join(name)).filter(|path| runs(path));
    }
    std::env::split_paths(path?).map(|folder| cwd.join(folder).join(name)).find(|path| runs(path))
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
        Some(near) => format!("did you mean {near}? Known are {}", known.join(", ")),
        None => format!("known are {}", known.join(", ")),
    };
    Error::new(Kind::UnknownAgent, format!("there is no agent `{}`", printable(given)), hint)
}
