//! Looking at sessions: status, list, tree, explain, read, doctor.

use super::{Engine, Inner, now};
use crate::{
    api::*,
    error::{Error, Kind, Result},
    judge::{self, Judged},
    observation::At,
    observe::Screens,
    session::{
        Folder, Meta,
        find::{self, Sighting},
        names,
        spawn::Started,
    },
    tmux::{Capture, Shown, Tmux},
    watch::{Wanted, change::Writer, record::timestamp},
    words::State,
};
use std::path::Path;

/// The longest list that an answer has, and the most lines that a read gives.
const LINES_MAX: u32 = 2000;

/// How closely sessions are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Each of them, with all its signals.
    Look,
    /// As a list needs it: one whose end is known is not looked at again.
    List,
}

impl Engine {
    /// A session, by its name or a unique prefix or tag, as it is now: it is looked at, unless the observer is sure that
    /// nothing has happened since it looked itself.
    pub fn status(&self, request: &SessionRequest) -> Result<Session> {
        self.current(&request.session).map_or_else(|| self.look(request), Ok)
    }

    /// The same, looked at in any case: every signal is as it is at this moment.
    pub fn look(&self, request: &SessionRequest) -> Result<Session> {
        let (folder, meta) = find::meant(&self.store_with(&request.session)?, &request.session)?;
        let (sighting, judged) = self.look_into(folder, meta)?;
        Ok(self.describe(&sighting, &judged, true))
    }

    /// Looks at one session.
    pub(crate) fn look_at(&self, name: &str) -> Result<(Sighting, Judged)> {
        let (folder, meta) = find::stored(&self.store_with(name)?, name)?;
        self.look_into(folder, meta)
    }

    /// Looks at the session of a folder: one exchange with tmux.
    fn look_into(&self, folder: Folder, meta: Meta) -> Result<(Sighting, Judged)> {
        let looked = self.look_into_all(vec![(folder, meta)])?;
        looked.into_iter().next().ok_or_else(|| Error::not_found("", &[]))
    }

    /// Looks at the sessions of these folders: one exchange with tmux for all of them.
    pub(crate) fn look_into_all(&self, sessions: Vec<(Folder, Meta)>) -> Result<Vec<(Sighting, Judged)>> {
        self.look_into_each(sessions, Care::Look)
    }

    fn look_into_each(&self, sessions: Vec<(Folder, Meta)>, care: Care) -> Result<Vec<(Sighting, Judged)>> {
        let journal = self.journal()?;
        let writer = self.writer(&journal);
        let at = now();
        let ids: Vec<&str> = sessions.iter().filter_map(|(_, meta)| meta.pane_id.as_deref()).collect();
        let mut looks = self.tmux().looks(&ids, Shown::Screen)?.into_iter();
        let mut found = Vec::with_capacity(sessions.len());
        for (folder, meta) in sessions {
            // One that is being started has no pane yet that anybody knows of.
            let look = meta.pane_id.as_ref().and_then(|_| looks.next());
            let (row, screen) = look.map_or((None, None), |look| (look.row, Some(look.screen)));
            let pane = row.filter(|row| row.run_id == meta.run_id);
            let screens = Screens::from_reply(screen.filter(|_| pane.is_some()));
            let sighting = Sighting { folder, meta, pane };
            let known = (care == Care::List).then(|| judge::ended(&sighting, at, writer)).flatten();
            let judged = match known {
                Some(judged) => judged,
                None => self.judge_shown(&sighting, screens, at, writer)?,
            };
            found.push((sighting, judged));
        }
        Ok(found)
    }

    /// Judges a session that was just started by what its start has shown.
    pub(super) fn look_at_start(&self, started: &Started) -> Result<(Sighting, Judged)> {
        let sighting = started.sighting();
        let journal = self.journal()?;
        let judged = self.judge_shown(&sighting, Screens::none(), now(), self.writer(&journal))?;
        Ok((sighting, judged))
    }

