//! How a call that blocks comes to its end: the user presses Ctrl-C, its job is killed, or the shell is gone.

use crate::wire;
use lisa_engine::engine::Cancel;
use nu_plugin::{EngineInterface, EvaluatedCall};
use nu_protocol::{DeclId, HandlerGuard, LabeledError, PipelineData, SignalAction, Span, Value};
use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, Thread},
    time::Duration,
};

/// How long a stream waits for the next thing before it looks whether it is still wanted.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// How often a call that blocks asks whether it is still wanted. Nothing tells it: it outlives a shell or a job that was
/// killed for as long as it blocks.
const PULSE: Duration = Duration::from_secs(2);

/// A little longer than the interval in which Nushell's `sleep` looks at its signals.
const NAP: i64 = 110_000_000;

/// Ends a blocking call. Lives as long as the call, inside the iterator where the call is a stream.
pub(crate) struct Interrupt {
    cancel: Cancel,
    interface: EngineInterface,
    pulse: Option<Pulse>,
    _handler: HandlerGuard,
}

impl Interrupt {
    /// Begins to listen for Ctrl-C. The shell also sends `Reset` at every prompt, which means nothing here.
    pub(crate) fn listen(interface: &EngineInterface) -> Result<Self, LabeledError> {
        let cancel = Cancel::default();
        let raised = cancel.clone();
        let handler = interface.register_signal_handler(Box::new(move |action| {
            if matches!(action, SignalAction::Interrupt) {
                raised.cancel();
            }
        }))?;
        // The call may have been interrupted before anybody listened.
        if interface.signals().interrupted() {
            cancel.cancel();
        }
        Ok(Self { cancel, interface: interface.clone(), pulse: None, _handler: handler })
    }

    /// For a call that may block for long: also asks the shell now and then whether it still wants it.
    pub(crate) fn for_long(mut self) -> Self {
        self.pulse = Pulse::start(self.interface.clone(), self.cancel.clone());
        self
    }

    /// The flag to hand to the engine.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Whether the call is to end: interrupted, or, where it is a stream, read by nobody any more.
    pub(crate) fn raised(&self) -> bool {
        self.cancel.is_cancelled() || wire::abandoned()
    }
}

/// A thread that asks, so that an answer that takes its time delays no row.
struct Pulse {
    /// Whether the call is over. Held while the shell is asked: a question after the end of its call is one about a call
    /// that the shell does not know any more, and it gives up a plugin that asks that.
    over: Arc<Mutex<bool>>,
    thread: Thread,
}

impl Pulse {
    fn start(interface: EngineInterface, cancel: Cancel) -> Option<Self> {
        let over = Arc::new(Mutex::new(false));
        let ended = Arc::clone(&over);
        let thread = thread::Builder::new().name("lisa-pulse".to_owned()).spawn(move || {
            let mut sleep = None;
            loop {
                thread::park_timeout(PULSE);
                let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                if *ended || cancel.is_cancelled() {
                    return;
                }
                let sleep = *sleep.get_or_insert_with(|| interface.find_decl("sleep").ok().flatten());
                if !wanted(&interface, sleep) {
                    return cancel.cancel();
                }
            }
        });
        // Without a thread the call still ends with Ctrl-C.
        thread.ok().map(|handle| Self { over, thread: handle.thread().clone() })
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.thread.unpark();
    }
}

/// Has the shell sleep for a moment in the name of the call. That fails where the job was killed that the call belongs
/// to: its signals are its own, and no other question is answered by them. Any question fails where the shell is gone.
fn wanted(interface: &EngineInterface, sleep: Option<DeclId>) -> bool {
    let slept = sleep.map(|sleep| {
        let nap = EvaluatedCall::new(Span::unknown()).with_positional(Value::duration(NAP, Span::unknown()));
        interface.call_decl(sleep, nap, PipelineData::empty(), false, false)
    });
    match slept {
        Some(Ok(_)) => true,
        Some(Err(error)) if error.to_string().contains("interrupted") => false,
        // Somebody's own `sleep`, or none.
        _ => interface.get_env_var("PWD").is_ok(),
    }
}
