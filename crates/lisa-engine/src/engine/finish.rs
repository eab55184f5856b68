//! Ending sessions: kill, kill all, cleanup. Each run ends once in the journal, whoever sees it first.

use super::Engine;
use crate::{
    api::{words::Status, *},
    error::{Result, near_matches},
    session::{
        end::{self, Processes},
        find::{self, SessionSnapshot},
        names, plan, repair,
    },
    watch::Ending,
};
use std::collections::HashSet;

impl Engine {
    /// Ends a session and those it started. Succeeds if the session is already gone.
    pub fn kill(&self, request: &KillRequest) -> Result<Actions> {
        let store = self.context.store()?;
        let mut tree = end::with_descendants(&find::unseen(&store)?, &request.session);
        if tree.is_empty() && repair::repair(self.context.tmux(), &store, &request.session)?.is_some() {
            tree = end::with_descendants(&find::unseen(&store)?, &request.session);
        }
        let mut sessions = Vec::new();
        for session in tree {
            let pane = find::pane_of(self.context.tmux(), &session.meta)?;
            let session = SessionSnapshot { pane, ..session };
            let ending = self.context.begin_end(&session);
            let killed = end::stop(&session, Processes::running(request.force), self.context.tmux())?;
            sessions.push(self.context.finish_end(ending, killed));
        }
        if sessions.is_empty() {
            sessions.push(self.remove_leftover(&request.session)?);
        }
        Ok(Actions { sessions })
    }

    /// Removes the directory of a session that has no agent and malformed metadata; returns what was done.
    fn remove_leftover(&self, name: &str) -> Result<Action> {
        let store = self.context.store()?;
        let left = store.dir(name).filter(|dir| dir.path().exists());
        let action = |done: &str, detail| Action {
            name: name.to_owned(),
            was: Status::NotFound,
            done: done.to_owned(),
            detail,
            recorded: true,
        };
        if let Some(dir) = left {
            dir.remove()?;
            let why = "its metadata was malformed, and tmux has no pane of it";
            return Ok(action("removed", Some(why.to_owned())));
        }
        // Similar names are only suggested, since this may be a typo.
        let near = near_matches(name, &store.names()?);
        Ok(action("already_gone", (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))))
    }

    /// Ends several sessions.
    pub fn kill_all(&self, request: &KillAllRequest) -> Result<Actions> {
        let store = self.context.store()?;
        self.context.load_all()?;
        let all = find::all(self.context.tmux(), &store, false)?;
        let root = match &request.project {
            Some(project) => {
                Some(names::project_root(&plan::working_dir(Some(project), &self.context.caller.cwd)?))
            }
            None => None,
        };
        let wanted = |session: &SessionSnapshot| {
            root.as_ref().is_none_or(|root| session.meta.project_root == *root)
                && request.agent.as_ref().is_none_or(|agent| session.meta.agent == *agent)
        };
        let mut order: Vec<SessionSnapshot> = Vec::new();
        let mut seen = HashSet::new();
        for session in all.iter().filter(|session| wanted(session)) {
            let tree = end::with_descendants(&all, &session.meta.name).into_iter();
            order.extend(tree.filter(|session| seen.insert(session.meta.name.clone())));
        }
        let endings: Vec<Ending<'_>> = order.iter().map(|session| self.context.begin_end(session)).collect();
        end::stop_processes(&order, Processes::running(request.force));
        let mut sessions = Vec::with_capacity(endings.len());
        for ending in endings {
            end::stop(ending.session, Processes::Ended, self.context.tmux())?;
            sessions.push(self.context.finish_end(ending, 0));
        }
        Ok(Actions { sessions })
    }

    /// Removes what is no longer needed.
    pub fn cleanup(&self) -> Result<CleanupResponse> {
        let store = self.context.store()?;
        // Sessions with malformed metadata are repaired: what has an agent isn't a leftover.
        self.context.load_all()?;
        let mut removed = Vec::new();
        for session in find::all(self.context.tmux(), &store, false)? {
            if session.alive() {
                continue;
            }
            let ending = self.context.begin_end(&session);
            end::stop(&session, Processes::Force, self.context.tmux())?;
            let action = self.context.finish_end(ending, 0);
            let why = if session.pane.is_some() { "its agent has ended" } else { "its tmux session is gone" };
            removed.push(Removed { kind: "session".to_owned(), name: action.name, why: why.to_owned() });
        }
        removed.extend(end::sweep(self.context.tmux(), &store)?);
        Ok(CleanupResponse { removed })
    }
}
