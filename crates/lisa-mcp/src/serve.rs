//! Starts and stops the server: policy, transport, signals and shutdown.

use crate::{
    cli::{Cli, PolicyFlags},
    http::{self, Limits},
    log,
    server::Lisa,
    stdio::StdioTransport,
    token,
};
use lisa_engine::{
    config::{Config, Environment, Policy},
    engine::Engine,
    error::{Error, Kind, Result},
    watch::Caller,
};
use rmcp::{ServiceExt, transport::io::stdio_pipes};
use std::{ffi::OsString, path::PathBuf, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// After the client has closed the pipe, calls in flight get this long to finish. Together with [`WRITE_TIMEOUT`] and
/// [`BLOCKED_THREADS_TIMEOUT`] it's less than a second, because clients soon kill a server that doesn't exit.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(400);

/// How long writing the last replies may take if the client reads slowly.
const WRITE_TIMEOUT: Duration = Duration::from_millis(250);

/// How long blocked threads may delay the exit.
const BLOCKED_THREADS_TIMEOUT: Duration = Duration::from_millis(200);

/// Opens the engine for a one-shot subcommand, restricted by the flags.
pub fn open_engine(flags: &PolicyFlags) -> Result<Engine> {
    Engine::open(caller(flags)?)
}

fn caller(flags: &PolicyFlags) -> Result<Caller> {
    let mut caller = Caller::this_process()?;
    caller.env = environment(&caller.env, flags);
    if restricts_policy(flags) {
        caller.policy = Some(narrow_policy(&Config::load(&caller.env)?.policy, flags)?);
    }
    Ok(caller)
}

/// The environment for sessions and configuration: adds the limits from the flags, removes the bearer token.
fn environment(given: &Environment, flags: &PolicyFlags) -> Environment {
    let limits = [("LISA_MAX_SESSIONS", flags.max_sessions), ("LISA_MAX_DEPTH", flags.max_depth)];
    let kept = given.iter().filter(|(name, _)| *name != token::ENV_VAR);
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    let added = limits.into_iter().filter_map(|(name, limit)| {
        limit.map(|limit| (OsString::from(name), OsString::from(limit.to_string())))
    });
    Environment::from_pairs(kept.chain(added))
}

/// Whether any flag restricts the policy. Limits don't: they are passed in the environment.
fn restricts_policy(flags: &PolicyFlags) -> bool {
    (PolicyFlags { max_sessions: None, max_depth: None, ..flags.clone() }) != PolicyFlags::default()
}

/// The policy of `config.toml`, narrowed by the flags.
fn narrow_policy(configured: &Policy, flags: &PolicyFlags) -> Result<Policy> {
    let mut policy = configured.clone();
    let agent = |agent: &String| configured.agents.is_empty() || configured.agents.contains(agent);
    policy.agents = intersect("--allow-agent", &configured.agents, &flags.allow_agent, agent)?;
    let root =
        |root: &PathBuf| configured.roots.is_empty() || configured.roots.iter().any(|r| root.starts_with(r));
    policy.roots = intersect("--allow-root", &configured.roots, &flags.allow_root, root)?;
    policy.denied_flags.extend(flags.deny_flag.iter().cloned());
    policy.allow_dangerous &= !flags.no_dangerous;
    Ok(policy)
}

/// The intersection of what the configuration and a flag allow. An empty intersection is an error, because an empty
/// list means "all".
fn intersect<T: Clone>(
    flag: &str,
    configured: &[T],
    given: &[T],
    allowed: impl Fn(&T) -> bool,
) -> Result<Vec<T>> {
    if given.is_empty() {
        return Ok(configured.to_vec());
    }
    let kept: Vec<T> = given.iter().filter(|item| allowed(item)).cloned().collect();
    if kept.is_empty() {
        return Err(Error::new(
            Kind::InvalidConfig,
            format!("config.toml allows none of the values of {flag}"),
            "pass a value that its [policy] table allows, or change the table",
        ));
    }
    Ok(kept)
}

/// Serves until the client disconnects or a signal arrives. Sessions keep running.
pub fn run(cli: &Cli) -> Result<()> {
    let own = Environment::of_this_process();
    let engine = Engine::open_resident(caller(&cli.policy)?)?;
    let config = match cli.http.http {
        Some(_) => Some(http::HttpConfig::new(&cli.http, &own, &engine.config().state_dir)?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Error::new(Kind::Io, format!("cannot start the async runtime: {error}"), "try again")
    })?;
    let result = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        shutdown_on_signals(&shutdown);
        let lisa = Lisa::with_shutdown(engine, shutdown.clone());
        match config {
            Some(config) => {
                let listener = http::bind(&config).await?;
                http::serve(lisa, config, listener, Limits::default(), shutdown).await
            }
            None => serve_stdio(lisa, shutdown).await,
        }
    });
    runtime.shutdown_timeout(BLOCKED_THREADS_TIMEOUT);
    result
}

