//! The fold of one event channel: the state that its lines so far add up to.

use crate::api::words::{Activity, Failure, PromptKind};
use crate::classify::evidence::shorten;
use crate::classify::observation::{At, Line};
use crate::classify::profile::{Asks, EventRule, Feed, Meaning, Profile, Take};
use crate::classify::profile::{number_at, text_at};
use crate::classify::text::with_visible_controls;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum characters to keep of each text of a prompt.
const ASK_LIMIT: usize = 16_000;
/// Maximum length of a conversation id.
const ID_LIMIT: usize = 256;

/// The phase of the turn, according to one channel.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing has been said yet.
    #[default]
    Unknown,
    /// The agent is up; no turn has started.
    Up,
    /// A turn is running.
    Running,
    /// The turn is over.
    Over,
    /// The turn failed for good.
    Failed,
    /// Somebody interrupted the turn.
    Interrupted,
    /// The agent has announced its exit.
    Left,
}

/// A prompt that an agent announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The kind of prompt.
    pub kind: PromptKind,
    /// Which dialog, if the kind is `dialog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<crate::api::words::DialogKind>,
    /// The tool, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The command, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The file, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The question, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The agent's own id of the request, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When it was announced.
    pub at: At,
}

/// Tokens and model, as reported by the agent.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Usage {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Input tokens of the last answer: the size of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The size of the model's context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// The state that the lines of one channel add up to.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fold {
    /// The phase of the turn.
    pub phase: Phase,
    /// When that phase began.
    pub phase_at: At,
    /// When the last turn began.
    pub turn_at: At,
    /// The name and time of the last line.
    pub last: Option<(String, At)>,
    /// When the last line came that is a sign of life.
    pub alive_at: Option<At>,
    /// What the agent is doing, as far as the channel tells.
    pub activity: Option<Activity>,
    /// Tool calls that haven't returned: id and name.
    pub tools: BTreeMap<String, String>,
    /// The open prompt.
    pub ask: Option<Ask>,
    /// How many prompts were announced.
    pub asks: u64,
    /// Working subagents, and when each was started.
    pub subagents: BTreeMap<String, At>,
    /// Background tasks that were still running when the last turn ended.
    pub background: u32,
    /// The agent's last message.
    pub message: Option<String>,
    /// Why the last turn failed.
    pub failure: Option<Failure>,
    /// The conversation's own id.
    pub session_id: Option<String>,
    /// Tool calls that open a pull request and haven't returned.
    pub opening_pull_request: BTreeSet<String>,
    /// Whether a pull request was opened in the last turn.
    pub pull_request: bool,
    /// Tokens and model.
    pub usage: Usage,
    /// Why the last line was malformed.
    pub error: Option<String>,
}

impl Fold {
    /// Adjusts all times after the clock was set back.
    pub(super) fn set_back(&mut self, by: u64) {
        let Self { phase_at, turn_at, last, alive_at, ask, subagents, .. } = self;
        let times = [phase_at, turn_at].into_iter().chain(last.as_mut().map(|(_, at)| at));
        let times = times.chain(alive_at.as_mut()).chain(ask.as_mut().map(|ask| &mut ask.at));
        let times = times.chain(subagents.values_mut());
        // 0 means never.
        times.filter(|time| **time != At::default()).for_each(|time| time.set_back(by));
    }

    /// Forgets the background work that was begun in the last turn: it ended with a turn that was interrupted or failed,
    /// and no hook says so.
    pub(in crate::classify) fn forget_background(&mut self) {
        self.subagents.retain(|_, started| *started < self.turn_at);
        self.background = 0;
    }

    /// Whether this channel's statement is about the turn that began at `began`, or a later one. The end of the
    /// previous turn may arrive after the next turn has begun, so only a turn that the channel has opened since
    /// counts. For a channel that never reports starts, its last statement counts.
    pub fn tells_of_turn_since(&self, began: At) -> bool {
        let told = if self.turn_at == At::default() { self.phase_at } else { self.turn_at };
        told >= began
    }

    /// Processes the lines that are new since the last look.
    ///
    /// `known_session` is the conversation id according to another channel.
    pub fn take(&mut self, profile: &Profile, feed: &Feed, lines: &[Line], known_session: Option<&str>) {
        for line in lines {
            match &line.payload {
                Ok(value) => self.take_line(profile, feed, value, line.at, known_session),
                Err(why) => self.error = Some(with_visible_controls(why)),
            }
        }
    }

    fn take_line(&mut self, profile: &Profile, feed: &Feed, value: &Value, at: At, known: Option<&str>) {
        if !value.is_object() {
            self.error = Some("a line is not a JSON object".to_owned());
            return;
        }
        if let Some(session) = text_at(value, feed.session.as_ref()) {
            let known = known.or(self.session_id.as_deref());
            let foreign = known.is_some_and(|known| known != session);
            if feed.known_session_only && (foreign || known.is_none()) {
                return;
            }
            if !foreign && self.session_id.is_none() && is_session_id(&session) {
                self.session_id = Some(session);
            }
        }
        self.error = None;
        let name = shown_at(value, feed.name.as_ref()).unwrap_or_default();
        self.last = Some((name, at));
        for rule in feed.on.iter().filter(|rule| rule.applies(value)) {
            self.apply(profile, rule, value, at);
        }
    }

