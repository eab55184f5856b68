//! Those who follow the journal, each in its own way, and what they missed.

use super::super::{client::Server, trial::pause};
use crate::{
    context::Context,
    failure::{Failure, Result},
};
use lisa_engine::{
    api::{Event, WatchRequest},
    engine::Engine,
    watch::Caller,
};
use serde_json::json;
use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// How long one wait takes at most, and one look at a stream.
const WAIT_S: u64 = 2;
const LOOK: Duration = Duration::from_millis(500);

/// Waits for events through an MCP server, again and again from where it stands, as a parent does.
pub(super) fn by_server(mut server: Server, over: &AtomicBool) -> Result<Vec<u64>> {
    let (mut seen, mut cursor) = (Vec::new(), 0);
    loop {
        let last = over.load(Ordering::SeqCst);
        let wait = json!({ "until": "event", "since": cursor, "timeout_s": WAIT_S });
        let answer = server.call("wait_sessions", &wait)?;
        let events = answer["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        seen.extend(events.iter().filter_map(|event| event["cursor"].as_u64()));
        let next = answer["cursor"].as_u64().ok_or_else(|| Failure::new("a wait said no cursor"))?;
        // Once everything has happened, whoever is where they were has seen it.
        if last && next == cursor {
            return Ok(seen);
        }
        cursor = next;
    }
}

/// Follows the journal as a stream in this process.
pub(super) fn by_stream(engine: &Engine, over: &AtomicBool) -> Result<Vec<Event>> {
    let mut watch = engine.watch(&WatchRequest { since: Some(0), ..WatchRequest::default() })?;
    let mut seen = Vec::new();
    loop {
        let last = over.load(Ordering::SeqCst);
        match watch.next(LOOK)? {
            Some(event) => seen.push(event),
            None if last => return Ok(seen),
            None => {}
        }
    }
}

/// What the journal holds, read once from its beginning.
pub(super) fn truth(caller: &Caller) -> Result<Vec<Event>> {
    let engine = Engine::open(caller.clone())?;
    by_stream(&engine, &AtomicBool::new(true))
}

/// The cursors of events.
pub(super) fn cursors(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.cursor).collect()
}

/// What kinds of events somebody missed, and how many of each.
pub(super) fn missed(seen: &[u64], truth: &[Event]) -> Option<String> {
    let seen: HashSet<u64> = seen.iter().copied().collect();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for event in truth.iter().filter(|event| !seen.contains(&event.cursor)) {
        *kinds.entry(event.event.to_string()).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, times)| format!("{times} {kind}")).collect();
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

/// What another process wrote down, once it has come to the end of the truth or taken too long.
pub(super) fn from_file(context: &Context, file: &Path, truth: &[u64], limit: Duration) -> Result<Vec<u64>> {
    let began = Instant::now();
    loop {
        let text = fs::read_to_string(file).map_err(|error| Failure::io("read", file, &error))?;
        let seen: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if seen.last() >= truth.last() || began.elapsed() > limit {
            return Ok(seen);
        }
        pause(context, Duration::from_millis(100))?;
    }
}

/// What somebody saw, held against what there was.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) seen: usize,
    pub(super) missing: usize,
    pub(super) twice: usize,
    pub(super) disordered: usize,
}

impl Tally {
    /// Compares the cursors that somebody saw with those that there are.
    pub(super) fn of(seen: &[u64], truth: &[u64]) -> Self {
        let different: HashSet<u64> = seen.iter().copied().collect();
        Self {
            seen: seen.len(),
            missing: truth.iter().filter(|cursor| !different.contains(cursor)).count(),
            twice: seen.len() - different.len(),
            disordered: seen.windows(2).filter(|pair| pair[1] < pair[0]).count(),
        }
    }

    /// Compares a journal with what it must be: every number from one on.
    pub(super) fn gaps(truth: &[u64]) -> Self {
        let all: Vec<u64> = (1..=truth.iter().copied().max().unwrap_or(0)).collect();
        Self::of(truth, &all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_repeated_or_turned_round_is_counted() {
        let tally = |seen: &[u64]| {
            let Tally { seen, missing, twice, disordered } = Tally::of(seen, &[1, 2, 3, 4]);
            [seen, missing, twice, disordered]
        };
        assert_eq!(tally(&[1, 2, 3, 4]), [4, 0, 0, 0]);
        assert_eq!(tally(&[1, 3, 4]), [3, 1, 0, 0]);
        assert_eq!(tally(&[1, 2, 2, 3, 4]), [5, 0, 1, 0]);
        assert_eq!(tally(&[2, 1, 3, 4]), [4, 0, 0, 1]);
        assert_eq!(Tally::gaps(&[1, 2, 4]).missing, 1);
        assert_eq!(Tally::gaps(&[]).seen, 0);
    }
}
