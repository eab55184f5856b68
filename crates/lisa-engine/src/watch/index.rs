//! The sessions that the observer watches, found by name and by the key under which the kernel tells of them.

use super::{
    files::{HOOKS, TELLING},
    stamps::Stamps,
};
use crate::{
    session::{Folder, Meta},
    words::StateName,
};
use std::{collections::HashMap, path::PathBuf, time::Instant};

/// A session that is watched.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) folder: Folder,
    pub(super) meta: Meta,
    /// The number that the sentinel and the bursts know it by; another for each run.
    pub(super) key: u64,
    /// What it was last judged to be.
    pub(super) state: Option<StateName>,
    /// When it was last looked at.
    pub(super) looked: Option<Instant>,
    /// Whether the kernel tells of its process, and of its terminal.
    pub(super) process_heard: bool,
    pub(super) terminal_heard: bool,
    /// Whether its pane had output at the last sweep.
    pub(super) moved: bool,
    /// When it is looked at anyway.
    pub(super) tick: Option<Instant>,
    /// The agent's own files that tell about it, and how they and those of its directory were before the last look.
    pub(super) files: Vec<PathBuf>,
    pub(super) stamps: Option<Stamps>,
}

impl Watched {
    /// Every file that tells about it, as it is now.
    pub(super) fn stamped(&self) -> Stamps {
        let own = TELLING.iter().chain([&HOOKS]).map(|name| self.folder.file(name));
        Stamps::of(own.chain(self.files.iter().cloned()))
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Index {
    sessions: HashMap<String, Watched>,
    keys: HashMap<u64, String>,
    last_key: u64,
}

impl Index {
    /// Puts a session in, or its new run in place of the old one. Says which key is not in use any more.
    pub(super) fn put(&mut self, folder: Folder, meta: Meta) -> Option<u64> {
        let name = meta.name.clone();
        let same_run =
            |known: &Watched| known.meta.run_id == meta.run_id && known.meta.pane_id == meta.pane_id;
        if let Some(known) = self.sessions.get_mut(&name)
            && same_run(known)
        {
            known.meta = meta;
            return None;
        }
        let before = self.remove(&name).map(|watched| watched.key);
        self.last_key += 1;
        self.keys.insert(self.last_key, name.clone());
        let watched = Watched {
            folder,
            meta,
            key: self.last_key,
            state: None,
            looked: None,
            process_heard: false,
            terminal_heard: false,
            moved: false,
            tick: None,
            files: Vec::new(),
            stamps: None,
        };
        self.sessions.insert(name, watched);
        before
    }

    /// Takes a session out.
    pub(super) fn remove(&mut self, name: &str) -> Option<Watched> {
        let watched = self.sessions.remove(name)?;
        self.keys.remove(&watched.key);
        Some(watched)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Watched> {
        self.sessions.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Watched> {
        self.sessions.get_mut(name)
    }

    /// The session of a key.
    pub(super) fn by_key(&mut self, key: u64) -> Option<&mut Watched> {
        self.sessions.get_mut(self.keys.get(&key)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Watched> {
        self.sessions.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(name: &str, run: &str, pane: &str) -> Meta {
        serde_json::from_value(serde_json::json!({
            "schema": 1, "name": name, "agent": "generic", "mode": "interactive", "run_id": run, "host": "h",
            "cwd": "/", "project_root": "/", "depth": 0, "started_at": 0, "argv": [], "starter": null,
            "size": { "columns": 80, "rows": 24 }, "pane_id": pane,
        }))
        .unwrap()
    }

    #[test]
    fn a_session_is_found_by_name_and_key_and_a_new_run_takes_the_place_of_the_old() {
        let dir = tempfile::tempdir().unwrap();
        let folder = || Folder::at(dir.path()).unwrap();
        let mut index = Index::default();
        assert_eq!(index.put(folder(), meta("a", "1", "%1")), None);
        let key = index.get("a").unwrap().key;
        assert_eq!(index.put(folder(), meta("a", "1", "%1")), None, "the same run keeps its key");
        assert_eq!(index.by_key(key).unwrap().meta.name, "a");
        assert_eq!(index.put(folder(), meta("a", "2", "%2")), Some(key));
        assert!(index.by_key(key).is_none());
        assert_eq!(index.get("a").unwrap().meta.run_id, "2");
        index.remove("a").unwrap();
        assert!(index.get("a").is_none());
    }
}
