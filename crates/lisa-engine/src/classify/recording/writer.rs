//! Records live sessions, with secrets masked.

use super::format::{Header, PaneFields, Row, proc_rows};
use super::mask::Mask;
use crate::classify::channel::Channel;
use crate::classify::observation::{Line, Observation};
use serde_json::Value;
use std::io::{self, Write};

/// Writes looks as a recording: screen and state file only if they have changed.
pub struct Writer<W: Write> {
    to: W,
    mask: Mask,
    screen: Option<String>,
    native: Option<Value>,
}

impl<W: Write> Writer<W> {
    /// Starts a recording.
    ///
    /// # Errors
    /// If the header can't be written.
    pub fn start(mut to: W, header: &Header, mask: Mask) -> io::Result<Self> {
        let args = mask.args(&header.args);
        let header = Header { args, ..header.clone() };
        writeln!(to, "{}", serde_json::to_string(&header)?)?;
        Ok(Self { to, mask, screen: None, native: None })
    }

    /// Writes one look.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn look(&mut self, obs: &Observation) -> io::Result<()> {
        for channel in Channel::ALL {
            for line in &obs.feeds[channel].lines {
                self.line(obs, line, channel)?;
            }
        }
        let Some(pane) = obs.pane.seen() else { return Ok(()) };
        let mut fields = PaneFields::of(pane, obs.spawned_at);
        fields.pane_title = self.mask.text(&fields.pane_title);
        let screen = obs
            .screen
            .seen()
            .map(|text| self.mask.text(text))
            .filter(|text| self.screen.as_ref() != Some(text));
        let ansi = obs.screen_ansi.seen().filter(|_| screen.is_some()).map(|text| self.mask.text(text));
        let native = obs.native.seen().map_or(Value::Null, |file| self.mask.value(file));
        let native = Some(native).filter(|file| self.native.as_ref().unwrap_or(&Value::Null) != file);
        if screen.is_some() {
            self.screen.clone_from(&screen);
        }
        if native.is_some() {
            self.native.clone_from(&native);
        }
        let procs = obs.procs.seen().map(|procs| proc_rows(procs));
        let t = obs.at.0.saturating_sub(obs.spawned_at.0);
        self.row(&Row { t, pane: Some(fields), procs, screen, ansi, native, ..Row::default() })
    }

    /// Writes pressed keys.
    ///
    /// # Errors
    /// If they can't be written.
    pub fn keys(&mut self, t: i64, keys: &[String], literal: bool) -> io::Result<()> {
        let keys = keys.iter().map(|key| Value::String(self.mask.text(key))).collect();
        self.row(&Row { keys: Some(Value::Array(keys)), literal: Some(literal), t, ..Row::default() })
    }

    fn line(&mut self, obs: &Observation, line: &Line, channel: Channel) -> io::Result<()> {
        let Ok(payload) = &line.payload else { return Ok(()) };
        let payload = Some(self.mask.value(payload));
        let mut row = Row { t: line.at.0.saturating_sub(obs.spawned_at.0), ..Row::default() };
        *row.payload_mut(channel) = payload;
        self.row(&row)
    }

    fn row(&mut self, row: &Row) -> io::Result<()> {
        writeln!(self.to, "{}", serde_json::to_string(row)?)
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// If the last lines can't be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}
