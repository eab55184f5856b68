//! Starting a session: all of it, or nothing.

use super::{
    Folder, Store,
    end::Processes,
    find::Sighting,
    plan::{Places, Plan},
};
use crate::{
    api::SpawnRequest,
    config::Config,
    disk,
    error::{Error, Kind, Result},
    helper::launch::{self, Spec},
    observation::Mode,
    process::{self, Identity},
    profile::launch::{Launch, PromptWay, Template},
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

/// How long a process may hold the right to claim a place.
const CLAIM_LIMIT: Duration = Duration::from_secs(10);

/// A session that was started.
#[derive(Debug)]
pub struct Started {
    /// Its folder.
    pub folder: Folder,
    /// What is known of it.
    pub meta: super::Meta,
    /// Its pane, as it was made.
    pub row: PaneRow,
    /// A prompt that still has to be pasted.
    pub paste: Option<String>,
}

/// What a start needs beside its plan.
#[derive(Debug, Clone, Copy)]
pub struct Means<'a> {
    /// What was asked for.
    pub request: &'a SpawnRequest,
    /// How the agent is started.
    pub launch: &'a Launch,
    /// The way to start it: interactive, exec or resume.
    pub template: &'a Template,
    /// Lisa's own helper commands.
    pub helper: &'a [String],
    /// The server.
    pub tmux: &'a Tmux,
}

/// Starts what was planned as a new session.
pub fn spawn(plan: Plan, means: Means<'_>, store: &Store, config: &Config) -> Result<Started> {
    let folder = claim(&plan.meta.name, means.tmux, store, config)?;
    start(plan, means, folder, true)
}

/// Starts what was planned in the folder of a session that has ended, in place of its corpse. Where that fails, the
/// session is what it was: one that has ended.
pub fn respawn(
    plan: Plan,
    means: Means<'_>,
    ended: &Sighting,
    store: &Store,
    config: &Config,
) -> Result<Started> {
    let lock = store.claim_lock(CLAIM_LIMIT)?;
    check_limit(means.tmux, store, config)?;
    // Processes of its group may live on, and so may the agent of a server that is gone.
    super::end::stop(ended, Processes::Force, means.tmux)?;
    for old in ["done", "heartbeat", "output.txt"] {
        let _ = std::fs::remove_file(ended.folder.file(old));
    }
    // From here on it holds its place as one that is being started.
    ended.folder.write_meta(&plan.meta)?;
    drop(lock);
    start(plan, means, ended.folder.clone(), false).inspect_err(|_| {
        let _ = ended.folder.write_meta(&ended.meta);
    })
}

/// Ends a session that was just started, and removes what was made for it.
pub fn take_back(started: &Started, tmux: &Tmux) -> Result<()> {
    let session = started.sighting();
    super::end::stop(&session, Processes::Force, tmux)?;
    session.folder.remove()
}

impl Started {
    /// The session as it was when its pane was made.
    pub fn sighting(&self) -> Sighting {
        Sighting { folder: self.folder.clone(), meta: self.meta.clone(), pane: Some(self.row.clone()) }
    }
}

