//! Driving sessions: send, answer, interrupt.

use super::Engine;
use crate::{
    api::{ActResponse, AnswerRequest, AnswerResponse, SendRequest, SendResponse, SessionRequest},
    drive,
    error::Result,
};

impl Engine {
    /// Sends text or keys to a session. A refusal is a normal result, not an error.
    pub fn send(&self, request: &SendRequest) -> Result<SendResponse> {
        drive::send(&self.context, &self.cancel, request)
    }

    /// Answers the prompt that a session is blocked on.
    pub fn answer(&self, request: &AnswerRequest) -> Result<AnswerResponse> {
        drive::answer(&self.context, &self.cancel, request)
    }

    /// Interrupts the running turn. Does nothing if the agent isn't working.
    pub fn interrupt(&self, request: &SessionRequest) -> Result<ActResponse> {
        drive::interrupt(&self.context, &self.cancel, request)
    }
}
