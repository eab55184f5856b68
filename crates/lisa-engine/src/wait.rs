//! Waiting for sessions, and following the journal.

use crate::{
    api::*,
    drive::seconds,
    engine::{Cancel, Engine, next_step},
    error::{Error, Kind, Result, printable},
    resident::Resident,
    words::{Attention, StateName, Status},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a wait lasts unless its caller says otherwise.
const WAIT: Duration = Duration::from_secs(45);
/// The most events that one answer holds.
const EVENTS_MAX: usize = 200;
/// How often a wait looks whether it was cancelled, and tells how things stand.
const BEAT: Duration = Duration::from_millis(50);
const PROGRESS: Duration = Duration::from_secs(1);

/// How long a prompt that was announced may take to be drawn. Until then nobody can read its options.
const DRAWN_MS: i64 = 1_500;

/// What a wait is for.
#[derive(Debug, Clone, PartialEq)]
enum Until {
    Attention,
    Status(Status),
    State(StateName),
    Turn(String),
    Event,
}

impl Until {
    fn parse(request: &WaitRequest) -> Result<Self> {
        let word =
            request.until.as_deref().unwrap_or(if request.turn.is_some() { "turn" } else { "attention" });
        if let Some(status) = Status::parse(word) {
            return Ok(Self::Status(status));
        }
        if let Some(state) = StateName::parse(word) {
            return Ok(Self::State(state));
        }
        match (word, &request.turn) {
            ("attention", _) => Ok(Self::Attention),
            ("event", _) => Ok(Self::Event),
            ("turn", Some(turn)) => Ok(Self::Turn(turn.clone())),
            ("turn", None) => {
                Err(Error::invalid("until is `turn`, but no turn was given", "give the `turn` of a receipt"))
            }
            _ => Err(Error::invalid(
                format!("until can not be `{}`", printable(word)),
                "give attention, turn, event, a status (such as waiting_input) or a state (such as ready)",
            )),
        }
    }

    /// Whether a session as it stands satisfies the wait.
    fn holds(&self, session: &Session) -> bool {
        !is_being_drawn(session) && self.fits(session)
    }

    fn fits(&self, session: &Session) -> bool {
        match self {
            Self::Attention => {
                let settled = !matches!(session.state, StateName::Starting | StateName::Working);
                settled && session.attention != Attention::Autonomous
            }
            Self::Status(status) => session.status == *status,
            Self::State(state) => session.state == *state,
            Self::Turn(_) | Self::Event => false,
        }
    }
}

impl Engine {
    /// Blocks until the wait comes true, its time is over, or it is cancelled. `progress` is called about once a
    /// second with one line on what the sessions do.
    pub fn wait(
        &self,
        request: &WaitRequest,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&str),
    ) -> Result<WaitResponse> {
        let until = Until::parse(request)?;
        let limit = seconds(request.timeout_s, WAIT)?;
        let names = self.waited_for(request)?;
        if let Until::Turn(turn) = &until {
            self.check_turn(turn)?;
        }
        let journal = self.journal()?;
        let since = match request.since {
            Some(since) => not_ahead(since, journal.cursor()?)?,
            None => journal.cursor()?,
        };
        // A cursor that has expired is said at once, not after the wait.
        journal.read(since, 1, |_| true)?;
        let deadline = Instant::now() + limit;
        let resident = self.resident()?;
        let mut round = resident.round();
        resident.look(&names);
        let mut told = Instant::now();
        let mut first = true;
        loop {
            let sessions = self.sessions_now(&names, &resident, first)?;
            first = false;
            let done = match &until {
                Until::Turn(turn) => self.turn_over(turn, since)? || blocked(&sessions, turn),
                Until::Event => !self.events_after(since, &names, 1)?.0.is_empty(),
                until => {
                    let holds = |name: &String| {
                        sessions
                            .iter()
                            .find(|session| session.name == *name)
                            .is_none_or(|session| until.holds(session))
                    };
                    match request.mode {
                        WaitMode::Any => names.iter().any(holds),
                        WaitMode::All => names.iter().all(holds),
                    }
                }
            };
            let out_of_time = Instant::now() >= deadline;
            if done || out_of_time || names.is_empty() {
                // What is answered is what is so now, not when the pump last came by.
                let sessions = self.sessions_now(&names, &resident, true)?;
                return self.wait_answer(&names, sessions, since, !done && out_of_time, request);
            }
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                progress(&line(&sessions));
            }
            loop {
                if cancel.is_cancelled() {
                    return Err(Error::new(
                        Kind::Cancelled,
                        "the wait was cancelled",
                        "wait again with the same cursor",
                    ));
                }
                let left = deadline.saturating_duration_since(Instant::now());
                let now = resident.after(round, BEAT.min(left));
                if now != round || left.is_zero() || told.elapsed() >= PROGRESS {
                    round = now;
                    break;
                }
            }
        }
    }

    /// The resident of this process, started when it is first needed.
    fn resident(&self) -> Result<Arc<Resident>> {
        self.resident_slot(Resident::start)
    }

    fn waited_for(&self, request: &WaitRequest) -> Result<Vec<String>> {
        let store = self.store()?;
        if request.sessions.is_empty() {
            let mine = self.caller().env.text("LISA_SESSION").map(str::to_owned);
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

    /// The sessions as the pump last saw them; looked at here the first time, or where the pump has not come yet.
    fn sessions_now(&self, names: &[String], resident: &Resident, fresh: bool) -> Result<Vec<Session>> {
        let mut sessions = Vec::new();
        for name in names {
            let known = if fresh { None } else { resident.session(name) };
            let session = match known {
                Some(session) => Some(session),
                None => match self.look_at(name) {
                    Ok((sighting, judged)) => Some(self.describe(&sighting, &judged, false)),
                    Err(error) if error.kind() == Kind::SessionNotFound => None,
                    Err(error) => return Err(error),
                },
            };
            sessions.extend(session);
        }
        Ok(sessions)
    }

    /// A turn that there never was would be waited for in vain.
    fn check_turn(&self, turn: &str) -> Result<()> {
        let hint = "give the `turn` of a receipt as it is";
        let parts =
            turn.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse::<u64>().ok()?)));
        let Some((name, number)) = parts else {
            return Err(Error::invalid(format!("`{}` is no turn", printable(turn)), hint));
        };
        // A session that is gone has ended its turns, whichever they were.
        let Some((folder, meta)) = self.store()?.load(name)? else { return Ok(()) };
        let turns = crate::judge::read_record(&folder, &meta.run_id).map_or(u64::MAX, |record| record.turns);
        if number > turns {
            let so_far =
                format!("`{name}` has had {turns} turns so far, and `{}` is none of them", printable(turn));
            return Err(Error::invalid(so_far, hint));
        }
        Ok(())
    }

    fn turn_over(&self, turn: &str, since: u64) -> Result<bool> {
        let journal = self.journal()?;
        let ended =
            |event: &Event| event.event == EventKind::TurnEnded && event.turn.as_deref() == Some(turn);
        if !journal.read(since, 1, ended)?.events.is_empty() {
            return Ok(true);
        }
        // It may have ended before the cursor: then the session's record says so.
        let Some((name, _)) = turn.rsplit_once('#') else { return Ok(false) };
        let Some((folder, meta)) = self.store()?.load(name)? else { return Ok(true) };
        let record = crate::judge::read_record(&folder, &meta.run_id).unwrap_or_default();
        let number = |id: &str| id.rsplit_once('#').and_then(|(_, n)| n.parse::<u64>().ok());
        Ok(match &record.turn {
            Some(current) if current.id == turn => current.ended.is_some(),
            Some(current) => number(&current.id) > number(turn),
            None => false,
        })
    }

    fn events_after(&self, since: u64, names: &[String], limit: usize) -> Result<(Vec<Event>, u64, bool)> {
        let read = self.journal()?.read(since, limit, |event| names.contains(&event.session))?;
        Ok((read.events, read.cursor, read.more))
    }

    fn wait_answer(
        &self,
        names: &[String],
        sessions: Vec<Session>,
        since: u64,
        timed_out: bool,
        request: &WaitRequest,
    ) -> Result<WaitResponse> {
        let (events, cursor, more) = self.events_after(since, names, EVENTS_MAX)?;
        let changed = |session: &Session| {
            events.iter().any(|event| event.session == session.name)
                || !matches!(session.state, StateName::Starting | StateName::Working)
        };
        let sessions: Vec<Session> =
            sessions.into_iter().filter(|session| request.sessions.len() == 1 || changed(session)).collect();
        let next = if names.is_empty() {
            "there are no sessions to wait for: spawn_session starts one".to_owned()
        } else if more {
            format!("there is more: wait again with since={cursor}")
        } else {
            let needing = sessions.iter().find(|session| session.attention == Attention::NeedsYou);
            match needing.or(sessions.first().filter(|_| !timed_out)) {
                Some(session) => next_step(session, cursor),
                None if timed_out => format!("nothing yet: wait again with since={cursor}"),
                None => format!("wait again with since={cursor}"),
            }
        };
        Ok(WaitResponse { events, sessions, timed_out, cursor, next })
    }

    /// Follows the journal.
    pub fn watch(&self, request: &WatchRequest) -> Result<Watch> {
        let journal = self.journal()?;
        let cursor = match request.since {
            Some(since) => not_ahead(since, journal.cursor()?)?,
            None => journal.cursor()?,
        };
        journal.read(cursor, 1, |_| true)?;
        let known = self.names()?;
        if let Some(unknown) = request.sessions.iter().find(|name| !known.contains(name)) {
            return Err(Error::not_found(unknown, &known));
        }
        let resident = self.resident()?;
        Ok(Watch { engine: self.clone(), resident, request: request.clone(), cursor, held: Vec::new() })
    }
}