    /// Looks at every session that a list may be about: one exchange with tmux for all of them.
    fn look_at_all(&self, request: &ListRequest) -> Result<Vec<Session>> {
        let wanted = self
            .load_all()?
            .into_iter()
            .filter(|(_, meta)| request.agent.as_ref().is_none_or(|agent| meta.agent == *agent));
        let mut found: Vec<(Folder, Meta)> = wanted.collect();
        found.sort_by(|(_, a), (_, b)| (a.started_at, &a.name).cmp(&(b.started_at, &b.name)));
        let looked = self.look_into_each(found, Care::List)?;
        let there = looked.into_iter().filter(|(_, judged)| !judged.gone);
        Ok(there.map(|(sighting, judged)| self.describe(&sighting, &judged, false)).collect())
    }

    /// Judges a session whose screen was captured at `at`.
    fn judge_shown(
        &self,
        session: &Sighting,
        screens: Screens,
        at: At,
        writer: Writer<'_>,
    ) -> Result<Judged> {
        let profile = self.inner.profiles.get_or_generic(&session.meta.agent);
        let profile = profile.ok_or_else(|| Error::not_found(&session.meta.agent, &[]))?;
        Ok(judge::judge(session, &profile, screens, at, writer))
    }

    /// Every session in the words of the API.
    pub(crate) fn describe(&self, sighting: &Sighting, judged: &Judged, with_signals: bool) -> Session {
        let meta = &sighting.meta;
        let verdict = &judged.outcome.verdict;
        let signals = &judged.outcome.signals;
        let at = judged.observation.at;
        let usage = &judged.outcome.usage;
        let mut session = Session {
            name: meta.name.clone(),
            agent: meta.agent.clone(),
            status: verdict.status(),
            state: verdict.state.name(),
            attention: verdict.attention,
            reason: verdict.reason.clone(),
            confidence: verdict.confidence,
            source: verdict.source.map_or("none", |source| source.as_str()).to_owned(),
            since: timestamp(verdict.since),
            // The screen's age is known from the first look on that saw it; tmux also knows what came before, but
            // counts output that changed nothing.
            idle_ms: signals
                .output_age_ms
                .max(signals.window_activity_age_ms)
                .unwrap_or_else(|| at.since(verdict.since)),
            started_at: timestamp(meta.started_at),
            activity: None,
            tool: None,
            prompt: verdict.state.prompt().cloned(),
            last_message: None,
            asks: None,
            error: None,
            exit: None,
            expected: None,
            failed_signals: Vec::new(),
            mode: meta.mode,
            cwd: meta.cwd.display().to_string(),
            project: names::project_name(&meta.project_root),
            project_hash: names::project_hash(&meta.project_root),
            tag: meta.tag.clone(),
            parent: meta.parent.clone(),
            depth: meta.depth,
            host: meta.host.clone(),
            pid: signals
                .agent_pid
                .or_else(|| sighting.pane.as_ref().filter(|row| !row.pane.dead).map(|row| row.pane.pid)),
            run_id: meta.run_id.clone(),
            agent_session_id: judged
                .record
                .memory
                .session_id()
                .map(str::to_owned)
                .or_else(|| meta.agent_session_id.clone()),
            turn: judged.record.turn.as_ref().map(|turn| turn.id.clone()),
            subagents: signals.subagents,
            background_tasks: signals.background_tasks,
            todos: signals.todos.as_ref().map(|todos| Todos {
                done: todos.done,
                total: todos.total,
                active: todos.active.clone(),
            }),
            wait_estimate_s: judged.outcome.wait_estimate_s,
            usage: (*usage != crate::memory::Usage::default()).then(|| Usage {
                model: usage.model.clone(),
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                context_tokens: usage.input_tokens,
                context_size: usage.context_window,
                cost_usd: None,
            }),
            signals: None,
        };
        // While a turn runs, the last message is the turn before's.
        let settled = !matches!(verdict.state, State::Starting | State::Working { .. });
        if settled {
            session.last_message = judged.record.memory.last_message().map(str::to_owned);
        }
        match &verdict.state {
            State::Working { activity, tool } => {
                session.activity = Some(*activity);
                session.tool.clone_from(tool);
            }
            State::Ready { last_message, asks } => {
                if last_message.is_some() {
                    session.last_message.clone_from(last_message);
                }
                session.asks = Some(*asks);
            }
            State::Error { failure } => session.error = Some(failure.clone()),
            State::Exited { exit } => session.exit = Some(exit.clone()),
            State::Stalled { expected } => session.expected = Some(expected.clone()),
            State::Unknown { failed } => session.failed_signals.clone_from(failed),
            _ => {}
        }
        if with_signals && let Ok(serde_json::Value::Object(map)) = serde_json::to_value(signals) {
            session.signals = Some(map);
        }
        session
    }

