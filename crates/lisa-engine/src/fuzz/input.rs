//! Shared by several targets: parts of an input, profiles, looks to judge, invariants, a scratch directory.

use crate::{
    api::words::{Mode, Prompt},
    classify::{
        memory::Memory,
        observation::{At, Line, Observation, Pane, Reading},
        profile::{Profile, Profiles},
        resolve::{Outcome, step},
    },
    observe::Screens,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

/// The separator between parts of an input: a control character that no screen or line of JSON contains.
pub(super) const SEPARATOR: u8 = 0x1e;

/// Maximum number of parts of an input; more frames find nothing that fewer don't.
const PARTS_MAX: usize = 24;

/// The profiles that ship with Lisa, in the order of their ids.
static PROFILES: LazyLock<Vec<Arc<Profile>>> = LazyLock::new(|| Profiles::shipped().iter().collect());

/// Takes the profile that the first byte selects.
pub(super) fn profile(bytes: &[u8]) -> Option<(&'static Profile, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let chosen = PROFILES.get(usize::from(*first) % PROFILES.len().max(1))?;
    Some((chosen, rest))
}

/// The profile that fits any command.
pub(super) fn generic() -> Option<Arc<Profile>> {
    Profiles::shipped().get_or_generic("")
}

/// The parts of an input.
pub(super) fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == SEPARATOR).take(PARTS_MAX)
}

/// A pane in which an agent runs.
pub(super) fn pane() -> Pane {
    Pane {
        dead: false,
        exit_status: None,
        exit_signal: None,
        command: "agent".to_owned(),
        pid: 100,
        cursor: (2, 20),
        cursor_visible: true,
        alternate: false,
        in_mode: false,
        history: 0,
        activity: At(1_000),
        size: (80, 24),
        inputs: 0,
        title: "agent".to_owned(),
    }
}

/// A look that has seen only its pane.
pub(super) fn look(at: i64, pane: Pane, screens: Screens) -> Observation {
    Observation {
        pane: Reading::Seen(pane),
        screen: screens.plain,
        screen_ansi: screens.ansi,
        ..Observation::none(At(at), At(0), "run", Mode::Interactive)
    }
}

/// A look at an agent that published these lines.
pub(super) fn look_with_lines(at: i64, hooks: Vec<Line>, transcript: Vec<Line>) -> Observation {
    let mut look = look(at, pane(), Screens::none());
    look.feeds.hook.lines = hooks;
    look.feeds.transcript.lines = transcript;
    look
}

/// Judges a look, and checks the invariants of every verdict.
pub(super) fn judge(profile: &Profile, memory: Memory, look: &Observation) -> Outcome {
    let outcome = step(profile, memory, look);
    assert!(outcome.verdict.since <= look.at, "a verdict that begins in the future: {:?}", outcome.verdict);
    for item in &outcome.evidence {
        assert!(item.quote.chars().count() <= 161, "a quote of {} bytes", item.quote.len());
    }
    if let Some(prompt) = outcome.verdict.state.prompt() {
        check_prompt(prompt);
    }
    let _ = crate::classify::explain::reasons(&outcome, look.at);
    outcome
}

/// A prompt has a name, is limited in size and safe to print, since people decide by what they read there.
fn check_prompt(prompt: &Prompt) {
    let named = prompt.id.split_once('-').is_some_and(|(what, number)| {
        what.bytes().all(|byte| byte.is_ascii_hexdigit()) && number.parse::<u64>().is_ok()
    });
    assert!(named, "{:?}", prompt.id);
    let parts = [
        Some(&prompt.title),
        Some(&prompt.body),
        prompt.tool.as_ref(),
        prompt.command.as_ref(),
        prompt.file.as_ref(),
    ];
    for text in parts.into_iter().flatten() {
        check_text(text);
        assert!(text.len() <= 128 << 10, "{} bytes of a prompt", text.len());
    }
    for option in &prompt.options {
        check_text(&option.key);
        check_text(&option.label);
    }
    let mut keys: Vec<&str> = prompt.options.iter().map(|option| option.key.as_str()).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "two options have one key: {keys:?}");
    same_when_read_again(prompt);
}

/// No text shown to callers has control characters other than tab and newline.
pub(super) fn check_text(text: &str) {
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
        "control characters in {text:?}"
    );
}

/// Checks that serializing and parsing returns the same value (round trip).
pub(super) fn same_when_read_again<T: Serialize + DeserializeOwned>(value: &T) {
    let Ok(before) = serde_json::to_value(value) else { return };
    // JSON doesn't preserve the last bit of a float.
    if has_fraction(&before) {
        return;
    }
    let after = serde_json::from_slice::<T>(before.to_string().as_bytes());
    let after = after
        .map_err(|error| error.to_string())
        .and_then(|again| serde_json::to_value(again).map_err(|error| error.to_string()));
    assert!(after.as_ref() == Ok(&before), "{before} is read as {after:?}");
}

/// Whether a value contains a number that isn't an integer.
pub(super) fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        _ => false,
    }
}

/// A private directory, created once per thread and removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> Self {
        let name = format!("lisa-fuzz-{}", uuid::Uuid::new_v4().simple());
        let path = std::env::temp_dir().join(name);
        let made = crate::disk::private_dir(&path);
        assert!(made.is_ok(), "{made:?}");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs part of a target in this thread's scratch directory.
pub(super) fn in_scratch(run: impl FnOnce(&Path)) {
    thread_local! {
        static SCRATCH: Scratch = Scratch::make();
    }
    SCRATCH.with(|scratch| run(&scratch.0));
}
