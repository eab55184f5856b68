//! Signals that couldn't be read.

use super::Look;
use crate::classify::evidence::{Claim, Evidence, Source};

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    let obs = look.obs;
    let readings = [
        ("tmux_read_error", Source::Pane, obs.pane.failure()),
        ("agent_scan_error", Source::Process, obs.procs.failure()),
        ("capture_error", Source::Screen, obs.screen.failure()),
        ("native_error", Source::Native, obs.native.failure()),
        ("done_file_read_error", Source::DoneFile, obs.done.failure()),
        ("hook_error", Source::Hook, look.memory.hooks.error.as_deref()),
        ("transcript_error", Source::Transcript, look.memory.transcript.error.as_deref()),
    ];
    let streams = obs.stream_errors.iter().map(|(name, why)| {
        let source = match *name {
            "hook_error" => Source::Hook,
            "transcript_error" => Source::Transcript,
            _ => Source::Timing,
        };
        (*name, source, Some(why.as_str()))
    });
    let failed =
        readings.into_iter().chain(streams).filter_map(|(name, source, why)| Some((name, source, why?)));
    failed
        .map(|(name, source, why)| look.standing(source, Claim::Unreadable { signal: name.to_owned() }, why))
        .collect()
}
