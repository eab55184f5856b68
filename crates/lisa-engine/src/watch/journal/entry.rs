//! One event of the journal as it is stored, and its id.

use crate::api::Event;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The id of an event: its run, and its number in that run. Numbers are assigned when the session's record is written,
/// and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The run.
    pub run: String,
    /// The number, starting at 1.
    pub number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.run, self.number)
    }
}

impl FromStr for EventId {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parts = text.rsplit_once(':').and_then(|(run, number)| Some((run, number.parse().ok()?)));
        let (run, number) = parts.ok_or_else(|| format!("`{text}` is not an event id"))?;
        Ok(Self { run: run.to_owned(), number })
    }
}

impl Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An event as it is stored, with the id that prevents duplicates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The id.
    pub id: EventId,
    /// The parent of the event's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The event. Its cursor is assigned when it is written.
    #[serde(flatten)]
    pub event: Event,
}
