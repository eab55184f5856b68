//! Which sessions there are: the folders on disk joined with the panes of the server.

use super::{Folder, Meta, Store};
use crate::{
    error::{Error, Kind, Result, printable},
    tmux::{Tmux, pane::PaneRow},
};
use std::collections::HashMap;

/// A session as it was found.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// Its folder.
    pub folder: Folder,
    /// What is known of it.
    pub meta: Meta,
    /// Its pane; `None` while it is being started, and after the server lost it.
    pub pane: Option<PaneRow>,
}

impl Sighting {
    /// Whether its process runs, or is just being started.
    pub fn alive(&self) -> bool {
        match &self.pane {
            Some(row) => !row.pane.dead,
            None => self.starting() || self.elsewhere(),
        }
    }

    /// Whether its process runs although this tmux server does not have it: it belongs to another.
    pub fn elsewhere(&self) -> bool {
        self.pane.is_none()
            && !self.server_died()
            && self.meta.pane.is_some_and(crate::process::Identity::alive)
    }

    /// Whether its pane is gone because the tmux server is that it was made in.
    pub fn server_died(&self) -> bool {
        self.pane.is_none() && self.meta.server.is_some_and(|server| !server.alive())
    }

    /// Whether somebody is starting it right now.
    pub fn starting(&self) -> bool {
        // By its pane, not by its process: that may have ended before it could be written down.
        self.pane.is_none()
            && self.meta.pane_id.is_none()
            && self.meta.starter.is_some_and(crate::process::Identity::alive)
    }
}

/// Every session, oldest first. A folder whose metadata can not be read is left out here; `doctor` and `cleanup`
/// name it.
///
/// A session is the pane that it was started in, which carries the run's id: whatever a person splits, opens or renames
/// around it.
pub fn all(tmux: &Tmux, store: &Store, with_command: bool) -> Result<Vec<Sighting>> {
    let stored = store.load_all()?;
    let mut rows: HashMap<String, PaneRow> =
        tmux.panes(with_command)?.into_iter().map(|row| (row.run_id.clone(), row)).collect();
    let mut found: Vec<Sighting> = stored
        .into_iter()
        .filter_map(|stored| stored.found.ok())
        .map(|(folder, meta)| {
            let pane = rows.remove(&meta.run_id);
            Sighting { folder, meta, pane }
        })
        .collect();
    found.sort_by(|a, b| (a.meta.started_at, &a.meta.name).cmp(&(b.meta.started_at, &b.meta.name)));
    Ok(found)
}

/// Every session, without having asked tmux about any.
pub fn unseen(store: &Store) -> Result<Vec<Sighting>> {
    let stored = store.load_all()?.into_iter().filter_map(|stored| stored.found.ok());
    Ok(stored.map(|(folder, meta)| Sighting { folder, meta, pane: None }).collect())
}

/// How many sessions hold a place under the limit.
pub fn live_count(tmux: &Tmux, store: &Store) -> Result<usize> {
    Ok(all(tmux, store, false)?.iter().filter(|session| session.alive()).count())
}

/// The pane of a run; `None` where it is gone.
pub fn pane_of(tmux: &Tmux, meta: &Meta) -> Result<Option<PaneRow>> {
    let row = match &meta.pane_id {
        Some(id) => tmux.pane(id)?,
        // It is being started: nobody has written down which pane it is.
        None => tmux.panes(false)?.into_iter().find(|row| row.run_id == meta.run_id),
    };
    Ok(row.filter(|row| row.run_id == meta.run_id))
}

/// What is known of the one session with exactly this name; where there is none, which names are near.
pub fn stored(store: &Store, name: &str) -> Result<(Folder, Meta)> {
    match store.load(name)? {
        Some(found) => Ok(found),
        None => Err(Error::not_found(name, &store.names()?)),
    }
}

/// The one session with exactly this name.
pub fn exact(tmux: &Tmux, store: &Store, name: &str) -> Result<Sighting> {
    let (folder, meta) = stored(store, name)?;
    let pane = pane_of(tmux, &meta)?;
    Ok(Sighting { folder, meta, pane })
}

/// The one session that a reader means: by its exact name, or a unique prefix or tag.
pub fn meant(store: &Store, given: &str) -> Result<(Folder, Meta)> {
    if let Some(found) = store.load(given)? {
        return Ok(found);
    }
    let names = store.names()?;
    if given.is_empty() {
        return Err(Error::not_found(given, &names));
    }
    let tagged = |name: &str| {
        store.load(name).ok().flatten().is_some_and(|(_, meta)| meta.tag.as_deref() == Some(given))
    };
    let fits: Vec<String> =
        names.iter().filter(|name| name.starts_with(given) || tagged(name)).cloned().collect();
    match fits.as_slice() {
        [one] => store.load(one)?.ok_or_else(|| Error::not_found(given, &names)),
        [] => Err(Error::not_found(given, &names)),
        several => Err(Error::new(
            Kind::AmbiguousSession,
            format!("`{}` fits {} sessions", printable(given), several.len()),
            format!("give one of {} in full", several.iter().take(5).cloned().collect::<Vec<_>>().join(", ")),
        )),
    }
}
