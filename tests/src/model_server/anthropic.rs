//! The Anthropic Messages API: how its requests are read and its streams are written.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::http::{Block, Wire, sse};
use super::request::{Api, Asker, Request, words};
use super::scenario::{Stop, Usage};

/// How texts begin that Claude Code adds in the user's name.
const OWN_WORDS: [&str; 6] = [
    "<system-reminder>",
    "<command-",
    "<local-command-",
    "[Request interrupted by user",
    "Output token limit hit.",
    "This session is being continued from a previous conversation",
];
/// Stands for the signature that real thinking carries.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";
/// How the request for a summary begins, when a conversation is compacted. It offers tools like any other.
const COMPACTION: &str = "CRITICAL: Respond with TEXT ONLY.";

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
    let prompt = said.last().cloned().unwrap_or_default();
    let asker = if body["tools"].as_array().is_none_or(Vec::is_empty) || prompt.starts_with(COMPACTION) {
        Asker::Auxiliary
    } else if header("x-claude-code-agent-id").is_empty() {
        Asker::Main
    } else {
        Asker::Subagent
    };
    let mut conversation = header("x-claude-code-session-id").to_owned();
    if asker == Asker::Subagent {
        conversation = format!("{conversation}/{}", header("x-claude-code-agent-id"));
    }
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
        // What went on in the background and ended: a result that comes late, in words of the program's own.
        if text.starts_with(OWN_WORDS[0]) && text.contains("<task-notification>") {
            results.push(text);
            continue;
        }
        if !text.is_empty() && !OWN_WORDS.iter().any(|own| text.starts_with(own)) {
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
}

impl Wire for Stream {
    fn open(&mut self, usage: &Usage) -> String {
        sse(&json!({"type": "message_start", "message": {
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
        sse(&json!({"type": "content_block_start", "index": self.index, "content_block": empty}))
    }

    fn piece(&mut self, block: Block, text: &str) -> String {
        let delta = match block {
            Block::Text => json!({"type": "text_delta", "text": text}),
            Block::Thinking => json!({"type": "thinking_delta", "thinking": text}),
        };
        sse(&json!({"type": "content_block_delta", "index": self.index, "delta": delta}))
    }

    fn finish(&mut self, block: Block, _whole: &str) -> String {
        let mut events = String::new();
        if block == Block::Thinking {
            let delta = json!({"type": "signature_delta", "signature": SIGNATURE});
            events += &sse(&json!({"type": "content_block_delta", "index": self.index, "delta": delta}));
        }
        events += &sse(&json!({"type": "content_block_stop", "index": self.index}));
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
        .iter()
        .map(sse)
        .collect()
    }

    fn call_custom(&mut self, name: &str, input: &str) -> String {
        self.call(name, &json!({"input": input}))
    }

    fn fail(&mut self, code: &str, message: &str) -> String {
        sse(&json!({"type": "error", "error": {"type": code, "message": message}}))
    }

    fn close(&mut self, stop: Stop, usage: &Usage) -> String {
        let delta = json!({"stop_reason": stop_reason(stop, self.called), "stop_sequence": null});
        [
            json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}}),
            json!({"type": "message_stop"}),
        ]
        .iter()
        .map(sse)
        .collect()
    }
}

/// Writes one message whole. Claude Code asks for that when a stream broke off before anything came of it.
pub(crate) struct Message {
    id: String,
    model: Value,
    content: Vec<Value>,
}

impl Message {
    pub(crate) fn new(number: usize, request: &Request) -> Self {
        Self { id: format!("msg_{number:06}"), model: request.body["model"].clone(), content: Vec::new() }
    }
}

impl Wire for Message {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn open(&mut self, _usage: &Usage) -> String {
        String::new()
    }

    fn begin(&mut self, _block: Block) -> String {
        String::new()
    }

    fn piece(&mut self, _block: Block, _text: &str) -> String {
        String::new()
    }

    fn finish(&mut self, block: Block, whole: &str) -> String {
        self.content.push(match block {
            Block::Text => json!({"type": "text", "text": whole}),
            Block::Thinking => json!({"type": "thinking", "thinking": whole, "signature": SIGNATURE}),
        });
        String::new()
    }

    fn call(&mut self, name: &str, input: &Value) -> String {
        let id = format!("toolu_{}_{}", self.id, self.content.len());
        self.content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        String::new()
    }

    fn call_custom(&mut self, name: &str, input: &str) -> String {
        self.call(name, &json!({"input": input}))
    }

    fn fail(&mut self, code: &str, message: &str) -> String {
        json!({"type": "error", "error": {"type": code, "message": message}}).to_string()
    }

    fn close(&mut self, stop: Stop, usage: &Usage) -> String {
        let called = self.content.iter().any(|block| block["type"] == "tool_use");
        json!({"id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": self.content,
            "stop_reason": stop_reason(stop, called), "stop_sequence": null, "usage": {
                "input_tokens": usage.input, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": usage.cached, "output_tokens": usage.output}})
        .to_string()
    }
}

fn stop_reason(stop: Stop, called: bool) -> &'static str {
    match stop {
        Stop::Natural if called => "tool_use",
        Stop::Natural => "end_turn",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
    }
}
