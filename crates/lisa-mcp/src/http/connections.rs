//! Connections: how many there may be, how long they may take to ask, and how they end.
//!
//! `axum::serve` sets no timer, so its connections wait for a request for ever. This is the same loop on hyper's own
//! connection, with hyper's time-out and limits for the head of a request.

use axum::{Router, serve::Listener};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::time::Duration;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// What clients may take. An answer has no limit: waits and event streams go on for as long as they must.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long the head of a request may take, from when the connection was opened or the answer before was given. So
    /// it is also how long a connection is kept for the next request.
    pub head: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
    /// How many bytes the head of a request may have.
    pub head_bytes: usize,
    /// How many bytes the body of a request may have.
    pub body_bytes: usize,
    /// How many connections may be open at once.
    pub connections: usize,
}

/// More than a hundred clients with their streams and waits.
const MAX_CONNECTIONS: usize = 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            body: Duration::from_secs(30),
            head_bytes: 64 << 10,
            body_bytes: crate::rpc::MAX_MESSAGE,
            connections: MAX_CONNECTIONS.min(half_of_all_descriptors()),
        }
    }
}

/// The engine needs the other half.
fn half_of_all_descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX))
}

/// Serves until `ends` is raised, and then until every connection is closed. Dropping it closes them at once.
pub(super) async fn serve(mut listener: TcpListener, app: Router, limits: &Limits, ends: CancellationToken) {
    let http = http(limits);
    let mut open = JoinSet::new();
    loop {
        let (stream, _) = tokio::select! {
            () = ends.cancelled() => break,
            Some(_) = open.join_next() => continue,
            accepted = Listener::accept(&mut listener) => accepted,
        };
        while open.try_join_next().is_some() {}
        if open.len() >= limits.connections {
            tracing::warn!(limit = limits.connections, "too many connections: one was refused");
            refuse(&stream, BUSY);
            continue;
        }
        // Small answers would otherwise wait 40 ms for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        open.spawn(serve_one(http.clone(), stream, app.clone(), ends.clone()));
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

fn http(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head).max_header_size(limits.head_bytes);
    http
}

async fn serve_one(http: http1::Builder, stream: TcpStream, app: Router, ends: CancellationToken) {
    let mut connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let result = tokio::select! {
        result = &mut connection => result,
        () = ends.cancelled() => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    let Err(error) = result else { return };
    tracing::debug!(%error, "a connection failed");
    let left = connection.into_parts();
    // One that was only kept for a next request is closed without a word.
    if error.is_timeout() && !left.read_buf.is_empty() {
        refuse(left.io.inner(), LATE);
    }
}

const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n\
                    content-type: text/plain\r\ncontent-length: 52\r\n\r\n\
                    Too many connections: close some, or try again soon\n";

const LATE: &str = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\
                    content-type: text/plain\r\ncontent-length: 49\r\n\r\n\
                    The head of the request took too long: try again\n";

/// A last word before a connection is closed. It does not wait: it is shorter than what a socket takes, and a client
/// that cannot have it loses nothing.
fn refuse(stream: &TcpStream, answer: &str) {
    let _ = stream.try_write(answer.as_bytes());
    // What is left unread when a socket closes resets the connection, which can overtake the answer.
    let _ = stream.try_read(&mut [0; 8 << 10]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_how_long_they_are() {
        for answer in [BUSY, LATE] {
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(
                head.ends_with(&format!("content-length: {}", body.len())),
                "{answer} has {}",
                body.len()
            );
        }
    }

    #[test]
    fn some_connections_are_always_allowed() {
        let limits = Limits::default();
        assert!((1..=MAX_CONNECTIONS).contains(&limits.connections), "{limits:?}");
    }
}
