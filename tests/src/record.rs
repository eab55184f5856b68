//! Recordings with truth, made while scenarios run.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use lisa_engine::classify::recording::Truth;
use lisa_engine::{engine::Engine, watch::Cancel};
use serde_json::Value;

use crate::agents::AgentKind;

/// The variable that names the directory in which recordings are kept. Without it nothing is recorded.
pub const DIRECTORY: &str = "LISA_TESTS_RECORD";

/// Whether recordings are made. Then each scenario has a session of its own, so that each is a file of its own.
pub fn asked() -> bool {
    std::env::var_os(DIRECTORY).is_some()
}

/// A recording that is being made.
pub(crate) struct Recorder {
    path: PathBuf,
    cancel: Cancel,
    thread: Mutex<Option<JoinHandle<Vec<u8>>>>,
}

impl Recorder {
    /// Begins to record a session, where the environment asks for it.
    pub(crate) fn start_if_asked(
        engine: &Engine,
        name: &str,
        kind: AgentKind,
        version: &str,
    ) -> Option<Self> {
        let directory = std::env::var_os(DIRECTORY).map(PathBuf::from)?;
        let directory = directory.join(format!("{}-{}", kind.command(), version));
        let cancel = Cancel::default();
        let thread = std::thread::spawn({
            let (engine, name, cancel) = (engine.clone(), name.to_owned(), cancel.clone());
            move || {
                let mut bytes = Vec::new();
                // A session that was killed meanwhile leaves what was recorded so far.
                let _ = engine.record(&name, &mut bytes, None, &cancel);
                bytes
            }
        });
        Some(Self { path: directory.join(format!("{name}.jsonl")), cancel, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the recording and writes it down with the truth in its header.
    pub(crate) fn finish(&self, truth: &[Truth]) {
        self.cancel.cancel();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let bytes = thread.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
        let Ok(mut header) = serde_json::from_slice::<Value>(&bytes[..end]) else { return };
        header["truth"] = serde_json::to_value(truth).unwrap_or_default();
        let text = [header.to_string().as_bytes(), &bytes[end..]].concat();
        let written =
            self.path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&self.path, text));
        assert!(written.is_ok(), "{}: {written:?}", self.path.display());
    }
}
