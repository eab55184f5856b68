//! Waits for sessions: what to wait for, when a wait is satisfied, and its result.

use super::{
    Want, Wanted,
    change::read_record,
    journal::{Entry, EventId, Read},
};
use crate::{
    api::{
        next_step, seconds,
        words::{Attention, StateName},
        *,
    },
    classify::prompt,
    error::{Error, Kind, Result, printable},
    watch::Context,
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// The default timeout of a wait.
const WAIT: Duration = Duration::from_secs(45);
/// Maximum number of events in one result.
pub(super) const EVENTS_MAX: usize = 200;

/// What to wait for, with the turn if it is the end of one.
#[derive(Debug, Clone, PartialEq)]
enum Goal {
    Turn(String),
    Other(Until),
}

impl Goal {
    fn of(request: &WaitRequest) -> Result<Self> {
        let default = if request.turn.is_some() { "turn" } else { "attention" };
        let word = request.until.as_deref().unwrap_or(default);
        match (Until::parse(word), &request.turn) {
            (Some(Until::Turn), Some(turn)) => Ok(Self::Turn(turn.clone())),
            (Some(Until::Turn), None) => Err(Error::invalid(
                "`until` is `turn`, but `turn` is missing",
                "pass the `turn` of a receipt",
            )),
            (Some(until), _) => Ok(Self::Other(until)),
            (None, _) => Err(Error::invalid(
                format!("invalid value for `until`: `{}`", printable(word)),
                "use attention, turn, event, a status (such as waiting_input) or a state (such as ready)",
            )
            .about(word)),
        }
    }
}

/// Whether a session satisfies the wait; a prompt counts once it can be answered.
pub fn holds(until: Until, session: &Session) -> bool {
    !is_being_drawn(session) && until.fits(session)
}

/// Whose events a wait returns.
#[derive(Debug)]
enum Scope {
    /// Those of the named sessions.
    Named,
    /// Those of all sessions that this one started, or of all sessions. Includes sessions that ended before the wait,
    /// and new ones.
    All { parent: Option<String> },
}

/// A wait in progress.
#[derive(Debug)]
pub(super) struct Wait {
    request: WaitRequest,
    goal: Goal,
    scope: Scope,
    names: Vec<String>,
    since: u64,
    /// When it times out.
    pub(super) deadline: Instant,
    /// The sessions as last seen.
    seen: BTreeMap<String, Session>,
    /// The last event of each session that was read.
    told: BTreeMap<String, EventId>,
}

impl Wait {
    /// Validates the request and gets the journal's current cursor.
    pub(super) fn begin(context: &Context, request: WaitRequest) -> Result<Self> {
        let goal = Goal::of(&request)?;
        let limit = seconds(request.timeout_s, WAIT)?;
        let scope = match request.sessions.is_empty() {
            true => Scope::All { parent: context.caller.env.text("LISA_SESSION").map(str::to_owned) },
            false => Scope::Named,
        };
        let names = context.waited_for(&request)?;
        if let Goal::Turn(turn) = &goal {
            context.check_turn(turn)?;
        }
        let journal = context.journal()?;
        let since = match request.since {
            Some(since) => not_ahead(since, journal.cursor()?)?,
            None => journal.cursor()?,
        };
        // Report an expired cursor now, not after the wait.
        journal.read(since, 1, |_| true)?;
        let deadline = Instant::now() + limit;
        let (seen, told) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { request, goal, scope, names, since, deadline, seen, told })
    }

    /// The sessions of this wait.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it is for all sessions, including new ones.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.scope, Scope::All { .. })
    }

    /// Whether it is for a session with this parent.
    pub(super) fn is_about(&self, name: &str, parent: Option<&str>) -> bool {
        match &self.scope {
            Scope::Named => self.names.iter().any(|named| named == name),
            Scope::All { parent: None } => true,
            Scope::All { parent: mine } => mine.as_deref() == parent,
        }
    }

    /// Adds a new session; returns whether it was unknown.
    pub(super) fn join(&mut self, name: &str) -> bool {
        let new = self.names.iter().all(|known| known != name);
        if new {
            self.names.push(name.to_owned());
        }
        new
    }

    /// The sessions that it would be for if it started now.
    pub(super) fn named_now(&self, context: &Context) -> Result<Vec<String>> {
        context.waited_for(&self.request)
    }

    /// Asks for its sessions as they are now.
    pub(super) fn now(&self) -> Wanted {
        Wanted::Now(self.names.clone())
    }

    /// Notes the last event of a session that was read.
    pub(super) fn tell(&mut self, want: &Want) {
        if let Some(event) = &want.event {
            self.told.insert(want.name.clone(), event.clone());
        }
    }

    /// Updates the sessions; those in `changed` but not in `sessions` are gone.
    pub(super) fn see(&mut self, changed: &[String], sessions: Vec<Session>) {
        changed.iter().for_each(|name| {
            self.seen.remove(name);
        });
        self.seen.extend(sessions.into_iter().map(|session| (session.name.clone(), session)));
    }

    /// Whether it is satisfied.
    pub(super) fn is_true(&mut self, context: &Context) -> Result<bool> {
        if self.names.is_empty() {
            return Ok(true);
        }
        match &self.goal {
            Goal::Turn(turn) => {
                let over = context.turn_over(turn, self.since)?;
                if over && let Some((name, event)) = context.last_event_of(turn)? {
                    // A verdict from before the turn's end would say that it is still running.
                    self.told.insert(name, event);
                }
                Ok(over || blocked(self.seen.values(), turn))
            }
            Goal::Other(Until::Event) => Ok(!self.events(context, 1)?.events.is_empty()),
            Goal::Other(until) => {
                let holds = |name: &String| self.seen.get(name).is_none_or(|session| holds(*until, session));
                Ok(match self.request.mode {
                    WaitMode::Any => self.names.iter().any(holds),
                    WaitMode::All => self.names.iter().all(holds),
                })
            }
        }
    }

    /// When to check it again without an event.
    pub(super) fn look_again(&self) -> Option<Duration> {
        self.seen.values().any(is_being_drawn).then_some(prompt::DRAWN)
    }

    /// One line about what the sessions are doing.
    pub(super) fn progress(&self) -> String {
        line(self.seen.values())
    }

    /// The result, with the sessions as last judged.
    pub(super) fn answer(&self, context: &Context, timed_out: bool) -> Result<WaitResponse> {
        let want = |name: &String| Want { name: name.clone(), event: self.told.get(name).cloned() };
        let sessions =
            context.observed_or_looked_at(&Wanted::Judged(self.names.iter().map(want).collect()))?;
        let Read { events, cursor, more } = self.events(context, EVENTS_MAX)?;
        let one = self.request.sessions.len() == 1;
        let changed = |session: &Session| {
            events.iter().any(|event| event.session == session.name)
                || !matches!(session.state, StateName::Starting | StateName::Working)
        };
        let sessions: Vec<Session> = sessions.into_iter().filter(|session| one || changed(session)).collect();
        let next = if self.names.is_empty() {
            Next::Spawn
        } else if more {
            Next::WaitAgain { since: cursor, more: true }
        } else {
            let needing = sessions.iter().find(|session| session.attention == Attention::NeedsYou);
            match needing.or(sessions.first().filter(|_| !timed_out)) {
                Some(session) => next_step(session, cursor),
                None => Next::WaitAgain { since: cursor, more: false },
            }
        };
        Ok(WaitResponse { events, sessions, timed_out, cursor, next })
    }

    /// Events since its cursor, at most `limit`.
    fn events(&self, context: &Context, limit: usize) -> Result<Read> {
        let concerns = |entry: &Entry| self.is_about(&entry.event.session, entry.parent.as_deref());
        context.journal()?.read(self.since, limit, concerns)
    }
}

