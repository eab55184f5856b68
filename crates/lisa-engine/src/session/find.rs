//! Finds sessions: joins the directories on disk with the panes of the server.

use super::{Meta, SessionDir, Store};
use crate::{
    error::{Error, Kind, Result, printable},
    tmux::{Tmux, pane::PaneRow},
};
use std::collections::HashMap;

/// How long tmux may take to create a pane that it was asked for.
const PANE_WITHIN_MS: i64 = 2_000;

/// A session that was found: its directory and metadata, and its pane.
#[derive(Debug, Clone)]
pub struct SessionSnapshot {
    /// Its directory.
    pub dir: SessionDir,
    /// Its metadata.
    pub meta: Meta,
    /// Its pane; `None` while it is being started, and after the server lost it.
    pub pane: Option<PaneRow>,
}

impl SessionSnapshot {
    /// Whether its process is running or just being started.
    pub fn alive(&self) -> bool {
        match &self.pane {
            Some(row) => !row.pane.dead,
            None => self.starting() || self.elsewhere(),
        }
    }

    /// Whether its process is running although this tmux server doesn't have it: it belongs to another server.
    pub fn elsewhere(&self) -> bool {
        self.pane.is_none()
            && !self.server_died()
            && self.meta.pane.is_some_and(crate::process::Identity::alive)
    }

    /// Whether its pane is gone because the tmux server that it was created in has died.
    pub fn server_died(&self) -> bool {
        self.pane.is_none() && self.meta.server.is_some_and(|server| !server.alive())
    }

    /// Whether somebody is starting it right now. If its starter was killed, tmux may still be about to create its pane.
    pub fn starting(&self) -> bool {
        let starter_lives = || self.meta.starter.is_some_and(crate::process::Identity::alive);
        let is_new = || {
            let age = jiff::Timestamp::now().as_millisecond() - self.meta.started_at.0;
            (0..PANE_WITHIN_MS).contains(&age)
        };
        // Checks the pane, not the process: the process may have ended before its pid could be written.
        self.pane.is_none() && self.meta.pane_id.is_none() && (starter_lives() || is_new())
    }
}

/// Every session, oldest first. Skips directories with malformed metadata; `doctor` and `cleanup` report those.
///
/// A session is the pane that it was started in, which carries the run's id, no matter what a person splits, opens or
/// renames around it.
pub fn all(tmux: &Tmux, store: &Store, with_command: bool) -> Result<Vec<SessionSnapshot>> {
    let stored = store.load_all()?;
    let mut rows: HashMap<String, PaneRow> =
        tmux.panes(with_command)?.into_iter().map(|row| (row.run_id.clone(), row)).collect();
    let mut found: Vec<SessionSnapshot> = stored
        .into_iter()
        .filter_map(|stored| stored.found.ok())
        .map(|(dir, meta)| {
            let pane = rows.remove(&meta.run_id);
            SessionSnapshot { dir, meta, pane }
        })
        .collect();
    found.sort_by(|a, b| (a.meta.started_at, &a.meta.name).cmp(&(b.meta.started_at, &b.meta.name)));
    Ok(found)
}

/// Every session, without asking tmux about panes.
pub fn unseen(store: &Store) -> Result<Vec<SessionSnapshot>> {
    let stored = store.load_all()?.into_iter().filter_map(|stored| stored.found.ok());
    Ok(stored.map(|(dir, meta)| SessionSnapshot { dir, meta, pane: None }).collect())
}

/// How many sessions count towards the limit.
pub fn live_count(tmux: &Tmux, store: &Store) -> Result<usize> {
    Ok(all(tmux, store, false)?.iter().filter(|session| session.alive()).count())
}

/// The pane of a run; `None` if it is gone.
pub fn pane_of(tmux: &Tmux, meta: &Meta) -> Result<Option<PaneRow>> {
    let row = match &meta.pane_id {
        Some(id) => tmux.pane(id)?,
        // It is being started: its pane id hasn't been written yet.
        None => tmux.panes(false)?.into_iter().find(|row| row.run_id == meta.run_id),
    };
    Ok(row.filter(|row| row.run_id == meta.run_id))
}

/// The directory and metadata of the session with exactly this name. The error suggests similar names.
pub fn stored(store: &Store, name: &str) -> Result<(SessionDir, Meta)> {
    match store.load(name)? {
        Some(found) => Ok(found),
        None => Err(Error::not_found(name, &store.names()?)),
    }
}

/// The session with exactly this name.
pub fn exact(tmux: &Tmux, store: &Store, name: &str) -> Result<SessionSnapshot> {
    let (dir, meta) = stored(store, name)?;
    let pane = pane_of(tmux, &meta)?;
    Ok(SessionSnapshot { dir, meta, pane })
}

/// The session that a name, a unique prefix or a unique tag refers to.
pub fn meant(store: &Store, given: &str) -> Result<(SessionDir, Meta)> {
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
            format!("`{}` matches {} sessions", printable(given), several.len()),
            format!(
                "give the full name of one of them: {}",
                several.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
            ),
        )
        .about(given)),
    }
}
