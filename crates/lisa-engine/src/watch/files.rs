//! Watches files with information about sessions: those in their directories, and the agents' own files.

use super::wake::{Bell, WakeReason};
use crate::session::files::HOOKS;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Files of a session's directory to watch; the other files there are written by looks themselves.
const META: &str = "meta.json";
pub(super) const TELLING: &[&str] = &["done", "heartbeat"];

/// Which session a path belongs to.
#[derive(Debug, Default)]
struct Map {
    sessions: PathBuf,
    directories: HashMap<PathBuf, String>,
    files: HashMap<PathBuf, Vec<String>>,
}

/// The watched files of all sessions.
#[derive(Debug)]
pub(super) struct Files {
    watcher: Option<RecommendedWatcher>,
    map: Arc<Mutex<Map>>,
    /// How many sessions need each directory (reference count).
    users: HashMap<PathBuf, usize>,
    /// The agents' own files, by session.
    own: HashMap<String, Vec<PathBuf>>,
}

impl Files {
    /// Watches only the directory of all sessions at first.
    pub(super) fn new(sessions: &Path, bell: Arc<Bell>) -> Self {
        let map = Arc::new(Mutex::new(Map { sessions: sessions.to_owned(), ..Map::default() }));
        let heard = Arc::clone(&map);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| match event {
            Ok(event) => hear(&locked(&heard), &bell, &event),
            Err(error) => {
                tracing::warn!(%error, "lost file events");
                bell.rebuild();
            }
        });
        let watcher = watcher.inspect_err(|error| tracing::warn!(%error, "could not watch files")).ok();
        let mut files = Self { watcher, map, users: HashMap::new(), own: HashMap::new() };
        files.hold(sessions);
        files
    }

    /// Whether everything that a session needs is watched.
    pub(super) fn hears(&self, directory: &Path) -> bool {
        self.users.contains_key(directory)
    }

    /// Watches a session's directory.
    pub(super) fn watch_session(&mut self, name: &str, directory: &Path) {
        if !locked(&self.map).directories.contains_key(directory) && self.hold(directory) {
            locked(&self.map).directories.insert(directory.to_owned(), name.to_owned());
        }
    }

    /// Watches the agent's own files of a session, and stops watching its previous ones.
    pub(super) fn watch_files(&mut self, name: &str, paths: Vec<PathBuf>) {
        let before = self.own.get(name).map(Vec::as_slice).unwrap_or_default();
        if before == paths {
            return;
        }
        // A file whose directory doesn't exist yet is retried at the next look.
        let held: Vec<PathBuf> =
            paths.into_iter().filter(|path| path.parent().is_some_and(|parent| self.hold(parent))).collect();
        for path in &held {
            locked(&self.map).files.entry(path.clone()).or_default().push(name.to_owned());
        }
        let before = self.own.insert(name.to_owned(), held).unwrap_or_default();
        self.let_go(name, &before);
    }

    /// Stops watching a session.
    pub(super) fn forget(&mut self, name: &str, directory: &Path) {
        if locked(&self.map).directories.remove(directory).is_some() {
            self.release(directory);
        }
        let own = self.own.remove(name).unwrap_or_default();
        self.let_go(name, &own);
    }

    fn let_go(&mut self, name: &str, paths: &[PathBuf]) {
        for path in paths {
            let mut map = locked(&self.map);
            if let Some(names) = map.files.get_mut(path) {
                if let Some(at) = names.iter().position(|other| other == name) {
                    names.swap_remove(at);
                }
                if names.is_empty() {
                    map.files.remove(path);
                }
            }
            drop(map);
            if let Some(parent) = path.parent() {
                self.release(parent);
            }
        }
    }

    /// Adds a reference to a directory; returns whether it is watched.
    fn hold(&mut self, directory: &Path) -> bool {
        if let Some(users) = self.users.get_mut(directory) {
            *users += 1;
            return true;
        }
        let Some(watcher) = &mut self.watcher else { return false };
        match watcher.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.users.insert(directory.to_owned(), 1);
                return true;
            }
            Err(error) if !directory.exists() => tracing::debug!(%error, "a directory does not exist yet"),
            Err(error) => {
                tracing::warn!(%error, directory = %directory.display(), "could not watch a directory")
            }
        }
        false
    }

    fn release(&mut self, directory: &Path) {
        let Some(users) = self.users.get_mut(directory) else { return };
        *users -= 1;
        if *users == 0 {
            self.users.remove(directory);
            if let Some(watcher) = &mut self.watcher {
                // A directory that is gone has already lost its watch.
                let _ = watcher.unwatch(directory);
            }
        }
    }
}

