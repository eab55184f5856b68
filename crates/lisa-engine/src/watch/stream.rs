//! The journal as a stream.

use super::{Watcher, journal::Entry, waits::EVENTS_MAX};
use crate::{
    api::{Event, WatchRequest},
    error::Result,
    watch::Context,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The journal as a stream.
#[derive(Debug)]
pub struct Watch {
    context: Arc<Context>,
    watcher: Arc<Watcher>,
    request: WatchRequest,
    cursor: u64,
    held: Vec<Event>,
}

impl Watch {
    pub(crate) fn new(
        context: Arc<Context>,
        watcher: Arc<Watcher>,
        request: WatchRequest,
        cursor: u64,
    ) -> Self {
        Self { context, watcher, request, cursor, held: Vec::new() }
    }

    /// The next event, or `None` after the timeout.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Event>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(event) = self.held.pop() {
                return Ok(Some(event));
            }
            let moves = self.watcher.moves();
            let wanted = |Entry { event, .. }: &Entry| {
                (self.request.sessions.is_empty() || self.request.sessions.contains(&event.session))
                    && (self.request.events.is_empty() || self.request.events.contains(&event.event))
            };
            let read = self.context.journal()?.read(self.cursor, EVENTS_MAX, wanted)?;
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

    /// The current cursor.
    pub fn cursor(&self) -> u64 {
        self.held.last().map_or(self.cursor, |event| event.cursor - 1)
    }
}
