//! The sessions that the observer watches, by name and by the key that kernel events carry.

use super::{files::TELLING, stamps::Stamps};
use crate::{
    api::words::StateName,
    session::files::HOOKS,
    session::{Meta, SessionDir},
};
use std::{collections::HashMap, path::PathBuf, time::Instant};

/// A watched session.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) dir: SessionDir,
    pub(super) meta: Meta,
    /// Its key in the sentinel and for debouncing; each run has another one.
    pub(super) key: u64,
    /// Its state at the last verdict.
    pub(super) state: Option<StateName>,
    /// When it was last looked at.
    pub(super) looked: Option<Instant>,
    /// Whether kernel events for its process (and its terminal) are on.
    pub(super) process_heard: bool,
    pub(super) terminal_heard: bool,
    /// Whether its pane had output at the last sweep.
    pub(super) moved: bool,
    /// When to look at it even without an event.
    pub(super) tick: Option<Instant>,
    /// The agent's own files to watch, and the stamps of all its watched files from before the last look.
    pub(super) files: Vec<PathBuf>,
    pub(super) stamps: Option<Stamps>,
}

impl Watched {
    /// The current stamps of all its watched files.
    pub(super) fn stamped(&self) -> Stamps {
        let own = TELLING.iter().chain([&HOOKS]).map(|name| self.dir.file(name));
        Stamps::of(own.chain(self.files.iter().cloned()))
    }
}

/// All watched sessions.
#[derive(Debug, Default)]
pub(super) struct Index {
    sessions: HashMap<String, Watched>,
    keys: HashMap<u64, String>,
    last_key: u64,
}

impl Index {
    /// Adds a session, or replaces its old run. Returns the key that is no longer in use.
    pub(super) fn put(&mut self, dir: SessionDir, meta: Meta) -> Option<u64> {
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
            dir,
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

    /// Removes a session.
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

    /// The session with a key.
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
        let dir = || SessionDir::at(dir.path()).unwrap();
        let mut index = Index::default();
        assert_eq!(index.put(dir(), meta("a", "1", "%1")), None);
        let key = index.get("a").unwrap().key;
        assert_eq!(index.put(dir(), meta("a", "1", "%1")), None, "the same run keeps its key");
        assert_eq!(index.by_key(key).unwrap().meta.name, "a");
        assert_eq!(index.put(dir(), meta("a", "2", "%2")), Some(key));
        assert!(index.by_key(key).is_none());
        assert_eq!(index.get("a").unwrap().meta.run_id, "2");
        index.remove("a").unwrap();
        assert!(index.get("a").is_none());
    }
}
