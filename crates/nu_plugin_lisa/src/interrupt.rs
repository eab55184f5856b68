//! Cancels blocking calls: on Ctrl-C, when the job is killed, or when the shell has exited.

use crate::encoder;
use lisa_engine::watch::Cancel;
use nu_plugin::{EngineInterface, EvaluatedCall};
use nu_protocol::{DeclId, HandlerGuard, LabeledError, PipelineData, SignalAction, Span, Value};
use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, Thread},
    time::Duration,
};

/// How often a stream checks whether it's still wanted.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often a blocking call checks that its shell and job are alive. Nushell doesn't notify plugins of a killed shell
/// or job, so without the check the call would outlive them.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(2);

/// In nanoseconds; a little longer than the interval in which Nushell's `sleep` checks its signals.
const SLEEP_NANOS: i64 = 110_000_000;

/// Cancels a blocking call. Lives as long as the call; in a stream, it belongs to the iterator.
pub(crate) struct Interrupt {
    cancel: Cancel,
    interface: EngineInterface,
    liveness: Option<LivenessCheck>,
    _handler: HandlerGuard,
}

impl Interrupt {
    /// Registers a handler for Ctrl-C. The shell also sends `Reset` at every prompt, which is ignored.
    pub(crate) fn listen(interface: &EngineInterface) -> Result<Self, LabeledError> {
        let cancel = Cancel::default();
        let cancelled = cancel.clone();
        let handler = interface.register_signal_handler(Box::new(move |action| {
            if matches!(action, SignalAction::Interrupt) {
                cancelled.cancel();
            }
        }))?;
        // The interrupt may have come before the handler was registered.
        if interface.signals().interrupted() {
            cancel.cancel();
        }
        Ok(Self { cancel, interface: interface.clone(), liveness: None, _handler: handler })
    }

    /// For a call that may block for long: also checks regularly that the shell and the job are alive.
    pub(crate) fn with_liveness_check(mut self) -> Self {
        self.liveness = LivenessCheck::start(self.interface.clone(), self.cancel.clone());
        self
    }

    /// The cancellation flag for the engine.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Whether the call was cancelled, or its stream was dropped by the reader.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() || encoder::stream_dropped()
    }
}

/// A thread that does the liveness check, so that a slow shell never delays a row.
struct LivenessCheck {
    /// Whether the call is over. The lock is held during a check: the shell drops a plugin that sends an engine call for
    /// a call that has ended.
    over: Arc<Mutex<bool>>,
    thread: Thread,
}

impl LivenessCheck {
    fn start(interface: EngineInterface, cancel: Cancel) -> Option<Self> {
        let over = Arc::new(Mutex::new(false));
        let ended = Arc::clone(&over);
        let thread = thread::Builder::new().name("lisa-liveness".to_owned()).spawn(move || {
            let mut sleep = None;
            loop {
                thread::park_timeout(LIVENESS_INTERVAL);
                let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                if *ended || cancel.is_cancelled() {
                    return;
                }
                let sleep = *sleep.get_or_insert_with(|| interface.find_decl("sleep").ok().flatten());
                if !is_alive(&interface, sleep) {
                    return cancel.cancel();
                }
            }
        });
        // If there is no thread, Ctrl-C still works.
        thread.ok().map(|handle| Self { over, thread: handle.thread().clone() })
    }
}

impl Drop for LivenessCheck {
    fn drop(&mut self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.thread.unpark();
    }
}

/// Checks whether the call's shell and job are alive, by running Nushell's `sleep` on behalf of the call. `sleep` fails
/// as interrupted if the job was killed; other engine calls don't check a job's signals. Any engine call fails if the
/// shell has exited.
fn is_alive(interface: &EngineInterface, sleep: Option<DeclId>) -> bool {
    let slept = sleep.map(|sleep| {
        let call = EvaluatedCall::new(Span::unknown())
            .with_positional(Value::duration(SLEEP_NANOS, Span::unknown()));
        interface.call_decl(sleep, call, PipelineData::empty(), false, false)
    });
    match slept {
        Some(Ok(_)) => true,
        Some(Err(error)) if error.to_string().contains("interrupted") => false,
        // `sleep` was overridden or removed.
        _ => interface.get_env_var("PWD").is_ok(),
    }
}
