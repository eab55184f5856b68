//! Recordings, which people send to each other.

use crate::classify::{
    profile::Profiles,
    recording::{
        Mask, Timeline, Writer,
        replay::{self, Player},
    },
};
use std::sync::LazyLock;

static PROFILES: Profiles = Profiles::shipped();
/// Compiling its patterns takes longer than most inputs.
static MASK: LazyLock<Mask> = LazyLock::new(|| Mask::new(Some("/nowhere")));

/// A recording: replayed, then recorded again from the looks of its replay.
pub(super) fn replayed(bytes: &[u8]) {
    let profiles = &PROFILES;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = replay::run(profiles, bytes, &mut out, &mut err, true);
    for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let read = serde_json::from_slice::<serde_json::Value>(line);
        assert!(read.is_ok(), "a verdict that is no JSON: {read:?}");
    }
    if done.is_ok()
        && let Ok(timeline) = Timeline::read(bytes)
    {
        recorded_again(profiles, &timeline);
    }
    let text = String::from_utf8_lossy(bytes);
    let masked = MASK.text(&text);
    assert!(masked.matches('\n').count() == text.matches('\n').count(), "masking has moved rows");
}

fn recorded_again(profiles: &Profiles, timeline: &Timeline) {
    let Some(profile) = profiles.get_or_generic(&timeline.header.agent) else { return };
    let mut player = Player::new(&profile, &timeline.header.args);
    let Ok(mut writer) = Writer::start(Vec::new(), &timeline.header, MASK.clone()) else { return };
    for look in timeline.rows.iter().filter_map(|row| player.play(row)) {
        let written = writer.look(&look);
        assert!(written.is_ok(), "{written:?}");
    }
    let again = writer.finish().map(|bytes| Timeline::read(bytes.as_slice()));
    let skipped = again.map(|again| again.map(|again| again.skipped));
    assert!(matches!(&skipped, Ok(Ok(skipped)) if skipped.is_empty()), "{skipped:?}");
}
