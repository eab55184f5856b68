//! A conversation as text, read from the agent's own transcript.

use crate::{
    api::{ReadRequest, ReadResponse, View},
    error::{Error, Kind, Result},
    judge::Judged,
    profile::{Profile, lookup},
    session::{
        files::{Known, locate, open_transcript},
        find::Sighting,
    },
};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};

/// The largest part of a transcript that is read at once.
const READ_MAX: u64 = 16 << 20;
/// How much of a tool's input or output is shown.
const TOOL_MAX: usize = 400;

/// Reads the conversation, or what was said since the last prompt.
pub(crate) fn read(
    profile: Option<Arc<Profile>>,
    session: &Sighting,
    judged: &Judged,
    request: &ReadRequest,
    max: usize,
) -> Result<ReadResponse> {
    let none = || {
        Error::new(
            Kind::NotOffered,
            format!("`{}` has no transcript that could be read (yet)", session.meta.name),
            "read the view `output` or `screen` instead",
        )
    };
    let profile = profile.ok_or_else(none)?;
    let path = path(&profile, session, judged).ok_or_else(none)?;
    let length = std::fs::metadata(&path).map_err(|_| none())?.len();
    let from = length.saturating_sub(READ_MAX);
    let bytes = crate::disk::read_at(&path, from, READ_MAX)?.ok_or_else(none)?;
    let (lines, _) = crate::disk::whole_lines(&bytes);
    let said: Vec<Said> = lines
        .into_iter()
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .flat_map(|line| said(&profile, &line))
        .collect();
    let begin = match request.view {
        View::Turn => said.iter().rposition(|said| said.role == "user").unwrap_or(0),
        _ => 0,
    };
    let text: Vec<String> =
        said[begin..].iter().map(|said| format!("{}: {}", said.role, said.text)).collect();
    let text = text.join("\n");
    let rows: Vec<&str> = text.lines().collect();
    let first = match request.since {
        Some(since) => usize::try_from(since).unwrap_or(usize::MAX).min(rows.len()),
        None => rows.len().saturating_sub(max),
    };
    let end = (first + max).min(rows.len());
    Ok(ReadResponse { text: rows[first..end].join("\n"), cursor: end as u64, more: end < rows.len() })
}

/// Where the session's transcript is.
pub(crate) fn path(profile: &Profile, session: &Sighting, judged: &Judged) -> Option<PathBuf> {
    let files = &profile.launch.as_ref()?.files;
    let memory = &judged.record.memory;
    let pid = session.pane.as_ref().map(|row| row.pane.pid);
    let id = memory.session_id().or(session.meta.agent_session_id.as_deref());
    let known = Known { meta: &session.meta, folder: session.folder.path(), pid, session_id: id };
    let title = session.pane.as_ref().map(|row| row.pane.title.as_str());
    let open = open_transcript(files, pid, title);
    open.or_else(|| locate(files.transcript.as_deref()?, known)).filter(|path| path.is_file())
}

pub(crate) struct Said {
    pub(crate) role: String,
    pub(crate) text: String,
}

/// What a line of the transcript says, and who says it.
pub(crate) fn said(profile: &Profile, line: &Value) -> Vec<Said> {
    let Some(launch) = &profile.launch else { return Vec::new() };
    let rules = launch.files.show.iter().filter(|rule| crate::profile::all_hold(&rule.when, line));
    let said = rules.filter_map(|rule| {
        let text = flatten(lookup(line, &rule.text)?.as_ref());
        (!text.trim().is_empty()).then(|| Said { role: rule.role.clone(), text: text.trim().to_owned() })
    });
    said.take(1).collect()
}

/// The words in a value: a text, or the texts and calls in a list of blocks.
fn flatten(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let parts: Vec<String> = blocks.iter().map(flatten).filter(|part| !part.is_empty()).collect();
            parts.join("\n")
        }
        Value::Object(block) => {
            if let Some(text) = block.get("text").and_then(Value::as_str) {
                return text.to_owned();
            }
            match (block.get("name").and_then(Value::as_str), block.get("input"), block.get("content")) {
                (Some(name), Some(input), _) => format!("[{name} {}]", short(&input.to_string())),
                (None, _, Some(content)) => short(&flatten(content)),
                _ => String::new(),
            }
        }
        _ => String::new(),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(TOOL_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
