//! The OpenAI Responses API: how its requests are read and its streams are written.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::http::{Block, Wire, sse};
use super::request::{Api, Asker, Request, words};
use super::scenario::{Stop, Usage};

pub(crate) fn read(headers: &HeaderMap, body: Value) -> Request {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let about: Value = serde_json::from_str(header("x-codex-turn-metadata")).unwrap_or_default();
    let asker = match (about["thread_source"].as_str(), about["request_kind"].as_str()) {
        (Some("thread_title"), _) => Asker::Auxiliary,
        (_, Some(kind)) if kind != "turn" => Asker::Auxiliary,
        (Some("subagent"), _) => Asker::Subagent,
        _ => Asker::Main,
    };
    let (mut said, mut results) = (Vec::new(), Vec::new());
    for item in body["input"].as_array().into_iter().flatten() {
        match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
            ("message", Some("user")) => said.extend(user_words(&item["content"])),
            ("message", Some("assistant")) | ("function_call" | "custom_tool_call", _) => results.clear(),
            ("function_call_output" | "custom_tool_call_output", _) => results.push(words(&item["output"])),
            // Agents talk to each other: to a subagent that is its prompt, to the main agent a result.
            ("agent_message", _) if asker == Asker::Subagent => said.push(payload(&item["content"])),
            ("agent_message", _) => results.push(payload(&item["content"])),
            _ => {}
        }
    }
    let conversation = header("thread-id").to_owned();
    let prompt = said.last().cloned().unwrap_or_default();
    Request { api: Api::OpenAi, asker, conversation, said, prompt, results, body }
}

/// What a user wrote in a message; Codex adds messages of its own, which begin with a tag or a heading.
fn user_words(content: &Value) -> Option<String> {
    let text = words(content);
    let own = text.is_empty() || text.starts_with('<') || text.starts_with("# AGENTS.md");
    (!own).then_some(text)
}

/// What one agent wrote to another, without the envelope.
fn payload(content: &Value) -> String {
    let text = words(content);
    let (_, payload) = text.split_once("Payload:\n").unwrap_or(("", &text));
    payload.trim().to_owned()
}

/// Codex takes calls outside `functions` only with the namespace apart: `collaboration.spawn_agent`, or a tool of an
/// MCP server in the form that Claude Code has it, `mcp__server__tool`.
fn namespace(name: &str) -> Option<(&str, &str)> {
    if let Some(rest) = name.strip_prefix("mcp__") {
        let server = rest.find("__")?;
        return Some((&name[.."mcp__".len() + server], &rest[server + "__".len()..]));
    }
    name.split_once('.')
}

/// The body of an HTTP error.
pub(crate) fn error_body(status: u16, message: Option<&str>) -> Value {
    let (kind, code, usual) = match status {
        400 => ("invalid_request_error", Value::Null, "The request is not valid."),
        401 => ("invalid_request_error", json!("invalid_api_key"), "Incorrect API key provided."),
        429 => ("requests", json!("rate_limit_exceeded"), "Rate limit reached."),
        503 | 529 => ("server_error", json!("server_is_overloaded"), "The server is overloaded."),
        _ => ("server_error", Value::Null, "The server had an error."),
    };
    json!({"error": {"message": message.unwrap_or(usual), "type": kind, "param": null, "code": code}})
}

/// Writes one response as a stream of events.
pub(crate) struct Stream {
    id: String,
    index: usize,
    sequence: usize,
}

impl Stream {
    pub(crate) fn new(number: usize) -> Self {
        Self { id: format!("resp_{number:06}"), index: 0, sequence: 0 }
    }

    fn event(&mut self, mut data: Value) -> String {
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        sse(&data)
    }

    fn item_id(&self) -> String {
        format!("item_{}_{}", self.id, self.index)
    }

    fn whole_item(&mut self, item: Value) -> String {
        let index = self.index;
        self.index += 1;
        self.event(json!({"type": "response.output_item.added", "output_index": index, "item": item}))
            + &self.event(json!({"type": "response.output_item.done", "output_index": index, "item": item}))
    }
}