async fn serve_stdio(lisa: Lisa, shutdown: CancellationToken) -> Result<()> {
    let (disconnected, ended) = (lisa.disconnected.clone(), shutdown.clone());
    tokio::spawn(async move {
        disconnected.cancelled().await;
        tokio::time::sleep(DRAIN_TIMEOUT).await;
        ended.cancel();
    });
    tokio::select! {
        () = serve_transport(lisa, shutdown.clone()) => {}
        () = async { shutdown.cancelled().await; tokio::time::sleep(WRITE_TIMEOUT).await } => {
            tracing::info!("the client did not read the last replies");
        }
    }
    Ok(())
}

/// Serves until the client disconnects or `shutdown` is cancelled, and all replies are written.
async fn serve_transport(lisa: Lisa, shutdown: CancellationToken) {
    let (reader, writer) = stdio_pipes();
    let (transport, written) = StdioTransport::new(reader, writer, lisa.disconnected.clone());
    match lisa.serve_with_ct(transport, shutdown).await {
        Ok(service) => match service.waiting().await {
            Ok(reason) => tracing::info!(?reason, "the client disconnected"),
            Err(error) => tracing::warn!(%error, "the server task failed"),
        },
        // The client may disconnect before it sends anything.
        Err(error) => tracing::info!(%error, "no client connected"),
    }
    let _ = written.await;
}

fn shutdown_on_signals(shutdown: &CancellationToken) {
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let shutdown = shutdown.clone();
        match signal(kind) {
            Ok(mut signals) => {
                tokio::spawn(async move {
                    signals.recv().await;
                    shutdown.cancel();
                });
            }
            Err(error) => log::notice(&format!("cannot install a signal handler: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_passed_to_the_engine_and_the_token_is_hidden_from_sessions() {
        let given =
            Environment::from_pairs([(token::ENV_VAR, "secret"), ("LISA_MAX_SESSIONS", "9"), ("A", "b")]);
        let flags = PolicyFlags { max_sessions: Some(3), ..PolicyFlags::default() };
        let env = environment(&given, &flags);
        assert_eq!(env.text("LISA_MAX_SESSIONS"), Some("3"));
        assert_eq!((env.text(token::ENV_VAR), env.text("A")), (None, Some("b")));
    }

    #[test]
    fn flags_narrow_the_configured_policy_and_never_widen_it() {
        let configured = Policy {
            agents: vec!["claude".into()],
            roots: vec!["/src".into()],
            denied_flags: vec!["-x".into()],
            allow_dangerous: false,
        };
        let flags = PolicyFlags {
            allow_agent: vec!["claude".into(), "codex".into()],
            allow_root: vec!["/src/a".into(), "/etc".into()],
            deny_flag: vec!["-y".into()],
            ..PolicyFlags::default()
        };
        let policy = narrow_policy(&configured, &flags).unwrap();
        assert_eq!(policy.agents, ["claude"]);
        assert_eq!(policy.roots, [PathBuf::from("/src/a")]);
        assert_eq!(policy.denied_flags, ["-x", "-y"]);
        assert!(!policy.allow_dangerous);
        let limits_only = PolicyFlags { max_depth: Some(1), ..PolicyFlags::default() };
        assert!(restricts_policy(&flags) && !restricts_policy(&limits_only));
        let nothing_left = PolicyFlags { allow_agent: vec!["codex".into()], ..PolicyFlags::default() };
        assert!(narrow_policy(&configured, &nothing_left).is_err(), "an empty list would allow every agent");
    }
}
