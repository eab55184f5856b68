//! Records the end of sessions: each run ends once in the journal, whoever sees it first.

use super::{
    change::{Change, OpenError},
    context::Context,
    record::{Intent, Note},
};
use crate::{
    api::{
        Action, EventKind, TurnOutcome,
        words::{State, Status},
    },
    disk,
    error::{Error, Result},
    observe::now,
    session::find::SessionSnapshot,
};
use std::collections::HashSet;
use std::time::{Duration, SystemTime};

/// Sessions started this recently are never candidates for removal.
const MOMENT_MS: u64 = 60_000;

/// How often a start looks for old sessions to remove. That takes a list of all panes, so not at every start.
const REMOVAL_INTERVAL: Duration = Duration::from_secs(10);
/// The file whose date says when somebody last looked for old sessions.
const REMOVAL_MARK: &str = "removal";

/// A session that somebody has started to end.
pub(crate) struct Ending<'a> {
    pub(crate) session: &'a SessionSnapshot,
    was: Status,
    /// Whether its agent had already ended by itself.
    had_ended: bool,
    /// Why the intent couldn't be written.
    unrecorded: Option<Error>,
}

impl Context {
    /// Does the same as [`Context::remove_old`], unless somebody has done it in the last seconds.
    pub(crate) fn remove_old_if_due(&self, most: usize) -> Result<usize> {
        let mark = self.config.state_dir.join(REMOVAL_MARK);
        // A date in the future, from a clock that was set back, is as good as none.
        let age =
            std::fs::metadata(&mark).and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age < REMOVAL_INTERVAL) {
            return Ok(0);
        }
        self.remove_old(most)
    }

    /// Removes at most `most` sessions that ended longer ago than they are kept; returns how many.
    pub(crate) fn remove_old(&self, most: usize) -> Result<usize> {
        let store = self.store()?;
        let mark = self.config.state_dir.join(REMOVAL_MARK);
        disk::open_private(&mark, |options| options.write(true).create(true))
            .and_then(|file| file.set_modified(SystemTime::now()))
            .map_err(|error| Error::io("write", &mark, &error))?;
        let kept = self.kept()?;
        let age = |name: &String| {
            store.changed(name).and_then(|changed| changed.elapsed().ok()).unwrap_or_default()
        };
        let expired = kept.names.iter().filter(|name| age(name) > self.config.ended_max_age);
        let mut candidates = kept.older.iter().rev().chain(expired).peekable();
        if candidates.peek().is_none() {
            return Ok(0);
        }
        let panes: HashSet<String> = self.tmux().agent_panes()?.into_iter().map(|pane| pane.run_id).collect();
        let mut removed = 0;
        for name in candidates {
            if removed == most {
                break;
            }
            let loaded = store.load(name).unwrap_or_else(|error| {
                tracing::warn!(session = name, %error, "could not check whether a session is old");
                None
            });
            let Some((dir, meta)) = loaded else { continue };
            let has_pane = panes.contains(&meta.run_id);
            let session = SessionSnapshot { dir, meta, pane: None };
            // Directories of the last minutes are never old, even if the clock was changed.
            if has_pane || session.alive() || now().since(session.meta.started_at) < MOMENT_MS {
                continue;
            }
            let ending = self.begin_end(&session);
            self.finish_end(ending, 0);
            removed += 1;
        }
        Ok(removed)
    }

    /// Writes the intent to end a session, so that whoever sees it end knows why. If that fails, the session is ended
    /// anyway.
    pub(crate) fn begin_end<'a>(&self, session: &'a SessionSnapshot) -> Ending<'a> {
        let mut ending = Ending { session, was: Status::JustStarted, had_ended: false, unrecorded: None };
        let intend = |change: &mut Change<'_>, ending: &mut Ending<'_>| {
            let verdict = change.record.memory.verdict.as_ref();
            ending.was = verdict.map_or(Status::JustStarted, |verdict| verdict.status());
            ending.had_ended = change.record.ended;
            let note = Note::line(format!("was {}", ending.was));
            change.record.intent = Some(Intent::new(EventKind::Killed, now(), note));
        };
        let changed = self.journal().and_then(|journal| {
            let mut change = match self.writer(&journal).open(session) {
                Ok(change) => change,
                // There is nothing yet, or nothing any more, that an end could contradict.
                Err(OpenError::Gone(_) | OpenError::Starting(_)) => return Ok(()),
                Err(OpenError::Failed(error)) => return Err(error),
            };
            intend(&mut change, &mut ending);
            change.commit().map(drop)
        });
        ending.unrecorded = changed.err();
        ending
    }

    /// Records the end of a session whose processes are gone, and removes its directory.
    pub(crate) fn finish_end(&self, ending: Ending<'_>, killed: usize) -> Action {
        let Ending { session, was, had_ended, unrecorded } = ending;
        let name = session.meta.name.as_str();
        let recorded = self.journal().and_then(|journal| {
            let mut change = match self.writer(&journal).open(session) {
                Ok(change) => change,
                // Somebody else has finished it.
                Err(OpenError::Gone(_)) => return Ok(()),
                Err(OpenError::Starting(_)) => return session.dir.remove(),
                Err(OpenError::Failed(error)) => return Err(error),
            };
            let verdict = change.record.memory.verdict.as_ref();
            let state = verdict.map_or(State::Starting, |verdict| verdict.state.clone());
            let mut note = Note::line(format!("was {was}"));
            note.turn = change.record.open_turn().map(str::to_owned);
            change.record.end_turn(name, TurnOutcome::Died, &state, now(), Note::default());
            // The record drops this if a look has already recorded the end.
            let kind = if had_ended { EventKind::Removed } else { EventKind::Killed };
            change.note(kind, &state, now(), note);
            change.commit_and_remove()?.untold.map_or(Ok(()), Err)
        });
        let left = (killed > 0).then(|| format!("{killed} processes did not exit in time and were killed"));
        let trouble = recorded.as_ref().err().or(unrecorded.as_ref());
        let trouble = trouble.map(|error| format!("it could not be recorded: {error}"));
        let detail: Vec<String> = left.into_iter().chain(trouble).collect();
        Action {
            name: name.to_owned(),
            was,
            done: "killed".to_owned(),
            detail: (!detail.is_empty()).then(|| detail.join("; ")),
            recorded: recorded.is_ok(),
        }
    }
}
