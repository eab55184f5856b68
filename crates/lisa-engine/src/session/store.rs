//! The folders of all sessions: `sessions/<name>/` below the state folder.

use super::{Meta, SCHEMA, names};
use crate::{
    disk::{self, Cache, Lock},
    error::{Error, Kind, Result},
};
use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// How the folder of a session that is being removed is called; no session's name begins like this.
const ASIDE: &str = ".gone-";

/// All session folders of a user.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    read: Arc<Cache<Meta>>,
}

/// A session's folder as it was found: with its metadata, or with why that can not be read.
#[derive(Debug)]
pub struct Stored {
    /// The session's name.
    pub name: String,
    /// Its folder and metadata.
    pub found: Result<(Folder, Meta)>,
}

/// Which sessions matter, and which have ended so long ago that they are to be removed.
#[derive(Debug)]
pub struct Kept {
    /// Names of those that matter, sorted.
    pub names: Vec<String>,
    /// The others, newest first.
    pub older: Vec<String>,
}

/// The folder of one session.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Store {
    /// The store below a state folder; makes what is missing and refuses what can not be trusted.
    pub fn open(state_dir: &Path) -> Result<Self> {
        Self::open_again(state_dir, &Arc::default())
    }

    /// The same for a process that opens it again and again.
    pub fn open_again(state_dir: &Path, read: &Arc<Cache<Meta>>) -> Result<Self> {
        disk::private_dir(state_dir)?;
        let store = Self { root: state_dir.to_owned(), read: Arc::clone(read) };
        disk::private_dir(&store.sessions())?;
        Ok(store)
    }

    fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// Taken while a place is claimed, so that two processes never take the last one together.
    pub fn claim_lock(&self, limit: Duration) -> Result<Lock> {
        Lock::take(&self.root.join("claim.lock"), limit)
    }

    /// The folder of a session, whether it exists or not. `None` for a string that can not be a name.
    pub fn folder(&self, name: &str) -> Option<Folder> {
        names::plausible(name).then(|| Folder { path: self.sessions().join(name) })
    }

    /// Claims a name by making its folder.
    pub fn claim(&self, name: &str) -> Result<Folder> {
        let folder =
            self.folder(name).ok_or_else(|| Error::invalid("that can not be a name", "choose another"))?;
        match fs::DirBuilder::new().mode_private().create(&folder.path) {
            Ok(()) => Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::new(
                Kind::NameTaken,
                format!("there is a session `{name}` already"),
                "choose another name, or kill that session first",
            )),
            Err(error) => Err(Error::io("make", &folder.path, &error)),
        }
    }

    /// Names of all sessions, sorted.
    pub fn names(&self) -> Result<Vec<String>> {
        let sessions = self.sessions();
        let entries = fs::read_dir(&sessions).map_err(|error| Error::io("list", &sessions, &error))?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| names::plausible(name))
            .collect();
        names.sort();
        Ok(names)
    }

    /// The sessions that matter: those that are `live`, and the newest `keep` of the others. A directory is as old as the
    /// last change in it. Nothing is read of the rest, however many there are.
    pub fn kept(&self, live: &HashSet<String>, keep: usize) -> Result<Kept> {
        let names = self.names()?;
        let (mut kept, others): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| live.contains(name));
        let age = |name: &String| self.changed(name);
        let mut dated: Vec<(Option<SystemTime>, String)> =
            others.into_iter().map(|name| (age(&name), name)).collect();
        dated.sort_by(|a, b| b.cmp(a));
        let mut others = dated.into_iter().map(|(_, name)| name);
        kept.extend(others.by_ref().take(keep));
        kept.sort();
        Ok(Kept { names: kept, older: others.collect() })
    }

    /// When something last changed in a session's directory; `None` where that is not known.
    pub fn changed(&self, name: &str) -> Option<SystemTime> {
        fs::metadata(self.sessions().join(name)).and_then(|found| found.modified()).ok()
    }

    /// Removes what a process that was killed while it removed sessions has left; says how many folders those were.
    pub fn sweep(&self) -> Result<usize> {
        let sessions = self.sessions();
        let entries = fs::read_dir(&sessions).map_err(|error| Error::io("list", &sessions, &error))?;
        let left = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(ASIDE));
        Ok(left.filter(|entry| fs::remove_dir_all(entry.path()).is_ok()).count())
    }

    /// What is known of a session; `None` where there is none.
    pub fn load(&self, name: &str) -> Result<Option<(Folder, Meta)>> {
        let Some(folder) = self.folder(name) else { return Ok(None) };
        let meta = self.read.read(&folder.file("meta.json"), || folder.meta())?;
        Ok(meta.map(|meta| (folder, meta)))
    }

    /// What is known of every session.
    pub fn load_all(&self) -> Result<Vec<Stored>> {
        let loaded = self.names()?.into_iter().filter_map(|name| {
            let found = self.load(&name).transpose()?;
            Some(Stored { name, found })
        });
        Ok(loaded.collect())
    }
}