    fn apply(&mut self, profile: &Profile, rule: &EventRule, value: &Value, at: At) {
        self.take_usage(&rule.take, value);
        if rule.says != Meaning::Data {
            self.alive_at = Some(at);
        }
        let take = &rule.take;
        let id = text_at(value, take.id.as_ref()).unwrap_or_default();
        match rule.says {
            Meaning::Data => {}
            Meaning::SessionStarted => {
                self.session_id = None;
                self.reset_turn();
                self.enter(Phase::Up, at);
            }
            Meaning::SessionEnded => {
                self.reset_turn();
                self.enter(Phase::Left, at);
            }
            Meaning::TurnStarted => {
                self.reset_turn();
                self.pull_request = false;
                self.background = 0;
                self.failure = None;
                self.activity = Some(Activity::Thinking);
                self.enter(Phase::Running, at);
                self.turn_at = at;
            }
            Meaning::Alive => {
                if self.tools.is_empty() && self.activity == Some(Activity::Tool) {
                    self.activity = Some(Activity::Thinking);
                }
            }
            Meaning::Streaming => self.activity = Some(Activity::Streaming),
            Meaning::Retrying => self.activity = Some(Activity::Retrying),
            Meaning::ToolStarted => {
                let tool = shown_at(value, take.tool.as_ref()).unwrap_or_default();
                let command = text_at(value, take.command.as_ref());
                if command.as_deref().is_some_and(opens_pull_request) {
                    self.opening_pull_request.insert(id.clone());
                }
                self.tools.insert(id, tool);
                self.activity = Some(Activity::Tool);
                self.enter(Phase::Running, at);
            }
            Meaning::ToolFinished => {
                self.pull_request |= self.opening_pull_request.remove(&id);
                self.tools.remove(&id);
                self.ask = None;
                if self.tools.is_empty() {
                    self.activity = Some(Activity::Thinking);
                }
            }
            Meaning::Asked => {
                self.ask = Some(ask(rule, value, at));
                self.asks += 1;
            }
            Meaning::Answered => self.ask = None,
            Meaning::SubagentStarted => {
                self.subagents.insert(id, at);
            }
            Meaning::SubagentStopped => {
                self.subagents.remove(&id);
            }
            Meaning::CompactStarted => {
                self.activity = Some(Activity::Compacting);
                self.enter(Phase::Running, at);
            }
            Meaning::CompactFinished => self.activity = Some(Activity::Thinking),
            Meaning::TurnEnded => {
                self.end_turn(take, value);
                self.enter(Phase::Over, at);
            }
            Meaning::TurnInterrupted => {
                self.end_turn(take, value);
                self.enter(Phase::Interrupted, at);
            }
            Meaning::TurnFailed => {
                self.end_turn(take, value);
                self.failure = Some(failure(profile, take, value));
                self.enter(Phase::Failed, at);
            }
        }
        if let Some(session) = text_at(value, take.session.as_ref()).filter(|id| is_session_id(id)) {
            self.session_id = Some(session);
        }
        if let Some(message) = shown_at(value, take.message.as_ref()) {
            self.message = Some(message);
        }
    }

    /// Ends the turn and closes everything open in it; doesn't override a failure that was just reported.
    fn end_turn(&mut self, take: &Take, value: &Value) {
        self.tools.clear();
        self.opening_pull_request.clear();
        self.ask = None;
        self.activity = None;
        if let Some(pointer) = &take.background {
            let tasks = crate::classify::profile::lookup(value, pointer);
            self.background = tasks.as_deref().map_or(0, count);
        }
    }

    fn enter(&mut self, phase: Phase, at: At) {
        let told_failure = self.phase == Phase::Failed && phase == Phase::Over;
        if told_failure {
            return;
        }
        if self.phase != phase && phase == Phase::Running {
            self.turn_at = at;
        }
        if self.phase != phase || phase == Phase::Running {
            self.phase_at = at;
        }
        self.phase = phase;
    }

    fn reset_turn(&mut self) {
        self.tools.clear();
        self.opening_pull_request.clear();
        self.ask = None;
        self.activity = None;
    }

    fn take_usage(&mut self, take: &Take, value: &Value) {
        if let Some(model) = shown_at(value, take.model.as_ref()) {
            self.usage.model = Some(model);
        }
        let read: Vec<u64> =
            take.input_tokens.iter().filter_map(|pointer| number_at(value, pointer)).collect();
        if !read.is_empty() {
            self.usage.input_tokens = Some(read.into_iter().fold(0, u64::saturating_add));
        }
        if let Some(written) = take.output_tokens.as_deref().and_then(|pointer| number_at(value, pointer)) {
            self.usage.output_tokens = Some(written);
        }
        if let Some(window) = take.context_window.as_deref().and_then(|pointer| number_at(value, pointer)) {
            self.usage.context_window = Some(window);
        }
    }
}

