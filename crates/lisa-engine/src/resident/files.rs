//! Files that tell about a session, watched: hooks, the agent's state file, its transcript, the journal.

use super::Bell;
use crate::{
    engine::Engine,
    error::Result,
    session::{
        files::{Known, locate, open_transcript},
        find::Sighting,
    },
};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Files of a session's folder that a look itself writes: they are no news.
const OWN: &[&str] =
    &["state.json", "lock", "drive.lock", "resume.lock", "events.jsonl", "meta.json", "output.txt", "orders"];

/// Which session a path tells about.
#[derive(Debug, Default)]
struct Map {
    folders: HashMap<PathBuf, String>,
    files: HashMap<PathBuf, String>,
    journal: PathBuf,
}

/// The watched files of all sessions.
#[derive(Debug)]
pub(super) struct Files {
    watcher: Option<RecommendedWatcher>,
    map: Arc<Mutex<Map>>,
    watched: BTreeSet<PathBuf>,
}

impl Files {
    pub(super) fn new(engine: &Engine, bell: Arc<Bell>) -> Result<Self> {
        let journal = engine.journal()?.dir().to_owned();
        let map = Arc::new(Mutex::new(Map { journal: journal.clone(), ..Map::default() }));
        let heard = Arc::clone(&map);
        // Where the system has no watches left, the tick still comes round.
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if let Ok(event) = event {
                hear(&heard, &bell, &event);
            }
        })
        .ok();
        let mut files = Self { watcher, map, watched: BTreeSet::new() };
        files.watch(&journal);
        let sessions = engine.config().state_dir.join("sessions");
        files.watch(&sessions);
        Ok(files)
    }

    fn watch(&mut self, folder: &Path) {
        if self.watched.contains(folder) || !folder.is_dir() {
            return;
        }
        if let Some(watcher) = &mut self.watcher
            && watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()
        {
            self.watched.insert(folder.to_owned());
        }
    }

    /// Watches what tells about these sessions, and no longer what told about others.
    pub(super) fn follow(&mut self, all: &[Sighting], engine: &Engine) {
        let mut folders = HashMap::new();
        let mut files = HashMap::new();
        for session in all {
            let name = session.meta.name.clone();
            folders.insert(session.folder.path().to_owned(), name.clone());
            for path in told_by(session, engine) {
                files.insert(path, name.clone());
            }
        }
        let wanted: BTreeSet<PathBuf> = folders
            .keys()
            .cloned()
            .chain(files.keys().filter_map(|file| file.parent().map(Path::to_owned)))
            .collect();
        let kept = {
            let mut map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
            map.folders = folders;
            map.files = files;
            [map.journal.clone(), engine.config().state_dir.join("sessions")]
        };
        let gone: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|path| !wanted.contains(*path) && !kept.contains(path))
            .cloned()
            .collect();
        for path in gone {
            if let Some(watcher) = &mut self.watcher {
                let _ = watcher.unwatch(&path);
            }
            self.watched.remove(&path);
        }
        for path in wanted {
            self.watch(&path);
        }
    }
}

/// The agent's own files, as far as they can be found.
fn told_by(session: &Sighting, engine: &Engine) -> Vec<PathBuf> {
    let Some(profile) = engine.profiles().get_or_generic(&session.meta.agent) else { return Vec::new() };
    let Some(launch) = &profile.launch else { return Vec::new() };
    let pid = session.pane.as_ref().map(|row| row.pane.pid);
    let known = Known {
        meta: &session.meta,
        folder: session.folder.path(),
        pid,
        session_id: session.meta.agent_session_id.as_deref(),
    };
    let native = launch.files.native.as_deref().and_then(|path| locate(path, known));
    let transcript = launch.files.transcript.as_deref().and_then(|path| locate(path, known));
    let title = session.pane.as_ref().map(|row| row.pane.title.as_str());
    let open = open_transcript(&launch.files, pid, title);
    [native, transcript, open].into_iter().flatten().collect()
}

fn hear(map: &Mutex<Map>, bell: &Bell, event: &Event) {
    if matches!(event.kind, EventKind::Access(_)) {
        return;
    }
    let map = map.lock().unwrap_or_else(PoisonError::into_inner);
    for path in &event.paths {
        if path.starts_with(&map.journal) {
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                bell.journal();
            }
            continue;
        }
        if let Some(name) = map.files.get(path) {
            bell.session(name);
            continue;
        }
        let Some(folder) = path.parent() else { continue };
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match map.folders.get(folder) {
            Some(name) if !OWN.contains(&file) && !file.ends_with(".tmp") && !file.starts_with("lisa-") => {
                bell.session(name);
            }
            Some(_) => {}
            // A session's folder itself came or went.
            None if folder.ends_with("sessions") => bell.journal(),
            None => {}
        }
    }
}
