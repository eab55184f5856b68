//! Reads recordings: plain or gzipped; malformed lines are reported and skipped.

use super::format::{FORMAT, Header, Row};
use flate2::read::MultiGzDecoder;
use std::fmt;
use std::io::Read;

/// Maximum uncompressed size of a recording; a gzipped one may be a thousand times larger than its file.
const MOST: u64 = 256 << 20;

/// A recording.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The header.
    pub header: Header,
    /// The rest, sorted by time.
    pub rows: Vec<Row>,
    /// Malformed lines.
    pub skipped: Vec<Skipped>,
}

/// A malformed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its number, from 1.
    pub line: usize,
    /// Why.
    pub why: String,
}

/// Why a recording can't be read at all.
#[derive(Debug)]
pub enum ReadError {
    /// The bytes couldn't be read or decompressed.
    Io(std::io::Error),
    /// The first line isn't a valid header.
    Header(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "could not read the recording: {error}"),
            Self::Header(why) => write!(f, "the recording has no valid {FORMAT} header: {why}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl Timeline {
    /// Reads a recording.
    ///
    /// # Errors
    /// If the bytes can't be read, or the first line isn't a header. Any other malformed line is skipped and
    /// listed in `skipped`.
    pub fn read(from: impl Read) -> Result<Self, ReadError> {
        Self::read_up_to(from, MOST)
    }

    fn read_up_to(from: impl Read, most: u64) -> Result<Self, ReadError> {
        let mut bytes = Vec::new();
        from.take(most + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
        let mut cut_short = None;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut plain = Vec::new();
            // A truncated recording still has its beginning.
            if let Err(error) = MultiGzDecoder::new(bytes.as_slice()).take(most + 1).read_to_end(&mut plain) {
                if plain.is_empty() {
                    return Err(ReadError::Io(error));
                }
                cut_short = Some(error.to_string());
            }
            bytes = plain;
        }
        if bytes.len() as u64 > most {
            bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            cut_short = Some(format!("it has more than {} MB", most >> 20));
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    #[test]
    fn a_recording_that_unpacks_to_more_than_memory_has_is_read_up_to_a_limit() {
        let header = r#"{"format":"lisa-recording/1","agent":"generic"}"#;
        let row = "{\"t\":1}\n";
        let text = format!("{header}\n{}", row.repeat(1 << 20));
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        for bytes in [packed.as_slice(), text.as_bytes()] {
            let timeline = Timeline::read_up_to(bytes, 1 << 20).unwrap();
            assert!(timeline.rows.len() < (1 << 20) / row.len());
            assert!(
                timeline.skipped.last().unwrap().why.contains("more than 1 MB"),
                "{:?}",
                timeline.skipped
            );
        }
    }
}
