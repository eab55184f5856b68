//! Looks at sessions: one exchange with tmux for any number of them, then judge and write. Or takes the observer's
//! answer, if there is an observer and its last look is still valid.

use super::{
    Wanted,
    change::Writer,
    context::Context,
    describe::describe,
    door::{Answer, Ask, Health},
    judge::{self, Judged},
};
use crate::{
    api::{ListRequest, Session},
    classify::observation::At,
    error::{Error, Result},
    observe::{Moment, Screens, now},
    session::{
        Meta, SessionDir,
        find::{self, SessionSnapshot},
        spawn::Started,
    },
    tmux::Shown,
};
use std::time::Instant;

/// How thoroughly to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookMode {
    /// At each session, with all its signals.
    Full,
    /// For a list: sessions whose end is known aren't looked at again.
    List,
}

impl Context {
    /// Looks at one session.
    pub(crate) fn look_at(&self, name: &str) -> Result<(SessionSnapshot, Judged)> {
        let (dir, meta) = find::stored(&self.store_with(name)?, name)?;
        self.look_at_session(dir, meta)
    }

    /// Looks at the session of a directory: one exchange with tmux.
    pub(crate) fn look_at_session(&self, dir: SessionDir, meta: Meta) -> Result<(SessionSnapshot, Judged)> {
        let looked = self.look_at_sessions(vec![(dir, meta)])?;
        looked.into_iter().next().ok_or_else(|| Error::not_found("", &[]))
    }

    /// Looks at the sessions of these directories: one exchange with tmux for all of them.
    pub(crate) fn look_at_sessions(
        &self,
        sessions: Vec<(SessionDir, Meta)>,
    ) -> Result<Vec<(SessionSnapshot, Judged)>> {
        self.look_at_sessions_with(sessions, LookMode::Full)
    }

    fn look_at_sessions_with(
        &self,
        mut sessions: Vec<(SessionDir, Meta)>,
        mode: LookMode,
    ) -> Result<Vec<(SessionSnapshot, Judged)>> {
        self.find_unnoted_panes(&mut sessions)?;
        let journal = self.journal()?;
        let writer = self.writer(&journal);
        let at = now();
        let ids: Vec<&str> = sessions.iter().filter_map(|(_, meta)| meta.pane_id.as_deref()).collect();
        let _span = tracing::debug_span!("look", sessions = sessions.len()).entered();
        let began = Instant::now();
        let mut looks = self.tmux().pane_snapshots(&ids, Shown::Screen)?.into_iter();
        let answered = Instant::now();
        let mut found = Vec::with_capacity(sessions.len());
        for (dir, meta) in sessions {
            // A session that is being started has no known pane yet.
            let look = meta.pane_id.as_ref().and_then(|_| looks.next());
            let (row, screen) = look.map_or((None, None), |look| (look.row, Some(look.screen)));
            let pane = row.filter(|row| row.run_id == meta.run_id);
            let screens = Screens::from_reply(screen.filter(|_| pane.is_some()));
            let snapshot = SessionSnapshot { dir, meta, pane };
            let known = (mode == LookMode::List).then(|| judge::ended(&snapshot, at, writer)).flatten();
            let judged = match known {
                Some(judged) => judged,
                None => self.judge_shown(&snapshot, screens, at, writer)?,
            };
            found.push((snapshot, judged));
        }
        tracing::debug!(
            tmux_us = answered.duration_since(began).as_micros(),
            judge_us = answered.elapsed().as_micros(),
            "judged"
        );
        Ok(found)
    }

    /// Fills in the panes of sessions whose starter was killed before it could write down which pane it had started.
    fn find_unnoted_panes(&self, sessions: &mut [(SessionDir, Meta)]) -> Result<()> {
        let unnoted = |meta: &Meta| {
            meta.pane_id.is_none() && !meta.starter.is_some_and(crate::process::Identity::alive)
        };
        let mut wanted = sessions.iter_mut().filter(|(_, meta)| unnoted(meta)).peekable();
        if wanted.peek().is_none() {
            return Ok(());
        }
        let panes = self.tmux().agent_panes()?;
        for (_, meta) in wanted {
            let pane = panes.iter().find(|pane| pane.run_id == meta.run_id);
            meta.pane_id = pane.map(|pane| pane.pane_id.clone());
        }
        Ok(())
    }

