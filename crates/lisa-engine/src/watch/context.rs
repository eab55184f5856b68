//! What every operation needs: the caller, the configuration, the profiles, tmux, and the state directory.
//!
//! It decides nothing: [`looking`](super::looking) turns it into verdicts, `drive` types through it, and the engine's
//! operations build on both.

use super::{change::Writer, door, election::Election, journal::Journal, record::Record, table::Table};
use crate::{
    classify::profile::Profiles,
    config::{Config, Environment, Policy},
    disk::Cache,
    error::{Error, Kind, Result},
    process::Trees,
    session::{Kept, Meta, SessionDir, Store, repair},
    tmux::Tmux,
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

/// The caller: its environment, its working directory, and how to run Lisa's own helper commands.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The caller's environment (not the plugin's or the server's own).
    pub env: Environment,
    /// The caller's working directory.
    pub cwd: PathBuf,
    /// The command line of Lisa's helper commands, for example `["/usr/bin/lisa-mcp", "helper"]`.
    pub helper: Vec<String>,
    /// What the caller may do, if that is stricter than the configuration.
    pub policy: Option<Policy>,
}

impl Caller {
    /// This process as the caller, with its own executable as the helper.
    pub fn this_process() -> Result<Self> {
        let exe =
            std::env::current_exe().map_err(|error| Error::io("find", Path::new("the program"), &error))?;
        let cwd = std::env::current_dir()
            .map_err(|error| Error::io("find", Path::new("the working directory"), &error))?;
        Ok(Self {
            env: Environment::of_this_process(),
            cwd,
            helper: vec![exe.display().to_string(), "helper".to_owned()],
            policy: None,
        })
    }
}

/// What all operations within a process share.
#[derive(Debug)]
pub struct Context {
    pub(crate) caller: Caller,
    pub(crate) config: Config,
    pub(crate) profiles: Profiles,
    tmux: Tmux,
    /// What this process knows about sessions while it is the observer.
    table: OnceLock<Arc<Table>>,
    /// The connection to another process that is the observer.
    observer_client: OnceLock<door::ObserverClient>,
    metas: Arc<Cache<Meta>>,
    records: Cache<Arc<Record>>,
    pub(super) trees: Trees,
}

impl Context {
    /// Creates it for a caller; starts nothing and asks nothing.
    pub(crate) fn new(caller: Caller, config: Config, profiles: Profiles) -> Result<Self> {
        let tmux = Tmux::new(config.socket.clone(), &caller.env)?;
        Ok(Self {
            caller,
            config,
            profiles,
            tmux,
            table: OnceLock::new(),
            observer_client: OnceLock::new(),
            metas: Arc::default(),
            records: Cache::default(),
            trees: Trees::default(),
        })
    }

    /// A copy for another thread, with its own connection to the observer. Reads nothing again.
    pub(crate) fn sibling(&self) -> Result<Self> {
        Self::new(self.caller.clone(), self.config.clone(), self.profiles.clone())
    }

    /// Sets the table of this process, for while it is the observer.
    pub(crate) fn knows(&self, table: &Arc<Table>) {
        let _ = self.table.set(Arc::clone(table));
    }

    /// This process's table, if it is the observer and has looked at every session.
    pub(super) fn leading_table(&self) -> Option<&Arc<Table>> {
        self.table.get().filter(|table| table.leads())
    }

    /// The connection to another process that is the observer.
    pub(super) fn observer_client(&self) -> &door::ObserverClient {
        self.observer_client
            .get_or_init(|| door::ObserverClient::new(self.election().observer_socket().to_owned()))
    }

    /// Where the observer of this state directory and socket is elected.
    pub(super) fn election(&self) -> Election {
        Election::of(&self.config.state_dir, &self.tmux.socket_path())
    }

    pub(crate) fn tmux(&self) -> &Tmux {
        &self.tmux
    }

    pub(crate) fn store(&self) -> Result<Store> {
        Store::open_again(&self.config.state_dir, &self.metas)
    }

    /// The directory and metadata of a session; `None` if there is none. Repairs malformed metadata first.
    pub(crate) fn load(&self, name: &str) -> Result<Option<(SessionDir, Meta)>> {
        let store = self.store()?;
        match store.load(name) {
            Err(error) if error.kind() == Kind::CorruptFile => {
                repair::repair(self.tmux(), &store, name)?.map_or(Err(error), |_| store.load(name))
            }
            found => found,
        }
    }

    /// The store, after repairing this session if necessary and possible.
    pub(crate) fn store_with(&self, name: &str) -> Result<Store> {
        // If it can't be repaired, reading it reports the error.
        let _ = self.load(name);
        self.store()
    }

    /// Directory and metadata of every session, repaired if necessary and possible.
    pub(crate) fn load_all(&self) -> Result<Vec<(SessionDir, Meta)>> {
        let mut found = Vec::new();
        for name in self.kept()?.names {
            match self.load(&name) {
                Ok(loaded) => found.extend(loaded),
                Err(error) => tracing::warn!(session = name, %error, "the session's metadata is malformed"),
            }
        }
        Ok(found)
    }

    /// The sessions to keep: those that tmux has, and the newest of the others.
    pub(crate) fn kept(&self) -> Result<Kept> {
        let store = self.store()?;
        let keep = self.config.ended_max;
        let names = store.names()?;
        if names.len() <= keep {
            return Ok(Kept { names, older: Vec::new() });
        }
        let live = self.tmux().agent_panes()?.into_iter().map(|pane| pane.session);
        store.kept(&live.collect(), keep)
    }

    pub(crate) fn journal(&self) -> Result<Journal> {
        self.store()?;
        Journal::open(&self.config)
    }

    /// What is needed to change sessions.
    pub(crate) fn writer<'a>(&'a self, journal: &'a Journal) -> Writer<'a> {
        Writer { journal, lock_limit: self.config.lock_timeout, records: &self.records }
    }

    /// The journal's current cursor.
    pub(crate) fn cursor(&self) -> Result<u64> {
        self.journal()?.cursor()
    }
}