impl Wire for Stream {
    fn open(&mut self, _usage: &Usage) -> String {
        let response = json!({"id": self.id, "object": "response", "status": "in_progress", "output": []});
        self.event(json!({"type": "response.created", "response": response}))
    }

    fn begin(&mut self, block: Block) -> String {
        let (id, index) = (self.item_id(), self.index);
        match block {
            Block::Text => {
                let item = json!({"type": "message", "id": id, "role": "assistant", "status": "in_progress",
                    "content": []});
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                self.event(json!({"type": "response.output_item.added", "output_index": index, "item": item}))
                    + &self.event(json!({"type": "response.content_part.added", "item_id": id,
                        "output_index": index, "content_index": 0, "part": part}))
            }
            Block::Thinking => {
                let item = json!({"type": "reasoning", "id": id, "summary": []});
                let part = json!({"type": "summary_text", "text": ""});
                self.event(json!({"type": "response.output_item.added", "output_index": index, "item": item}))
                    + &self.event(json!({"type": "response.reasoning_summary_part.added", "item_id": id,
                        "output_index": index, "summary_index": 0, "part": part}))
            }
        }
    }

    fn piece(&mut self, block: Block, text: &str) -> String {
        let (id, index) = (self.item_id(), self.index);
        self.event(match block {
            Block::Text => json!({"type": "response.output_text.delta", "item_id": id, "output_index": index,
                "content_index": 0, "delta": text}),
            Block::Thinking => json!({"type": "response.reasoning_summary_text.delta", "item_id": id,
                "output_index": index, "summary_index": 0, "delta": text}),
        })
    }

    fn finish(&mut self, block: Block, whole: &str) -> String {
        let (id, index) = (self.item_id(), self.index);
        self.index += 1;
        let item = match block {
            Block::Text => json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": whole, "annotations": []}]}),
            Block::Thinking => json!({"type": "reasoning", "id": id,
                "summary": [{"type": "summary_text", "text": whole}], "encrypted_content": "c2NyaXB0ZWQ="}),
        };
        self.event(json!({"type": "response.output_item.done", "output_index": index, "item": item}))
    }

    fn call(&mut self, name: &str, input: &Value) -> String {
        let id = self.item_id();
        let mut item = json!({"type": "function_call", "id": id, "call_id": format!("call_{id}"),
            "name": name, "arguments": input.to_string(), "status": "completed"});
        if let Some((space, name)) = namespace(name) {
            (item["namespace"], item["name"]) = (space.into(), name.into());
        }
        self.whole_item(item)
    }

    fn call_custom(&mut self, name: &str, input: &str) -> String {
        let id = self.item_id();
        self.whole_item(json!({"type": "custom_tool_call", "id": id, "call_id": format!("call_{id}"),
            "name": name, "input": input, "status": "completed"}))
    }

    fn fail(&mut self, code: &str, message: &str) -> String {
        let response = json!({"id": self.id, "object": "response", "status": "failed",
            "error": {"code": code, "message": message}});
        self.event(json!({"type": "response.failed", "response": response}))
    }

    fn close(&mut self, stop: Stop, usage: &Usage) -> String {
        let (kind, status, why) = match stop {
            // This API has no word for a refusal in words.
            Stop::Natural | Stop::Refusal => ("response.completed", "completed", Value::Null),
            Stop::MaxTokens => ("response.incomplete", "incomplete", json!({"reason": "max_output_tokens"})),
        };
        let input = usage.input + usage.cached;
        let response = json!({"id": self.id, "object": "response", "status": status, "output": [],
            "incomplete_details": why, "usage": {
                "input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cached},
                "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + usage.output}});
        self.event(json!({"type": kind, "response": response}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parted_where_codex_wants_it() {
        assert_eq!(namespace("exec_command"), None);
        assert_eq!(namespace("collaboration.spawn_agent"), Some(("collaboration", "spawn_agent")));
        assert_eq!(namespace("mcp__lisa__spawn_session"), Some(("mcp__lisa", "spawn_session")));
    }
}
