//! Waiting for sessions: what a wait is for, when it comes true, and what it answers.

use super::{
    Want, Wanted,
    change::read_record,
    journal::EventId,
    parking::{Arrival, Said},
};
use crate::{
    api::*,
    drive::seconds,
    engine::{Cancel, Engine, next_step},
    error::{Error, Kind, Result, printable},
    words::{Attention, StateName, Status},
};
use std::{
    collections::BTreeMap,
    sync::mpsc::channel,
    time::{Duration, Instant},
};

/// How long a wait lasts unless its caller says otherwise.
const WAIT: Duration = Duration::from_secs(45);
/// The most events that one answer holds.
pub(super) const EVENTS_MAX: usize = 200;
/// How often a session is looked at again whose prompt is announced and not drawn yet.
const DRAWING: Duration = Duration::from_millis(50);

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

/// A wait that has begun.
#[derive(Debug)]
pub(super) struct Wait {
    request: WaitRequest,
    until: Until,
    names: Vec<String>,
    since: u64,
    /// When it is over.
    pub(super) deadline: Instant,
    /// The sessions as they were last seen.
    seen: BTreeMap<String, Session>,
    /// The last event of each that was read.
    told: BTreeMap<String, EventId>,
}

impl Wait {
    /// Checks what is asked for, and looks where the journal stands.
    pub(super) fn begin(engine: &Engine, request: WaitRequest) -> Result<Self> {
        let until = Until::parse(&request)?;
        let limit = seconds(request.timeout_s, WAIT)?;
        let names = engine.waited_for(&request)?;
        if let Until::Turn(turn) = &until {
            engine.check_turn(turn)?;
        }
        let journal = engine.journal()?;
        let since = match request.since {
            Some(since) => not_ahead(since, journal.cursor()?)?,
            None => journal.cursor()?,
        };
        // A cursor that has expired is said at once, not after the wait.
        journal.read(since, 1, |_| true)?;
        let deadline = Instant::now() + limit;
        Ok(Self { request, until, names, since, deadline, seen: BTreeMap::new(), told: BTreeMap::new() })
    }

    /// The sessions that it is about.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The same as they are now.
    pub(super) fn now(&self) -> Wanted {
        Wanted::Now(self.names.clone())
    }

    /// Takes in that an event of a session was read.
    pub(super) fn tell(&mut self, want: &Want) {
        if let Some(event) = &want.event {
            self.told.insert(want.name.clone(), event.clone());
        }
    }

    /// Takes in how sessions are now: those of `changed` that are not among `sessions` are gone.
    pub(super) fn see(&mut self, changed: &[String], sessions: Vec<Session>) {
        changed.iter().for_each(|name| {
            self.seen.remove(name);
        });
        self.seen.extend(sessions.into_iter().map(|session| (session.name.clone(), session)));
    }

    /// Whether it has come true.
    pub(super) fn is_true(&self, engine: &Engine) -> Result<bool> {
        if self.names.is_empty() {
            return Ok(true);
        }
        match &self.until {
            Until::Turn(turn) => Ok(engine.turn_over(turn, self.since)? || blocked(self.seen.values(), turn)),
            Until::Event => Ok(!engine.events_after(self.since, &self.names, 1)?.0.is_empty()),
            until => {
                let holds = |name: &String| self.seen.get(name).is_none_or(|session| until.holds(session));
                Ok(match self.request.mode {
                    WaitMode::Any => self.names.iter().any(holds),
                    WaitMode::All => self.names.iter().all(holds),
                })
            }
        }
    }

    /// When it should be looked at again although nothing happens.
    pub(super) fn look_again(&self) -> Option<Duration> {
        self.seen.values().any(is_being_drawn).then_some(DRAWING)
    }

    /// One line on what the sessions do.
    pub(super) fn progress(&self) -> String {
        line(self.seen.values())
    }

