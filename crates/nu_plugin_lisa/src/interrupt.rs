//! How a call that blocks comes to its end: the user presses Ctrl-C, or the shell is gone.

use lisa_engine::engine::Cancel;
use nu_plugin::EngineInterface;
use nu_protocol::{HandlerGuard, LabeledError, SignalAction};
use std::time::{Duration, Instant};

/// How long a stream waits for the next thing before it looks whether it is still wanted.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// How often a blocked call asks whether its shell is still there. Nothing tells it: the plugin's process outlives
/// a shell that was killed for as long as one of its calls blocks.
const PULSE: Duration = Duration::from_secs(1);

/// Ends a blocking call. Lives as long as the call, inside the iterator where the call is a stream.
pub(crate) struct Interrupt {
    cancel: Cancel,
    interface: EngineInterface,
    asked: Instant,
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
        Ok(Self { cancel, interface: interface.clone(), asked: Instant::now(), _handler: handler })
    }

    /// The flag to hand to the engine.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Whether the user has pressed Ctrl-C.
    pub(crate) fn pressed(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether the call is to end. Asks the shell now and then whether it is still there.
    pub(crate) fn raised(&mut self) -> bool {
        if !self.cancel.is_cancelled() && self.asked.elapsed() >= PULSE {
            self.asked = Instant::now();
            if self.interface.get_env_var("PWD").is_err() {
                self.cancel.cancel();
            }
        }
        self.cancel.is_cancelled()
    }
}