impl Context {
    fn waited_for(&self, request: &WaitRequest) -> Result<Vec<String>> {
        let store = self.store()?;
        if request.sessions.is_empty() {
            let mine = self.caller.env.text("LISA_SESSION").map(str::to_owned);
            let all = store.load_all()?.into_iter().filter_map(|stored| stored.found.ok());
            let own =
                all.filter(|(_, meta)| mine.is_none() || meta.parent == mine).map(|(_, meta)| meta.name);
            return Ok(own.collect());
        }
        let known = store.names()?;
        let mut names: Vec<String> = Vec::new();
        for name in &request.sessions {
            if !known.contains(name) {
                return Err(Error::not_found(name, &known));
            }
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Ok(names)
    }

    /// A wait for a turn that never existed would never end.
    fn check_turn(&self, turn: &str) -> Result<()> {
        let hint = "pass the `turn` of a receipt unchanged";
        let parts =
            turn.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse::<u64>().ok()?)));
        let Some((name, number)) = parts else {
            return Err(Error::invalid(format!("`{}` is not a turn id", printable(turn)), hint).about(turn));
        };
        // A session that is gone has ended all its turns.
        let Some((dir, meta)) = self.store()?.load(name)? else { return Ok(()) };
        let record = read_record(&dir, &meta.run_id).ok().flatten();
        let turns = record.map_or(u64::MAX, |record| record.turns);
        if number > turns {
            let so_far = format!(
                "`{name}` has had {turns} turns so far, and `{}` is not one of them",
                printable(turn)
            );
            return Err(Error::invalid(so_far, hint).about(turn));
        }
        Ok(())
    }

    fn turn_over(&self, turn: &str, since: u64) -> Result<bool> {
        let journal = self.journal()?;
        let ended = |Entry { event, .. }: &Entry| {
            event.event == EventKind::TurnEnded && event.turn.as_deref() == Some(turn)
        };
        if !journal.read(since, 1, ended)?.events.is_empty() {
            return Ok(true);
        }
        // It may have ended before the cursor; then the session's record says so.
        let Some((name, _)) = turn.rsplit_once('#') else { return Ok(false) };
        let Some((dir, meta)) = self.store()?.load(name)? else { return Ok(true) };
        let record = read_record(&dir, &meta.run_id).ok().flatten().unwrap_or_default();
        let number = |id: &str| id.rsplit_once('#').and_then(|(_, n)| n.parse::<u64>().ok());
        Ok(match &record.turn {
            Some(current) if current.id == turn => current.ended.is_some(),
            Some(current) => number(&current.id) > number(turn),
            None => false,
        })
    }

    /// The session of a turn, and the last event in its record.
    fn last_event_of(&self, turn: &str) -> Result<Option<(String, EventId)>> {
        let Some((name, _)) = turn.rsplit_once('#') else { return Ok(None) };
        let Some((dir, meta)) = self.store()?.load(name)? else { return Ok(None) };
        let record = read_record(&dir, &meta.run_id).ok().flatten();
        Ok(record.map(|record| (name.to_owned(), EventId { run: record.run_id, number: record.seq })))
    }
}

