//! Records live sessions and replays recordings.

use super::Engine;
use crate::{
    api::ReplayRow,
    classify::{
        memory::Memory,
        recording::{FORMAT, Header, Mask, Timeline, Writer, replay::replay},
    },
    error::{Error, Kind, Result},
    observe::{self, Moment, PreviousLook, Screens, now},
    process::Trees,
    session::find,
    watch::Cancel,
};
use std::{
    io::{Read, Write},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// The interval between frames.
const FRAME: Duration = Duration::from_millis(250);

impl Engine {
    /// Records a session as `lisa-recording/1` lines, with secrets masked, until it ends, `limit` passes or `cancel`
    /// is raised. Returns the number of frames.
    ///
    /// It uses a memory of its own and writes nothing, so it sees everything and doesn't affect what others see.
    pub fn record(
        &self,
        session: &str,
        out: &mut dyn Write,
        limit: Option<Duration>,
        cancel: &Cancel,
    ) -> Result<u64> {
        let store = self.context.store_with(session)?;
        let name = find::meant(&store, session)?.1.name;
        let first = find::exact(self.context.tmux(), &store, &name)?;
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
        let (mut memory, trees) = (Memory::default(), Trees::default());
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut frames = 0;
        loop {
            let began = Instant::now();
            let snapshot = match find::exact(self.context.tmux(), &store, &name) {
                Ok(snapshot) => snapshot,
                Err(error) if error.kind() == Kind::SessionNotFound => break,
                Err(error) => return Err(error),
            };
            let Some(row) = &snapshot.pane else { break };
            let at = now();
            let screens = Screens::from_reply(self.context.tmux().screens(&[&row.pane_id], true)?.pop());
            let moment = Moment { at, screens, trees: &trees };
            let look = observe::gather(
                &snapshot,
                &profile,
                PreviousLook { memory: &memory, turn_began: None, prompt_sent_at: None },
                moment,
            );
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
                format!("pass a recording in the format {FORMAT}"),
            )
        })?;
        let agent = &timeline.header.agent;
        let profile =
            self.context.profiles.get_or_generic(agent).ok_or_else(|| Error::not_found(agent, &[]))?;
        let rows = replay(&profile, &timeline).map(|(t, outcome)| ReplayRow {
            t,
            status: outcome.verdict.status(),
            state: outcome.verdict.state.name(),
            reason: outcome.verdict.reason,
            confidence: outcome.verdict.confidence,
            source: outcome.verdict.source.map_or("none", |source| source.as_str()).to_owned(),
        });
        Ok(rows.collect())
    }
}
