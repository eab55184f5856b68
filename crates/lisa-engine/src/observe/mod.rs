//! Looking: everything that is read about a session, and nothing else.
//!
//! A read that fails is data. Nothing here judges, and nothing here writes.

mod commits;
pub(crate) mod stream;

pub use stream::Tail;

use crate::{
    memory::Memory,
    observation::{At, Done, Line, Observation, Reading},
    process,
    profile::Profile,
    session::{
        Folder,
        files::{Known, locate, open_transcript},
        find::Sighting,
    },
    tmux::Reply,
};
use std::{path::PathBuf, sync::Arc, time::UNIX_EPOCH};

/// Names of what the observer remembers in `Memory::offsets`.
const HOOKS: &str = "hooks";
const TRANSCRIPT: &str = "transcript";
/// The most that is read of an agent's own state file: they have a few hundred bytes.
const NATIVE_MAX: u64 = 1 << 20;

/// What was read of a session's own files since the last look, and how far.
#[derive(Debug)]
pub struct Look {
    /// The observation.
    pub observation: Observation,
    /// How far each file was read, to be remembered together with what was concluded from it.
    pub offsets: Vec<(String, u64)>,
    /// The agent's own files that were read, or looked for.
    pub files: Vec<PathBuf>,
}

/// What tmux shows of a pane.
#[derive(Debug, Clone)]
pub struct Screens {
    /// The screen as plain text.
    pub plain: Reading<Arc<str>>,
    /// The screen with escapes.
    pub ansi: Reading<Arc<str>>,
}

impl Screens {
    /// Nothing was captured, because there is no pane.
    pub fn none() -> Self {
        Self { plain: Reading::Absent, ansi: Reading::Absent }
    }

    /// What a capture with escapes answered. The plain screen is the same one without them: it costs no capture of its
    /// own, and the two can not be of different moments.
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

/// A captured screen as tmux gives it without escapes: nothing that is not seen, at the end of a row or of the screen.
pub fn plain(ansi: &str) -> String {
    let text = crate::text::strip_escapes(ansi);
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
pub struct Before<'a> {
    /// What the last look left.
    pub memory: &'a Memory,
    /// When the turn that runs, or ran last, began: when its prompt was sent.
    pub turn_began: Option<At>,
}

/// Reads everything about a session but its screen, which was captured at `at` together with its pane.
pub fn look(session: &Sighting, profile: &Profile, before: Before<'_>, screens: Screens, at: At) -> Look {
    let memory = before.memory;
    let files = profile.launch.as_ref().map(|launch| &launch.files);
    let pane_pid = session.pane.as_ref().map(|row| row.pane.pid);
    let dead = session.pane.as_ref().is_none_or(|row| row.pane.dead);
    let mut in_front = None;
    let procs = match pane_pid.filter(|_| !dead) {
        None => Reading::Absent,
        Some(pid) => match process::tree(pid) {
            Ok(tree) => {
                in_front = tree.in_front().map(str::to_owned);
                Reading::Seen(tree.procs)
            }
            Err(error) => Reading::Unavailable { why: error.to_string() },
        },
    };
    let known =
        |session_id| Known { meta: &session.meta, folder: session.folder.path(), pid: pane_pid, session_id };
    let native_path =
        files.and_then(|files| files.native.as_deref()).and_then(|path| locate(path, known(None)));
    let mut read_files: Vec<PathBuf> = native_path.iter().cloned().collect();
    let native = native_path.map_or(Reading::Absent, read_json);
    let session_id = native
        .seen()
        .and_then(|native| native.pointer(files?.native_session_id.as_deref()?)?.as_str().map(str::to_owned))
        .filter(|id| crate::memory::is_session_id(id))
        .or_else(|| memory.session_id().map(str::to_owned))
        .or_else(|| session.meta.agent_session_id.clone());
    let transcript_path = files.and_then(|files| {
        let title = session.pane.as_ref().map(|row| row.pane.title.as_str());
        let open = open_transcript(files, pane_pid, title);
        open.or_else(|| locate(files.transcript.as_deref()?, known(session_id.as_deref())))
    });

    read_files.extend(transcript_path.iter().cloned());
    let mut offsets = Vec::new();
    let mut stream_errors = Vec::new();
    let mut read = |key: &str, error_name: &'static str, path: Option<PathBuf>| -> Vec<Line> {
        let Some(path) = path else { return Vec::new() };
        let mut tail = Tail::resume(key, &path, &memory.offsets);
        let lines = tail.read(at).unwrap_or_else(|error| {
            stream_errors.push((error_name, error.to_string()));
            Vec::new()
        });
        offsets.extend(tail.offsets());
        lines
    };
    let hooks = read(HOOKS, "hook_error", Some(session.folder.file("hooks.jsonl")));
    let transcript = read(TRANSCRIPT, "transcript_error", transcript_path);
    let hooks = hooks.into_iter().map(unwrap_hook).collect();

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
        hooks,
        notifies: Vec::new(),
        transcript,
        stream_errors,
        done: read_done(&session.folder),
        heartbeat: read_heartbeat(&session.folder),
        lock_wait_ms: 0,
        prompt_sent_at: before.turn_began,
        commits_since_turn: commits::since(&session.meta.project_root, before.turn_began),
    };
    Look { observation, offsets, files: read_files }
}

/// A line of `hooks.jsonl` wraps the agent's payload with the time it came.
pub(crate) fn unwrap_hook(line: Line) -> Line {
    let Ok(value) = &line.payload else { return line };
    let malformed = value.get("malformed").and_then(serde_json::Value::as_str);
    match (value.get("at").and_then(serde_json::Value::as_i64), value.get("payload")) {
        (Some(at), Some(payload)) => Line { at: At(at), payload: Ok(payload.clone()) },
        (Some(at), None) if malformed.is_some() => {
            let why = format!("the agent's hook sent no JSON: {}", malformed.unwrap_or_default());
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
            Err(error) => Reading::Unavailable { why: format!("{} is torn: {error}", path.display()) },
        },
    }
}

fn read_done(folder: &Folder) -> Reading<Done> {
    match crate::disk::read(&folder.file("done")) {
        Ok(None) => Reading::Absent,
        Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
            Ok(done) => Reading::Seen(done),
            Err(error) => Reading::Unavailable { why: format!("the done file is torn: {error}") },
        },
        Err(error) => Reading::Unavailable { why: error.to_string() },
    }
}

fn read_heartbeat(folder: &Folder) -> Reading<At> {
    match std::fs::metadata(folder.file("heartbeat")).and_then(|found| found.modified()) {
        Ok(time) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            Reading::Seen(At(i64::try_from(since.as_millis()).unwrap_or(0)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Reading::Absent,
        Err(error) => Reading::Unavailable { why: error.to_string() },
    }
}
