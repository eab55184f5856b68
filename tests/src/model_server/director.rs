//! Chooses the reply to a request: pure, apart from remembering how far each turn has come.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::log::Source;
use super::request::{Asker, Request, smallest_match};
use super::scenario::{Match, Opening, Reply, Scenario, Turn};

/// Text of a reply to a prompt that nothing is scripted for.
pub(crate) const UNSCRIPTED: &str = "Nothing is scripted for this.";
/// Text of titles and the like.
const AUXILIARY: &str = "Scripted task";

/// One prompt: the conversation, how many prompts it has seen, and the words. A request that is retried or that
/// brings a tool result belongs to the same prompt; the same words said again do not.
type PromptKey = (String, usize, String);

pub(crate) struct Director {
    rules: Vec<(Match, Turn)>,
    queue: VecDeque<Turn>,
    taken: HashMap<PromptKey, Turn>,
    progress: HashMap<(Option<usize>, PromptKey), usize>,
}

impl Director {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self {
            rules: scenario.rules,
            queue: scenario.queue.into(),
            taken: HashMap::new(),
            progress: HashMap::new(),
        }
    }

    pub(crate) fn add_turn(&mut self, turn: Turn) {
        self.queue.push_back(turn);
    }

    pub(crate) fn add_rule(&mut self, when: Match, turn: Turn) {
        self.rules.push((when, turn));
    }

    pub(crate) fn choose(&mut self, request: &Request) -> (Reply, Source) {
        let (mut reply, source) = self.look_up(request);
        while let Opening::Given(make) = &reply.opening {
            reply = make(request);
        }
        (reply, source)
    }

    fn look_up(&mut self, request: &Request) -> (Reply, Source) {
        let key = (request.conversation.clone(), request.said.len(), request.prompt.clone());
        let mut ruled = false;
        for (index, (when, turn)) in self.rules.iter().enumerate() {
            if !when.accepts(request) {
                continue;
            }
            ruled = true;
            let position = self.progress.entry((Some(index), key.clone())).or_default();
            if let Some(reply) = turn.0.get(*position) {
                let source = Source::Rule(index, *position);
                *position += 1;
                return (reply.clone(), source);
            }
        }
        if request.asker == Asker::Auxiliary {
            return (auxiliary(&request.body), Source::Auxiliary);
        }
        if !ruled {
            if request.asker == Asker::Main
                && !self.taken.contains_key(&key)
                && let Some(turn) = self.queue.pop_front()
            {
                self.taken.insert(key.clone(), turn);
            }
            let position = self.progress.entry((None, key.clone())).or_default();
            if let Some(reply) = self.taken.get(&key).and_then(|turn| turn.0.get(*position)) {
                let source = Source::Queue(*position);
                *position += 1;
                return (reply.clone(), source);
            }
        }
        (Reply::text(UNSCRIPTED), Source::Unscripted)
    }
}

/// A title, or whatever else the program asks for on the side, in the shape it asks for.
fn auxiliary(body: &Value) -> Reply {
    let formats = [&body["output_config"]["format"], &body["output_format"], &body["text"]["format"]];
    match formats.iter().map(|format| &format["schema"]).find(|schema| schema.is_object()) {
        Some(schema) => Reply::text(&smallest_match(schema, AUXILIARY).to_string()),
        None => Reply::text(AUXILIARY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_server::request::Api;
    use crate::model_server::scenario::Step;

    fn asked(conversation: &str, said: &[&str], results: &[&str]) -> Request {
        Request {
            api: Api::Anthropic,
            asker: Asker::Main,
            conversation: conversation.to_owned(),
            said: said.iter().map(|text| (*text).to_owned()).collect(),
            prompt: said.last().copied().unwrap_or_default().to_owned(),
            results: results.iter().map(|text| (*text).to_owned()).collect(),
            body: Value::Null,
        }
    }

    fn told(director: &mut Director, request: &Request) -> String {
        match director.choose(request).0.steps.first() {
            Some(Step::Text { text, .. }) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn queued_turns_go_to_prompts_in_the_order_they_come() {
        let mut director =
            Director::new(Scenario::new().turn([Reply::text("1a"), Reply::text("1b")]).turn("2"));
        assert_eq!(told(&mut director, &asked("s", &["x"], &[])), "1a");
        assert_eq!(told(&mut director, &asked("s", &["x"], &["result"])), "1b");
        assert_eq!(told(&mut director, &asked("s", &["x", "x"], &[])), "2");
        assert_eq!(told(&mut director, &asked("s", &["x", "x", "y"], &[])), UNSCRIPTED);
    }

    #[test]
    fn a_used_up_turn_does_not_eat_the_next_one() {
        let mut director = Director::new(Scenario::new().turn("1").turn("2"));
        assert_eq!(told(&mut director, &asked("s", &["x"], &[])), "1");
        assert_eq!(told(&mut director, &asked("s", &["x"], &["result"])), UNSCRIPTED);
        assert_eq!(told(&mut director, &asked("s", &["x", "y"], &[])), "2");
    }

    #[test]
    fn conversations_do_not_share_progress_through_a_rule() {
        let rule = [Reply::text("first"), Reply::text("second")];
        let mut director = Director::new(Scenario::new().on(Match::prompt("go"), rule));
        assert_eq!(told(&mut director, &asked("one", &["go"], &[])), "first");
        assert_eq!(told(&mut director, &asked("two", &["go"], &[])), "first");
        assert_eq!(told(&mut director, &asked("one", &["go"], &["result"])), "second");
        assert_eq!(told(&mut director, &asked("one", &["go", "go"], &[])), "first");
    }

    #[test]
    fn a_rule_may_choose_by_tool_result_or_by_an_older_prompt() {
        let scenario = Scenario::new()
            .on(Match::result("No such file"), "it is missing")
            .on(Match::prompt("next").in_conversation("CHILD-B"), "b")
            .on(Match::prompt("next"), "other");
        let mut director = Director::new(scenario);
        assert_eq!(told(&mut director, &asked("s", &["x"], &["cat: No such file"])), "it is missing");
        assert_eq!(told(&mut director, &asked("b", &["CHILD-B go", "next"], &[])), "b");
        assert_eq!(told(&mut director, &asked("a", &["CHILD-A go", "next"], &[])), "other");
    }

    #[test]
    fn a_reply_may_use_what_a_tool_said() {
        let reply =
            Reply::given(|asked| Reply::text(asked.result_json()["cursor"].as_str().unwrap_or("none")));
        let mut director = Director::new(Scenario::new().on(Match::any(), reply));
        assert_eq!(told(&mut director, &asked("s", &["x"], &["Output:\n{\"cursor\":\"c7\"}\nrest"])), "c7");
    }

    #[test]
    fn auxiliary_requests_get_the_shape_they_ask_for() {
        let body = serde_json::json!({"text": {"format": {"type": "json_schema", "schema":
            {"type": "object", "properties": {"title": {"type": "string"}}}}}});
        let request = Request { asker: Asker::Auxiliary, body, ..asked("s", &["x"], &[]) };
        let mut director = Director::new(Scenario::new().turn("1"));
        assert_eq!(told(&mut director, &request), r#"{"title":"Scripted task"}"#);
        director.add_rule(Match::prompt("x").from(Asker::Auxiliary), "summary".into());
        assert_eq!(told(&mut director, &request), "summary");
        assert_eq!(told(&mut director, &asked("s", &["x"], &[])), "1");
    }
}
