//! Logging to standard error. Standard output belongs to the protocol.

use std::io::{self, Write};

/// The default filter. Silences rmcp's warnings about client errors: clients get those as replies.
const DEFAULT: &str = "warn,rmcp=error";

/// Starts logging with the filter from `LISA_LOG` (default: warnings).
pub fn start(filter: Option<&str>) {
    lisa_engine::log::start(filter.unwrap_or(DEFAULT), DEFAULT);
}

/// Prints a line to standard error. Ignores errors, as standard error may be closed.
pub fn notice(line: &str) {
    let _ = writeln!(io::stderr().lock(), "lisa-mcp: {line}");
}
