//! The HTTP transport: on loopback by default, with a bearer token, and closed to web pages.

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

/// Keep-alive of a session with an older client: longer than the longest wait.
const KEEP_ALIVE: Duration = Duration::from_secs(crate::tools::wait::MAX_SECONDS as u64 + 600);

/// On shutdown, calls in flight get this long to finish before streams are closed.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// After that, connections get this long to close.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(250);

/// The validated HTTP configuration.
#[derive(Debug)]
pub struct HttpConfig {
    addresses: Vec<SocketAddr>,
    hosts: Vec<String>,
    origins: Vec<String>,
    token: Option<Token>,
}

impl HttpConfig {
    /// Validates the flags. Other machines need `--allow-remote`, and only loopback may go without a token.
    pub fn new(flags: &HttpFlags, env: &Environment, state_dir: &std::path::Path) -> Result<Self> {
        let given = flags.http.as_deref().unwrap_or_default();
        let addresses = resolve(given)?;
        let remote = addresses.iter().any(|address| !address.ip().is_loopback());
        if remote && !flags.allow_remote {
            return Err(Error::new(
                Kind::NotAllowed,
                format!("{given} can be reached from other machines"),
                "listen on 127.0.0.1, or pass --allow-remote if that is what you want",
            ));
        }
        if remote && flags.no_auth {
            return Err(Error::new(
                Kind::NotAllowed,
                "--no-auth is for loopback only",
                "leave it out; clients then need the bearer token",
            ));
        }
        let hosts = hosts(&addresses, &flags.allow_host)?;
        let token = if flags.no_auth {
            None
        } else {
            let found = token::load(flags.token_file.as_deref(), env.text(token::ENV_VAR), state_dir)?;
            if let Some(file) = &found.file {
                log::notice(&format!("clients need the bearer token in {}", file.display()));
            }
            Some(found.token)
        };
        if remote {
            log::notice(
                "other machines can reach this server, and HTTP is not encrypted: put a TLS proxy in front of it",
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
            format!("invalid listen address `{given}`"),
            "pass host and port, such as --http 127.0.0.1:7457",
        ));
    }
    Ok(found)
}

/// The allowed Host headers. They protect against DNS rebinding by web pages.
fn hosts(addresses: &[SocketAddr], allowed: &[String]) -> Result<Vec<String>> {
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    for address in addresses {
        match address.ip() {
            ip if ip.is_unspecified() && allowed.is_empty() => {
                return Err(Error::invalid(
                    format!("{address} listens on every address, so the host name is unknown"),
                    "pass the host name that clients use with --allow-host",
                ));
            }
            IpAddr::V4(ip) => hosts.push(ip.to_string()),
            IpAddr::V6(ip) => hosts.push(ip.to_string()),
        }
    }
    hosts.extend(allowed.iter().cloned());
    Ok(hosts)
}

/// Binds the listener. Connections queue until they are served.
pub async fn bind(config: &HttpConfig) -> Result<TcpListener> {
    TcpListener::bind(config.addresses.as_slice()).await.map_err(|error| {
        Error::new(
            Kind::Io,
            format!("cannot listen on {:?}: {error}", config.addresses),
            "choose another port, or 0 for a free one",
        )
    })
}

/// Serves until `shutdown` is cancelled, and prints the URL to standard error. Each client gets a clone of the handler.
pub async fn serve<S: ServerHandler + Clone>(
    handler: S,
    mut config: HttpConfig,
    listener: TcpListener,
    limits: Limits,
    shutdown: CancellationToken,
) -> Result<()> {
    let address =
        listener.local_addr().map_err(|error| Error::new(Kind::Io, error.to_string(), "try again"))?;
    log::notice(&format!("listening on http://{address}/mcp"));
    // Clients that send an Origin header send the server's own. No web page is served there.
    let own = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{}", address.port()));
    config.origins.extend(own);
    let close_streams = CancellationToken::new();
    let app = app(handler, &config, &limits, close_streams.clone());
    tokio::select! {
        () = connections::serve(listener, app, &limits, shutdown.clone()) => {}
        () = async {
            shutdown.cancelled().await;
            tokio::time::sleep(DRAIN_TIMEOUT).await;
            close_streams.cancel();
            tokio::time::sleep(CLOSE_TIMEOUT).await;
        } => {}
    }
    Ok(())
}

fn app<S: ServerHandler + Clone>(
    handler: S,
    config: &HttpConfig,
    limits: &Limits,
    close_streams: CancellationToken,
) -> Router {
    let rmcp_config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(config.hosts.clone())
        .with_allowed_origins(config.origins.clone())
        .enforce_origin_validation()
        .with_max_request_body_bytes(limits.body_bytes)
        .with_cancellation_token(close_streams);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(KEEP_ALIVE);
    let service = StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(sessions), rmcp_config);
    // Layers run from last to first: the token is checked before the body is read.
    Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn_with_state(limits.clone(), body::validate))
        .layer(DefaultBodyLimit::max(limits.body_bytes))
        .layer(middleware::from_fn_with_state(config.token.clone(), check_token))
}

async fn check_token(State(token): State<Option<Token>>, request: Request, next: Next) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
    match token {
        Some(token) if !token.matches_header(authorization) => (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer realm=\"lisa-mcp\"")],
            "Missing or wrong bearer token: send Authorization: Bearer …\n",
        )
            .into_response(),
        _ => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(http: &str, change: impl FnOnce(&mut HttpFlags)) -> Result<HttpConfig> {
        let dir = tempfile::tempdir().unwrap();
        let mut flags = HttpFlags { http: Some(http.to_owned()), ..HttpFlags::default() };
        change(&mut flags);
        let env = Environment::from_pairs([(token::ENV_VAR, "0123456789abcdef")]);
        HttpConfig::new(&flags, &env, dir.path())
    }

    #[test]
    fn loopback_needs_a_token_by_default() {
        assert!(config("127.0.0.1:0", |_| {}).unwrap().token.is_some());
        assert!(config("127.0.0.1:0", |flags| flags.no_auth = true).unwrap().token.is_none());
        assert!(config("7457", |_| {}).is_ok());
    }

    #[test]
    fn remote_addresses_need_allow_remote_and_a_token() {
        assert!(config("192.0.2.1:1", |_| {}).unwrap_err().to_string().contains("--allow-remote"));
        let open = config("192.0.2.1:1", |flags| (flags.allow_remote, flags.no_auth) = (true, true));
        assert!(open.unwrap_err().to_string().contains("loopback only"));
        let remote = config("192.0.2.1:1", |flags| flags.allow_remote = true).unwrap();
        assert!(remote.hosts.contains(&"192.0.2.1".to_owned()) && remote.token.is_some());
    }

    #[test]
    fn a_wildcard_address_needs_allow_host() {
        let error = config("0.0.0.0:1", |flags| flags.allow_remote = true).unwrap_err();
        assert!(error.to_string().contains("--allow-host"), "{error}");
    }

    #[test]
    fn an_invalid_address_shows_an_example() {
        assert!(config("nonsense", |_| {}).unwrap_err().to_string().contains("127.0.0.1:7457"));
    }
}
