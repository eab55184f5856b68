//! The directories of all sessions: `sessions/<name>/` in the state directory.

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

/// Prefix for the directory of a session that is being removed; no session's name starts like this.
const ASIDE: &str = ".gone-";

/// For how many turns the last message is kept in a file of its own.
const TURN_TEXTS: u64 = 100;

/// All session directories of a user.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    read: Arc<Cache<Meta>>,
}

/// A session's directory with its metadata, or with the error if that can't be read.
#[derive(Debug)]
pub struct Stored {
    /// The session's name.
    pub name: String,
    /// Its directory and metadata.
    pub found: Result<(SessionDir, Meta)>,
}

/// Which sessions to keep, and which ended so long ago that they can be removed.
#[derive(Debug)]
pub struct Kept {
    /// Names of those to keep, sorted.
    pub names: Vec<String>,
    /// Names of the others, newest first.
    pub older: Vec<String>,
}

/// The directory of one session.
#[derive(Debug, Clone)]
pub struct SessionDir {
    path: PathBuf,
}

impl Store {
    /// The store in a state directory; creates what is missing and rejects what can't be trusted.
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

    /// Held while a place is claimed, so that two processes can't both take the last one (race).
    pub fn claim_lock(&self, limit: Duration) -> Result<Lock> {
        Lock::take(&self.root.join("claim.lock"), limit)
    }

    /// The directory of a session, whether it exists or not. `None` if the string can't be a name.
    pub fn dir(&self, name: &str) -> Option<SessionDir> {
        names::plausible(name).then(|| SessionDir { path: self.sessions().join(name) })
    }

    /// Claims a name by creating its directory.
    pub fn claim(&self, name: &str) -> Result<SessionDir> {
        let dir = self
            .dir(name)
            .ok_or_else(|| Error::invalid("this is not a valid session name", "choose another one"))?;
        match fs::DirBuilder::new().mode_private().create(&dir.path) {
            Ok(()) => Ok(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::new(
                Kind::NameTaken,
                format!("a session `{name}` already exists"),
                "choose another name, or kill that session first",
            )
            .about(name)),
            Err(error) => Err(Error::io("make", &dir.path, &error)),
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

    /// Splits sessions into those to keep (the `live` ones and the newest `keep` others) and the rest. The age of a
    /// directory is that of its last change. Reads nothing of the rest, however many there are.
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

    /// When something last changed in a session's directory; `None` if unknown.
    pub fn changed(&self, name: &str) -> Option<SystemTime> {
        fs::metadata(self.sessions().join(name)).and_then(|found| found.modified()).ok()
    }

    /// Removes what a killed process left while it was removing sessions; returns how many directories those were.
    pub fn sweep(&self) -> Result<usize> {
        let sessions = self.sessions();
        let entries = fs::read_dir(&sessions).map_err(|error| Error::io("list", &sessions, &error))?;
        let left = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(ASIDE));
        Ok(left.filter(|entry| fs::remove_dir_all(entry.path()).is_ok()).count())
    }

    /// The directory and metadata of a session; `None` if there is none.
    pub fn load(&self, name: &str) -> Result<Option<(SessionDir, Meta)>> {
        let Some(dir) = self.dir(name) else { return Ok(None) };
        let meta = self.read.read(&dir.file("meta.json"), || dir.meta())?;
        Ok(meta.map(|meta| (dir, meta)))
    }

    /// Directory and metadata of every session.
    pub fn load_all(&self) -> Result<Vec<Stored>> {
        let loaded = self.names()?.into_iter().filter_map(|name| {
            let found = self.load(&name).transpose()?;
            Some(Stored { name, found })
        });
        Ok(loaded.collect())
    }
}

impl SessionDir {
    /// The directory at a path, if it is one of a session.
    pub fn at(path: &Path) -> Option<Self> {
        path.is_dir().then(|| Self { path: path.to_owned() })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The file with the last message of a turn, if that is too long for an event.
    pub fn turn_text(&self, turn: u64) -> PathBuf {
        self.path.join("turns").join(format!("{turn}.txt"))
    }

    /// Writes the last message of a turn, and removes the one of a turn long ago.
    pub fn write_turn_text(&self, turn: u64, text: &str) -> Result<()> {
        disk::private_dir(&self.path.join("turns"))?;
        disk::write_atomic(&self.turn_text(turn), text.as_bytes())?;
        if let Some(old) = turn.checked_sub(TURN_TEXTS) {
            // That file may never have existed.
            let _ = fs::remove_file(self.turn_text(old));
        }
        Ok(())
    }

    /// Reads the metadata; `None` if the directory or its metadata doesn't exist (yet).
    pub fn meta(&self) -> Result<Option<Meta>> {
        match disk::check_private_dir(&self.path) {
            Ok(()) => {}
            Err(_) if !self.path.exists() => return Ok(None),
            Err(error) => return Err(error),
        }
        let path = self.file("meta.json");
        let damaged = |why: String| {
            let hint = "kill the session to remove it; the agent keeps its conversation";
            Error::new(Kind::CorruptFile, format!("{} is malformed: {why}", path.display()), hint)
        };
        let bytes = match disk::open_read(&path).and_then(|mut file| read_all(&mut file)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // There is a pipe, a directory or a link in its place.
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

    /// Writes the metadata.
    pub fn write_meta(&self, meta: &Meta) -> Result<()> {
        let text = serde_json::to_vec_pretty(meta)
            .map_err(|error| Error::invalid(format!("metadata cannot be written: {error}"), "report this"))?;
        disk::write_atomic(&self.file("meta.json"), &text)
    }

    /// Held while the session's state is judged and written.
    pub fn lock(&self, limit: Duration) -> Result<Lock> {
        Lock::take(&self.file("lock"), limit)
    }

    /// Removes the directory and everything in it, if it still exists. It is renamed first, atomically: a concurrent
    /// look may be writing into it and would refill it while it is being emptied (race).
    pub fn remove(&self) -> Result<()> {
        let io = |error: io::Error| Error::io("remove", &self.path, &error);
        let aside = self.path.with_file_name(format!("{ASIDE}{}", uuid::Uuid::new_v4().simple()));
        match fs::rename(&self.path, &aside) {
            // A cleanup may be removing it at the same time.
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

/// Directories that nobody else can enter.
trait Private {
    fn mode_private(&mut self) -> &mut Self;
}

impl Private for fs::DirBuilder {
    fn mode_private(&mut self) -> &mut Self {
        use std::os::unix::fs::DirBuilderExt;
        self.mode(0o700)
    }
}
