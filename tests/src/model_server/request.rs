//! What a model request asks, the same for both APIs.

use serde_json::{Map, Value};

/// Which API a request came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    OpenAi,
}

/// Who in the agent asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asker {
    /// The agent the user talks to.
    Main,
    /// A subagent of it.
    Subagent,
    /// The program itself, for a title or the like; such requests are answered apart.
    Auxiliary,
}

/// A model request, reduced to what scripts choose by.
#[derive(Clone, Debug)]
pub struct Request {
    /// The API it came over.
    pub api: Api,
    /// Who asks.
    pub asker: Asker,
    /// The session or thread; a subagent has one of its own.
    pub conversation: String,
    /// Everything the user said so far, oldest first, without what the agent's program adds by itself.
    pub said: Vec<String>,
    /// The last thing the user said.
    pub prompt: String,
    /// Tool results that the model has not seen before.
    pub results: Vec<String>,
    /// The request as it was sent.
    pub body: Value,
}

impl Request {
    /// The JSON object in the newest tool result that has one, wherever in its text it begins; null if none has.
    pub fn result_json(&self) -> Value {
        let objects = self.results.iter().rev().filter_map(|result| {
            let text = &result[result.find('{')?..];
            serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()
        });
        objects.into_iter().next().unwrap_or_default()
    }

    /// The file that Claude Code, in plan mode, tells the model to write its plan to.
    pub fn plan_file(&self) -> Option<String> {
        let text = words(&self.body["messages"]);
        let place = text.find("/plans/")?;
        let start =
            text[..place].rfind(|letter: char| letter.is_whitespace() || "\"'`(".contains(letter))? + 1;
        let end = place + text[place..].find(".md")? + ".md".len();
        Some(text[start..end].to_owned())
    }

    /// The names of the tools the request offers, wherever the API puts them.
    pub fn tools(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect_tools(&self.body["tools"], "", &mut names);
        for item in self.body["input"].as_array().into_iter().flatten() {
            collect_tools(&item["tools"], "", &mut names);
        }
        names
    }
}

fn collect_tools(tools: &Value, prefix: &str, names: &mut Vec<String>) {
    for tool in tools.as_array().into_iter().flatten() {
        let name = format!("{prefix}{}", tool["name"].as_str().unwrap_or_default());
        match tool["tools"].is_array() {
            true => collect_tools(&tool["tools"], &format!("{name}."), names),
            false => names.push(name),
        }
    }
}

/// The words in a content value: a string, a block, or a list of blocks.
pub(crate) fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(words).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => ["text", "content", "output", "encrypted_content"]
            .iter()
            .find_map(|key| block.get(*key))
            .map(words)
            .unwrap_or_default(),
        _ => String::new(),
    }
}

/// The smallest JSON value that a schema accepts, with `text` for its strings.
pub(crate) fn smallest_match(schema: &Value, text: &str) -> Value {
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object();
            let filled =
                fields.into_iter().flatten().map(|(name, field)| (name.clone(), smallest_match(field, text)));
            Value::Object(filled.collect::<Map<_, _>>())
        }
        Some("array") => Value::Array(Vec::new()),
        Some("boolean") => Value::Bool(false),
        Some("number" | "integer") => Value::from(0),
        _ => schema["enum"].get(0).cloned().unwrap_or_else(|| Value::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_plan_file_is_found_in_what_the_agent_was_told() {
        let told =
            "No plan file exists yet. Create it at\n/home/dev/claude/plans/fix-it-quiet-fox.md using Write.";
        let request = Request {
            api: Api::Anthropic,
            asker: Asker::Main,
            conversation: String::new(),
            said: Vec::new(),
            prompt: String::new(),
            results: Vec::new(),
            body: json!({"messages": [{"role": "user", "content": [{"type": "text", "text": told}]}]}),
        };
        assert_eq!(request.plan_file().as_deref(), Some("/home/dev/claude/plans/fix-it-quiet-fox.md"));
    }
}
