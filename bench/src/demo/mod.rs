//! `cargo xtask demo`: Lisa at work on scripted agents, without an account or a key.
//!
//! Three agents get a task each: one works for a while, one asks for permission, one asks a question. What is shown
//! is what any caller of the engine would see: receipts, states, prompts and the journal.

mod cast;
mod table;

use crate::{
    context::Context,
    failure::{Failure, Result},
    progress, scratch,
    stage::{Programs, Stage},
    tools::{self, Release},
};
use cast::{CAST, Part};
use lisa_engine::{
    api::{
        AnswerRequest, Event, EventKind, KillAllRequest, SendRequest, Session, SessionRequest, WatchRequest,
        words::Prompt,
    },
    engine::Engine,
};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use table::{Live, Row};

/// The programs that the demo runs.
const PROGRAMS: Programs =
    Programs { packages: &["lisa-mcp", "demo-agent"], helper: &["lisa-mcp", "helper"], release: false };
/// How long a prompt stands open, so that somebody who watches can read it.
const THINKING: Duration = Duration::from_millis(1500);
/// How long nothing may happen before the table's ages are drawn anew.
const REDRAW: Duration = Duration::from_millis(500);
/// The longest line that is said; a log is as narrow as a terminal.
const WIDTH: usize = 80;
/// How long it may take altogether.
const LIMIT: Duration = Duration::from_secs(60);

/// `cargo xtask demo`.
pub(crate) fn command(context: &Context) -> Result<()> {
    scratch::sweep(context);
    tools::find("tmux")?.ensure(context, Release::Pinned)?;
    let stage = Stage::set(context, "demo", &PROGRAMS)?;
    let mut show = Show::new(stage.engine()?, Live::new(context.terminal));
    let played = show.begin(context).and_then(|()| show.go_on(context));
    // Also after a failure: what was started is ended by those who started it.
    let ended = show.end();
    played?;
    ended
}

/// The demo while it runs.
struct Show {
    engine: Engine,
    live: Live,
    started: Instant,
    /// Where the journal stood at the beginning.
    cursor: u64,
    /// Turns that have not ended.
    open: BTreeSet<String>,
    /// Prompts to be answered, and when.
    asked: Vec<(Instant, String)>,
    answered: usize,
}

impl Show {
    fn new(engine: Engine, live: Live) -> Self {
        Self {
            engine,
            live,
            started: Instant::now(),
            cursor: 0,
            open: BTreeSet::new(),
            asked: Vec::new(),
            answered: 0,
        }
    }

    /// Starts the agents and gives each its task.
    fn begin(&mut self, context: &Context) -> Result<()> {
        self.cursor = self.engine.cursor()?;
        for part in CAST {
            context.go_on()?;
            self.engine.spawn(&crate::stage::demo_agent(part.name))?;
            self.draw()?;
        }
        let attach = self.engine.attach_command(CAST[0].name)?;
        self.say(&format!("started {} agents; to look on (C-b d leaves), in another terminal:", CAST.len()));
        // Whole, however long it is: it is there to be copied.
        self.live.say(&format!("  {}", attach.join(" ")));
        for part in CAST {
            context.go_on()?;
            self.send(part)?;
            self.draw()?;
        }
        Ok(())
    }

    fn send(&mut self, part: &Part) -> Result<()> {
        let request = SendRequest {
            session: part.name.to_owned(),
            text: Some(part.prompt()),
            ..SendRequest::default()
        };
        let receipt = self.engine.send(&request)?.receipt;
        let Some(turn) = receipt.turn else {
            let why = receipt.hint.unwrap_or_else(|| receipt.delivered.to_string());
            return Err(Failure::new(format!("`{}` did not take its prompt: {why}", part.name)));
        };
        let proof = receipt.evidence.unwrap_or_default();
        self.say(&format!(
            "sent      {:9} {:9} turn {turn}, proven by: {proof}",
            part.name, receipt.delivered
        ));
        self.open.insert(turn);
        Ok(())
    }

    /// Follows the journal until every turn has ended, and answers what is asked.
    fn go_on(&mut self, context: &Context) -> Result<()> {
        let request = WatchRequest { since: Some(self.cursor), ..WatchRequest::default() };
        let mut watch = self.engine.watch(&request)?;
        while !self.open.is_empty() {
            context.go_on()?;
            if self.started.elapsed() > LIMIT {
                return Err(Failure::new(format!("after {} s a turn still runs", LIMIT.as_secs())));
            }
            let due = self.asked.iter().map(|(at, _)| at.saturating_duration_since(Instant::now())).min();
            match watch.next(due.unwrap_or(REDRAW).min(REDRAW))? {
                Some(event) => self.hear(&event),
                None => self.answer_due()?,
            }
            self.draw()?;
        }
        Ok(())
    }

