//! Reading a recording: plain or gzip'd, with lines that do not read named and left out.

use super::format::{FORMAT, Header, Row};
use flate2::read::MultiGzDecoder;
use std::fmt;
use std::io::Read;

/// A recording that was read.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The first line.
    pub header: Header,
    /// The rest, in order of time.
    pub rows: Vec<Row>,
    /// Lines that did not read.
    pub skipped: Vec<Skipped>,
}

/// A line that did not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its number, from 1.
    pub line: usize,
    /// Why.
    pub why: String,
}

/// Why a recording can not be read at all.
#[derive(Debug)]
pub enum ReadError {
    /// The bytes could not be read or unpacked.
    Io(std::io::Error),
    /// The first line is no header.
    Header(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the recording can not be read: {error}"),
            Self::Header(why) => write!(f, "the recording has no header of {FORMAT}: {why}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl Timeline {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the bytes can not be read, or the first line is no header. Any other line that does not read is left out
    /// and named in `skipped`.
    pub fn read(mut from: impl Read) -> Result<Self, ReadError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map_err(ReadError::Io)?;
        let mut cut_short = None;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut plain = Vec::new();
            // A recording that was cut short still has its beginning.
            if let Err(error) = MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain) {
                if plain.is_empty() {
                    return Err(ReadError::Io(error));
                }
                cut_short = Some(error.to_string());
            }
            bytes = plain;
        }
        let mut lines = bytes.split(|byte| *byte == b'\n').enumerate();
        let first = lines.next().map(|(_, line)| line).unwrap_or_default();
        let header: Header =
            serde_json::from_slice(first).map_err(|error| ReadError::Header(error.to_string()))?;
        if header.format != FORMAT {
            return Err(ReadError::Header(format!("its format is {:?}", header.format)));
        }
        let mut timeline = Self { header, rows: Vec::new(), skipped: Vec::new() };
        for (at, line) in lines.filter(|(_, line)| !line.trim_ascii().is_empty()) {
            match serde_json::from_slice::<Row>(line) {
                Ok(row) => timeline.rows.push(row),
                Err(error) => timeline.skipped.push(Skipped { line: at + 1, why: error.to_string() }),
            }
        }
        if let Some(why) = cut_short {
            let line = timeline.rows.len() + timeline.skipped.len() + 2;
            timeline.skipped.push(Skipped { line, why });
        }
        Ok(timeline)
    }
}
