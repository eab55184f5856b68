//! What agents publish: hooks, transcripts, state files, process names.

use super::input;
use crate::{
    classify::{
        memory::{Fold, Memory},
        observation::{At, Line, Observation, Reading},
        profile::Profile,
    },
    engine::transcript,
    helper::hook,
    observe::{Screens, Tail, stream, unwrap_hook},
};
use serde_json::Value;
use std::{collections::BTreeMap, fs, io::Write};

/// Payloads as an agent passes them to a hook, through the file that the hook writes.
pub(super) fn hooks(bytes: &[u8]) {
    let Some((profile, rest)) = input::profile(bytes) else { return };
    let mut file = String::new();
    for (at, payload) in (1_000..).step_by(500).zip(input::parts(rest)) {
        let line = hook::line(payload, at);
        assert!(!line.contains('\n'), "a payload of two lines: {line:?}");
        file.push_str(&line);
        file.push('\n');
    }
    let (lines, used) = stream::lines(file.as_bytes(), At(9_000));
    assert!(used == file.len(), "{used} of {} bytes are used", file.len());
    let lines: Vec<Line> = lines.into_iter().map(unwrap_hook).collect();
    for (line, payload) in lines.iter().zip(input::parts(rest)) {
        let sent = serde_json::from_slice::<Value>(payload).ok();
        let fraction = sent.as_ref().is_some_and(input::has_fraction);
        assert!(fraction || line.payload.as_ref().ok() == sent.as_ref(), "{sent:?} became {line:?}");
    }
    // One by one, and then in two bursts: the second one meets the memory of the first.
    let mut memory = Memory::default();
    for line in &lines {
        memory = taken(profile, memory, line.at.0, vec![line.clone()], Vec::new());
    }
    taken(profile, memory, 20_000, lines, Vec::new());
}

/// Lines of a transcript, as read for the verdict and for a person.
pub(super) fn transcripts(bytes: &[u8]) {
    let Some((profile, rest)) = input::profile(bytes) else { return };
    let (lines, used) = stream::lines(rest, At(1_000));
    assert!(used <= rest.len(), "{used} of {} bytes are used", rest.len());
    for value in lines.iter().filter_map(|line| line.payload.as_ref().ok()) {
        for said in transcript::said(profile, value) {
            assert!(!said.role.is_empty() && !said.text.is_empty(), "nobody, or nothing, is shown");
        }
    }
    let (before, after) = lines.split_at(lines.len() / 2);
    let memory = taken(profile, Memory::default(), 1_000, Vec::new(), before.to_vec());
    taken(profile, memory, 70_000, Vec::new(), after.to_vec());
}

/// Judges a look with these lines; returns the memory after it.
fn taken(profile: &Profile, memory: Memory, at: i64, hooks: Vec<Line>, transcript: Vec<Line>) -> Memory {
    let memory = input::judge(profile, memory, &input::look_with_lines(at, hooks, transcript)).memory;
    for fold in memory.feeds.all() {
        check_fold(fold);
    }
    input::same_when_read_again(&memory);
    memory
}

/// What a fold keeps is shown to people, and its conversation id becomes part of a path.
fn check_fold(fold: &Fold) {
    let failure = fold.failure.as_ref().map(|failure| &failure.message);
    let name = fold.last.as_ref().map(|(name, _)| name);
    let texts = [fold.message.as_ref(), fold.error.as_ref(), fold.usage.model.as_ref(), failure, name];
    for text in texts.into_iter().flatten().chain(fold.calls.iter().map(|call| &call.tool)) {
        input::check_text(text);
    }
    if let Some(id) = &fold.session_id {
        assert!(!id.contains(['/', '*', '\0']) && id.len() <= 256, "{id:?} is no part of a path");
        assert!(!id.starts_with(['-', '.']), "{id:?} is a flag or a directory");
    }
}

/// A file that grows piece by piece; a piece that starts with a zero byte replaces its content.
pub(super) fn hook_file(bytes: &[u8]) {
    let Some((profile, rest)) = input::profile(bytes) else { return };
    input::in_scratch(|dir| {
        let path = dir.join("hooks.jsonl");
        let _ = fs::remove_file(&path);
        let mut memory = Memory::default();
        let mut offsets = BTreeMap::new();
        for (at, piece) in (1_000..).step_by(500).zip(input::parts(rest)) {
            let written = match piece.split_first() {
                Some((0, new)) => fs::write(&path, new),
                _ => fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(&path)
                    .and_then(|mut file| file.write_all(piece)),
            };
            assert!(written.is_ok(), "{written:?}");
            let mut tail = Tail::resume("hooks", &path, &offsets);
            let lines = tail.read(At(at)).unwrap_or_default();
            offsets.extend(tail.offsets());
            let length = fs::metadata(&path).map_or(0, |found| found.len());
            assert!(
                offsets.get("hooks").is_some_and(|offset| *offset <= length),
                "{offsets:?} of {length} bytes"
            );
            let lines = lines.into_iter().map(unwrap_hook).collect();
            memory = taken(profile, memory, at, lines, Vec::new());
        }
    });
}

/// State files, each read by one look.
pub(super) fn native(bytes: &[u8]) {
    let Some((profile, rest)) = input::profile(bytes) else { return };
    let mut memory = Memory::default();
    for (at, part) in (1_000..).step_by(3_000).zip(input::parts(rest)) {
        let native = match serde_json::from_slice(part) {
            Ok(value) => Reading::Seen(value),
            Err(_) if part.is_empty() => Reading::Absent,
            Err(error) => Reading::Unavailable { why: error.to_string() },
        };
        let look = Observation { native, ..input::look(at, input::pane(), Screens::none()) };
        memory = input::judge(profile, memory, &look).memory;
    }
}

/// A line of `/proc/PID/stat`; the process chooses its own name in it.
pub(super) fn processes(bytes: &[u8]) {
    #[cfg(target_os = "linux")]
    if let Some((name, _)) = crate::process::name_and_parent(bytes) {
        assert!(name.len() <= 3 * bytes.len(), "a name that is longer than its line");
    }
    let _ = bytes;
}
