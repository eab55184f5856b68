//! Logging to standard error, and to nothing else: standard output belongs to the protocol.

use std::io::{self, Write};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// Warnings, but not the protocol library's about each mistake of a client: those are answered.
const UNLESS_SAID: &str = "warn,rmcp=error";

/// Logs what `LISA_LOG` asks for (warnings unless said). A filter that can not be read is named, and the rest goes on.
pub fn start(filter: Option<&str>) {
    let wanted = filter.unwrap_or(UNLESS_SAID);
    let (filter, fault) = match EnvFilter::try_new(wanted) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(UNLESS_SAID), Some(error)),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(ToStandardError)
        .finish();
    // Fails only where a subscriber is set already, as in tests.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Some(error) = fault {
        tracing::warn!(%error, "LISA_LOG can not be read; logging warnings");
    }
}

/// A line for the person or client that started this program; lost if nobody reads.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "lisa-mcp: {line}");
}

/// Standard error that may be closed: a log line that can not be written is dropped.
#[derive(Debug, Clone, Copy)]
struct ToStandardError;

impl<'a> MakeWriter<'a> for ToStandardError {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for ToStandardError {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().lock().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
