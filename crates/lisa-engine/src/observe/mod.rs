//! Gathers everything there is to read about a session.
//!
//! A failed read is data too. This module judges nothing and writes nothing.

mod commits;
pub(crate) mod stream;

pub use stream::Tail;

use crate::{
    classify::{
        channel::PerChannel,
        memory::Memory,
        observation::{At, Done, Line, NewLines, Observation, Reading},
        profile::{FeedSource, Profile},
    },
    process::Trees,
    session::{
        SessionDir,
        files::{PathContext, feed_file, locate},
        find::SessionSnapshot,
    },
    tmux::Reply,
};
use std::{path::PathBuf, sync::Arc, time::UNIX_EPOCH};

/// The current time.
pub(crate) fn now() -> At {
    At(jiff::Timestamp::now().as_millisecond())
}

/// Maximum size of an agent's own state file; they have a few hundred bytes.
const NATIVE_MAX: u64 = 1 << 20;

/// What was read about a session, and how far each file was read.
#[derive(Debug)]
pub struct Gathered {
    /// The observation.
    pub observation: Observation,
    /// How far each file was read; saved together with what was concluded from it.
    pub offsets: Vec<(String, u64)>,
    /// The agent's own files that were read or looked for.
    pub files: Vec<PathBuf>,
}

/// The screen of a pane, in two forms.
#[derive(Debug, Clone)]
pub struct Screens {
    /// As plain text.
    pub plain: Reading<Arc<str>>,
    /// With escape sequences.
    pub ansi: Reading<Arc<str>>,
}

impl Screens {
    /// No capture, because there is no pane.
    pub fn none() -> Self {
        Self { plain: Reading::Absent, ansi: Reading::Absent }
    }

    /// From a capture with escape sequences. The plain text is derived from it, which saves a second capture and
    /// guarantees that both are of the same moment.
    pub fn from_reply(ansi: Option<Reply>) -> Self {
        match ansi {
            None => Self::none(),
            Some(Ok(bytes)) => {
                let ansi = String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                let plain = plain(&ansi);
                Self { plain: Reading::Seen(plain.into()), ansi: Reading::Seen(ansi.into()) }
            }
            Some(Err(why)) => {
                Self { plain: Reading::Unavailable { why: why.clone() }, ansi: Reading::Unavailable { why } }
            }
        }
    }
}

/// Removes escape sequences, as tmux would: without trailing spaces in a row and without trailing blank rows.
pub fn plain(ansi: &str) -> String {
    let text = crate::classify::text::strip_escapes(ansi);
    let mut plain = String::with_capacity(text.len());
    for row in text.split('\n') {
        plain.push_str(row.trim_end_matches(' '));
        plain.push('\n');
    }
    plain.truncate(plain.trim_end_matches('\n').len());
    plain
}

/// What is known before a look.
#[derive(Debug, Clone, Copy)]
pub struct PreviousLook<'a> {
    /// What the last look remembered.
    pub memory: &'a Memory,
    /// When the current or last turn began.
    pub turn_began: Option<At>,
    /// The same, unless that turn has ended: nothing is expected of its prompt any more.
    pub prompt_sent_at: Option<At>,
}

/// The moment of a look.
#[derive(Debug, Clone)]
pub struct Moment<'a> {
    /// When the pane was captured.
    pub at: At,
    /// What it showed.
    pub screens: Screens,
    /// The process trees that this process has read before.
    pub trees: &'a Trees,
}