    /// Sessions as short rows, oldest first.
    pub fn list(&self, request: &ListRequest) -> Result<ListResponse> {
        let (sessions, total, cursor) = self.page(request)?;
        Ok(ListResponse { sessions: sessions.iter().map(Row::from).collect(), total, cursor })
    }

    /// The sessions that `list` would show, in full (without signals), from the same single look.
    pub fn sessions(&self, request: &ListRequest) -> Result<Vec<Session>> {
        Ok(self.page(request)?.0)
    }

    /// The sessions that a list is about, how many there are without its limit, and where the next page begins.
    fn page(&self, request: &ListRequest) -> Result<(Vec<Session>, u32, Option<String>)> {
        let all = match self.observed(&Wanted::All) {
            Some(sessions) => sessions,
            None => self.look_at_all(request)?,
        };
        let project =
            request.project.as_deref().map(|project| Project::named(project, &self.inner.caller.cwd));
        let mut sessions: Vec<Session> = all
            .into_iter()
            .filter(|session| request.agent.as_ref().is_none_or(|agent| session.agent == *agent))
            .filter(|session| project.as_ref().is_none_or(|project| project.has(session)))
            .filter(|session| request.status.is_none_or(|status| session.status == status))
            .map(|session| Session { signals: None, ..session })
            .collect();
        let total = u32::try_from(sessions.len()).unwrap_or(u32::MAX);
        if let Some(after) = &request.cursor {
            let begin = sessions.iter().position(|session| session.name == *after).map_or(0, |at| at + 1);
            sessions.drain(..begin);
        }
        let limit = request.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
        let cursor = (sessions.len() > limit).then(|| sessions[limit - 1].name.clone());
        sessions.truncate(limit);
        Ok((sessions, total, cursor))
    }

    /// Sessions below those that started them.
    pub fn tree(&self) -> Result<Vec<TreeNode>> {
        let rows = self.list(&ListRequest::default())?.sessions;
        let is_root =
            |row: &&Row| row.parent.as_ref().is_none_or(|parent| rows.iter().all(|r| r.name != *parent));
        Ok(rows.iter().filter(is_root).map(|row| node(row, &rows, 0)).collect())
    }

    /// Why Lisa says what it says about a session.
    pub fn explain(&self, request: &SessionRequest) -> Result<Explanation> {
        let (folder, meta) = find::meant(&self.store_with(&request.session)?, &request.session)?;
        let (sighting, judged) = self.look_into(folder, meta)?;
        let session = self.describe(&sighting, &judged, true);
        Ok(crate::explain::explain(session, &judged.outcome, judged.observation.at))
    }

    /// What a session shows or has said.
    pub fn read(&self, request: &ReadRequest) -> Result<ReadResponse> {
        let store = self.store_with(&request.session)?;
        let name = find::meant(&store, &request.session)?.1.name;
        let max = request.max_lines.unwrap_or(80).clamp(1, LINES_MAX) as usize;
        match request.view {
            View::Screen => {
                let sighting = find::exact(self.tmux(), &store, &name)?;
                let text = capture(self.tmux(), &sighting, request.ansi, 0)?;
                Ok(last_lines(&text, max, None))
            }
            View::Output => {
                let sighting = find::exact(self.tmux(), &store, &name)?;
                let text = match crate::disk::read(&sighting.folder.file("output.txt"))? {
                    Some(bytes) if request.ansi => String::from_utf8_lossy(&bytes).into_owned(),
                    Some(bytes) => crate::text::strip_escapes(&String::from_utf8_lossy(&bytes)),
                    None => capture(self.tmux(), &sighting, request.ansi, LINES_MAX)?,
                };
                Ok(last_lines(&text, max, request.since))
            }
            View::LastMessage => {
                let (_, judged) = self.look_at(&name)?;
                let message = match &judged.outcome.verdict.state {
                    State::Ready { last_message: Some(message), .. } => Some(message.clone()),
                    _ => judged.record.memory.last_message().map(str::to_owned),
                };
                let text = message.unwrap_or_default();
                Ok(ReadResponse { cursor: text.lines().count() as u64, text, more: false })
            }
            View::Events => {
                let since = request.since.unwrap_or(0);
                let text = crate::disk::read(&find::stored(&store, &name)?.0.file("events.jsonl"))?;
                Ok(read_events(&text.unwrap_or_default(), since, max))
            }
            View::Turn | View::Transcript => {
                let (sighting, judged) = self.look_at(&name)?;
                crate::transcript::read(
                    self.inner.profiles.get_or_generic(&sighting.meta.agent),
                    &sighting,
                    &judged,
                    request,
                    max,
                )
            }
        }
    }

