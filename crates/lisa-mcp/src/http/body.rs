//! The body of a request: read in time and within its size, and checked before the protocol library sees it.

use super::Limits;
use crate::rpc::{self, Fault};
use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Lets a request through that carries a message, or none, or whose head is refused further in.
pub(super) async fn check(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST || !head_is_right(request.headers()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let read = Bytes::from_request(Request::from_parts(parts.clone(), body), &());
    let bytes = match tokio::time::timeout(limits.body, read).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, &Fault::too_long(limits.body_bytes));
        }
        Ok(Err(rejection)) => {
            let why = format!("the body cannot be read: {}", rejection.body_text());
            return refusal(StatusCode::BAD_REQUEST, &Fault::refused(why));
        }
        Err(_) => {
            let why = format!("the body took longer than {:?}; send it again", limits.body);
            return refusal(StatusCode::REQUEST_TIMEOUT, &Fault::refused(why));
        }
    };
    match rpc::read(&bytes) {
        Ok(_) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(fault) => (StatusCode::BAD_REQUEST, json(&fault)).into_response(),
    }
}

/// Whether rmcp will read the body: other heads it refuses by themselves (406 and 415), so nobody waits for the body.
fn head_is_right(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accepted = value(header::ACCEPT);
    value(header::CONTENT_TYPE).starts_with("application/json")
        && accepted.contains("application/json")
        && accepted.contains("text/event-stream")
}

/// An answer to a body that was not read to its end, so the connection cannot be used again.
fn refusal(status: StatusCode, fault: &Fault) -> Response {
    (status, [(header::CONNECTION, "close")], json(fault)).into_response()
}

fn json(fault: &Fault) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], fault.reply().to_string())
}
