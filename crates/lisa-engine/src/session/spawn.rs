//! Starts a session: completely or not at all.

use super::{
    SessionDir, Store,
    end::Processes,
    files::{PathContext, locate},
    find::SessionSnapshot,
    orders::{self, Spec},
    plan::{Plan, SessionPaths},
};
use crate::{
    api::{SpawnRequest, words::Mode},
    classify::{
        observation::At,
        profile::{
            Profile,
            launch::{Launch, PromptWay, Template},
        },
    },
    config::Config,
    disk,
    error::{Error, Kind, Result},
    process::{self, Identity},
    tmux::{
        Cmd, Tmux,
        pane::{self, PaneRow},
    },
};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a process may hold the claim lock.
const CLAIM_LIMIT: Duration = Duration::from_secs(10);

/// A session that was started.
#[derive(Debug)]
pub struct Started {
    /// Its directory.
    pub dir: SessionDir,
    /// Its metadata.
    pub meta: super::Meta,
    /// Its pane, as created.
    pub row: PaneRow,
    /// When tmux was asked for the pane: any later look has seen more than its creation tells.
    pub asked_at: At,
    /// A prompt that still has to be pasted.
    pub paste: Option<String>,
}

/// What a start needs besides its plan.
#[derive(Debug, Clone, Copy)]
pub struct SpawnContext<'a> {
    /// The request.
    pub request: &'a SpawnRequest,
    /// The agent.
    pub profile: &'a Profile,
    /// How it is started.
    pub launch: &'a Launch,
    /// How to start it: interactive, exec or resume.
    pub template: &'a Template,
    /// The command line of Lisa's own helper.
    pub helper: &'a [String],
    /// The tmux server.
    pub tmux: &'a Tmux,
}

/// Starts a planned session.
pub fn spawn(plan: Plan, context: SpawnContext<'_>, store: &Store, config: &Config) -> Result<Started> {
    let dir = claim(&plan.meta.name, context.tmux, store, config)?;
    start(plan, context, dir, true)
}

/// Starts a planned session in the directory of one that has ended, replacing its dead pane. If that fails, the
/// session stays ended.
pub fn respawn(
    plan: Plan,
    context: SpawnContext<'_>,
    ended: &SessionSnapshot,
    store: &Store,
    config: &Config,
) -> Result<Started> {
    let lock = store.claim_lock(CLAIM_LIMIT)?;
    check_limit(context.tmux, store, config)?;
    // Processes of its group may live on, and so may the agent of a server that is gone.
    super::end::stop(ended, Processes::Force, context.tmux)?;
    for old in ["done", "heartbeat", "output.txt"] {
        let _ = std::fs::remove_file(ended.dir.file(old));
    }
    // A killed agent leaves its state file behind. One in the session's own directory would be taken for the new run's.
    let here = PathContext { meta: &ended.meta, dir: ended.dir.path(), pid: None, session_id: None };
    let native = context.profile.native.as_ref().and_then(|native| locate(native.file.as_deref()?, here));
    if let Some(native) = native.filter(|path| path.starts_with(ended.dir.path())) {
        let _ = std::fs::remove_file(native);
    }
    // From here on it counts as a session that is being started.
    ended.dir.write_meta(&plan.meta)?;
    drop(lock);
    start(plan, context, ended.dir.clone(), false).inspect_err(|_| {
        let _ = ended.dir.write_meta(&ended.meta);
    })
}

/// Ends a session that was just started, and removes what was created for it.
pub fn discard(started: &Started, tmux: &Tmux) -> Result<()> {
    let session = started.snapshot();
    super::end::stop(&session, Processes::Force, tmux)?;
    session.dir.remove()
}

impl Started {
    /// The session as it was when its pane was created.
    pub fn snapshot(&self) -> SessionSnapshot {
        SessionSnapshot { dir: self.dir.clone(), meta: self.meta.clone(), pane: Some(self.row.clone()) }
    }
}

