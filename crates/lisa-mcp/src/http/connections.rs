//! The accept loop: connection limit, timeouts and shutdown.
//!
//! `axum::serve` sets no timer, so its connections wait for a request forever. This is the same loop on hyper's own
//! connection, with hyper's timeout and limits for request headers.

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

/// Limits for clients. Responses have no timeout, because waits and event streams may take long.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Timeout for the request headers, counted from the opening of the connection or the previous response. So it is
    /// also the keep-alive timeout.
    pub head: Duration,
    /// Timeout for the request body.
    pub body: Duration,
    /// Maximum size of the request headers.
    pub head_bytes: usize,
    /// Maximum size of the request body.
    pub body_bytes: usize,
    /// Maximum number of open connections.
    pub connections: usize,
}

/// Enough for a hundred clients with their streams and waits.
const MAX_CONNECTIONS: usize = 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            body: Duration::from_secs(30),
            head_bytes: 64 << 10,
            body_bytes: crate::rpc::MAX_MESSAGE,
            connections: MAX_CONNECTIONS.min(half_the_file_limit()),
        }
    }
}

/// Leaves the other half of the file descriptors to the engine.
fn half_the_file_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX))
}

/// Serves until `shutdown` is cancelled and all connections are closed. Dropping the future closes them at once.
pub(super) async fn serve(
    mut listener: TcpListener,
    app: Router,
    limits: &Limits,
    shutdown: CancellationToken,
) {
    let http = http(limits);
    let mut open = JoinSet::new();
    loop {
        let (stream, _) = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = open.join_next() => continue,
            accepted = Listener::accept(&mut listener) => accepted,
        };
        while open.try_join_next().is_some() {}
        if open.len() >= limits.connections {
            tracing::warn!(limit = limits.connections, "too many connections: rejected one");
            reject(&stream, TOO_MANY_CONNECTIONS);
            continue;
        }
        // Nagle's algorithm and delayed ACKs would delay small responses by 40 ms.
        let _ = stream.set_nodelay(true);
        open.spawn(serve_one(http.clone(), stream, app.clone(), shutdown.clone()));
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

fn http(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head).max_header_size(limits.head_bytes);
    http
}

async fn serve_one(http: http1::Builder, stream: TcpStream, app: Router, shutdown: CancellationToken) {
    let mut connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let result = tokio::select! {
        result = &mut connection => result,
        () = shutdown.cancelled() => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    let Err(error) = result else { return };
    tracing::debug!(%error, "a connection failed");
    let left = connection.into_parts();
    // An idle keep-alive connection is closed without a response.
    if error.is_timeout() && !left.read_buf.is_empty() {
        reject(left.io.inner(), HEADERS_TIMED_OUT);
    }
}

const TOO_MANY_CONNECTIONS: &str = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n\
                    content-type: text/plain\r\ncontent-length: 52\r\n\r\n\
                    Too many connections: close some, or try again soon\n";

const HEADERS_TIMED_OUT: &str = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\
                    content-type: text/plain\r\ncontent-length: 49\r\n\r\n\
                    The head of the request took too long: try again\n";

/// Writes an error response before the connection is closed. Doesn't block: the response fits the socket buffer, and if
/// it can't be written, the client only misses the explanation.
fn reject(stream: &TcpStream, answer: &str) {
    let _ = stream.try_write(answer.as_bytes());
    // Closing a socket with unread input resets the connection, and the reset can overtake the response.
    let _ = stream.try_read(&mut [0; 8 << 10]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_length_matches_the_body() {
        for answer in [TOO_MANY_CONNECTIONS, HEADERS_TIMED_OUT] {
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(
                head.ends_with(&format!("content-length: {}", body.len())),
                "{answer} has {}",
                body.len()
            );
        }
    }

    #[test]
    fn at_least_one_connection_is_allowed() {
        let limits = Limits::default();
        assert!((1..=MAX_CONNECTIONS).contains(&limits.connections), "{limits:?}");
    }
}