/// A cursor that the journal has not reached is another journal's: waiting from there would miss what comes.
fn not_ahead(since: u64, now: u64) -> Result<u64> {
    if since <= now {
        return Ok(since);
    }
    Err(Error::invalid(
        format!("`since` is {since}, but the journal stands at {now}"),
        format!("give the `cursor` of an earlier answer, or leave `since` out to go on from {now}"),
    ))
}

/// Whether a turn can not end before somebody answers what it asks.
fn blocked(sessions: &[Session], turn: &str) -> bool {
    let asks = |session: &Session| session.prompt.is_some() && !is_being_drawn(session);
    sessions.iter().any(|session| session.turn.as_deref() == Some(turn) && asks(session))
}

/// Whether the agent has just announced a prompt that its screen does not show yet: whoever waits wants to answer it.
fn is_being_drawn(session: &Session) -> bool {
    let age_ms = || jiff::Timestamp::now().as_millisecond() - session.since.as_millisecond();
    session.prompt.as_ref().is_some_and(|prompt| prompt.options.is_empty()) && age_ms() < DRAWN_MS
}

fn line(sessions: &[Session]) -> String {
    let words: Vec<String> = sessions
        .iter()
        .take(5)
        .map(|session| match &session.tool {
            Some(tool) => format!("{} {} ({tool})", session.name, session.state),
            None => format!("{} {}", session.name, session.state),
        })
        .collect();
    let more = sessions.len().saturating_sub(5);
    if more > 0 { format!("{}, and {more} more", words.join(", ")) } else { words.join(", ") }
}