fn start(mut plan: Plan, context: SpawnContext<'_>, dir: SessionDir, new: bool) -> Result<Started> {
    let SpawnContext { request, profile: _, launch, template, helper, tmux } = context;
    // From here on everything that was created is undone unless the whole start succeeds.
    let mut rollback = Rollback { dir: new.then(|| dir.clone()), tmux, made: None, asked: None };
    dir.write_meta(&plan.meta)?;
    let mut paths = SessionPaths { dir: dir.path().display().to_string(), settings: None };
    if let Some(settings) = &launch.settings {
        let path = dir.file(&settings.file);
        disk::write_atomic(&path, settings.render(&hook_command(helper, &dir)).as_bytes())?;
        paths.settings = Some(path.display().to_string());
    }
    super::policy::write(&dir, launch, request.policy.as_ref())?;
    plan.fill(request, template, launch, &paths);
    let stdin = match &plan.prompt {
        Some((PromptWay::Stdin, prompt)) => {
            let path = dir.file("prompt");
            disk::write_atomic(&path, prompt.as_bytes())?;
            Some(path)
        }
        _ => None,
    };
    let spec = Spec {
        argv: plan.argv.clone(),
        env: session_environment(&plan),
        cwd: plan.meta.cwd.clone(),
        stdin,
        nofile: process::own_descriptor_limit(),
    };
    let fifo = dir.file("orders");
    orders::make_fifo(&fifo).map_err(|error| Error::io("make", &fifo, &error))?;
    // From here on tmux may have the session, even if it couldn't say so.
    rollback.asked = Some(plan.meta.run_id.clone());
    let asked_at = At(jiff::Timestamp::now().as_millisecond());
    let made = new_session(&plan, helper, &fifo, &dir, tmux)?;
    let NewPane { row, terminal } = made;
    let pid = row.pane.pid;
    rollback.made = Some(row.clone());
    if let Err(error) = orders::feed(&fifo, &spec, Identity::of(pid)) {
        return Err(not_launched(tmux, &row.pane_id, &error.to_string()));
    }
    plan.meta.pane = Identity::of(pid);
    plan.meta.pane_id = Some(row.pane_id.clone());
    plan.meta.terminal = Some(terminal);
    plan.meta.server = Identity::of(row.server_pid);
    // If the directory is gone by now, somebody killed the session while it was being started (race).
    dir.write_meta(&plan.meta)?;
    (rollback.dir, rollback.made, rollback.asked) = (None, None, None);
    let paste = match plan.prompt {
        Some((PromptWay::Paste, prompt)) => Some(prompt),
        _ => None,
    };
    Ok(Started { dir, meta: plan.meta, row, asked_at, paste })
}

/// Claims a name and a place under the session limit. The lock is only held while sessions are counted.
fn claim(name: &str, tmux: &Tmux, store: &Store, config: &Config) -> Result<SessionDir> {
    let _lock = store.claim_lock(CLAIM_LIMIT)?;
    check_limit(tmux, store, config)?;
    store.claim(name)
}

fn check_limit(tmux: &Tmux, store: &Store, config: &Config) -> Result<()> {
    let limit = config.max_sessions as usize;
    // There are never more live sessions than directories, so their state matters only near the limit.
    if store.names()?.len() < limit {
        return Ok(());
    }
    let live = super::find::live_count(tmux, store)?;
    if live < limit {
        return Ok(());
    }
    Err(Error::new(
        Kind::SessionLimit,
        format!("{live} sessions are running, and the limit is {}", config.max_sessions),
        "kill some, or raise LISA_MAX_SESSIONS (or max_sessions in config.toml)",
    ))
}

/// What tmux reports about a new session, and its parser.
struct NewPane {
    row: PaneRow,
    terminal: PathBuf,
}

impl NewPane {
    fn format() -> String {
        format!("#{{pane_tty}}\t{}", pane::format(false))
    }

    fn read(text: &str) -> Option<Self> {
        let (terminal, row) = text.split_once('\t')?;
        let row = pane::parse(row.as_bytes(), false).ok()?.pop()?;
        Some(Self { row, terminal: terminal.into() })
    }
}

