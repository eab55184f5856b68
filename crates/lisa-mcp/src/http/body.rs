//! Middleware that reads the request body with a timeout and a size limit, and validates it before rmcp sees it.

use super::Limits;
use crate::rpc::{self, RpcError};
use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Passes on requests with a valid message, without a body, or with headers that rmcp rejects itself.
pub(super) async fn validate(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST || !has_expected_headers(request.headers()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let read = Bytes::from_request(Request::from_parts(parts.clone(), body), &());
    let bytes = match tokio::time::timeout(limits.body, read).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return reject(StatusCode::PAYLOAD_TOO_LARGE, &RpcError::too_long(limits.body_bytes));
        }
        Ok(Err(rejection)) => {
            let why = format!("cannot read the body: {}", rejection.body_text());
            return reject(StatusCode::BAD_REQUEST, &RpcError::invalid_request(why));
        }
        Err(_) => {
            let why = format!("the body took longer than the timeout of {:?}; send it again", limits.body);
            return reject(StatusCode::REQUEST_TIMEOUT, &RpcError::invalid_request(why));
        }
    };
    match rpc::read(&bytes) {
        Ok(_) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(error) => (StatusCode::BAD_REQUEST, json(&error)).into_response(),
    }
}

/// Whether rmcp will read the body. It rejects other headers at once (406, 415), so don't wait for the body.
fn has_expected_headers(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accepted = value(header::ACCEPT);
    value(header::CONTENT_TYPE).starts_with("application/json")
        && accepted.contains("application/json")
        && accepted.contains("text/event-stream")
}

/// An error response. The body wasn't read to its end, so the connection is closed.
fn reject(status: StatusCode, error: &RpcError) -> Response {
    (status, [(header::CONNECTION, "close")], json(error)).into_response()
}

fn json(error: &RpcError) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], error.reply().to_string())
}