fn start(mut plan: Plan, means: Means<'_>, folder: Folder, new: bool) -> Result<Started> {
    let Means { request, launch, template, helper, tmux } = means;
    // From here on everything that was made is taken back unless the whole succeeds.
    let mut undo = Undo { folder: new.then(|| folder.clone()), tmux, session: None, asked: None };
    folder.write_meta(&plan.meta)?;
    let mut places = Places { folder: folder.path().display().to_string(), settings: None };
    if let Some(settings) = &launch.settings {
        let path = folder.file(&settings.file);
        disk::write_atomic(&path, settings.render(&hook_command(helper, &folder)).as_bytes())?;
        places.settings = Some(path.display().to_string());
    }
    super::policy::write(&folder, launch, request.policy.as_ref())?;
    plan.fill(request, template, launch, &places);
    let stdin = match &plan.prompt {
        Some((PromptWay::Stdin, prompt)) => {
            let path = folder.file("prompt");
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
    let fifo = folder.file("orders");
    launch::make_fifo(&fifo).map_err(|error| Error::io("make", &fifo, &error))?;
    // From here on tmux may have the session, also if it could not say so.
    undo.asked = Some(plan.meta.run_id.clone());
    let made = new_session(&plan, helper, &fifo, &folder, tmux)?;
    let Made { row, terminal } = made;
    let pid = row.pane.pid;
    undo.session = Some((row.session_id.clone(), pid));
    if let Err(error) = launch::feed(&fifo, &spec, Identity::of(pid)) {
        return Err(not_launched(tmux, &row.pane_id, &error.to_string()));
    }
    plan.meta.pane = Identity::of(pid);
    plan.meta.pane_id = Some(row.pane_id.clone());
    plan.meta.terminal = Some(terminal);
    plan.meta.server = Identity::of(row.server_pid);
    // A folder that is gone by now was killed by somebody while it was being made.
    folder.write_meta(&plan.meta)?;
    (undo.folder, undo.session, undo.asked) = (None, None, None);
    let paste = match plan.prompt {
        Some((PromptWay::Paste, prompt)) => Some(prompt),
        _ => None,
    };
    Ok(Started { folder, meta: plan.meta, row, paste })
}

/// Claims a name and a place under the limit. The lock is held only while places are counted.
fn claim(name: &str, tmux: &Tmux, store: &Store, config: &Config) -> Result<Folder> {
    let _lock = store.claim_lock(CLAIM_LIMIT)?;
    check_limit(tmux, store, config)?;
    store.claim(name)
}

fn check_limit(tmux: &Tmux, store: &Store, config: &Config) -> Result<()> {
    let limit = config.max_sessions as usize;
    // There are never more live sessions than directories: only near the limit must each be looked at.
    if store.names()?.len() < limit {
        return Ok(());
    }
    let live = super::find::live_count(tmux, store)?;
    if live < limit {
        return Ok(());
    }
    Err(Error::new(
        Kind::SessionLimit,
        format!("{live} sessions are alive, and the limit is {}", config.max_sessions),
        "kill some, or raise LISA_MAX_SESSIONS (or max_sessions in config.toml)",
    ))
}

/// What tmux says of a session that it has just made, and how that is read.
struct Made {
    row: PaneRow,
    terminal: PathBuf,
}

impl Made {
    fn format() -> String {
        format!("#{{pane_tty}}\t{}", pane::format(false))
    }

    fn read(text: &str) -> Option<Self> {
        let (terminal, row) = text.split_once('\t')?;
        let row = pane::parse(row.as_bytes(), false).ok()?.pop()?;
        Some(Self { row, terminal: terminal.into() })
    }
}

fn new_session(plan: &Plan, helper: &[String], fifo: &Path, folder: &Folder, tmux: &Tmux) -> Result<Made> {
    let meta = &plan.meta;
    let mut new = Cmd::new("new-session").args(["-d", "-s"]);
    new = new
        .arg(&meta.name)
        .arg("-x")
        .arg(meta.size.columns.to_string())
        .arg("-y")
        .arg(meta.size.rows.to_string())
        // Where a person's own windows of that session begin.
        .arg("-c")
        .arg(meta.cwd.display().to_string().replace('#', "##"));
    new = helper.iter().fold(new, |new, word| new.arg(word));
    let fifo = fifo.display().to_string();
    new = match meta.mode {
        Mode::Interactive => new.arg("launch").arg(fifo),
        Mode::Exec => new.arg("run").arg(fifo).arg(folder.path().display().to_string()).arg(&meta.run_id),
    };
    let target = format!("={}:", meta.name);
    // An option of the pane: it goes where the pane goes, and no other pane has it.
    let mark = Cmd::new("set-option").args(["-p", "-t", &target, "@lisa_run"]).arg(&meta.run_id);
    let made = Cmd::new("list-panes").args(["-t", &target, "-F"]).arg(Made::format());
    let mut commands = vec![new, mark, made];
    if meta.mode == Mode::Exec {
        let log = shell_line(helper, &["log", &folder.file("output.txt").display().to_string()]);
        commands.push(
            Cmd::new("pipe-pane").args(["-O", "-t", &target]).arg(escape_format(&format!("exec {log}"))),
        );
    }
    let printed = tmux.call_starting(&commands)?.map_err(|why| {
        if why.contains("duplicate session") {
            Error::new(
                Kind::NameTaken,
                format!("tmux has a session `{}` that has no folder", meta.name),
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
    Made::read(&text).ok_or_else(|| {
        Error::new(
            Kind::TmuxFailed,
            format!("tmux answered `{}` to the start of a session", text.trim_end()),
            "run `lisa doctor`",
        )
    })
}

/// The pane did not take its orders: what it shows says why.
fn not_launched(tmux: &Tmux, pane: &str, why: &str) -> Error {
    let screen = tmux.screens(&[pane], false).ok().and_then(|mut screens| screens.pop()).and_then(Reply::ok);
    let shown = screen.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).unwrap_or_default();
    Error::new(
        Kind::LaunchFailed,
        format!("the agent was not started: {why}{}{shown}", if shown.is_empty() { "" } else { ": " }),
        "check that the program runs by itself in that folder; `lisa doctor` checks the rest",
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
fn hook_command(helper: &[String], folder: &Folder) -> String {
    shell_line(helper, &["hook", &folder.path().display().to_string()])
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

/// tmux expands formats and times in the command of a pipe; a path must come out of that unchanged.
fn escape_format(text: &str) -> String {
    text.replace('#', "##").replace('%', "%%")
}

/// Takes back what a spawn has made so far, unless it is told that all went well.
struct Undo<'a> {
    folder: Option<Folder>,
    tmux: &'a Tmux,
    session: Option<(String, u32)>,
    /// The run that tmux was asked to make a session for.
    asked: Option<String>,
}

impl Undo<'_> {
    /// Ends the session, if tmux has it.
    fn end_session(&mut self) -> Result<()> {
        let Some(run) = self.asked.take() else { return Ok(()) };
        let made = match self.session.take() {
            Some(made) => Some(made),
            None => self
                .tmux
                .panes(false)?
                .into_iter()
                .find(|row| row.run_id == run)
                .map(|row| (row.session_id, row.pane.pid)),
        };
        let Some((session, pid)) = made else { return Ok(()) };
        process::end_all(&[pid], Duration::ZERO);
        self.tmux.end_session(&session)
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end_session() {
            // What cannot be ended must be found: its directory stays.
            tracing::warn!(%error, "a session whose start failed is left behind");
            return;
        }
        if let Some(folder) = self.folder.take() {
            let _ = folder.remove();
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
