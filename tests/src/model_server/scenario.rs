//! The script: which prompt is answered with what.
//!
//! A [`Scenario`] is a list of rules and a queue. A prompt that a rule matches gets that rule's [`Turn`];
//! any other prompt of a main agent takes the next turn from the queue. A turn is a list of [`Reply`]s, one per
//! model request, so "tool call, then closing words" is a turn of two replies. Every prompt walks through its
//! turn from the start: two agents at work on one rule do not steal each other's replies.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::request::{Api, Asker, Request};

/// Everything a server will say.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    pub(crate) rules: Vec<(Match, Turn)>,
    pub(crate) queue: Vec<Turn>,
}

impl Scenario {
    /// A scenario in which nothing is scripted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers the next prompt that no rule matches, after the turns already queued.
    pub fn turn(mut self, turn: impl Into<Turn>) -> Self {
        self.queue.push(turn.into());
        self
    }

    /// Answers every prompt that `when` matches; of several matching rules the first with replies left wins.
    pub fn on(mut self, when: Match, turn: impl Into<Turn>) -> Self {
        self.rules.push((when, turn.into()));
        self
    }
}

/// Which requests a rule is for; what is not said matches anything.
#[derive(Clone, Debug, Default)]
pub struct Match {
    prompt: Option<String>,
    result: Option<String>,
    conversation: Option<String>,
    asker: Option<Asker>,
    api: Option<Api>,
}

impl Match {
    /// Any request that is not auxiliary.
    pub fn any() -> Self {
        Self::default()
    }

    /// The last thing the user said contains `text`; tool results since then do not matter.
    pub fn prompt(text: &str) -> Self {
        Self { prompt: Some(text.to_owned()), ..Self::default() }
    }

    /// The request brings a tool result that contains `text`.
    pub fn result(text: &str) -> Self {
        Self { result: Some(text.to_owned()), ..Self::default() }
    }

    /// Only in conversations where the user said `marker` at some time.
    pub fn in_conversation(mut self, marker: &str) -> Self {
        self.conversation = Some(marker.to_owned());
        self
    }

    /// Only requests of this kind of asker. Auxiliary requests reach no rule but one that asks for them.
    pub fn from(mut self, asker: Asker) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Only requests over this API.
    pub fn over(mut self, api: Api) -> Self {
        self.api = Some(api);
        self
    }

    pub(crate) fn accepts(&self, request: &Request) -> bool {
        if request.asker == Asker::Auxiliary && self.asker != Some(Asker::Auxiliary) {
            return false;
        }
        fn holds<T>(wanted: &Option<T>, test: impl Fn(&T) -> bool) -> bool {
            wanted.as_ref().is_none_or(test)
        }
        holds(&self.prompt, |text| request.prompt.contains(text.as_str()))
            && holds(&self.result, |text| request.results.iter().any(|result| result.contains(text.as_str())))
            && holds(&self.conversation, |text| request.said.iter().any(|said| said.contains(text.as_str())))
            && holds(&self.asker, |asker| request.asker == *asker)
            && holds(&self.api, |api| request.api == *api)
    }
}

/// What one prompt sets off: a reply for each model request of the turn.
#[derive(Clone, Debug, Default)]
pub struct Turn(pub Vec<Reply>);

impl From<Reply> for Turn {
    fn from(reply: Reply) -> Self {
        Self(vec![reply])
    }
}

impl From<&str> for Turn {
    fn from(text: &str) -> Self {
        Reply::text(text).into()
    }
}

impl<const N: usize> From<[Reply; N]> for Turn {
    fn from(replies: [Reply; N]) -> Self {
        Self(replies.into())
    }
}

impl From<Vec<Reply>> for Turn {
    fn from(replies: Vec<Reply>) -> Self {
        Self(replies)
    }
}

/// One answer of the model.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) opening: Opening,
    pub(crate) steps: Vec<Step>,
    pub(crate) stop: Stop,
    pub(crate) usage: Usage,
}

/// How a reply begins.
#[derive(Clone)]
pub(crate) enum Opening {
    /// Status 200 and a stream of the steps.
    Stream,
    /// An error status with the body that the API uses for it.
    Error { status: u16, message: Option<String>, retry_after: Option<u64> },
    /// Nothing, not even headers, until the client gives up.
    Hang,
    /// A reply that depends on the request.
    Given(Arc<dyn Fn(&Request) -> Reply + Send + Sync>),
}

impl fmt::Debug for Opening {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream => formatter.write_str("Stream"),
            Self::Error { status, .. } => write!(formatter, "Error({status})"),
            Self::Hang => formatter.write_str("Hang"),
            Self::Given(_) => formatter.write_str("Given"),
        }
    }
}

impl Default for Reply {
    fn default() -> Self {
        Self::new()
    }
}

impl Reply {
    /// A reply without content; add to it with the methods below.
    pub fn new() -> Self {
        Self { opening: Opening::Stream, steps: Vec::new(), stop: Stop::Natural, usage: Usage::default() }
    }

    /// A reply that is one text, sent at once.
    pub fn text(text: &str) -> Self {
        Self::new().say(text)
    }