/// Reads everything about a session except its pane and screen, which were captured at that moment.
pub fn gather(
    session: &SessionSnapshot,
    profile: &Profile,
    before: PreviousLook<'_>,
    moment: Moment<'_>,
) -> Gathered {
    let Moment { at, screens, trees } = moment;
    let memory = before.memory;
    let pane_pid = session.pane.as_ref().map(|row| row.pane.pid);
    let dead = session.pane.as_ref().is_none_or(|row| row.pane.dead);
    let mut in_front = None;
    let procs = match pane_pid.filter(|_| !dead) {
        None => Reading::Absent,
        Some(pid) => match trees.read(pid) {
            Ok(tree) => {
                in_front = tree.in_front().map(str::to_owned);
                Reading::Seen(tree.procs)
            }
            Err(error) => Reading::Unavailable { why: error.to_string() },
        },
    };
    let path_context =
        |session_id| PathContext { meta: &session.meta, dir: session.dir.path(), pid: pane_pid, session_id };
    let native_rules = profile.native.as_ref();
    let native_path = native_rules.and_then(|native| locate(native.file.as_deref()?, path_context(None)));
    let mut read_files: Vec<PathBuf> = native_path.iter().cloned().collect();
    let native = native_path.map_or(Reading::Absent, read_json);
    let session_id = native
        .seen()
        .and_then(|file| file.pointer(native_rules?.session.as_deref()?)?.as_str().map(str::to_owned))
        .filter(|id| crate::classify::memory::is_session_id(id))
        .or_else(|| memory.session_id().map(str::to_owned))
        .or_else(|| session.meta.agent_session_id.clone());
    let title = session.pane.as_ref().map(|row| row.pane.title.as_str());
    let mut offsets = Vec::new();
    let mut feeds = PerChannel::<NewLines>::default();
    for feed in &profile.feeds {
        let Some(path) = feed_file(feed, path_context(session_id.as_deref()), title) else { continue };
        let mut tail = Tail::resume(feed.channel.source().as_str(), &path, &memory.offsets);
        match tail.read(at) {
            Ok(lines) => feeds[feed.channel].lines = lines,
            Err(error) => feeds[feed.channel].error = Some(error.to_string()),
        }
        offsets.extend(tail.offsets());
        if matches!(feed.from, Some(FeedSource::Hook)) {
            let lines = std::mem::take(&mut feeds[feed.channel].lines).into_iter().map(unwrap_hook);
            // A session that was resumed still has the hooks of the run before; they say nothing about this one.
            feeds[feed.channel].lines = lines.filter(|line| line.at >= session.meta.started_at).collect();
        } else {
            read_files.push(path);
        }
    }

    let observation = Observation {
        at,
        spawned_at: session.meta.started_at,
        run_id: session.meta.run_id.clone(),
        mode: session.meta.mode,
        pane: match &session.pane {
            Some(row) => {
                let mut pane = row.pane.clone();
                pane.command = in_front.unwrap_or(pane.command);
                Reading::Seen(pane)
            }
            None if session.elsewhere() => Reading::Unavailable {
                why: "this tmux server does not have the session, but its process lives: LISA_TMUX_SOCKET may be \
                      another than when it was started"
                    .to_owned(),
            },
            None => Reading::Absent,
        },
        server_died: session.server_died(),
        screen: screens.plain,
        screen_ansi: screens.ansi,
        procs,
        native,
        feeds,
        state_error: None,
        done: read_done(&session.dir),
        heartbeat: read_heartbeat(&session.dir),
        lock_wait_ms: 0,
        prompt_sent_at: before.prompt_sent_at,
        commits_since_turn: commits::since(&session.meta.project_root, before.turn_began),
    };
    Gathered { observation, offsets, files: read_files }
}

/// A line of `hooks.jsonl` wraps the agent's payload with its arrival time.
pub(crate) fn unwrap_hook(line: Line) -> Line {
    let Ok(value) = &line.payload else { return line };
    let malformed = value.get("malformed").and_then(serde_json::Value::as_str);
    match (value.get("at").and_then(serde_json::Value::as_i64), value.get("payload")) {
        (Some(at), Some(payload)) => Line { at: At(at), payload: Ok(payload.clone()) },
        (Some(at), None) if malformed.is_some() => {
            let why = format!("the agent's hook sent malformed JSON: {}", malformed.unwrap_or_default());
            Line { at: At(at), payload: Err(why) }
        }
        _ => Line { at: line.at, payload: Err("a hook line without time or payload".to_owned()) },
    }
}

fn read_json(path: PathBuf) -> Reading<serde_json::Value> {
    match crate::disk::read_foreign(&path, NATIVE_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Reading::Absent,
        Err(error) => Reading::Unavailable { why: error.to_string() },
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(value) => Reading::Seen(value),
            Err(error) => Reading::Unavailable { why: format!("{} is incomplete: {error}", path.display()) },
        },
    }
}

fn read_done(dir: &SessionDir) -> Reading<Done> {
    match crate::disk::read(&dir.file("done")) {
        Ok(None) => Reading::Absent,
        Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
            Ok(done) => Reading::Seen(done),
            Err(error) => Reading::Unavailable { why: format!("the done file is incomplete: {error}") },
        },
        Err(error) => Reading::Unavailable { why: error.to_string() },
    }
}

fn read_heartbeat(dir: &SessionDir) -> Reading<At> {
    match std::fs::metadata(dir.file("heartbeat")).and_then(|found| found.modified()) {
        Ok(time) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            Reading::Seen(At(i64::try_from(since.as_millis()).unwrap_or(0)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Reading::Absent,
        Err(error) => Reading::Unavailable { why: error.to_string() },
    }
}