/// A cursor ahead of the journal is from another journal; a wait from there would miss events.
pub(crate) fn not_ahead(since: u64, now: u64) -> Result<u64> {
    if since <= now {
        return Ok(since);
    }
    Err(Error::invalid(
        format!("`since` is {since}, but the journal's newest cursor is {now}"),
        format!("pass the `cursor` of an earlier result, or omit `since` to start from {now}"),
    ))
}

/// Whether a turn can't end before somebody answers its prompt.
fn blocked<'a>(mut sessions: impl Iterator<Item = &'a Session>, turn: &str) -> bool {
    let asks = |session: &Session| session.prompt.is_some() && !is_being_drawn(session);
    sessions.any(|session| session.turn.as_deref() == Some(turn) && asks(session))
}

/// The error of a cancelled wait.
pub(crate) fn cancelled() -> Error {
    Error::new(Kind::Cancelled, "the wait was cancelled", "wait again with the same cursor")
}

/// Whether the agent just announced a prompt that its screen doesn't show yet: callers want to be able to answer it.
pub(super) fn is_being_drawn(session: &Session) -> bool {
    let age_ms = || jiff::Timestamp::now().as_millisecond() - session.since.as_millisecond();
    session.prompt.as_ref().is_some_and(|prompt| prompt::is_being_drawn(prompt, age_ms()))
}

fn line<'a>(sessions: impl ExactSizeIterator<Item = &'a Session>) -> String {
    let more = sessions.len().saturating_sub(5);
    let words: Vec<String> = sessions
        .take(5)
        .map(|session| match &session.tool {
            Some(tool) => format!("{} {} ({tool})", session.name, session.state),
            None => format!("{} {}", session.name, session.state),
        })
        .collect();
    if more > 0 { format!("{}, and {more} more", words.join(", ")) } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asking(since: jiff::Timestamp, options: serde_json::Value) -> Session {
        serde_json::from_value(json!({
            "name": "s", "agent": "demo", "status": "waiting_input", "state": "awaiting_permission",
            "attention": "needs_you", "reason": "event_asking", "confidence": "likely", "source": "hook",
            "since": since, "idle_ms": 0, "started_at": since, "mode": "interactive", "cwd": "/", "project": "p",
            "project_hash": "0", "depth": 0, "host": "h", "run_id": "r", "turn": "s#1",
            "prompt": {"id": "1", "kind": "permission", "title": "t", "options": options},
        }))
        .unwrap()
    }

    #[test]
    fn a_prompt_ends_a_wait_when_it_can_be_answered_or_should_long_be_shown() {
        let now = jiff::Timestamp::now();
        let option = json!([{"key": "1", "label": "Yes", "selected": true, "effect": "allow_once"}]);
        let announced = asking(now, json!([]));
        assert!(!holds(Until::Attention, &announced), "nobody could choose an option yet");
        assert!(!blocked([announced].iter(), "s#1"));
        assert!(holds(Until::Attention, &asking(now, option.clone())));
        assert!(blocked([asking(now, option)].iter(), "s#1"));
        let long_ago = now - Duration::from_secs(5);
        assert!(
            holds(Until::Attention, &asking(long_ago, json!([]))),
            "it is said even if it is never shown"
        );
    }
}
