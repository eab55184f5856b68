//! Reads a conversation as text from the agent's own transcript.

use crate::{
    api::{ReadRequest, ReadResponse, View},
    classify::{
        channel::Channel,
        profile::{Blocks, Profile, all_hold, lookup},
    },
    error::{Error, Kind, Result},
    session::{
        files::{PathContext, feed_file},
        find::SessionSnapshot,
    },
    watch::judge::Judged,
};
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};

/// Maximum bytes of a transcript to read.
const READ_MAX: u64 = 16 << 20;
/// Maximum characters of a tool's input or output to show.
const TOOL_MAX: usize = 400;

/// Reads the whole conversation, or the part since the last prompt.
pub(crate) fn read(
    profile: Option<Arc<Profile>>,
    session: &SessionSnapshot,
    judged: &Judged,
    request: &ReadRequest,
    max: usize,
) -> Result<ReadResponse> {
    let none = || {
        Error::new(
            Kind::NotOffered,
            format!("`{}` has no readable transcript (yet)", session.meta.name),
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

/// The path of the session's transcript.
pub(crate) fn path(profile: &Profile, session: &SessionSnapshot, judged: &Judged) -> Option<PathBuf> {
    let feed = profile.feed(Channel::Transcript)?;
    let memory = &judged.record.memory;
    let pid = session.pane.as_ref().map(|row| row.pane.pid);
    let id = memory.session_id().or(session.meta.agent_session_id.as_deref());
    let context = PathContext { meta: &session.meta, dir: session.dir.path(), pid, session_id: id };
    let title = session.pane.as_ref().map(|row| row.pane.title.as_str());
    feed_file(feed, context, title).filter(|path| path.is_file())
}

pub(crate) struct Said {
    pub(crate) role: String,
    pub(crate) text: String,
}

/// What a line of the transcript says, and who said it.
pub(crate) fn said(profile: &Profile, line: &Value) -> Vec<Said> {
    let Some(feed) = profile.feed(Channel::Transcript) else { return Vec::new() };
    let rules = feed.show.iter().filter(|rule| all_hold(&rule.when, line));
    let said = rules.filter_map(|rule| {
        let text = flatten(lookup(line, &rule.text)?.as_ref(), &feed.blocks);
        (!text.trim().is_empty()).then(|| Said { role: rule.role.clone(), text: text.trim().to_owned() })
    });
    said.take(1).collect()
}

/// The text of a value: a string, or the texts and tool calls in a list of blocks.
fn flatten(value: &Value, blocks: &Blocks) -> String {
    let part = |pointer: &Option<String>| pointer.as_deref().and_then(|pointer| value.pointer(pointer));
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let parts: Vec<String> =
                items.iter().map(|item| flatten(item, blocks)).filter(|part| !part.is_empty()).collect();
            parts.join("\n")
        }
        Value::Object(_) => {
            if let Some(text) = part(&blocks.text).and_then(Value::as_str) {
                return text.to_owned();
            }
            match (part(&blocks.tool).and_then(Value::as_str), part(&blocks.input), part(&blocks.output)) {
                (Some(name), Some(input), _) => format!("[{name} {}]", short(&input.to_string())),
                (None, _, Some(output)) => short(&flatten(output, blocks)),
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
