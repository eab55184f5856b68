//! Recordings: what was seen of a session, as a timeline that replays exactly.
//!
//! The format is `lisa-recording/1`: JSON lines, plain or gzip'd. The first is the header; then frames (what a look
//! saw) and, between them, what the agent said and what was typed, each with its time in milliseconds since the spawn.

pub mod accuracy;
mod format;
mod mask;
mod reader;
pub mod replay;
mod writer;

pub use format::{FORMAT, Header, PaneFields, ProcRow, Row, Truth};
pub use mask::Mask;
pub use reader::{ReadError, Skipped, Timeline};
pub use writer::Writer;
