//! Waits for sessions, and the journal as a stream.

use super::Engine;
use crate::{
    api::{WaitRequest, WaitResponse, WatchRequest},
    error::{Error, Result},
    watch::{Cancel, NewWait, WaitMessage, Watch, cancelled, not_ahead},
};
use std::sync::{Arc, mpsc::channel};

impl Engine {
    /// Blocks until the wait is satisfied, times out or is cancelled. Calls `progress` about once a second with one
    /// line about what the sessions are doing.
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
                Ok(WaitMessage::Progress(line)) => progress(&line),
                Ok(WaitMessage::Done(answer)) => return *answer,
                Err(_) => return Err(cancelled()),
            }
        }
    }

    /// Starts a wait that needs no thread of its own. Calls `say` with the result when it is satisfied, times out or
    /// is cancelled. If `progress` is set, also calls it about once a second with one line about what the sessions are
    /// doing.
    pub fn wait_parked(
        &self,
        request: WaitRequest,
        cancel: &Cancel,
        progress: bool,
        say: impl Fn(WaitMessage) + Send + 'static,
    ) -> Result<()> {
        let new_wait = NewWait { request, progress, say: Box::new(say) };
        self.watcher()?.park(new_wait, cancel)
    }

    /// Follows the journal.
    pub fn watch(&self, request: &WatchRequest) -> Result<Watch> {
        let journal = self.context.journal()?;
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
        Ok(Watch::new(Arc::clone(&self.context), watcher, request.clone(), cursor))
    }
}
