//! Checks whether the installation works, and says how to fix what doesn't.

use crate::{
    api::{AgentInfo, Check, DoctorResponse},
    config::{Config, Environment},
    disk,
    session::{
        Store,
        find::{self, SessionSnapshot},
    },
    tmux::{MINIMUM, Tmux},
    watch::Health,
};

/// Checks tmux, the state directory, the observer, the limits and the agents.
pub(crate) fn check(
    config: &Config,
    env: &Environment,
    tmux: &Tmux,
    observer: Option<&Health>,
    agents: &[AgentInfo],
) -> DoctorResponse {
    let mut checks = vec![
        tmux_check(tmux),
        server_check(tmux),
        state_check(config),
        observer_check(observer),
        limits_check(config, tmux),
    ];
    checks.extend(lost_check(config, tmux));
    checks.extend(rebuilt_check(config));
    // An agent that needs no program of its own can't be missing one.
    let with_program = agents.iter().filter(|agent| agent.path.is_some() || !agent.installed);
    checks.extend(with_program.map(|agent| agent_check(agent, env)));
    DoctorResponse { ok: checks.iter().all(|check| check.ok || !check.required), checks }
}

fn required(name: &str, outcome: Result<String, (String, String)>) -> Check {
    let (ok, detail, fix) = match outcome {
        Ok(detail) => (true, detail, None),
        Err((detail, fix)) => (false, detail, Some(fix)),
    };
    Check { name: name.to_owned(), ok, required: true, detail, fix }
}

fn tmux_check(tmux: &Tmux) -> Check {
    required(
        "tmux",
        match tmux.version() {
            Ok(version) if version >= MINIMUM => Ok(format!("version {version}")),
            Ok(version) => {
                Err((format!("version {version}, older than {MINIMUM}"), "upgrade tmux".to_owned()))
            }
            Err(error) => Err((error.message().to_owned(), error.hint().to_owned())),
        },
    )
}

fn server_check(tmux: &Tmux) -> Check {
    let socket = tmux.socket_path();
    if let Some(server) = tmux.lingering() {
        let pid = server.identity().pid;
        let detail =
            format!("process {pid} was told to end, but a client that is still attached keeps it alive");
        let fix = "run `lisa cleanup` to end it; its sessions are already gone";
        return required("tmux server", Err((detail, fix.to_owned())));
    }
    required(
        "tmux server",
        match tmux.panes(false) {
            Ok(panes) if panes.is_empty() => Ok(format!("no sessions ({})", socket.display())),
            Ok(panes) => Ok(format!("{} sessions ({})", panes.len(), socket.display())),
            Err(error) => Err((error.message().to_owned(), error.hint().to_owned())),
        },
    )
}

fn state_check(config: &Config) -> Check {
    let outcome = Store::open(&config.state_dir).and_then(|store| {
        let probe = config.state_dir.join("doctor");
        disk::write_atomic(&probe, b"ok")?;
        let _ = std::fs::remove_file(&probe);
        store.load_all()
    });
    required(
        "state directory",
        match outcome {
            Ok(stored) => {
                let torn: Vec<&str> = stored
                    .iter()
                    .filter(|stored| stored.found.is_err())
                    .map(|stored| stored.name.as_str())
                    .collect();
                if torn.is_empty() {
                    Ok(format!("{}, {} sessions", config.state_dir.display(), stored.len()))
                } else {
                    let fix = "list the sessions, which rebuilds the files from tmux where possible, or run `lisa cleanup`";
                    Err((format!("malformed: {}", torn.join(", ")), fix.to_owned()))
                }
            }
            Err(error) => Err((error.message().to_owned(), error.hint().to_owned())),
        },
    )
}

