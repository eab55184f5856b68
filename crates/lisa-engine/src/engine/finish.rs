//! Ending sessions: kill, kill all, clean up. Each run ends once in the journal, whoever saw it first.

use super::{Engine, now};
use crate::{
    api::*,
    error::{Error, Result, near_matches},
    session::{
        end::{self, Processes},
        find::{self, Sighting},
        names, plan, repair,
    },
    watch::{
        change::{Change, Unopened},
        record::{Intent, Note},
    },
    words::{State, Status},
};
use std::collections::HashSet;

/// A session that was started so shortly ago is not looked at as one to be removed.
const MOMENT_MS: u64 = 60_000;

/// A session that somebody has begun to end.
struct Ending<'a> {
    session: &'a Sighting,
    was: Status,
    /// Whether its agent had ended by itself.
    had_ended: bool,
    /// Why that could not be written down.
    unrecorded: Option<Error>,
}

impl Engine {
    /// Ends a session and those it started. One that is gone already is fine.
    pub fn kill(&self, request: &KillRequest) -> Result<Actions> {
        let store = self.store()?;
        let mut tree = end::with_descendants(&find::unseen(&store)?, &request.session);
        if tree.is_empty() && repair::repair(self.tmux(), &store, &request.session)?.is_some() {
            tree = end::with_descendants(&find::unseen(&store)?, &request.session);
        }
        let mut sessions = Vec::new();
        for session in tree {
            let pane = find::pane_of(self.tmux(), &session.meta)?;
            let session = Sighting { pane, ..session };
            let ending = self.begin_end(&session);
            let killed = end::stop(&session, Processes::running(request.force), self.tmux())?;
            sessions.push(self.finish_end(ending, killed));
        }
        if sessions.is_empty() {
            sessions.push(self.remove_leftover(&request.session)?);
        }
        Ok(Actions { sessions })
    }

