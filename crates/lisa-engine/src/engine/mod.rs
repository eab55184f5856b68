//! The engine: one method per operation of the API, for all front ends.
//!
//! Each method blocks and may be called from any thread. All state is also in tmux or on disk, so two engines, in one
//! process or in two, give the same results.

mod doctor;
mod drive;
mod finish;
mod look;
mod record;
mod start;
mod trace;
pub(crate) mod transcript;
mod wait;

pub use crate::watch::{Health, WaitMessage, Watch};

use crate::{
    api::*,
    classify::profile::{Profile, Profiles, launch::Launch},
    config::Config,
    error::{Error, Kind, Result},
    session::{find, names, plan, profiles},
    watch::{Caller, Cancel, Context, Watcher},
};
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// Lisa's engine. Clones share it.
#[derive(Debug, Clone)]
pub struct Engine {
    context: Arc<Context>,
    /// The background threads, if this process is long-lived.
    watcher: Arc<Mutex<Option<Arc<Watcher>>>>,
    cancel: Cancel,
}

impl Engine {
    /// Opens the engine for a caller: reads the configuration and the profiles, changes nothing.
    pub fn open(caller: Caller) -> Result<Self> {
        let mut config = Config::load(&caller.env)?;
        if let Some(policy) = &caller.policy {
            config.policy.clone_from(policy);
        }
        let profiles = profiles::load(&config.config_dir.join("agents")).map_err(|error| {
            Error::new(Kind::InvalidProfile, error.to_string(), "fix that profile, or move the file away")
        })?;
        let context = Arc::new(Context::new(caller, config, profiles)?);
        Ok(Self { context, watcher: Arc::default(), cancel: Cancel::default() })
    }

    /// Opens the engine for a long-lived process, which becomes the observer or a candidate for it.
    pub fn open_resident(caller: Caller) -> Result<Self> {
        let engine = Self::open(caller)?;
        engine.watcher()?;
        Ok(engine)
    }

    /// The same engine with cancellation: `cancel` ends waits for an agent to start (in a spawn, a resume or a send).
    /// A prompt that is already typed is still confirmed.
    #[must_use]
    pub fn cancelled_by(&self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self.clone() }
    }

    /// The background threads of a long-lived process, started on first use.
    fn watcher(&self) -> Result<Arc<Watcher>> {
        let mut slot = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = slot.as_ref() {
            return Ok(Arc::clone(watcher));
        }
        let watcher = Arc::new(Watcher::start(Arc::new(self.context.sibling()?))?);
        *slot = Some(Arc::clone(&watcher));
        self.context.knows(&watcher.table());
        Ok(watcher)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.context.config
    }

    /// The profiles.
    pub fn profiles(&self) -> &Profiles {
        &self.context.profiles
    }

    fn profile(&self, agent: &str) -> Result<Arc<Profile>> {
        self.context
            .profiles
            .get(agent)
            .ok_or_else(|| plan::unknown_agent(agent, &self.context.profiles.ids()))
    }

    /// The observer's health; `None` if there is none, or it doesn't answer.
    pub fn observer_health(&self) -> Option<Health> {
        self.context.observer_health()
    }

    /// The journal's current cursor.
    pub fn cursor(&self) -> Result<u64> {
        self.context.cursor()
    }

    /// Names of all sessions, sorted; only lists the directory.
    pub fn names(&self) -> Result<Vec<String>> {
        self.context.store()?.names()
    }

    /// Whether a session with exactly this name exists.
    pub fn exists(&self, name: &str) -> Result<bool> {
        Ok(self.context.store()?.load(name)?.is_some())
    }

    /// Generates a unique session name without starting anything.
    pub fn name(&self, request: &NameRequest) -> Result<String> {
        let profile = self.profile(&request.agent)?;
        let cwd = plan::working_dir(request.cwd.as_deref(), &self.context.caller.cwd)?;
        let root = names::project_root(&cwd);
        Ok(names::make(&root, &profile.id, request.mode, request.tag.as_deref(), jiff::Timestamp::now()))
    }

    /// The command line that attaches a terminal to a session.
    pub fn attach_command(&self, name: &str) -> Result<Vec<String>> {
        let session = find::exact(self.context.tmux(), &self.context.store_with(name)?, name)?;
        if session.pane.as_ref().is_some_and(|row| row.pane.dead) && !self.context.tmux().survives_attach()? {
            return Err(Error::new(
                Kind::NotOffered,
                format!("the agent of `{name}` has ended, and attaching could crash this tmux (before 3.4)"),
                "read its screen instead, resume it, or upgrade tmux to 3.4 or newer",
            ));
        }
        if session.pane.is_none() {
            return Err(Error::new(
                Kind::SessionNotFound,
                format!("the tmux session of `{name}` is gone"),
                "resume it, or kill it to remove what is left",
            ));
        }
        let argv = self.context.tmux().attach_command(name);
        Ok(argv.into_iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    /// The agents that can be started.
    pub fn agents(&self) -> Result<Vec<AgentInfo>> {
        Ok(self.context.profiles.iter().map(|profile| self.agent_info(&profile)).collect())
    }

    fn agent_info(&self, profile: &Profile) -> AgentInfo {
        let launch = profile.launch.as_ref();
        let names = launch.map(|launch| launch.executable.names.as_slice()).unwrap_or_default();
        let path = self.context.caller.env.get("PATH");
        let found =
            names.iter().find_map(|name| plan::which(name, path, &self.context.caller.cwd)).or_else(|| {
                names.iter().map(|name| self.beside()?.join(name).canonicalize().ok()).next().flatten()
            });
        AgentInfo {
            id: profile.id.clone(),
            title: profile.title.clone(),
            installed: found.is_some() || launch.is_some_and(|launch| launch.executable.names.is_empty()),
            path: found.map(|path| path.display().to_string()),
            recorded_with: profile.recorded_with.clone(),
            exec: launch.is_some_and(|launch| launch.exec.is_some()),
            resume: launch.is_some_and(|launch| launch.resume.is_some()),
            prompt_in_arguments: launch.is_some_and(Launch::shows_prompts),
            own: self.context.profiles.is_own(&profile.id),
            install: launch.map(|launch| launch.executable.install.clone()).unwrap_or_default(),
        }
    }

    /// The directory of Lisa's own programs.
    fn beside(&self) -> Option<&Path> {
        self.context.caller.helper.first().map(Path::new).and_then(Path::parent)
    }
}