    /// The answer, with the sessions as they were last judged.
    pub(super) fn answer(&self, engine: &Engine, timed_out: bool) -> Result<WaitResponse> {
        let want = |name: &String| Want { name: name.clone(), event: self.told.get(name).cloned() };
        let sessions =
            engine.observed_or_looked_at(&Wanted::Judged(self.names.iter().map(want).collect()))?;
        engine.wait_answer(&self.names, sessions, self.since, timed_out, &self.request)
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
        let (sender, receiver) = channel();
        self.wait_parked(request.clone(), cancel, true, move |said| drop(sender.send(said)))?;
        loop {
            match receiver.recv() {
                Ok(Said::Progress(line)) => progress(&line),
                Ok(Said::Done(answer)) => return *answer,
                Err(_) => return Err(cancelled()),
            }
        }
    }

    /// Begins a wait that holds no thread: `say` is called with its answer when it comes true, its time is over or it is
    /// cancelled, and, where `progress` is wanted, about once a second with one line on what the sessions do.
    pub fn wait_parked(
        &self,
        request: WaitRequest,
        cancel: &Cancel,
        progress: bool,
        say: impl Fn(Said) + Send + 'static,
    ) -> Result<()> {
        let arrival = Arrival { request, progress, say: Box::new(say) };
        self.watcher()?.park(arrival, cancel)
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

    /// Sessions as the observer says, or looked at. One that is gone is left out.
    pub(super) fn observed_or_looked_at(&self, wanted: &Wanted) -> Result<Vec<Session>> {
        if let Some(sessions) = self.observed(wanted) {
            return Ok(sessions);
        }
        let store = self.store()?;
        let mut found = Vec::new();
        for name in wanted.names().unwrap_or_default() {
            found.extend(store.load(name)?);
        }
        let looked = self.look_into_all(found)?;
        let there = looked.into_iter().filter(|(_, judged)| !judged.gone);
        Ok(there.map(|(sighting, judged)| self.describe(&sighting, &judged, false)).collect())
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
        let record = read_record(&folder, &meta.run_id).ok().flatten();
        let turns = record.map_or(u64::MAX, |record| record.turns);
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
        let record = read_record(&folder, &meta.run_id).ok().flatten().unwrap_or_default();
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
}

/// A cursor that the journal has not reached is another journal's: waiting from there would miss what comes.
pub(super) fn not_ahead(since: u64, now: u64) -> Result<u64> {
    if since <= now {
        return Ok(since);
    }
    Err(Error::invalid(
        format!("`since` is {since}, but the journal stands at {now}"),
        format!("give the `cursor` of an earlier answer, or leave `since` out to go on from {now}"),
    ))
}

/// Whether a turn can not end before somebody answers what it asks.
fn blocked<'a>(mut sessions: impl Iterator<Item = &'a Session>, turn: &str) -> bool {
    let asks = |session: &Session| session.prompt.is_some() && !is_being_drawn(session);
    sessions.any(|session| session.turn.as_deref() == Some(turn) && asks(session))
}

/// What a wait answers that was given up.
pub(super) fn cancelled() -> Error {
    Error::new(Kind::Cancelled, "the wait was cancelled", "wait again with the same cursor")
}

/// Whether the agent has just announced a prompt that its screen does not show yet: whoever waits wants to answer it.
pub(super) fn is_being_drawn(session: &Session) -> bool {
    let age_ms = || jiff::Timestamp::now().as_millisecond() - session.since.as_millisecond();
    session.prompt.as_ref().is_some_and(|prompt| prompt.options.is_empty()) && age_ms() < DRAWN_MS
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
        assert!(!Until::Attention.holds(&announced), "nobody could choose an option yet");
        assert!(!blocked([announced].iter(), "s#1"));
        assert!(Until::Attention.holds(&asking(now, option.clone())));
        assert!(blocked([asking(now, option)].iter(), "s#1"));
        let long_ago = now - Duration::from_secs(5);
        assert!(Until::Attention.holds(&asking(long_ago, json!([]))), "it is said even if it is never shown");
    }
}
