//! The server over HTTP: on loopback, with a bearer token, and never for web pages.

mod body;
mod connections;

pub use connections::Limits;

use crate::{cli::HttpFlags, log, token, token::Token};
use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use lisa_engine::{
    config::Environment,
    error::{Error, Kind, Result},
};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use std::{
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A session of an older client may be silent for as long as the longest wait.
const KEEP_ALIVE: Duration = Duration::from_secs(crate::tools::wait::MOST_SECONDS as u64 + 600);

/// How long calls in flight may take to be answered when the server ends; what is open then is cut.
const ANSWERS: Duration = Duration::from_millis(250);

/// How long connections may take to close after that.
const GRACE: Duration = Duration::from_millis(250);

/// How the server may be reached, once everything about it was checked.
#[derive(Debug)]
pub struct Door {
    addresses: Vec<SocketAddr>,
    hosts: Vec<String>,
    origins: Vec<String>,
    token: Option<Token>,
}

impl Door {
    /// Checks the flags: loopback unless said, a token unless said and on loopback.
    pub fn new(flags: &HttpFlags, env: &Environment, state_dir: &std::path::Path) -> Result<Self> {
        let given = flags.http.as_deref().unwrap_or_default();
        let addresses = resolve(given)?;
        let remote = addresses.iter().any(|address| !address.ip().is_loopback());
        if remote && !flags.allow_remote {
            return Err(Error::new(
                Kind::NotAllowed,
                format!("{given} can be reached from other machines"),
                "listen on 127.0.0.1, or say --allow-remote if that is what you want",
            ));
        }
        if remote && flags.no_auth {
            return Err(Error::new(
                Kind::NotAllowed,
                "--no-auth is for loopback only",
                "leave it out; clients then show the bearer token",
            ));
        }
        let hosts = hosts(&addresses, &flags.allow_host)?;
        let token = if flags.no_auth {
            None
        } else {
            let found = token::find(flags.token_file.as_deref(), env.text(token::VARIABLE), state_dir)?;
            if let Some(file) = &found.file {
                log::say(&format!("clients show the bearer token in {}", file.display()));
            }
            Some(found.token)
        };
        if remote {
            log::say(
                "other machines can reach this server, and HTTP is not encrypted: put a TLS proxy before it",
            );
        }
        Ok(Self { addresses, hosts, origins: flags.allow_origin.clone(), token })
    }
}

fn resolve(given: &str) -> Result<Vec<SocketAddr>> {
    let whole = if given.chars().all(|c| c.is_ascii_digit()) {
        format!("127.0.0.1:{given}")
    } else {
        given.to_owned()
    };
    let found: Vec<SocketAddr> = whole.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    if found.is_empty() {
        return Err(Error::invalid(
            format!("`{given}` is no address to listen on"),
            "give host and port, such as --http 127.0.0.1:7457",
        ));
    }
    Ok(found)
}

/// The names that a request may call this server by: what keeps a web page from rebinding its name to loopback.
fn hosts(addresses: &[SocketAddr], allowed: &[String]) -> Result<Vec<String>> {
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    for address in addresses {
        match address.ip() {
            ip if ip.is_unspecified() && allowed.is_empty() => {
                return Err(Error::invalid(
                    format!("{address} listens on every address, so no host name is known"),
                    "name what clients call this machine with --allow-host",
                ));
            }
            IpAddr::V4(ip) => hosts.push(ip.to_string()),
            IpAddr::V6(ip) => hosts.push(ip.to_string()),
        }
    }
    hosts.extend(allowed.iter().cloned());
    Ok(hosts)
}

/// Opens the door; connections wait there until they are served.
pub async fn bind(door: &Door) -> Result<TcpListener> {
    TcpListener::bind(door.addresses.as_slice()).await.map_err(|error| {
        Error::new(
            Kind::Io,
            format!("could not listen on {:?}: {error}", door.addresses),
            "choose another port, or 0 for any free one",
        )
    })
}

/// Serves until `ends`; says on standard error where it listens. Each client gets a clone of the handler.
pub async fn serve<S: ServerHandler + Clone>(
    handler: S,
    mut door: Door,
    listener: TcpListener,
    limits: Limits,
    ends: CancellationToken,
) -> Result<()> {
    let address =
        listener.local_addr().map_err(|error| Error::new(Kind::Io, error.to_string(), "try again"))?;
    log::say(&format!("listening on http://{address}/mcp"));
    // Clients that send an Origin send the server's own; no page is ever served from there.
    let own = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{}", address.port()));
    door.origins.extend(own);
    let cut = CancellationToken::new();
    let app = app(handler, &door, &limits, cut.clone());
    tokio::select! {
        () = connections::serve(listener, app, &limits, ends.clone()) => {}
        () = async {
            ends.cancelled().await;
            tokio::time::sleep(ANSWERS).await;
            cut.cancel();
            tokio::time::sleep(GRACE).await;
        } => {}
    }
    Ok(())
}

fn app<S: ServerHandler + Clone>(handler: S, door: &Door, limits: &Limits, cut: CancellationToken) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(door.hosts.clone())
        .with_allowed_origins(door.origins.clone())
        .enforce_origin_validation()
        .with_max_request_body_bytes(limits.body_bytes)
        .with_cancellation_token(cut);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(KEEP_ALIVE);
    let service = StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(sessions), config);
    // From the last to the first: nobody's body is read before the token was shown.
    Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn_with_state(limits.clone(), body::check))
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(middleware::from_fn_with_state(door.token.clone(), check_token))
}

async fn check_token(State(token): State<Option<Token>>, request: Request, next: Next) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
    match token {
        Some(token) if !token.is_shown_by(shown) => (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer realm=\"lisa-mcp\"")],
            "Show the bearer token: Authorization: Bearer …\n",
        )
            .into_response(),
        _ => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(http: &str, change: impl FnOnce(&mut HttpFlags)) -> Result<Door> {
        let dir = tempfile::tempdir().unwrap();
        let mut flags = HttpFlags { http: Some(http.to_owned()), ..HttpFlags::default() };
        change(&mut flags);
        let env = Environment::from_pairs([(token::VARIABLE, "0123456789abcdef")]);
        Door::new(&flags, &env, dir.path())
    }

    #[test]
    fn loopback_needs_a_token_unless_said() {
        assert!(door("127.0.0.1:0", |_| {}).unwrap().token.is_some());
        assert!(door("127.0.0.1:0", |flags| flags.no_auth = true).unwrap().token.is_none());
        assert!(door("7457", |_| {}).is_ok());
    }

    #[test]
    fn other_addresses_must_be_asked_for_and_always_need_a_token() {
        assert!(door("192.0.2.1:1", |_| {}).unwrap_err().to_string().contains("--allow-remote"));
        let open = door("192.0.2.1:1", |flags| (flags.allow_remote, flags.no_auth) = (true, true));
        assert!(open.unwrap_err().to_string().contains("loopback only"));
        let remote = door("192.0.2.1:1", |flags| flags.allow_remote = true).unwrap();
        assert!(remote.hosts.contains(&"192.0.2.1".to_owned()) && remote.token.is_some());
    }

    #[test]
    fn every_address_at_once_needs_a_host_name() {
        let error = door("0.0.0.0:1", |flags| flags.allow_remote = true).unwrap_err();
        assert!(error.to_string().contains("--allow-host"), "{error}");
    }

    #[test]
    fn an_address_that_is_none_says_how_one_looks() {
        assert!(door("nonsense", |_| {}).unwrap_err().to_string().contains("127.0.0.1:7457"));
    }
}
