//! What the server says on standard error: standard output belongs to the protocol.

use std::io::{self, Write};

/// Warnings, but not the protocol library's about each mistake of a client: those are answered.
const DEFAULT: &str = "warn,rmcp=error";

/// Logs what `LISA_LOG` asks for (default: warnings).
pub fn start(filter: Option<&str>) {
    lisa_engine::log::start(filter.unwrap_or(DEFAULT), DEFAULT);
}

/// A line for the person or client that started this program; lost if nobody reads.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "lisa-mcp: {line}");
}