    fn hear(&mut self, event: &Event) {
        let name = &event.session;
        match event.event {
            EventKind::Prompt => {
                let prompt = event.data.as_ref().and_then(|data| data.get("prompt")).cloned();
                let prompt = prompt.and_then(|prompt| serde_json::from_value::<Prompt>(prompt).ok());
                // It is told again when more of it is known.
                let known = self.asked.iter().any(|(_, asking)| asking == name);
                if let Some(prompt) = prompt.filter(|prompt| !prompt.options.is_empty() && !known) {
                    let options: Vec<&str> =
                        prompt.options.iter().map(|option| option.label.as_str()).collect();
                    self.say(&format!("asks      {name:9} {} ({})", asks(&prompt), options.join(" / ")));
                    self.asked.push((Instant::now() + THINKING, name.clone()));
                }
            }
            EventKind::TurnEnded => {
                let message = event.data.as_ref().and_then(|data| data.get("last_message")?.as_str());
                self.say(&format!("ended     {name:9} {:9} {}", event.detail, message.unwrap_or_default()));
                if let Some(turn) = &event.turn {
                    self.open.remove(turn);
                }
            }
            _ => {}
        }
    }

    /// Answers the prompts whose time has come, each by the id under which it was read.
    fn answer_due(&mut self) -> Result<()> {
        let (due, later) =
            std::mem::take(&mut self.asked).into_iter().partition(|(at, _)| *at <= Instant::now());
        self.asked = later;
        let due: Vec<(Instant, String)> = due;
        for (_, name) in due {
            let Some(prompt) = self.session(&name)?.prompt else { continue };
            let Some(choice) = CAST.iter().find(|part| part.name == name).and_then(|part| part.answer) else {
                return Err(Failure::new(format!("`{name}` asks what nobody expected: {}", prompt.title)));
            };
            let request = AnswerRequest {
                session: name.clone(),
                choice: Some(choice.to_owned()),
                prompt_id: Some(prompt.id),
                ..AnswerRequest::default()
            };
            let answer = self.engine.answer(&request)?;
            let effect = answer.effect.map(|effect| format!(" ({effect})")).unwrap_or_default();
            self.say(&format!("answered  {name:9} {}{effect}", answer.answered.join(", ")));
            self.answered += 1;
        }
        Ok(())
    }

    /// Ends the sessions and says what happened.
    fn end(&mut self) -> Result<()> {
        // How it ended stays on the screen.
        let drawn = self.draw();
        self.live.keep();
        let killed = self.engine.kill_all(&KillAllRequest { force: true, ..KillAllRequest::default() })?;
        let all = WatchRequest { since: Some(self.cursor), ..WatchRequest::default() };
        let mut watch = self.engine.watch(&all)?;
        let mut events = 0;
        while watch.next(Duration::ZERO)?.is_some() {
            events += 1;
        }
        self.say(&format!(
            "{} sessions ended, {} prompts answered, {events} events in the journal, {}",
            killed.sessions.len(),
            self.answered,
            progress::seconds(self.started.elapsed())
        ));
        drawn
    }

    fn session(&self, name: &str) -> Result<Session> {
        Ok(self.engine.status(&SessionRequest { session: name.to_owned() })?)
    }

    fn draw(&mut self) -> Result<()> {
        let mut rows = Vec::new();
        for name in self.engine.names()? {
            rows.push(row(&self.session(&name)?));
        }
        self.live.draw(&rows);
        Ok(())
    }

    fn say(&mut self, line: &str) {
        self.live.say(&progress::clip(line.trim_end(), WIDTH));
    }
}

fn row(session: &Session) -> Row {
    let since = u64::try_from(session.since.as_millisecond()).unwrap_or(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Row {
        name: session.name.clone(),
        agent: session.agent.clone(),
        status: session.status.to_string(),
        state: session.state.to_string(),
        age: now.saturating_sub(Duration::from_millis(since)),
        doing: doing(session),
    }
}

/// What it is busy with, what it asks, or what it said last.
fn doing(session: &Session) -> String {
    let todos = session.todos.as_ref().map(|todos| format!("{}/{} done", todos.done, todos.total));
    let at_work = session.tool.clone().or(session.activity.map(|activity| activity.to_string()));
    match (&session.prompt, at_work) {
        (Some(prompt), _) => asks(prompt),
        (None, Some(work)) => [Some(work), todos].into_iter().flatten().collect::<Vec<_>>().join(", "),
        (None, None) => session.last_message.clone().unwrap_or_default(),
    }
}

/// The line that matters most to whoever has to decide.
fn asks(prompt: &Prompt) -> String {
    let body = prompt.body.lines().next();
    let subject = prompt.command.as_deref().or(prompt.file.as_deref()).or(body);
    subject.unwrap_or(&prompt.title).to_owned()
}
