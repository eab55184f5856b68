//! Resource change notifications, for clients of old and new protocol versions.
//!
//! One thread follows the engine's journal as long as there are subscribers. Clients of 2026-07-28 open a
//! `subscriptions/listen` stream; older clients subscribe to each resource.

use crate::resources::ResourceUri;
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

/// How often the thread checks whether there are subscribers left.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Delay before a retry if the journal can't be followed.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// How many events a slow client may lag behind. Beyond that, it gets a notification that everything changed.
const MAX_LAG: usize = 256;

/// Broadcasts journal events to all clients.
#[derive(Debug)]
pub struct EventHub {
    engine: Engine,
    /// The channel of the running thread; `None` without subscribers.
    sender: Mutex<Option<broadcast::Sender<Event>>>,
}

impl EventHub {
    /// A hub without subscribers.
    pub fn new(engine: Engine) -> Self {
        Self { engine, sender: Mutex::default() }
    }

    /// Subscribes to events from now on.
    pub fn listen(self: &Arc<Self>) -> broadcast::Receiver<Event> {
        let mut slot = locked(&self.sender);
        if let Some(sender) = slot.as_ref() {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(MAX_LAG);
        *slot = Some(sender.clone());
        let hub = self.clone();
        let thread = std::thread::Builder::new().name("lisa-journal".to_owned());
        if let Err(error) = thread.spawn(move || hub.follow(&sender)) {
            tracing::warn!(%error, "the journal cannot be followed");
            *slot = None;
        }
        receiver
    }

    fn follow(&self, sender: &broadcast::Sender<Event>) {
        while !self.release_if_unused(sender) {
            let mut watch = match self.engine.watch(&WatchRequest::default()) {
                Ok(watch) => watch,
                Err(error) => {
                    tracing::warn!(%error, "the journal cannot be followed");
                    std::thread::sleep(RETRY_DELAY);
                    continue;
                }
            };
            while !self.release_if_unused(sender) {
                match watch.next(POLL_INTERVAL) {
                    Ok(Some(event)) => {
                        let _ = sender.send(event);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        if error.kind() != Kind::Cancelled {
                            tracing::warn!(%error, "reading the journal failed");
                        }
                        std::thread::sleep(POLL_INTERVAL);
                        break;
                    }
                }
            }
        }
    }

    /// Whether there are no subscribers left; then also frees the slot for another thread.
    fn release_if_unused(&self, sender: &broadcast::Sender<Event>) -> bool {
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

/// The changes of a batch of events.
#[derive(Debug, Default)]
struct Changes {
    everything: bool,
    events: Vec<Event>,
}

impl Changes {
    /// Waits for the next event and takes all that are available. `None` if the channel is closed.
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

    fn affect(&self, uri: &str) -> bool {
        self.everything
            || ResourceUri::parse(uri)
                .is_ok_and(|uri| self.events.iter().any(|event| uri.is_changed_by(event)))
    }

    fn affect_list(&self) -> bool {
        self.everything
            || self
                .events
                .iter()
                .any(|e| matches!(e.event, EventKind::Spawned | EventKind::Killed | EventKind::Removed))
    }
}

/// Serves a `subscriptions/listen` stream until it's closed.
pub(crate) async fn listen(hub: &Arc<EventHub>, context: &SubscriptionContext) {
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
            && changes.affect_list()
            && context.sink().notify_resource_list_changed().await.is_err()
        {
            return;
        }
        for uri in uris.iter().filter(|uri| changes.affect(uri)) {
            if context.sink().notify_resource_updated(uri.clone()).await.is_err() {
                return;
            }
        }
    }
}

/// The subscriptions of a client with an older protocol version. They end when it disconnects.
#[derive(Debug, Default)]
pub struct Subscriptions(Mutex<LegacyState>);

#[derive(Debug, Default)]
struct LegacyState {
    uris: Arc<Mutex<BTreeSet<String>>>,
    /// Cancels the task that notifies the client. `Some` while there are subscriptions.
    notifier: Option<CancellationToken>,
}

impl Drop for LegacyState {
    fn drop(&mut self) {
        if let Some(notifier) = &self.notifier {
            notifier.cancel();
        }
    }
}

impl Subscriptions {
    pub(crate) fn add(&self, hub: &Arc<EventHub>, uri: String, peer: Peer<RoleServer>) {
        let mut legacy = locked(&self.0);
        locked(&legacy.uris).insert(uri);
        if legacy.notifier.is_none() {
            let cancel = CancellationToken::new();
            legacy.notifier = Some(cancel.clone());
            tokio::spawn(notify(hub.listen(), legacy.uris.clone(), cancel, peer));
        }
    }

    pub(crate) fn remove(&self, uri: &str) {
        let mut legacy = locked(&self.0);
        let none_left = {
            let mut uris = locked(&legacy.uris);
            uris.remove(uri);
            uris.is_empty()
        };
        if none_left && let Some(notifier) = legacy.notifier.take() {
            notifier.cancel();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notifies an older client of changes until it disconnects or has no subscriptions left.
async fn notify(
    mut receiver: broadcast::Receiver<Event>,
    uris: Arc<Mutex<BTreeSet<String>>>,
    cancel: CancellationToken,
    peer: Peer<RoleServer>,
) {
    loop {
        let changes = tokio::select! {
            () = cancel.cancelled() => return,
            changes = Changes::next(&mut receiver) => changes,
        };
        let Some(changes) = changes else { return };
        let wanted: Vec<String> = locked(&uris).iter().filter(|uri| changes.affect(uri)).cloned().collect();
        if changes.affect_list() && peer.notify_resource_list_changed().await.is_err() {
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
    use lisa_engine::api::words::{StateName, Status};

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
    fn an_event_changes_its_session_and_the_list_of_sessions() {
        let changes = changes("a", EventKind::Transition);
        assert!(changes.affect("lisa://sessions"));
        assert!(changes.affect("lisa://session/a/screen"));
        assert!(!changes.affect("lisa://session/b/screen"));
        assert!(!changes.affect_list());
    }

    #[test]
    fn a_new_session_changes_the_list_of_resources() {
        assert!(changes("a", EventKind::Spawned).affect_list());
    }

    #[test]
    fn a_client_that_lags_behind_is_told_that_everything_changed() {
        let changes = Changes { everything: true, events: Vec::new() };
        assert!(changes.affect("lisa://session/b/screen") && changes.affect_list());
    }
}
