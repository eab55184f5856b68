//! The Anthropic Messages API: how its requests are read and its streams are written.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::http::{Block, Wire, sse};
use super::request::{Api, Asker, Request, words};
use super::scenario::{Stop, Usage};

/// What Claude Code puts before text that no user wrote.
const REMINDER: &str = "<system-reminder>";

pub(crate) fn read(headers: &HeaderMap, body: Value) -> Request {
    let (mut said, mut results) = (Vec::new(), Vec::new());
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("user") => read_user(&message["content"], &mut said, &mut results),
            Some("assistant") => results.clear(),
            _ => {}
        }
    }
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let asker = match body["tools"].as_array().map_or(0, Vec::len) {
        0 => Asker::Auxiliary,
        _ if header("x-claude-code-agent-id").is_empty() => Asker::Main,
        _ => Asker::Subagent,
    };
    let mut conversation = header("x-claude-code-session-id").to_owned();
    if asker == Asker::Subagent {
        conversation = format!("{conversation}/{}", header("x-claude-code-agent-id"));
    }
    let prompt = said.last().cloned().unwrap_or_default();
    Request { api: Api::Anthropic, asker, conversation, said, prompt, results, body }
}

fn read_user(content: &Value, said: &mut Vec<String>, results: &mut Vec<String>) {
    let whole = [content.clone()];
    for block in content.as_array().map_or(whole.as_slice(), Vec::as_slice) {
        if block["type"] == "tool_result" {
            results.push(words(&block["content"]));
            continue;
        }
        let text = words(block);
        if !text.is_empty() && !text.starts_with(REMINDER) {
            said.push(text);
        }
    }
}

/// The body of an HTTP error.
pub(crate) fn error_body(status: u16, message: Option<&str>) -> Value {
    let (kind, usual) = match status {
        400 => ("invalid_request_error", "The request is not valid."),
        401 => ("authentication_error", "invalid x-api-key"),
        403 => ("permission_error", "The key may not do this."),
        404 => ("not_found_error", "There is no such model."),
        413 => ("request_too_large", "The request is too large."),
        429 => ("rate_limit_error", "This request would exceed the rate limit."),
        529 => ("overloaded_error", "Overloaded"),
        _ => ("api_error", "Internal server error"),
    };
    json!({"type": "error", "error": {"type": kind, "message": message.unwrap_or(usual)}})
}

/// Writes one message as a stream of events.
pub(crate) struct Stream {
    id: String,
    model: Value,
    index: usize,
    called: bool,
}

impl Stream {
    pub(crate) fn new(number: usize, request: &Request) -> Self {
        Self { id: format!("msg_{number:06}"), model: request.body["model"].clone(), index: 0, called: false }
    }

    fn event(data: Value) -> String {
        sse(&data)
    }
}

impl Wire for Stream {
    fn open(&mut self, usage: &Usage) -> String {
        Self::event(json!({"type": "message_start", "message": {
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {
                "input_tokens": usage.input, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": usage.cached, "output_tokens": 1}}}))
    }

    fn begin(&mut self, block: Block) -> String {
        let empty = match block {
            Block::Text => json!({"type": "text", "text": ""}),
            Block::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        };
        Self::event(json!({"type": "content_block_start", "index": self.index, "content_block": empty}))
    }

    fn piece(&mut self, block: Block, text: &str) -> String {
        let delta = match block {
            Block::Text => json!({"type": "text_delta", "text": text}),
            Block::Thinking => json!({"type": "thinking_delta", "thinking": text}),
        };
        Self::event(json!({"type": "content_block_delta", "index": self.index, "delta": delta}))
    }

    fn finish(&mut self, block: Block, _whole: &str) -> String {
        let mut events = String::new();
        if block == Block::Thinking {
            let delta = json!({"type": "signature_delta", "signature": "c2NyaXB0ZWQ="});
            events +=
                &Self::event(json!({"type": "content_block_delta", "index": self.index, "delta": delta}));
        }
        events += &Self::event(json!({"type": "content_block_stop", "index": self.index}));
        self.index += 1;
        events
    }

    fn call(&mut self, name: &str, input: &Value) -> String {
        self.called = true;
        let (index, id) = (self.index, format!("toolu_{}_{}", self.id, self.index));
        self.index += 1;
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
        .map(Self::event)
        .concat()
    }

    fn call_custom(&mut self, name: &str, input: &str) -> String {
        self.call(name, &json!({"input": input}))
    }

    fn fail(&mut self, code: &str, message: &str) -> String {
        Self::event(json!({"type": "error", "error": {"type": code, "message": message}}))
    }

    fn close(&mut self, stop: Stop, usage: &Usage) -> String {
        let reason = match stop {
            Stop::Natural if self.called => "tool_use",
            Stop::Natural => "end_turn",
            Stop::MaxTokens => "max_tokens",
            Stop::Refusal => "refusal",
        };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        [
            json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}}),
            json!({"type": "message_stop"}),
        ]
        .map(Self::event)
        .concat()
    }
}