    /// Whether everything is in place.
    pub fn doctor(&self) -> DoctorResponse {
        // A profile that runs whatever it is given has no program that could be missing.
        let own_program = |agent: &AgentInfo| {
            let profile = self.inner.profiles.get(&agent.id);
            let launch = profile.as_ref().and_then(|profile| profile.launch.as_ref());
            launch.is_some_and(|launch| !launch.executable.names.is_empty())
        };
        let agents: Vec<AgentInfo> =
            self.agents().unwrap_or_default().into_iter().filter(own_program).collect();
        let observer = self.observer_health();
        let Inner { config, caller, .. } = self.inner.as_ref();
        crate::doctor::check(config, &caller.env, self.tmux(), observer.as_ref(), &agents)
    }
}

fn node(row: &Row, rows: &[Row], depth: u32) -> TreeNode {
    let children =
        rows.iter().filter(|child| child.parent.as_deref() == Some(&row.name) && child.name != row.name);
    TreeNode {
        session: row.clone(),
        depth,
        // Deeper than any limit allows can only be a loop in files that somebody edited.
        children: if depth > 64 {
            Vec::new()
        } else {
            children.map(|child| node(child, rows, depth + 1)).collect()
        },
    }
}

/// A project as a caller names it: by its name, its hash, or a directory in it.
struct Project<'a> {
    named: &'a str,
    root: Option<String>,
}

impl<'a> Project<'a> {
    fn named(named: &'a str, cwd: &Path) -> Self {
        let directory = cwd.join(named).canonicalize().ok();
        Self { named, root: directory.map(|directory| names::project_hash(&names::project_root(&directory))) }
    }

    fn has(&self, session: &Session) -> bool {
        session.project == self.named
            || session.project_hash == self.named
            || self.root.as_ref() == Some(&session.project_hash)
    }
}

fn capture(tmux: &Tmux, sighting: &Sighting, ansi: bool, history: u32) -> Result<String> {
    let gone = || {
        Error::new(
            Kind::SessionNotFound,
            format!("the tmux session of `{}` is gone", sighting.meta.name),
            "read its transcript or events instead, or resume it",
        )
    };
    let row = sighting.pane.as_ref().ok_or_else(gone)?;
    let reply = tmux.captures(&[Capture { pane: &row.pane_id, ansi, history }])?.pop().ok_or_else(gone)?;
    reply.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|_| gone())
}

/// The last lines of a text, or those after a line number.
fn last_lines(text: &str, max: usize, since: Option<u64>) -> ReadResponse {
    let lines: Vec<&str> = text.lines().collect();
    let begin = match since {
        Some(since) => usize::try_from(since).unwrap_or(usize::MAX).min(lines.len()),
        None => lines.len().saturating_sub(max),
    };
    let end = (begin + max).min(lines.len());
    ReadResponse { text: lines[begin..end].join("\n"), cursor: end as u64, more: end < lines.len() }
}

fn read_events(bytes: &[u8], since: u64, max: usize) -> ReadResponse {
    let events: Vec<Event> = crate::disk::whole_lines(bytes)
        .0
        .into_iter()
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter(|event: &Event| event.cursor > since)
        .collect();
    let shown = &events[..events.len().min(max)];
    let lines: Vec<String> = shown
        .iter()
        .map(|event| {
            format!("{} {} {}: {}", event.at.strftime("%H:%M:%S"), event.cursor, event.event, event.detail)
        })
        .collect();
    ReadResponse {
        text: lines.join("\n"),
        cursor: shown.last().map_or(since, |event| event.cursor),
        more: shown.len() < events.len(),
    }
}
