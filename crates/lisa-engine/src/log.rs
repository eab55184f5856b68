//! Logging to standard error only: standard output belongs to protocols.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// Starts logging with the filter `wanted`, for example `info` or `lisa_engine=debug`. If it is malformed, logs a
/// warning and uses `otherwise`.
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
    // Fails only if a subscriber is already set, as in tests.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Some(error) = fault {
        tracing::warn!(%error, "LISA_LOG is malformed; using {otherwise}");
    }
}

/// Does some work in this thread, and returns what the engine logged meanwhile, in every detail.
pub(crate) fn traced<T>(work: impl FnOnce() -> T) -> (T, String) {
    let kept = Kept::default();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("lisa_engine=trace"))
        .with_ansi(false)
        .with_writer(kept.clone())
        .finish();
    // With a single subscriber, tracing-core 0.1.36 asks the thread that first reaches a log statement whether anybody
    // listens. If that is another thread, the statement is switched off for good (tracing issue 3611).
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let done = tracing::subscriber::with_default(subscriber, work);
    let lines = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
    (done, String::from_utf8_lossy(&lines).into_owned())
}

/// A writer that keeps what is written.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer to standard error that drops a line if standard error is closed.
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
