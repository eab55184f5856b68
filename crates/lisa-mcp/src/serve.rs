//! Starting: who calls, what they may do, and how long it lasts.

use crate::{
    cli::{Cli, PolicyFlags},
    http::{self, Limits},
    log,
    server::Lisa,
    stdio::Pipes,
    token,
};
use lisa_engine::{
    config::{Config, Environment, Policy},
    engine::{Caller, Engine},
    error::{Error, Kind, Result},
};
use rmcp::{ServiceExt, transport::io::stdio_pipes};
use std::{ffi::OsString, path::PathBuf, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long answers may still take when the client has closed the pipe. This, [`LAST_WORDS`] and [`PATIENCE`] together
/// are less than a second: clients do not wait long before they kill.
const ANSWERS: Duration = Duration::from_millis(400);

/// How long it may take to write the last answers to a client that reads slowly.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How long blocked threads may hold the end of the process up.
const PATIENCE: Duration = Duration::from_millis(200);

/// The engine for a command that does one thing, with what the flags forbid.
pub fn open(flags: &PolicyFlags) -> Result<Engine> {
    Engine::open(caller(flags)?)
}

fn caller(flags: &PolicyFlags) -> Result<Caller> {
    let mut caller = Caller::this_process()?;
    caller.env = environment(&caller.env, flags);
    if forbids_something(flags) {
        caller.policy = Some(narrowed(&Config::load(&caller.env)?.policy, flags)?);
    }
    Ok(caller)
}

/// The environment that sessions and the configuration see: the flags' limits in, this server's own secret out.
fn environment(given: &Environment, flags: &PolicyFlags) -> Environment {
    let limits = [("LISA_MAX_SESSIONS", flags.max_sessions), ("LISA_MAX_DEPTH", flags.max_depth)];
    let kept = given.iter().filter(|(name, _)| *name != token::VARIABLE);
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    let added = limits.into_iter().filter_map(|(name, limit)| {
        limit.map(|limit| (OsString::from(name), OsString::from(limit.to_string())))
    });
    Environment::from_pairs(kept.chain(added))
}

/// Whether the flags say more than limits, which go by the environment.
fn forbids_something(flags: &PolicyFlags) -> bool {
    (PolicyFlags { max_sessions: None, max_depth: None, ..flags.clone() }) != PolicyFlags::default()
}

/// What `config.toml` allows, less what the flags forbid.
fn narrowed(configured: &Policy, flags: &PolicyFlags) -> Result<Policy> {
    let mut policy = configured.clone();
    let agent = |agent: &String| configured.agents.is_empty() || configured.agents.contains(agent);
    policy.agents = both("--allow-agent", &configured.agents, &flags.allow_agent, agent)?;
    let root =
        |root: &PathBuf| configured.roots.is_empty() || configured.roots.iter().any(|r| root.starts_with(r));
    policy.roots = both("--allow-root", &configured.roots, &flags.allow_root, root)?;
    policy.denied_flags.extend(flags.deny_flag.iter().cloned());
    policy.allow_dangerous &= !flags.no_dangerous;
    Ok(policy)
}

/// What both the configuration and a flag allow. Nothing at all is an error: an empty list would mean everything.
fn both<T: Clone>(flag: &str, configured: &[T], given: &[T], allowed: impl Fn(&T) -> bool) -> Result<Vec<T>> {
    if given.is_empty() {
        return Ok(configured.to_vec());
    }
    let kept: Vec<T> = given.iter().filter(|item| allowed(item)).cloned().collect();
    if kept.is_empty() {
        return Err(Error::new(
            Kind::InvalidConfig,
            format!("nothing that {flag} names is allowed by config.toml"),
            "name something that its [policy] table allows, or change that",
        ));
    }
    Ok(kept)
}

/// Serves until the client is gone or a signal comes. Sessions go on.
pub fn run(cli: &Cli) -> Result<()> {
    let own = Environment::of_this_process();
    let engine = Engine::open_resident(caller(&cli.policy)?)?;
    let door = match cli.http.http {
        Some(_) => Some(http::Door::new(&cli.http, &own, &engine.config().state_dir)?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(Kind::Io, format!("could not start: {error}"), "try again"))?;
    let result = runtime.block_on(async {
        let ends = CancellationToken::new();
        end_on_signals(&ends);
        let lisa = Lisa::until(engine, ends.clone());
        match door {
            Some(door) => {
                let listener = http::bind(&door).await?;
                http::serve(lisa, door, listener, Limits::default(), ends).await
            }
            None => over_stdio(lisa, ends).await,
        }
    });
    runtime.shutdown_timeout(PATIENCE);
    result
}

async fn over_stdio(lisa: Lisa, ends: CancellationToken) -> Result<()> {
    let (gone, ended) = (lisa.gone.clone(), ends.clone());
    tokio::spawn(async move {
        gone.cancelled().await;
        tokio::time::sleep(ANSWERS).await;
        ended.cancel();
    });
    tokio::select! {
        () = serve_pipes(lisa, ends.clone()) => {}
        () = async { ends.cancelled().await; tokio::time::sleep(LAST_WORDS).await } => {
            tracing::info!("the client did not take the last answers");
        }
    }
    Ok(())
}

/// Serves until the client is gone or `ends` is raised, and everything is answered and written.
async fn serve_pipes(lisa: Lisa, ends: CancellationToken) {
    let (reader, writer) = stdio_pipes();
    let (pipes, written) = Pipes::new(reader, writer, lisa.gone.clone());
    match lisa.serve_with_ct(pipes, ends).await {
        Ok(service) => match service.waiting().await {
            Ok(reason) => tracing::info!(?reason, "the client is gone"),
            Err(error) => tracing::warn!(%error, "serving ended"),
        },
        // A client that goes away before it says anything is no failure.
        Err(error) => tracing::info!(%error, "no client"),
    }
    let _ = written.await;
}

fn end_on_signals(ends: &CancellationToken) {
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let ends = ends.clone();
        match signal(kind) {
            Ok(mut signals) => {
                tokio::spawn(async move {
                    signals.recv().await;
                    ends.cancel();
                });
            }
            Err(error) => log::say(&format!("a signal cannot be caught: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_reach_the_engine_and_the_token_does_not_reach_sessions() {
        let given =
            Environment::from_pairs([(token::VARIABLE, "secret"), ("LISA_MAX_SESSIONS", "9"), ("A", "b")]);
        let flags = PolicyFlags { max_sessions: Some(3), ..PolicyFlags::default() };
        let env = environment(&given, &flags);
        assert_eq!(env.text("LISA_MAX_SESSIONS"), Some("3"));
        assert_eq!((env.text(token::VARIABLE), env.text("A")), (None, Some("b")));
    }

    #[test]
    fn flags_narrow_what_is_configured_and_never_widen_it() {
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
        let policy = narrowed(&configured, &flags).unwrap();
        assert_eq!(policy.agents, ["claude"]);
        assert_eq!(policy.roots, [PathBuf::from("/src/a")]);
        assert_eq!(policy.denied_flags, ["-x", "-y"]);
        assert!(!policy.allow_dangerous);
        let limits_only = PolicyFlags { max_depth: Some(1), ..PolicyFlags::default() };
        assert!(forbids_something(&flags) && !forbids_something(&limits_only));
        let nothing_left = PolicyFlags { allow_agent: vec!["codex".into()], ..PolicyFlags::default() };
        assert!(narrowed(&configured, &nothing_left).is_err(), "an empty list would allow every agent");
    }
}