impl Folder {
    /// A session's folder by its path, where that is one.
    pub fn at(path: &Path) -> Option<Self> {
        path.is_dir().then(|| Self { path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What is known of the session; `None` where the folder or its metadata is not there (yet).
    pub fn meta(&self) -> Result<Option<Meta>> {
        match disk::check_private_dir(&self.path) {
            Ok(()) => {}
            Err(_) if !self.path.exists() => return Ok(None),
            Err(error) => return Err(error),
        }
        let path = self.file("meta.json");
        let damaged = |why: String| {
            let hint = "kill the session to remove it; its conversation is the agent's own and stays";
            Error::new(Kind::CorruptFile, format!("{} is damaged: {why}", path.display()), hint)
        };
        let bytes = match disk::open_read(&path).and_then(|mut file| read_all(&mut file)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // A pipe, a directory or a link in its place.
            Err(error) if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) => {
                return Err(damaged(error.to_string()));
            }
            Err(error) => return Err(Error::io("read", &path, &error)),
        };
        let meta: Meta = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if meta.schema > SCHEMA {
            return Err(Error::new(
                Kind::CorruptFile,
                format!("{} was written by a newer Lisa (schema {})", path.display(), meta.schema),
                "use the newer version, or another LISA_STATE_DIR",
            ));
        }
        Ok(Some(meta))
    }

    /// Writes what is known of the session.
    pub fn write_meta(&self, meta: &Meta) -> Result<()> {
        let text = serde_json::to_vec_pretty(meta).map_err(|error| {
            Error::invalid(format!("metadata can not be written: {error}"), "report this")
        })?;
        disk::write_atomic(&self.file("meta.json"), &text)
    }

    /// Taken while the session's state is judged and written.
    pub fn lock(&self, limit: Duration) -> Result<Lock> {
        Lock::take(&self.file("lock"), limit)
    }

    /// Removes the folder and everything in it; one that is gone already is fine. It is moved away first, in one step:
    /// a look that is under way elsewhere may be writing into it, and would fill it again while it is being emptied.
    pub fn remove(&self) -> Result<()> {
        let io = |error: io::Error| Error::io("remove", &self.path, &error);
        let aside = self.path.with_file_name(format!("{ASIDE}{}", uuid::Uuid::new_v4().simple()));
        match fs::rename(&self.path, &aside) {
            // A cleanup may be sweeping it away at the same time.
            Ok(()) => match fs::remove_dir_all(&aside) {
                Err(error) if aside.exists() => Err(io(error)),
                _ => Ok(()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io(error)),
        }
    }
}

fn read_all(file: &mut fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(file, &mut bytes)?;
    Ok(bytes)
}

/// Folders that nobody else can enter.
trait Private {
    fn mode_private(&mut self) -> &mut Self;
}

impl Private for fs::DirBuilder {
    fn mode_private(&mut self) -> &mut Self {
        use std::os::unix::fs::DirBuilderExt;
        self.mode(0o700)
    }
}