fn observer_check(observer: Option<&Health>) -> Check {
    let Some(health) = observer else {
        let detail = "no process watches the sessions, so each call reads them itself";
        return required("observer", Ok(detail.to_owned()));
    };
    if health.troubles.is_empty() {
        return required("observer", Ok(format!("process {} watches the sessions", health.pid)));
    }
    let named: Vec<String> =
        health.troubles.iter().take(3).map(|(name, why)| format!("{name} ({why})")).collect();
    let count = health.troubles.len();
    let detail =
        format!("process {} cannot watch {count} sessions at once: {}", health.pid, named.join(", "));
    let fix = "raise `ulimit -n` or fs.inotify.max_user_watches; until then Lisa polls them every second";
    required("observer", Err((detail, fix.to_owned())))
}

/// Sessions that were lost when their tmux server died.
fn lost_check(config: &Config, tmux: &Tmux) -> Option<Check> {
    let found = Store::open(&config.state_dir).and_then(|store| find::all(tmux, &store, false)).ok()?;
    let lost: Vec<String> =
        found.into_iter().filter(SessionSnapshot::server_died).map(|lost| lost.meta.name).collect();
    let named = lost.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    let more = if lost.len() > 5 { format!(" and {} more", lost.len() - 5) } else { String::new() };
    let detail = format!("the tmux server of {named}{more} died");
    let fix = "resume them: `lisa session list | where reason == server_died | lisa session resume`";
    (!lost.is_empty()).then(|| required("lost sessions", Err((detail, fix.to_owned()))))
}

/// Sessions whose metadata was malformed and has been rebuilt from their panes.
fn rebuilt_check(config: &Config) -> Option<Check> {
    let stored = Store::open(&config.state_dir).and_then(|store| store.load_all()).ok()?;
    let rebuilt = stored.into_iter().filter_map(|stored| stored.found.ok()).map(|(_, meta)| meta);
    let names: Vec<String> = rebuilt.filter(|meta| meta.rebuilt).map(|meta| meta.name).collect();
    let detail = format!("rebuilt from the pane because the file was malformed: {}", names.join(", "));
    let fix = "they can be driven and ended as before; tag, policy and model are not known any more, so a resume \
               begins without them";
    let check =
        Check { name: "metadata".to_owned(), ok: false, required: false, detail, fix: Some(fix.to_owned()) };
    (!names.is_empty()).then_some(check)
}

fn limits_check(config: &Config, tmux: &Tmux) -> Check {
    let live = Store::open(&config.state_dir)
        .and_then(|store| crate::session::find::live_count(tmux, &store))
        .unwrap_or_default();
    let detail = format!("{live} of {} sessions, nesting up to {}", config.max_sessions, config.max_depth);
    let full = live >= config.max_sessions as usize;
    required(
        "limits",
        if full {
            Err((detail, "kill some sessions, or raise LISA_MAX_SESSIONS".to_owned()))
        } else {
            Ok(detail)
        },
    )
}

fn agent_check(agent: &AgentInfo, env: &Environment) -> Check {
    let version = agent.path.as_ref().and_then(|path| version(path, env));
    let visible = if agent.prompt_in_arguments {
        "; every user of this machine can read a prompt given at the start: send it after the start instead"
    } else {
        ""
    };
    let detail = match (&agent.path, version) {
        (Some(path), Some(version)) => format!("{version} ({path}){visible}"),
        (Some(path), None) => format!("{path}{visible}"),
        (None, _) => "not installed".to_owned(),
    };
    Check {
        name: format!("agent {}", agent.id),
        ok: agent.path.is_some(),
        required: false,
        detail,
        fix: agent.path.is_none().then(|| agent.install.clone()),
    }
}

fn version(path: &str, env: &Environment) -> Option<String> {
    let mut command = std::process::Command::new(path);
    command.arg("--version").env_clear().envs(env.iter());
    let output = crate::process::run(&mut command, &[], std::time::Duration::from_secs(10)).ok()??;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().find(|line| !line.trim().is_empty()).map(|line| line.trim().chars().take(60).collect())
}
