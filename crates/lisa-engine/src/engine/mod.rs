//! The engine: every operation of the API as one method, for both front ends alike.
//!
//! Each method blocks and may be called from any thread. Nothing is kept in memory that is not also in tmux or on
//! disk: two engines, in one process or in two, see and say the same.

mod finish;
mod look;
mod record;
mod start;

pub use crate::watch::{Health, Said, Watch};

use crate::{
    api::*,
    config::{Config, Environment, Policy},
    disk::Cache,
    error::{Error, Kind, Result},
    observation::At,
    profile::{Profile, Profiles, launch::PromptWay},
    session::{Folder, Kept, Meta, Store, find, names, plan, repair},
    tmux::Tmux,
    watch::{Observed, Table, Watcher, change::Writer, journal::Journal, record::Record},
    words::StateName,
};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

/// Who calls: their environment, their folder, and how Lisa's own helper commands are run.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The caller's environment (not the plugin's or the server's own).
    pub env: Environment,
    /// The caller's folder.
    pub cwd: PathBuf,
    /// The command line that runs Lisa's helper commands, such as `["/usr/bin/lisa-mcp", "helper"]`.
    pub helper: Vec<String>,
    /// What the caller may do, where that is stricter than the configuration.
    pub policy: Option<Policy>,
}

impl Caller {
    /// This process as the caller, with its own executable as the helper.
    pub fn this_process() -> Result<Self> {
        let exe =
            std::env::current_exe().map_err(|error| Error::io("find", Path::new("the program"), &error))?;
        let cwd =
            std::env::current_dir().map_err(|error| Error::io("find", Path::new("the folder"), &error))?;
        Ok(Self {
            env: Environment::of_this_process(),
            cwd,
            helper: vec![exe.display().to_string(), "helper".to_owned()],
            policy: None,
        })
    }
}

/// A flag that ends a wait early. Cloning it shares it.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<Flag>>);

#[derive(Default)]
struct Flag {
    raised: bool,
    told: Vec<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

impl Cancel {
    fn flag(&self) -> MutexGuard<'_, Flag> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every wait that holds this flag.
    pub fn cancel(&self) {
        let mut flag = self.flag();
        flag.raised = true;
        let told = std::mem::take(&mut flag.told);
        drop(flag);
        told.into_iter().for_each(|tell| tell());
    }

    /// Whether it was raised.
    pub fn is_cancelled(&self) -> bool {
        self.flag().raised
    }

    /// Calls `tell` when it is raised, or now if it is.
    pub fn on_cancel(&self, tell: impl FnOnce() + Send + 'static) {
        let mut flag = self.flag();
        if flag.raised {
            drop(flag);
            tell();
        } else {
            flag.told.push(Box::new(tell));
        }
    }
}

/// Lisa's engine. Cloning it shares it.
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    cancel: Cancel,
}

#[derive(Debug)]
struct Inner {
    caller: Caller,
    config: Config,
    profiles: Profiles,
    tmux: Tmux,
    /// What this process has if it stays.
    watcher: Mutex<Option<Arc<Watcher>>>,
    /// What this process knows while it is the observer.
    table: OnceLock<Arc<Table>>,
    observed: Observed,
    metas: Arc<Cache<Meta>>,
    records: Cache<Arc<Record>>,
}

impl Inner {
    fn new(caller: Caller, config: Config, profiles: Profiles) -> Result<Self> {
        let tmux = Tmux::new(config.socket.clone(), &caller.env)?;
        let (watcher, table, observed) = (Mutex::new(None), OnceLock::new(), Observed::default());
        Ok(Self {
            caller,
            config,
            profiles,
            tmux,
            watcher,
            table,
            observed,
            metas: Arc::default(),
            records: Cache::default(),
        })
    }
}

impl Engine {
    /// Opens the engine for a caller: reads the configuration and the profiles, touches nothing.
    pub fn open(caller: Caller) -> Result<Self> {
        let mut config = Config::load(&caller.env)?;
        if let Some(policy) = &caller.policy {
            config.policy.clone_from(policy);
        }
        let profiles = Profiles::load(Some(&config.config_dir.join("agents"))).map_err(|error| {
            Error::new(Kind::InvalidProfile, error.to_string(), "mend that profile, or move it away")
        })?;
        let inner = Inner::new(caller, config, profiles)?;
        Ok(Self { inner: Arc::new(inner), cancel: Cancel::default() })
    }

