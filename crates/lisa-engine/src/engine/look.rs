//! Queries: status, list, tree, explain, read, doctor.

use super::Engine;
use crate::{
    api::{words::State, *},
    classify::explain::{Reasons, reasons},
    error::{Error, Kind, Result},
    session::{
        find::{self, SessionSnapshot},
        names,
    },
    tmux::{Capture, Tmux},
    watch::{Context, Wanted, describe},
};
use std::path::Path;

/// Maximum length of a list, and of a read in lines.
const LINES_MAX: u32 = 2000;

impl Engine {
    /// The current status of a session, by its name or a unique prefix or tag. Looks at the session, unless the
    /// observer knows that nothing has happened since its own last look.
    pub fn status(&self, request: &SessionRequest) -> Result<Session> {
        self.context.current(&request.session).map_or_else(|| self.look(request), Ok)
    }

    /// The same, but always looks, so every signal is current.
    pub fn look(&self, request: &SessionRequest) -> Result<Session> {
        let (dir, meta) = find::meant(&self.context.store_with(&request.session)?, &request.session)?;
        let (snapshot, judged) = self.context.look_at_session(dir, meta)?;
        Ok(describe(&snapshot, &judged, true))
    }

    /// Sessions as rows, oldest first.
    pub fn list(&self, request: &ListRequest) -> Result<ListResponse> {
        let (sessions, total, cursor) = self.page(request)?;
        Ok(ListResponse { sessions: sessions.iter().map(Row::from).collect(), total, cursor })
    }

    /// The sessions that `list` would show, with all fields (but without signals).
    pub fn sessions(&self, request: &ListRequest) -> Result<Vec<Session>> {
        Ok(self.page(request)?.0)
    }

    /// One page of a list, the total number of sessions, and where the next page starts.
    fn page(&self, request: &ListRequest) -> Result<(Vec<Session>, u32, Option<String>)> {
        let all = match self.context.observed(&Wanted::All) {
            Some(sessions) => sessions,
            None => self.context.look_at_all(request)?,
        };
        let project =
            request.project.as_deref().map(|project| Project::named(project, &self.context.caller.cwd));
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

    /// Sessions, nested below those that started them.
    pub fn tree(&self) -> Result<Vec<TreeNode>> {
        let rows = self.list(&ListRequest::default())?.sessions;
        let is_root =
            |row: &&Row| row.parent.as_ref().is_none_or(|parent| rows.iter().all(|r| r.name != *parent));
        Ok(rows.iter().filter(is_root).map(|row| node(row, &rows, 0)).collect())
    }

    /// Explains the verdict on a session.
    pub fn explain(&self, request: &SessionRequest) -> Result<Explanation> {
        let (dir, meta) = find::meant(&self.context.store_with(&request.session)?, &request.session)?;
        let (snapshot, judged) = self.context.look_at_session(dir, meta)?;
        let session = describe(&snapshot, &judged, true);
        let Reasons { rule_says, evidence_for, evidence_against, passed_over, failed } =
            reasons(&judged.outcome, judged.observation.at);
        let rule = judged.outcome.verdict.reason.to_string();
        Ok(Explanation { session, rule, rule_says, evidence_for, evidence_against, passed_over, failed })
    }

    /// Reads what a session shows or said.
    pub fn read(&self, request: &ReadRequest) -> Result<ReadResponse> {
        let store = self.context.store_with(&request.session)?;
        let name = find::meant(&store, &request.session)?.1.name;
        let max = request.max_lines.unwrap_or(80).clamp(1, LINES_MAX) as usize;
        match request.view {
            View::Screen => {
                let snapshot = find::exact(self.context.tmux(), &store, &name)?;
                let text = capture(self.context.tmux(), &snapshot, request.ansi, 0)?;
                Ok(last_lines(&text, max, None))
            }
            View::Output => {
                let snapshot = find::exact(self.context.tmux(), &store, &name)?;
                let text = match crate::disk::read(&snapshot.dir.file("output.txt"))? {
                    Some(bytes) if request.ansi => String::from_utf8_lossy(&bytes).into_owned(),
                    Some(bytes) => crate::classify::text::strip_escapes(&String::from_utf8_lossy(&bytes)),
                    None => capture(self.context.tmux(), &snapshot, request.ansi, LINES_MAX)?,
                };
                Ok(last_lines(&text, max, request.since))
            }
            View::LastMessage => {
                let (_, judged) = self.context.look_at(&name)?;
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
                let (snapshot, judged) = self.context.look_at(&name)?;
                crate::engine::transcript::read(
                    self.context.profiles.get_or_generic(&snapshot.meta.agent),
                    &snapshot,
                    &judged,
                    request,
                    max,
                )
            }
        }
    }

    /// Checks whether the installation works.
    pub fn doctor(&self) -> DoctorResponse {
        // A profile that runs any given command has no program that could be missing.
        let own_program = |agent: &AgentInfo| {
            let profile = self.context.profiles.get(&agent.id);
            let launch = profile.as_ref().and_then(|profile| profile.launch.as_ref());
            launch.is_some_and(|launch| !launch.executable.names.is_empty())
        };
        let agents: Vec<AgentInfo> =
            self.agents().unwrap_or_default().into_iter().filter(own_program).collect();
        let observer = self.context.observer_health();
        let Context { config, caller, .. } = self.context.as_ref();
        crate::engine::doctor::check(config, &caller.env, self.context.tmux(), observer.as_ref(), &agents)
    }
}

fn node(row: &Row, rows: &[Row], depth: u32) -> TreeNode {
    let children =
        rows.iter().filter(|child| child.parent.as_deref() == Some(&row.name) && child.name != row.name);
    TreeNode {
        session: row.clone(),
        depth,
        // Deeper than any limit can only be a loop in files that somebody edited.
        children: if depth > 64 {
            Vec::new()
        } else {
            children.map(|child| node(child, rows, depth + 1)).collect()
        },
    }
}

/// A project as a caller gives it: its name, its hash, or a directory in it.
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

fn capture(tmux: &Tmux, snapshot: &SessionSnapshot, ansi: bool, history: u32) -> Result<String> {
    let gone = || {
        Error::new(
            Kind::SessionNotFound,
            format!("the tmux session of `{}` is gone", snapshot.meta.name),
            "read its transcript or events instead, or resume it",
        )
    };
    let row = snapshot.pane.as_ref().ok_or_else(gone)?;
    let reply = tmux.captures(&[Capture { pane: &row.pane_id, ansi, history }])?.pop().ok_or_else(gone)?;
    reply.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|_| gone())
}

/// The last lines of a text, or the lines after a line number.
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