fn new_session(
    plan: &Plan,
    helper: &[String],
    fifo: &Path,
    dir: &SessionDir,
    tmux: &Tmux,
) -> Result<NewPane> {
    let meta = &plan.meta;
    let mut new = Cmd::new("new-session").args(["-d", "-P", "-F"]);
    new = new
        .arg(NewPane::format())
        .arg("-s")
        .arg(&meta.name)
        .arg("-x")
        .arg(meta.size.columns.to_string())
        .arg("-y")
        .arg(meta.size.rows.to_string())
        // Where a person's own windows in that session start.
        .arg("-c")
        .arg(meta.cwd.display().to_string().replace('#', "##"));
    new = helper.iter().fold(new, |new, word| new.arg(word));
    let fifo = fifo.display().to_string();
    new = match meta.mode {
        Mode::Interactive => new.arg("launch").arg(fifo),
        Mode::Exec => new.arg("run").arg(fifo).arg(dir.path().display().to_string()),
    };
    let mut commands = vec![new.arg(pane::mark(&meta.run_id))];
    if meta.mode == Mode::Exec {
        let log = shell_line(helper, &["log", &dir.file("output.txt").display().to_string()]);
        let target = format!("={}:", meta.name);
        commands.push(
            Cmd::new("pipe-pane").args(["-O", "-t", &target]).arg(escape_format(&format!("exec {log}"))),
        );
    }
    let printed = tmux.call_starting(&commands)?.map_err(|why| {
        if why.contains("duplicate session") {
            Error::new(
                Kind::NameTaken,
                format!("tmux has a session `{}` without a directory", meta.name),
                "run `lisa cleanup`, or choose another name",
            )
        } else {
            Error::new(
                Kind::TmuxFailed,
                format!("tmux could not start the session: {why}"),
                "run `lisa doctor`",
            )
        }
    })?;
    let text = String::from_utf8_lossy(&printed).into_owned();
    NewPane::read(&text).ok_or_else(|| {
        Error::new(
            Kind::TmuxFailed,
            format!("tmux printed `{}` when it started a session", text.trim_end()),
            "run `lisa doctor`",
        )
    })
}

/// The pane didn't take its orders; its screen says why.
fn not_launched(tmux: &Tmux, pane: &str, why: &str) -> Error {
    let screen = tmux.screens(&[pane], false).ok().and_then(|mut screens| screens.pop()).and_then(Reply::ok);
    let shown = screen.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default();
    Error::new(
        Kind::LaunchFailed,
        format!("the agent was not started: {why}{}{shown}", if shown.is_empty() { "" } else { ": " }),
        "check that the program runs on its own in that directory; `lisa doctor` checks the rest",
    )
}

type Reply = crate::tmux::Reply;

fn session_environment(plan: &Plan) -> Vec<(OsString, OsString)> {
    let meta = &plan.meta;
    let mut env = plan.env.clone();
    let hash = super::names::project_hash(&meta.project_root);
    let own = [
        ("LISA_SESSION", meta.name.as_str()),
        ("LISA_RUN_ID", &meta.run_id),
        ("LISA_AGENT", &meta.agent),
        ("LISA_MODE", meta.mode.as_str()),
        ("LISA_PROJECT_HASH", &hash),
    ];
    env.extend(own.iter().map(|(name, value)| (name.into(), value.into())));
    if let Some(parent) = &meta.parent {
        env.push(("LISA_PARENT".into(), parent.into()));
    }
    env
}

/// The command line that an agent's hooks run.
fn hook_command(helper: &[String], dir: &SessionDir) -> String {
    shell_line(helper, &["hook", &dir.path().display().to_string()])
}

fn shell_line(helper: &[String], words: &[&str]) -> String {
    let quoted = helper.iter().map(String::as_str).chain(words.iter().copied()).map(shell_quote);
    quoted.collect::<Vec<_>>().join(" ")
}

fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=:@%,./+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// tmux expands formats and times in a pipe's command; this protects a path from it.
fn escape_format(text: &str) -> String {
    text.replace('#', "##").replace('%', "%%")
}

/// Undoes what a spawn has created so far, unless it is told that all went well.
struct Rollback<'a> {
    dir: Option<SessionDir>,
    tmux: &'a Tmux,
    made: Option<PaneRow>,
    /// The run that tmux was asked to create a session for.
    asked: Option<String>,
}

impl Rollback<'_> {
    /// Ends the session, if tmux has it.
    fn end_session(&mut self) -> Result<()> {
        let Some(run) = self.asked.take() else { return Ok(()) };
        let made = match self.made.take() {
            Some(made) => Some(made),
            None => self.tmux.panes(false)?.into_iter().find(|row| row.run_id == run),
        };
        let Some(row) = made else { return Ok(()) };
        process::end_all(&[row.pane.pid], Duration::ZERO);
        self.tmux.end_pane(&row, &row.session)
    }
}

impl Drop for Rollback<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end_session() {
            // If it can't be ended it must be findable, so its directory stays.
            tracing::warn!(%error, "could not clean up a session whose start failed");
            return;
        }
        if let Some(dir) = self.dir.take() {
            let _ = dir.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_the_shell_and_the_format() {
        assert_eq!(shell_quote("/a b/it's"), "'/a b/it'\\''s'");
        assert_eq!(escape_format("/x/#{y}/%H"), "/x/##{y}/%%H");
    }
}
