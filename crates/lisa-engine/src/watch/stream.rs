//! The journal as a stream.

use super::{
    Watcher,
    waits::{EVENTS_MAX, not_ahead},
};
use crate::{
    api::{Event, WatchRequest},
    engine::Engine,
    error::{Error, Result},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

impl Engine {
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
        let watcher = self.watcher()?;
        Ok(Watch { engine: self.clone(), watcher, request: request.clone(), cursor, held: Vec::new() })
    }
}

/// The journal as a stream.
#[derive(Debug)]
pub struct Watch {
    engine: Engine,
    watcher: Arc<Watcher>,
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
            let moves = self.watcher.moves();
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
            self.watcher.moved_since(moves, left);
        }
    }

    /// Where the stream stands.
    pub fn cursor(&self) -> u64 {
        self.held.last().map_or(self.cursor, |event| event.cursor - 1)
    }
}
