//! Recording a live session, and replaying what was recorded.

use super::{Cancel, Engine, now};
use crate::{
    api::ReplayRow,
    error::{Error, Kind, Result},
    memory::Memory,
    observe::{self, Before, Screens},
    recording::{FORMAT, Header, Mask, Timeline, Writer, replay::replay},
    session::find,
};
use std::{
    io::{Read, Write},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// The time between two frames.
const FRAME: Duration = Duration::from_millis(250);

impl Engine {
    /// Records a session as `lisa-recording/1` lines, secrets masked, until it ends, `limit` passes or `cancel` is
    /// raised. Returns how many frames there are.
    ///
    /// It reads with a memory of its own and writes nothing, so that it neither misses what others have read nor
    /// changes what they see.
    pub fn record(
        &self,
        session: &str,
        out: &mut dyn Write,
        limit: Option<Duration>,
        cancel: &Cancel,
    ) -> Result<u64> {
        let store = self.store_with(session)?;
        let name = find::meant(&store, session)?.1.name;
        let first = find::exact(self.tmux(), &store, &name)?;
        let profile = self.profile(&first.meta.agent)?;
        let header = Header {
            format: FORMAT.to_owned(),
            agent: first.meta.agent.clone(),
            version: profile.recorded_with.first().cloned().unwrap_or_default(),
            scenario: name.clone(),
            size: vec![first.meta.size.columns, first.meta.size.rows],
            args: first.meta.argv.iter().skip(1).cloned().collect(),
            truth: Vec::new(),
        };
        let io = |error: std::io::Error| Error::io("write", Path::new("the recording"), &error);
        let home = first.meta.places.get("HOME").and_then(|home| home.to_str());
        let mut writer = Writer::start(out, &header, Mask::new(home)).map_err(io)?;
        let mut memory = Memory::default();
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut frames = 0;
        loop {
            let began = Instant::now();
            let sighting = match find::exact(self.tmux(), &store, &name) {
                Ok(sighting) => sighting,
                Err(error) if error.kind() == Kind::SessionNotFound => break,
                Err(error) => return Err(error),
            };
            let Some(row) = &sighting.pane else { break };
            let at = now();
            let screens = Screens::from_reply(self.tmux().screens(&[&row.pane_id], true)?.pop());
            let look =
                observe::look(&sighting, &profile, Before { memory: &memory, turn_began: None }, screens, at);
            memory.offsets.extend(look.offsets);
            writer.look(&look.observation).map_err(io)?;
            frames += 1;
            let over =
                row.pane.dead || cancel.is_cancelled() || deadline.is_some_and(|end| Instant::now() >= end);
            if over {
                break;
            }
            thread::sleep(FRAME.saturating_sub(began.elapsed()));
        }
        writer.finish().map_err(io)?;
        Ok(frames)
    }

    /// The verdict on each frame of a recording, plain or compressed.
    pub fn replay(&self, input: &mut dyn Read) -> Result<Vec<ReplayRow>> {
        let timeline = Timeline::read(input).map_err(|error| {
            Error::new(
                Kind::CorruptFile,
                error.to_string(),
                format!("give a recording in the format {FORMAT}"),
            )
        })?;
        let agent = &timeline.header.agent;
        let profile =
            self.inner.profiles.get_or_generic(agent).ok_or_else(|| Error::not_found(agent, &[]))?;
        let rows = replay(&profile, &timeline).map(|(t, outcome)| ReplayRow {
            t,
            status: outcome.verdict.status(),
            state: outcome.verdict.state.name(),
            reason: outcome.verdict.reason.clone(),
            confidence: outcome.verdict.confidence,
            source: outcome.verdict.source.map_or("none", |source| source.as_str()).to_owned(),
        });
        Ok(rows.collect())
    }
}
