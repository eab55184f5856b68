//! Replays recordings: their frames take the same step as the looks of a live session.

use super::format::processes;
use super::{Row, Timeline};
use crate::classify::memory::Memory;
use crate::classify::profile::{Keys, Profile, Profiles};
use crate::classify::resolve::{Outcome, step};
use crate::{
    api::words::Mode,
    classify::channel::{Channel, PerChannel},
    classify::observation::{At, Line, NewLines, Observation, Reading},
};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::sync::Arc;

/// The run id of a replayed session.
const RUN: &str = "replay";

/// Converts the rows of a recording to looks, in order. Lines that no launch attaches are left out: a live session
/// doesn't have them.
pub struct Player<'p> {
    profile: &'p Profile,
    keys: &'p Keys,
    mode: Mode,
    screen: Reading<Arc<str>>,
    ansi: Reading<Arc<str>>,
    native: Reading<Value>,
    feeds: PerChannel<NewLines>,
    typed: String,
    swallowed: bool,
    prompt_sent_at: Option<At>,
}

impl<'p> Player<'p> {
    /// A player for a session that was started with these arguments.
    pub fn new(profile: &'p Profile, args: &[String]) -> Self {
        let exec = args.iter().any(|arg| profile.process.exec_args.contains(arg));
        Self {
            profile,
            keys: &profile.keys,
            mode: if exec { Mode::Exec } else { Mode::Interactive },
            screen: Reading::Absent,
            ansi: Reading::Absent,
            native: Reading::Absent,
            feeds: PerChannel::default(),
            typed: String::new(),
            swallowed: false,
            prompt_sent_at: None,
        }
    }

    /// Processes a row; a frame returns a look.
    pub fn play(&mut self, row: &Row) -> Option<Observation> {
        let at = At(row.t);
        for channel in Channel::ALL {
            let attached = row.payload(channel).filter(|line| self.profile.attaches(channel, line));
            let line = attached.map(|payload| Line { at, payload: Ok(payload.clone()) });
            self.feeds[channel].lines.extend(line);
        }
        self.type_keys(row, at);
        let pane = row.pane.as_ref()?.pane();
        self.swallowed = pane.in_mode;
        if let Some(screen) = &row.screen {
            self.screen = Reading::Seen(screen.as_str().into());
            self.ansi = Reading::Absent;
        }
        if let Some(ansi) = &row.ansi {
            self.ansi = Reading::Seen(ansi.as_str().into());
        }
        match &row.native {
            Some(Value::Null) => self.native = Reading::Absent,
            Some(file) => self.native = Reading::Seen(file.clone()),
            None => {}
        }
        Some(Observation {
            pane: Reading::Seen(pane),
            screen: self.screen.clone(),
            screen_ansi: self.ansi.clone(),
            procs: row.procs.as_ref().map_or(Reading::Absent, |procs| Reading::Seen(processes(procs))),
            native: self.native.clone(),
            feeds: std::mem::take(&mut self.feeds),
            prompt_sent_at: self.prompt_sent_at,
            ..Observation::none(at, At(0), RUN, self.mode)
        })
    }

    /// Tracks what was typed: text followed by Enter is a prompt, unless it is a command of the agent itself.
    fn type_keys(&mut self, row: &Row, at: At) {
        let keys = row.keys.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
        for key in keys {
            match key {
                _ if row.literal == Some(true) => self.typed.push_str(key),
                "Enter" => {
                    let typed = std::mem::take(&mut self.typed);
                    if !self.swallowed && !typed.trim().is_empty() && self.keys.starts_turn(&typed) {
                        self.prompt_sent_at = Some(at);
                    }
                }
                _ => self.typed.clear(),
            }
        }
    }
}

/// Replays a recording; returns one outcome per frame.
pub fn replay<'t>(profile: &'t Profile, timeline: &'t Timeline) -> impl Iterator<Item = (i64, Outcome)> + 't {
    let mut player = Player::new(profile, &timeline.header.args);
    let mut memory = Some(Memory::default());
    timeline.rows.iter().filter_map(move |row| {
        let look = player.play(row)?;
        let outcome = step(profile, memory.take().unwrap_or_default(), &look);
        memory = Some(outcome.memory.clone());
        Some((row.t, outcome))
    })
}

/// One verdict as a line of JSON; with `full`, all details.
pub fn line(t: i64, outcome: &Outcome, full: bool) -> Value {
    let verdict = &outcome.verdict;
    let mut line = json!({
        "t": t,
        "status": verdict.status(),
        "state": verdict.state.name(),
        "reason": verdict.reason,
        "confidence": verdict.confidence,
        "source": verdict.source,
    });
    if let (true, Some(fields)) = (full, line.as_object_mut()) {
        let told = serde_json::to_value(verdict).unwrap_or_default();
        for (name, value) in told.as_object().into_iter().flatten() {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
        fields.insert("signals".to_owned(), serde_json::to_value(&outcome.signals).unwrap_or_default());
        fields.insert("usage".to_owned(), serde_json::to_value(&outcome.usage).unwrap_or_default());
        fields.insert("wait_estimate_s".to_owned(), json!(outcome.wait_estimate_s));
        fields.insert("evidence".to_owned(), serde_json::to_value(&outcome.evidence).unwrap_or_default());
    }
    line
}

/// Replays the recording on `input` and writes one line per frame to `output`; malformed lines are reported on
/// `errors` and skipped.
///
/// # Errors
/// A message for the user: no header, an agent without a profile, or an output that can't be written.
pub fn run(
    profiles: &Profiles,
    input: impl Read,
    mut output: impl Write,
    mut errors: impl Write,
    full: bool,
) -> Result<(), String> {
    let timeline = Timeline::read(input).map_err(|error| error.to_string())?;
    for skipped in &timeline.skipped {
        // If even that fails, there is nobody to tell.
        let _ = writeln!(errors, "skipped line {}: {}", skipped.line, skipped.why);
    }
    let agent = &timeline.header.agent;
    let profile =
        profiles.get_or_generic(agent).ok_or_else(|| format!("there is no profile for {agent:?}"))?;
    for (t, outcome) in replay(&profile, &timeline) {
        let line = line(t, &outcome, full);
        match writeln!(output, "{line}") {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(format!("could not write the verdicts: {error}")),
        }
    }
    output.flush().map_err(|error| format!("could not write the verdicts: {error}"))
}