    /// A reply that is one tool call.
    pub fn tool(name: &str, input: Value) -> Self {
        Self::new().call(name, input)
    }

    /// An HTTP error: 400, 401, 429, 500, 529 and whatever else.
    pub fn error(status: u16) -> Self {
        Self { opening: Opening::Error { status, message: None, retry_after: None }, ..Self::new() }
    }

    /// A request that is never answered.
    pub fn silence() -> Self {
        Self { opening: Opening::Hang, ..Self::new() }
    }

    /// A reply made from the request, such as one that needs a value from a tool result.
    pub fn given(make: impl Fn(&Request) -> Self + Send + Sync + 'static) -> Self {
        Self { opening: Opening::Given(Arc::new(make)), ..Self::new() }
    }

    /// The message in the error's body.
    pub fn message(mut self, text: &str) -> Self {
        if let Opening::Error { message, .. } = &mut self.opening {
            *message = Some(text.to_owned());
        }
        self
    }

    /// The `retry-after` header of the error.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Opening::Error { retry_after, .. } = &mut self.opening {
            *retry_after = Some(seconds);
        }
        self
    }

    /// Adds any step.
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds text, sent at once.
    pub fn say(self, text: &str) -> Self {
        self.say_paced(text, Pace::AT_ONCE)
    }

    /// Adds text that arrives slowly.
    pub fn say_paced(self, text: &str, pace: Pace) -> Self {
        self.step(Step::Text { text: text.to_owned(), pace })
    }

    /// Adds thinking, sent at once.
    pub fn think(self, text: &str) -> Self {
        self.think_paced(text, Pace::AT_ONCE)
    }

    /// Adds thinking that arrives slowly.
    pub fn think_paced(self, text: &str, pace: Pace) -> Self {
        self.step(Step::Thinking { text: text.to_owned(), pace })
    }

    /// Adds a tool call with a JSON input; several calls in one reply are one message. Over the OpenAI API a dot
    /// parts a namespace from the name: `collaboration.spawn_agent`.
    pub fn call(self, name: &str, input: Value) -> Self {
        self.step(Step::Call { name: name.to_owned(), input })
    }

    /// Adds a call whose input is plain text (`apply_patch`, `exec`), which only the OpenAI API has.
    pub fn call_custom(self, name: &str, input: &str) -> Self {
        self.step(Step::CustomCall { name: name.to_owned(), input: input.to_owned() })
    }

    /// Says nothing for a while.
    pub fn pause(self, time: Duration) -> Self {
        self.step(Step::Pause(time))
    }

    /// Says nothing until the test calls [`release`](super::ModelServer::release) with this name.
    pub fn hold(self, gate: &str) -> Self {
        self.step(Step::Hold(gate.to_owned()))
    }

    /// Says nothing any more, with the connection open.
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Breaks the connection off in the middle of the stream.
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Ends the stream with an error event (`overloaded_error`, `context_length_exceeded`, …).
    pub fn fail(self, code: &str, message: &str) -> Self {
        self.step(Step::Fail { code: code.to_owned(), message: message.to_owned() })
    }

    /// Why the model stops, where that is not the natural end.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// The token figures the reply reports.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

/// One thing the model does within a reply.
///
/// Text stays one block over pauses and holds, so that a stream can stall in the middle of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Answer text.
    Text {
        /// The whole text.
        text: String,
        /// How fast it arrives.
        pace: Pace,
    },
    /// Reasoning.
    Thinking {
        /// The whole text.
        text: String,
        /// How fast it arrives.
        pace: Pace,
    },
    /// A tool call with a JSON input.
    Call {
        /// The tool, as the client exposes it to the model.
        name: String,
        /// Its input.
        input: Value,
    },
    /// A tool call with a text input.
    CustomCall {
        /// The tool.
        name: String,
        /// Its input.
        input: String,
    },
    /// Silence for a time.
    Pause(Duration),
    /// Silence until the test releases the gate.
    Hold(String),
    /// Silence for good.
    Hang,
    /// The connection breaks.
    Cut,
    /// The stream ends with an error event.
    Fail {
        /// The API's word for the error.
        code: String,
        /// What it says.
        message: String,
    },
}

/// How fast text arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Characters per piece; 0 sends everything in one.
    pub chars: usize,
    /// The time between two pieces.
    pub every: Duration,
}

impl Pace {
    /// All in one piece.
    pub const AT_ONCE: Self = Self { chars: 0, every: Duration::ZERO };

    /// Pieces of `chars` characters, one each `ms` milliseconds.
    pub const fn new(chars: usize, ms: u64) -> Self {
        Self { chars, every: Duration::from_millis(ms) }
    }
}

/// Why a reply ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// Tool use when there are calls, the end of the turn otherwise.
    Natural,
    /// The output limit was reached.
    MaxTokens,
    /// The model declined.
    Refusal,
}

/// The token figures of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Tokens of the request that no cache held.
    pub input: u64,
    /// Tokens of the request that came from a cache.
    pub cached: u64,
    /// Tokens of the reply.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1200, cached: 0, output: 30 }
    }
}