fn locked(map: &Mutex<Map>) -> MutexGuard<'_, Map> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hear(map: &Map, bell: &Bell, event: &Event) {
    if event.need_rescan() {
        bell.rebuild();
        return;
    }
    if matches!(event.kind, EventKind::Access(_)) {
        return;
    }
    for path in &event.paths {
        if let Some(names) = map.files.get(path) {
            names.iter().for_each(|name| bell.wake(name, WakeReason::File));
            continue;
        }
        let (Some(directory), Some(file)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            continue;
        };
        if directory == map.sessions {
            // Names that start with a dot are directories that are being removed.
            if !file.starts_with('.') {
                bell.wake(file, WakeReason::Listed);
            }
            continue;
        }
        let Some(name) = map.directories.get(directory) else { continue };
        match file {
            HOOKS => bell.wake(name, WakeReason::Hook),
            META => bell.wake(name, WakeReason::Listed),
            file if TELLING.contains(&file) => bell.wake(name, WakeReason::File),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        collections::BTreeMap,
        fs,
        time::{Duration, Instant},
    };

    /// What wakes the observer within a moment.
    fn rung(bell: &Bell) -> BTreeMap<String, WakeReason> {
        let mut all = BTreeMap::new();
        let end = Instant::now() + Duration::from_millis(100);
        while Instant::now() < end {
            all.extend(bell.sleep(end).sessions);
        }
        all
    }

    #[test]
    fn an_event_names_the_session_that_it_is_about_and_a_look_s_own_writes_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let bell = Arc::new(Bell::default());
        let sessions = dir.path().join("sessions");
        fs::create_dir_all(sessions.join("a")).unwrap();
        let mut files = Files::new(&sessions, Arc::clone(&bell));
        files.watch_session("a", &sessions.join("a"));
        fs::write(sessions.join("a/state.json"), "x").unwrap();
        fs::write(sessions.join("a/lock"), "x").unwrap();
        assert_eq!(rung(&bell), BTreeMap::new());
        fs::write(sessions.join("a/hooks.jsonl"), "x").unwrap();
        fs::create_dir(sessions.join("b")).unwrap();
        let expected = [("a".to_owned(), WakeReason::Hook), ("b".to_owned(), WakeReason::Listed)];
        assert_eq!(rung(&bell), BTreeMap::from(expected));
        fs::write(sessions.join("a/meta.json"), "x").unwrap();
        assert_eq!(rung(&bell), BTreeMap::from([("a".to_owned(), WakeReason::Listed)]));
    }

    #[test]
    fn two_sessions_that_share_a_directory_are_told_apart_and_the_last_lets_it_go() {
        let dir = tempfile::tempdir().unwrap();
        let bell = Arc::new(Bell::default());
        let sessions = dir.path().join("sessions");
        let shared = dir.path().join("agent");
        fs::create_dir_all(&sessions).unwrap();
        fs::create_dir_all(&shared).unwrap();
        let mut files = Files::new(&sessions, Arc::clone(&bell));
        files.watch_files("a", vec![shared.join("1.json")]);
        files.watch_files("b", vec![shared.join("2.json")]);
        fs::write(shared.join("2.json"), "x").unwrap();
        fs::write(shared.join("3.json"), "x").unwrap();
        assert_eq!(rung(&bell), BTreeMap::from([("b".to_owned(), WakeReason::File)]));
        files.forget("a", &sessions.join("a"));
        assert!(files.hears(&shared));
        files.watch_files("b", Vec::new());
        assert!(!files.hears(&shared));
    }
}
