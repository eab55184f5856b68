//! Telling clients that a resource changed, in both eras of the protocol.
//!
//! One thread follows the engine's journal while anybody listens, and ends when nobody does. Clients of 2026-07-28
//! open a `subscriptions/listen` stream, older ones subscribe resource by resource.

use crate::resources::Uri;
use lisa_engine::{
    api::{Event, EventKind, WatchRequest},
    engine::Engine,
    error::Kind,
};
use rmcp::{
    RoleServer,
    model::ResourceUpdatedNotificationParam,
    service::{Peer, SubscriptionContext},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

/// How long the thread listens to the journal before it looks whether anybody is left.
const TURN: Duration = Duration::from_millis(250);

/// How long the thread rests after the journal could not be followed.
const REST: Duration = Duration::from_secs(2);

/// Events that one slow client may be behind before it is told that everything changed.
const BACKLOG: usize = 256;

/// The journal, followed once for all clients.
#[derive(Debug)]
pub struct Hub {
    engine: Engine,
    /// The running thread's channel; empty while nobody listens.
    sender: Mutex<Option<broadcast::Sender<Event>>>,
}

impl Hub {
    /// A hub that follows nothing yet.
    pub fn new(engine: Engine) -> Self {
        Self { engine, sender: Mutex::default() }
    }

    /// Events from now on.
    pub fn listen(self: &Arc<Self>) -> broadcast::Receiver<Event> {
        let mut slot = locked(&self.sender);
        if let Some(sender) = slot.as_ref() {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(BACKLOG);
        *slot = Some(sender.clone());
        let hub = self.clone();
        let thread = std::thread::Builder::new().name("lisa-journal".to_owned());
        if let Err(error) = thread.spawn(move || hub.follow(&sender)) {
            tracing::warn!(%error, "the journal can not be followed");
            *slot = None;
        }
        receiver
    }

    fn follow(&self, sender: &broadcast::Sender<Event>) {
        while !self.ends(sender) {
            let mut watch = match self.engine.watch(&WatchRequest::default()) {
                Ok(watch) => watch,
                Err(error) => {
                    tracing::warn!(%error, "the journal can not be followed");
                    std::thread::sleep(REST);
                    continue;
                }
            };
            while !self.ends(sender) {
                match watch.next(TURN) {
                    Ok(Some(event)) => {
                        let _ = sender.send(event);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        if error.kind() != Kind::Cancelled {
                            tracing::warn!(%error, "the journal could not be read on");
                        }
                        std::thread::sleep(TURN);
                        break;
                    }
                }
            }
        }
    }

    /// Whether nobody listens any more; if so the slot is free for another thread.
    fn ends(&self, sender: &broadcast::Sender<Event>) -> bool {
        let mut slot = locked(&self.sender);
        match slot.as_ref() {
            Some(current) if current.same_channel(sender) && sender.receiver_count() > 0 => false,
            Some(current) if current.same_channel(sender) => {
                *slot = None;
                true
            }
            _ => true,
        }
    }
}

/// What a burst of events changed.
#[derive(Debug, Default)]
struct Changes {
    everything: bool,
    events: Vec<Event>,
}

impl Changes {
    /// The next events, all that are there at once; `None` when there will be no more.
    async fn next(receiver: &mut broadcast::Receiver<Event>) -> Option<Self> {
        let mut changes = Self::default();
        match receiver.recv().await {
            Ok(event) => changes.events.push(event),
            Err(RecvError::Lagged(_)) => changes.everything = true,
            Err(RecvError::Closed) => return None,
        }
        while let Ok(event) = receiver.try_recv() {
            changes.events.push(event);
        }
        Some(changes)
    }

    fn touch(&self, uri: &str) -> bool {
        self.everything
            || Uri::parse(uri).is_ok_and(|uri| self.events.iter().any(|event| uri.is_changed_by(event)))
    }

    fn touch_the_list(&self) -> bool {
        self.everything
            || self
                .events
                .iter()
                .any(|e| matches!(e.event, EventKind::Spawned | EventKind::Killed | EventKind::Removed))
    }
}

/// Serves one `subscriptions/listen` stream until it is closed.
pub(crate) async fn listen(hub: &Arc<Hub>, context: &SubscriptionContext) {
    let mut receiver = hub.listen();
    let accepted = context.accepted().clone();
    let uris = accepted.resource_subscriptions.unwrap_or_default();
    loop {
        let changes = tokio::select! {
            () = context.cancelled() => return,
            changes = Changes::next(&mut receiver) => changes,
        };
        let Some(changes) = changes else { return };
        if accepted.resources_list_changed == Some(true)
            && changes.touch_the_list()
            && context.sink().notify_resource_list_changed().await.is_err()
        {
            return;
        }
        for uri in uris.iter().filter(|uri| changes.touch(uri)) {
            if context.sink().notify_resource_updated(uri.clone()).await.is_err() {
                return;
            }
        }
    }
}

/// The subscriptions of one client of the older era. They end with it.
#[derive(Debug, Default)]
pub struct Subscriptions(Mutex<Older>);

#[derive(Debug, Default)]
struct Older {
    uris: Arc<Mutex<BTreeSet<String>>>,
    /// Ends the task that tells the client; there is one while there are subscriptions.
    teller: Option<CancellationToken>,
}

impl Drop for Older {
    fn drop(&mut self) {
        if let Some(teller) = &self.teller {
            teller.cancel();
        }
    }
}

impl Subscriptions {
    pub(crate) fn add(&self, hub: &Arc<Hub>, uri: String, peer: Peer<RoleServer>) {
        let mut older = locked(&self.0);
        locked(&older.uris).insert(uri);
        if older.teller.is_none() {
            let ends = CancellationToken::new();
            older.teller = Some(ends.clone());
            tokio::spawn(tell(hub.listen(), older.uris.clone(), ends, peer));
        }
    }

    pub(crate) fn remove(&self, uri: &str) {
        let mut older = locked(&self.0);
        let none_left = {
            let mut uris = locked(&older.uris);
            uris.remove(uri);
            uris.is_empty()
        };
        if none_left && let Some(teller) = older.teller.take() {
            teller.cancel();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells an older client about changes until it is gone or has no subscription left.
async fn tell(
    mut receiver: broadcast::Receiver<Event>,
    uris: Arc<Mutex<BTreeSet<String>>>,
    ends: CancellationToken,
    peer: Peer<RoleServer>,
) {
    loop {
        let changes = tokio::select! {
            () = ends.cancelled() => return,
            changes = Changes::next(&mut receiver) => changes,
        };
        let Some(changes) = changes else { return };
        let wanted: Vec<String> = locked(&uris).iter().filter(|uri| changes.touch(uri)).cloned().collect();
        if changes.touch_the_list() && peer.notify_resource_list_changed().await.is_err() {
            return;
        }
        for uri in wanted {
            if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::words::{StateName, Status};

    fn changes(session: &str, event: EventKind) -> Changes {
        let event = Event {
            cursor: 1,
            at: jiff::Timestamp::UNIX_EPOCH,
            session: session.to_owned(),
            event,
            status: Status::InProgress,
            state: StateName::Working,
            detail: String::new(),
            turn: None,
            data: None,
        };
        Changes { everything: false, events: vec![event] }
    }

    #[test]
    fn an_event_touches_its_session_and_the_list_of_all() {
        let changes = changes("a", EventKind::Transition);
        assert!(changes.touch("lisa://sessions"));
        assert!(changes.touch("lisa://session/a/screen"));
        assert!(!changes.touch("lisa://session/b/screen"));
        assert!(!changes.touch_the_list());
    }

    #[test]
    fn a_new_session_changes_the_list_of_resources() {
        assert!(changes("a", EventKind::Spawned).touch_the_list());
    }

    #[test]
    fn a_client_that_fell_behind_is_told_that_everything_changed() {
        let changes = Changes { everything: true, events: Vec::new() };
        assert!(changes.touch("lisa://session/b/screen") && changes.touch_the_list());
    }
}
