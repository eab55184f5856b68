//! Recordings: the timeline of a session, which replays exactly.
//!
//! The format is `lisa-recording/1`: JSON lines, plain or gzipped. The first line is the header. Then follow frames
//! (what a look saw) and, between them, the agent's events and what was typed. Each has its time in milliseconds since
//! the spawn.

mod format;
mod mask;
mod reader;
pub mod replay;
mod writer;

pub use format::{FORMAT, Header, PaneFields, ProcRow, Row, Truth};
pub use mask::Mask;
pub use reader::{ReadError, Skipped, Timeline};
pub use writer::Writer;