/// The text at a JSON pointer, safe to show to people.
fn shown_at(value: &Value, pointer: Option<&String>) -> Option<String> {
    text_at(value, pointer).map(|text| with_visible_controls(&text))
}

/// Whether text is a valid conversation id. It becomes part of a path, and an argument of a resume, so it must not
/// contain path separators, globs or a leading dash.
pub(crate) fn is_session_id(text: &str) -> bool {
    let inside = |c: char| c != '/' && c != '*' && !c.is_control();
    !text.is_empty() && text.len() <= ID_LIMIT && !text.starts_with(['.', '-']) && text.chars().all(inside)
}

/// A count: the length of a list, or a number itself.
fn count(value: &Value) -> u32 {
    let listed = value.as_array().map(|list| u64::try_from(list.len()).unwrap_or(u64::MAX));
    u32::try_from(listed.or_else(|| value.as_u64()).unwrap_or(0)).unwrap_or(u32::MAX)
}

fn ask(rule: &EventRule, value: &Value, at: At) -> Ask {
    let Asks { kind, dialog } = rule.asks.unwrap_or(Asks::PERMISSION);
    let text =
        |pointer: &Option<String>| shown_at(value, pointer.as_ref()).map(|text| shorten(&text, ASK_LIMIT));
    let Take { tool, command, file, text: question, id, .. } = &rule.take;
    Ask {
        kind,
        dialog,
        tool: text(tool),
        command: text(command),
        file: text(file),
        text: text(question),
        id: text(id),
        at,
    }
}

fn failure(profile: &Profile, take: &Take, value: &Value) -> Failure {
    let message = shown_at(value, take.text.as_ref()).unwrap_or_default();
    let word = text_at(value, take.kind.as_ref()).unwrap_or_default();
    let kind = profile.error_kind(&format!("{word}: {message}"));
    Failure { kind, recoverable: kind.recoverable(), message }
}

/// Whether a shell command opens a pull request with one of the common tools.
fn opens_pull_request(command: &str) -> bool {
    ["gh pr create", "glab mr create", "hub pull-request"].iter().any(|words| command.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::profile::Profiles;
    use serde_json::json;

    /// A fold that has processed these lines with its own rules.
    fn folded(lines: &[Value]) -> Fold {
        let profile = Profiles::shipped().get("generic").unwrap();
        let feed: Feed = toml::from_str(
            r#"
            channel = "hook"
            session = "/session"
            on = [
                { when = { "/e" = "ask" }, says = "asked", asks = "permission", take = { command = "/command" } },
                { when = { "/e" = "end" }, says = "turn_ended", take = { message = "/text", input_tokens = ["/a", "/b"] } },
            ]"#,
        )
        .unwrap();
        let mut fold = Fold::default();
        let lines =
            lines.iter().map(|line| Line { at: At(1), payload: Ok(line.clone()) }).collect::<Vec<_>>();
        fold.take(&profile, &feed, &lines, None);
        fold
    }

    #[test]
    fn a_command_can_not_hide_behind_escape_sequences() {
        let fold = folded(&[json!({"e": "ask", "command": "rm -rf x\r\u{1b}[2Kls"})]);
        assert_eq!(fold.ask.unwrap().command.unwrap(), "rm -rf x\\r\\u{1b}[2Kls");
        assert_eq!(folded(&[json!({"e": "end", "text": "a\u{7}b"})]).message.unwrap(), "a\\u{7}b");
    }

    #[test]
    fn a_prompt_is_kept_up_to_a_length() {
        let fold = folded(&[json!({"e": "ask", "command": "x".repeat(ASK_LIMIT * 2)})]);
        assert_eq!(fold.ask.unwrap().command.unwrap().chars().count(), ASK_LIMIT + 1);
    }

    #[test]
    fn an_id_that_leads_to_other_files_or_reads_as_a_flag_is_none() {
        for id in ["../../x", "a/b", "*", "..", "a\u{0}", "", "--yolo"] {
            assert_eq!(folded(&[json!({"e": "ask", "session": id})]).session_id, None, "{id:?}");
        }
        let id = "ses_01a1e24b-d941-7c00.v2";
        assert_eq!(folded(&[json!({"e": "ask", "session": id})]).session_id.as_deref(), Some(id));
    }

    #[test]
    fn tokens_beyond_all_counting_do_not_overflow() {
        let fold = folded(&[json!({"e": "end", "a": u64::MAX, "b": 1})]);
        assert_eq!(fold.usage.input_tokens, Some(u64::MAX));
    }
}