    /// Removes the directory of a session that has no agent and cannot be read; says what was done.
    fn remove_leftover(&self, name: &str) -> Result<Action> {
        let store = self.store()?;
        let left = store.folder(name).filter(|folder| folder.path().exists());
        let action = |done: &str, detail| Action {
            name: name.to_owned(),
            was: Status::NotFound,
            done: done.to_owned(),
            detail,
            recorded: true,
        };
        if let Some(folder) = left {
            folder.remove()?;
            let why = "its metadata was damaged, and tmux has no agent of it";
            return Ok(action("removed", Some(why.to_owned())));
        }
        // Not guessed, but named: it may have been a slip.
        let near = near_matches(name, &store.names()?);
        Ok(action("already_gone", (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))))
    }

    /// Ends several sessions.
    pub fn kill_all(&self, request: &KillAllRequest) -> Result<Actions> {
        let store = self.store()?;
        self.load_all()?;
        let all = find::all(self.tmux(), &store, false)?;
        let root = match &request.project {
            Some(project) => {
                Some(names::project_root(&plan::working_folder(Some(project), &self.inner.caller.cwd)?))
            }
            None => None,
        };
        let wanted = |session: &Sighting| {
            root.as_ref().is_none_or(|root| session.meta.project_root == *root)
                && request.agent.as_ref().is_none_or(|agent| session.meta.agent == *agent)
        };
        let mut order: Vec<Sighting> = Vec::new();
        let mut seen = HashSet::new();
        for session in all.iter().filter(|session| wanted(session)) {
            let tree = end::with_descendants(&all, &session.meta.name).into_iter();
            order.extend(tree.filter(|session| seen.insert(session.meta.name.clone())));
        }
        let endings: Vec<Ending<'_>> = order.iter().map(|session| self.begin_end(session)).collect();
        end::stop_processes(&order, Processes::running(request.force));
        let mut sessions = Vec::with_capacity(endings.len());
        for ending in endings {
            end::stop(ending.session, Processes::Ended, self.tmux())?;
            sessions.push(self.finish_end(ending, 0));
        }
        Ok(Actions { sessions })
    }

    /// Removes what nobody needs any more.
    pub fn cleanup(&self) -> Result<CleanupResponse> {
        let store = self.store()?;
        // Those whose metadata is damaged are repaired: what has an agent is no leftover.
        self.load_all()?;
        let mut removed = Vec::new();
        for session in find::all(self.tmux(), &store, false)? {
            if session.alive() {
                continue;
            }
            let ending = self.begin_end(&session);
            end::stop(&session, Processes::Force, self.tmux())?;
            let action = self.finish_end(ending, 0);
            let why = if session.pane.is_some() { "its agent has ended" } else { "its tmux session is gone" };
            removed.push(Removed { kind: "session".to_owned(), name: action.name, why: why.to_owned() });
        }
        removed.extend(end::sweep(self.tmux(), &store)?);
        Ok(CleanupResponse { removed })
    }

    /// Removes sessions that ended longer ago than they are kept, at most so many of them; says how many were removed.
    pub(crate) fn remove_old(&self, most: usize) -> Result<usize> {
        let store = self.store()?;
        let mut removed = 0;
        // Directories of the last minutes are never old, whatever a clock that was set says of them.
        let kept = self.kept()?;
        let age = |name: &String| {
            store.changed(name).and_then(|changed| changed.elapsed().ok()).unwrap_or_default()
        };
        let expired = kept.names.iter().filter(|name| age(name) > self.config().ended_max_age);
        for name in kept.older.iter().rev().chain(expired).take(most) {
            let Some((folder, meta)) = store.load(name).ok().flatten() else { continue };
            let pane = find::pane_of(self.tmux(), &meta)?;
            let session = Sighting { folder, meta, pane };
            if session.alive() || session.pane.is_some() || now().since(session.meta.started_at) < MOMENT_MS {
                continue;
            }
            let ending = self.begin_end(&session);
            self.finish_end(ending, 0);
            removed += 1;
        }
        Ok(removed)
    }

    /// Writes down that a session is about to be ended: whoever sees it end from now on knows why. It is ended all the
    /// same if that fails.
    fn begin_end<'a>(&self, session: &'a Sighting) -> Ending<'a> {
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
                // There is nothing yet that an end could contradict, or not any more.
                Err(Unopened::Gone(_) | Unopened::Starting(_)) => return Ok(()),
                Err(Unopened::Failed(error)) => return Err(error),
            };
            intend(&mut change, &mut ending);
            change.commit().map(drop)
        });
        ending.unrecorded = changed.err();
        ending
    }

    /// Tells the end of a session whose processes are gone, and removes its directory.
    fn finish_end(&self, ending: Ending<'_>, killed: usize) -> Action {
        let Ending { session, was, had_ended, unrecorded } = ending;
        let name = session.meta.name.as_str();
        let recorded = self.journal().and_then(|journal| {
            let mut change = match self.writer(&journal).open(session) {
                Ok(change) => change,
                // Somebody else has finished it.
                Err(Unopened::Gone(_)) => return Ok(()),
                Err(Unopened::Starting(_)) => return session.folder.remove(),
                Err(Unopened::Failed(error)) => return Err(error),
            };
            let verdict = change.record.memory.verdict.as_ref();
            let state = verdict.map_or(State::Starting, |verdict| verdict.state.clone());
            let mut note = Note::line(format!("was {was}"));
            note.turn = change.record.open_turn().map(str::to_owned);
            change.record.end_turn(name, TurnOutcome::Died, &state, now(), Note::default());
            // Left out by the record where a look has seen the end already.
            let kind = if had_ended { EventKind::Removed } else { EventKind::Killed };
            change.note(kind, &state, now(), note);
            change.commit_and_remove()?.untold.map_or(Ok(()), Err)
        });
        let left =
            (killed > 0).then(|| format!("{killed} processes did not end by themselves and were killed"));
        let trouble = recorded.as_ref().err().or(unrecorded.as_ref());
        let trouble = trouble.map(|error| format!("it could not be written down: {error}"));
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
