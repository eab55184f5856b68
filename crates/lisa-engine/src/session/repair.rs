//! Repairs a session whose metadata is malformed or missing while its agent is still running in tmux.
//!
//! The pane carries the run's id, and the agent's process has the variables that it was started with; the metadata is
//! rebuilt from those. What only the lost file contained (a tag, a policy, whether to trust) is gone, and `rebuilt`
//! says so.

use super::{Meta, SCHEMA, SessionDir, Store, names, plan};
use crate::{
    api::{Size, words::Mode},
    classify::{observation::At, profile::FALLBACK},
    disk,
    error::{Kind, Result},
    process::{self, Identity},
    tmux::{Tmux, pane::PaneRow},
};
use std::{collections::BTreeMap, path::PathBuf};

/// Rebuilds the metadata of a session from its pane, if it has one, and returns it. Leaves a session alone whose
/// metadata is fine or was written by a newer Lisa.
pub fn repair(tmux: &Tmux, store: &Store, name: &str) -> Result<Option<Meta>> {
    let Some(dir) = store.dir(name) else { return Ok(None) };
    let damaged = match dir.meta() {
        Ok(Some(_)) => return Ok(None),
        Ok(None) => false,
        Err(error) if error.kind() == Kind::CorruptFile && !is_newer(&dir) => true,
        Err(error) => return Err(error),
    };
    // A person may have renamed it in tmux.
    let is_it =
        |row: &PaneRow| row.session == name || started_with(row, "LISA_SESSION").as_deref() == Some(name);
    let row = tmux.panes(false)?.into_iter().filter(|row| !row.run_id.is_empty()).find(is_it);
    let meta = match &row {
        Some(row) => rebuilt(tmux, name, row)?,
        None if damaged => without_pane(&dir, name),
        None => return Ok(None),
    };
    // Its directory may have been moved away. Create it again, so that the session can be read and ended.
    disk::private_dir(dir.path())?;
    keep_damaged(&dir);
    dir.write_meta(&meta)?;
    tracing::warn!(session = name, damaged, alive = row.is_some(), "metadata was lost and is rebuilt");
    Ok(Some(meta))
}

/// Whether the metadata isn't malformed but of a newer version.
fn is_newer(dir: &SessionDir) -> bool {
    let bytes = disk::read(&dir.file("meta.json")).ok().flatten().unwrap_or_default();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    value.get("schema").and_then(serde_json::Value::as_u64).is_some_and(|schema| schema > u64::from(SCHEMA))
}

/// Keeps the malformed file next to the new one, for whoever wants to know what happened.
fn keep_damaged(dir: &SessionDir) {
    let _ = std::fs::rename(dir.file("meta.json"), dir.file("meta.damaged.json"));
}

/// A variable that the pane's process was started with; `None` if it can't be read, for example after it ended.
fn started_with(row: &PaneRow, variable: &str) -> Option<String> {
    process::variable(row.pane.pid, variable)
}

fn rebuilt(tmux: &Tmux, name: &str, row: &PaneRow) -> Result<Meta> {
    let place = tmux.place(&row.pane_id)?;
    let cwd = place.cwd.unwrap_or_else(|| PathBuf::from("/"));
    let started = |variable| started_with(row, variable);
    let is_exec = started("LISA_MODE").as_deref() == Some(Mode::Exec.as_str());
    let parent = started("LISA_PARENT");
    Ok(Meta {
        agent: started("LISA_AGENT").unwrap_or_else(|| FALLBACK.to_owned()),
        mode: if is_exec { Mode::Exec } else { Mode::Interactive },
        run_id: row.run_id.clone(),
        project_root: names::project_root(&cwd),
        cwd,
        depth: u32::from(parent.is_some()),
        parent,
        started_at: place.created,
        size: Size { columns: row.pane.size.0, rows: row.pane.size.1 },
        pane: Identity::of(row.pane.pid),
        pane_id: Some(row.pane_id.clone()),
        terminal: place.terminal,
        server: Identity::of(row.server_pid),
        ..blank(name)
    })
}

/// What is known of a session without a pane: its name, and the run in its state file.
fn without_pane(dir: &SessionDir, name: &str) -> Meta {
    let bytes = disk::read(&dir.file("state.json")).ok().flatten().unwrap_or_default();
    let state: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let run_id = state.get("run_id").and_then(serde_json::Value::as_str).map(str::to_owned);
    let run_id = run_id.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string());
    Meta { run_id, ..blank(name) }
}

fn blank(name: &str) -> Meta {
    Meta {
        schema: SCHEMA,
        name: name.to_owned(),
        agent: FALLBACK.to_owned(),
        mode: Mode::Interactive,
        run_id: String::new(),
        host: plan::host(),
        cwd: PathBuf::from("/"),
        project_root: PathBuf::from("/"),
        tag: None,
        parent: None,
        depth: 0,
        started_at: At::default(),
        argv: Vec::new(),
        model: None,
        size: plan::SIZE,
        agent_session_id: None,
        trust: false,
        dangerous: false,
        policy: None,
        env_names: Vec::new(),
        places: BTreeMap::new(),
        starter: None,
        pane: None,
        pane_id: None,
        terminal: None,
        server: None,
        rebuilt: true,
    }
}
