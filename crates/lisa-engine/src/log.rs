//! Logging to standard error, and to nothing else: standard output belongs to protocols.

use std::io::{self, Write};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// Logs what `wanted` asks for, a filter such as `info` or `lisa_engine=debug`. One that cannot be read is named, and
/// `otherwise` is taken instead.
pub fn start(wanted: &str, otherwise: &str) {
    let (filter, fault) = match EnvFilter::try_new(wanted) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(otherwise), Some(error)),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(ToStandardError)
        .finish();
    // Fails only where a subscriber is set already, as in tests.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Some(error) = fault {
        tracing::warn!(%error, "LISA_LOG cannot be read; logging {otherwise}");
    }
}

/// Standard error that may be closed: a log line that cannot be written is dropped.
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