/// The journal as a stream.
#[derive(Debug)]
pub struct Watch {
    engine: Engine,
    resident: Arc<Resident>,
    request: WatchRequest,
    cursor: u64,
    held: Vec<Event>,
}

impl Watch {
    /// The next event, or `None` when the time passed without one.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Event>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(event) = self.held.pop() {
                return Ok(Some(event));
            }
            let round = self.resident.round();
            let wanted = |event: &Event| {
                (self.request.sessions.is_empty() || self.request.sessions.contains(&event.session))
                    && (self.request.events.is_empty() || self.request.events.contains(&event.event))
            };
            let read = self.engine.journal()?.read(self.cursor, EVENTS_MAX, wanted)?;
            self.cursor = read.cursor;
            self.held = read.events;
            self.held.reverse();
            if !self.held.is_empty() {
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.resident.after(round, left);
        }
    }

    /// Where the stream stands.
    pub fn cursor(&self) -> u64 {
        self.held.last().map_or(self.cursor, |event| event.cursor - 1)
    }
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
        assert!(!Until::Attention.holds(&announced), "nobody could choose an option yet");
        assert!(!blocked(&[announced], "s#1"));
        assert!(Until::Attention.holds(&asking(now, option.clone())));
        assert!(blocked(&[asking(now, option)], "s#1"));
        let long_ago = now - Duration::from_secs(5);
        assert!(Until::Attention.holds(&asking(long_ago, json!([]))), "it is said even if it is never shown");
    }
}