    /// Judges a session that was just started, from what the start itself reported.
    pub(crate) fn look_at_start(&self, started: &Started) -> Result<(SessionSnapshot, Judged)> {
        let snapshot = started.snapshot();
        let journal = self.journal()?;
        let judged = self.judge_shown(&snapshot, Screens::none(), started.asked_at, self.writer(&journal))?;
        Ok((snapshot, judged))
    }

    /// Looks at every session that a list may contain: one exchange with tmux for all of them.
    pub(crate) fn look_at_all(&self, request: &ListRequest) -> Result<Vec<Session>> {
        let wanted = self
            .load_all()?
            .into_iter()
            .filter(|(_, meta)| request.agent.as_ref().is_none_or(|agent| meta.agent == *agent));
        let mut found: Vec<(SessionDir, Meta)> = wanted.collect();
        found.sort_by(|(_, a), (_, b)| (a.started_at, &a.name).cmp(&(b.started_at, &b.name)));
        let looked = self.look_at_sessions_with(found, LookMode::List)?;
        let there = looked.into_iter().filter(|(_, judged)| !judged.gone);
        Ok(there.map(|(snapshot, judged)| describe(&snapshot, &judged, false)).collect())
    }

    /// Judges a session whose screen was captured at `at`.
    fn judge_shown(
        &self,
        session: &SessionSnapshot,
        screens: Screens,
        at: At,
        writer: Writer<'_>,
    ) -> Result<Judged> {
        let profile = self.profiles.get_or_generic(&session.meta.agent);
        let profile = profile.ok_or_else(|| Error::not_found(&session.meta.agent, &[]))?;
        let moment = Moment { at, screens, trees: &self.trees };
        Ok(judge::judge(session, &profile, moment, writer))
    }

    /// Sessions from the observer, or from a look. Those that are gone are left out.
    pub(super) fn observed_or_looked_at(&self, wanted: &Wanted) -> Result<Vec<Session>> {
        if let Some(sessions) = self.observed(wanted) {
            return Ok(sessions);
        }
        let store = self.store()?;
        let mut found = Vec::new();
        for name in wanted.names().unwrap_or_default() {
            found.extend(store.load(name)?);
        }
        let looked = self.look_at_sessions(found)?;
        let there = looked.into_iter().filter(|(_, judged)| !judged.gone);
        Ok(there.map(|(snapshot, judged)| describe(&snapshot, &judged, false)).collect())
    }

    /// A session from the observer, if its last look at it is still valid.
    pub(crate) fn current(&self, name: &str) -> Option<Session> {
        if let Some(table) = self.leading_table() {
            return table.current(name);
        }
        match self.observer_client().ask(Ask::Current(name.to_owned()))? {
            Answer::Sessions(sessions) => sessions.into_iter().next(),
            _ => None,
        }
    }

    /// Tells the observer that this process changed a session, since no event does.
    pub(crate) fn notify_observer(&self, name: &str) {
        match self.leading_table() {
            Some(table) => table.wake(name),
            // Without an observer, nobody has outdated information.
            None => drop(self.observer_client().ask(Ask::Wake(vec![name.to_owned()]))),
        }
    }

    /// Sessions from the observer; `None` if there is none, or it doesn't know.
    pub(crate) fn observed(&self, wanted: &Wanted) -> Option<Vec<Session>> {
        if let Some(table) = self.leading_table() {
            return table.answer(wanted);
        }
        match self.observer_client().ask(Ask::Sessions(wanted.clone()))? {
            Answer::Sessions(sessions) => Some(sessions),
            _ => None,
        }
    }

    /// The observer's health; `None` if there is none, or it doesn't answer.
    pub fn observer_health(&self) -> Option<Health> {
        match self.observer_client().ask(Ask::Health)? {
            Answer::Health(health) => Some(health),
            _ => None,
        }
    }
}