    /// Opens the engine for a process that stays: it watches the sessions, or is ready to when whoever does goes.
    pub fn open_resident(caller: Caller) -> Result<Self> {
        let engine = Self::open(caller)?;
        engine.watcher()?;
        Ok(engine)
    }

    /// The same engine for somebody who may lose patience: a wait for an agent to come up, in a spawn, a resume or a
    /// send, is over when `cancel` is raised. What is typed already is still seen through to its proof.
    #[must_use]
    pub fn cancelled_by(&self, cancel: &Cancel) -> Self {
        Self { inner: Arc::clone(&self.inner), cancel: cancel.clone() }
    }

    /// Whether the caller has lost patience.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// What makes this process one that stays, started when it is first needed.
    pub(crate) fn watcher(&self) -> Result<Arc<Watcher>> {
        let mut slot = self.inner.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = slot.as_ref() {
            return Ok(Arc::clone(watcher));
        }
        // An engine of its own: this one ends it when it is dropped. Nothing is read a second time.
        let Inner { caller, config, profiles, .. } = self.inner.as_ref();
        let inner = Inner::new(caller.clone(), config.clone(), profiles.clone())?;
        let own = Self { inner: Arc::new(inner), cancel: Cancel::default() };
        let watcher = Arc::new(Watcher::start(own)?);
        *slot = Some(Arc::clone(&watcher));
        self.knows(&watcher.table());
        Ok(watcher)
    }

    /// Tells the engine what this process knows while it is the observer.
    pub(crate) fn knows(&self, table: &Arc<Table>) {
        let _ = self.inner.table.set(Arc::clone(table));
    }

    /// What this process knows while it is the observer; `None` for one that does not stay.
    pub(crate) fn own_table(&self) -> Option<&Arc<Table>> {
        self.inner.table.get()
    }

    /// The way to another process that is the observer.
    pub(crate) fn observer(&self) -> &Observed {
        &self.inner.observed
    }

    /// Who calls.
    pub(crate) fn caller(&self) -> &Caller {
        &self.inner.caller
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The profiles in force.
    pub fn profiles(&self) -> &Profiles {
        &self.inner.profiles
    }

    pub(crate) fn tmux(&self) -> &Tmux {
        &self.inner.tmux
    }

    pub(crate) fn store(&self) -> Result<Store> {
        Store::open_again(&self.inner.config.state_dir, &self.inner.metas)
    }

    /// What is known of a session; `None` where there is none. One whose metadata is damaged is repaired first.
    pub(crate) fn load(&self, name: &str) -> Result<Option<(Folder, Meta)>> {
        let store = self.store()?;
        match store.load(name) {
            Err(error) if error.kind() == Kind::CorruptFile => {
                repair::repair(self.tmux(), &store, name)?.map_or(Err(error), |_| store.load(name))
            }
            found => found,
        }
    }

    /// The store, in which the session of this name was repaired if that was needed and possible.
    pub(crate) fn store_with(&self, name: &str) -> Result<Store> {
        // What cannot be repaired is said by whoever reads it.
        let _ = self.load(name);
        self.store()
    }

    /// What is known of every session, repaired where that is needed and possible.
    pub(crate) fn load_all(&self) -> Result<Vec<(Folder, Meta)>> {
        let mut found = Vec::new();
        for name in self.kept()?.names {
            match self.load(&name) {
                Ok(loaded) => found.extend(loaded),
                Err(error) => tracing::warn!(session = name, %error, "it cannot be read"),
            }
        }
        Ok(found)
    }

    /// The sessions that matter: those that tmux has, and the newest of the others.
    pub(crate) fn kept(&self) -> Result<Kept> {
        let store = self.store()?;
        let keep = self.config().ended_max;
        let names = store.names()?;
        if names.len() <= keep {
            return Ok(Kept { names, older: Vec::new() });
        }
        let live =
            self.tmux().panes(false)?.into_iter().filter(|row| !row.run_id.is_empty()).map(|row| row.session);
        store.kept(&live.collect(), keep)
    }

    pub(crate) fn journal(&self) -> Result<Journal> {
        self.store()?;
        Journal::open(&self.inner.config)
    }

    /// What changing sessions takes.
    pub(crate) fn writer<'a>(&'a self, journal: &'a Journal) -> Writer<'a> {
        Writer { journal, lock_limit: self.inner.config.lock_timeout, records: &self.inner.records }
    }

    fn profile(&self, agent: &str) -> Result<Arc<Profile>> {
        self.inner.profiles.get(agent).ok_or_else(|| plan::unknown_agent(agent, &self.inner.profiles.ids()))
    }

    /// Where the journal stands now.
    pub fn cursor(&self) -> Result<u64> {
        self.journal()?.cursor()
    }

    /// Names of all sessions, sorted: reads the folder and nothing else.
    pub fn names(&self) -> Result<Vec<String>> {
        self.store()?.names()
    }

    /// Whether there is a session with exactly this name.
    pub fn exists(&self, name: &str) -> Result<bool> {
        Ok(self.store()?.load(name)?.is_some())
    }

    /// A unique session name, without starting anything.
    pub fn name(&self, request: &NameRequest) -> Result<String> {
        let profile = self.profile(&request.agent)?;
        let cwd = plan::working_folder(request.cwd.as_deref(), &self.inner.caller.cwd)?;
        let root = names::project_root(&cwd);
        Ok(names::make(&root, &profile.id, request.mode, request.tag.as_deref(), jiff::Timestamp::now()))
    }

    /// The command line that attaches a terminal to a session.
    pub fn attach_command(&self, name: &str) -> Result<Vec<String>> {
        let session = find::exact(self.tmux(), &self.store_with(name)?, name)?;
        if session.pane.as_ref().is_some_and(|row| row.pane.dead) && !self.tmux().survives_a_look()? {
            return Err(Error::new(
                Kind::NotOffered,
                format!("the agent of `{name}` has ended, and this tmux can die of a look at it"),
                "read its screen instead, or resume it; a tmux from 3.4 on shows it",
            ));
        }
        if session.pane.is_none() {
            return Err(Error::new(
                Kind::SessionNotFound,
                format!("the tmux session of `{name}` is gone"),
                "resume it, or kill it to remove what is left",
            ));
        }
        let argv = self.tmux().attach_command(name);
        Ok(argv.into_iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    /// The agents that can be started.
    pub fn agents(&self) -> Result<Vec<AgentInfo>> {
        Ok(self.inner.profiles.iter().map(|profile| self.agent_info(&profile)).collect())
    }

    fn agent_info(&self, profile: &Profile) -> AgentInfo {
        let launch = profile.launch.as_ref();
        let names = launch.map(|launch| launch.executable.names.as_slice()).unwrap_or_default();
        let path = self.inner.caller.env.get("PATH");
        let found =
            names.iter().find_map(|name| plan::which(name, path, &self.inner.caller.cwd)).or_else(|| {
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
            prompt_in_arguments: launch.is_some_and(|launch| launch.interactive.prompt == PromptWay::Argv),
            own: self.inner.profiles.is_own(&profile.id),
            install: launch.map(|launch| launch.executable.install.clone()).unwrap_or_default(),
        }
    }

    /// The folder that Lisa's own programs are in.
    fn beside(&self) -> Option<&Path> {
        self.inner.caller.helper.first().map(Path::new).and_then(Path::parent)
    }
}

/// What to do next with a session in this state, in the words of the tools; `cursor` is where the journal stands.
pub fn next_step(session: &Session, cursor: u64) -> String {
    let name = &session.name;
    match session.state {
        StateName::Starting | StateName::Working => {
            format!("wait_sessions with sessions=[\"{name}\"], since={cursor}")
        }
        StateName::AwaitingPermission | StateName::AwaitingQuestion | StateName::AwaitingPlan => {
            format!("answer_prompt for {name}: choose one of prompt.options and give prompt_id")
        }
        StateName::AwaitingDialog => {
            format!(
                "read the dialog with session_status {name}; answer_prompt only if you want what it offers"
            )
        }
        StateName::Ready => {
            format!("read_session {name} for its answer, then send_input to go on or kill_session when done")
        }
        StateName::Interrupted => format!("send_input to {name} with what to do instead, or kill_session"),
        StateName::Error => format!("read `error` of {name}; if it is recoverable, send_input again later"),
        StateName::Exited => {
            format!("read_session {name} view=output; resume_session to go on, or kill_session")
        }
        StateName::Stalled => format!("explain_session {name}; then interrupt_session or kill_session"),
        StateName::Unknown => format!("explain_session {name}, or doctor"),
    }
}

/// The present moment.
pub(crate) fn now() -> At {
    At(jiff::Timestamp::now().as_millisecond())
}
