//! The fold of one event channel: the state that its lines so far add up to.

use super::ask::{Ask, Call};
use super::turns::Turns;
use super::usage::Usage;
use crate::api::words::{Activity, Failure};
use crate::classify::observation::{At, Line};
use crate::classify::profile::{EventRule, Feed, Meaning, Profile, Take, all_hold, lookup, text_at};
use crate::classify::text::with_visible_controls;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of a conversation id.
const ID_LIMIT: usize = 256;
/// How many ids of ended calls and subagents, and how many open prompts, to keep.
const KEPT: usize = 32;

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
    /// The id of that turn, if lines name it.
    pub turn: Option<String>,
    /// The name and time of the last line.
    pub last: Option<(String, At)>,
    /// When the last line came that is a sign of life.
    pub alive_at: Option<At>,
    /// What the agent is doing, as far as the channel tells.
    pub activity: Option<Activity>,
    /// Tool calls that haven't returned, in the order in which they were started.
    pub calls: Vec<Call>,
    /// The ids of the last calls that have returned.
    pub returned: Vec<String>,
    /// The open prompts, in the order in which they were announced.
    pub open: Vec<Ask>,
    /// How many prompts were announced.
    pub asks: u64,
    /// Working subagents, and when each was started.
    pub subagents: BTreeMap<String, At>,
    /// How many more subagents were working when the last turn ended, of which only the number is known.
    pub unnamed_subagents: u32,
    /// The ids of the last subagents that have ended.
    pub ended_subagents: Vec<String>,
    /// When the last subagent ended.
    pub subagent_ended_at: Option<At>,
    /// Other background tasks that were still running when the last turn ended.
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

/// One line on its way into a fold.
struct Told<'l> {
    value: &'l Value,
    at: At,
    /// The turn that it names.
    turn: Option<String>,
    /// Whether it is about a subagent, which may outlive its turn.
    of_subagent: bool,
}

impl Fold {
    /// Adjusts all times after the clock was set back.
    pub(super) fn set_back(&mut self, by: u64) {
        let Self { phase_at, turn_at, last, alive_at, open, subagents, subagent_ended_at, .. } = self;
        let times = [phase_at, turn_at].into_iter().chain(last.as_mut().map(|(_, at)| at));
        let times = times.chain(alive_at.as_mut()).chain(subagent_ended_at.as_mut());
        let times = times.chain(open.iter_mut().map(|ask| &mut ask.at));
        let times = times.chain(subagents.values_mut());
        // 0 means never.
        times.filter(|time| **time != At::default()).for_each(|time| time.set_back(by));
    }

    /// Forgets the background work that was begun in the last turn: it ended with a turn that was interrupted or failed,
    /// and no hook says so.
    pub(in crate::classify) fn forget_background(&mut self) {
        self.subagents.retain(|_, started| *started < self.turn_at);
        self.unnamed_subagents = 0;
        self.subagent_ended_at = None;
        self.background = 0;
    }

    /// How many subagents are working.
    pub(in crate::classify) fn working_subagents(&self) -> u32 {
        let named = u32::try_from(self.subagents.len()).unwrap_or(u32::MAX);
        named.max(self.unnamed_subagents)
    }

    /// The name of the last tool that was called and hasn't returned.
    pub(in crate::classify) fn last_tool(&self) -> Option<&str> {
        self.calls.last().map(|call| call.tool.as_str()).filter(|tool| !tool.is_empty())
    }

    /// Closes the prompts about calls that have returned, and of a turn that is over, as another channel knows.
    pub(super) fn close_answered(&mut self, returned: &BTreeSet<String>, turns: &Turns) {
        let over = self.turn.as_ref().is_some_and(|turn| turns.is_over(turn) || turns.is_past(turn));
        self.open.retain(|ask| {
            let answered = ask.call.as_ref().is_some_and(|call| returned.contains(call));
            !answered && (ask.of_subagent || !over)
        });
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
    /// `known_session` is the conversation id according to another channel, and `turns` what all channels together know
    /// about turns.
    pub fn take(
        &mut self,
        profile: &Profile,
        feed: &Feed,
        lines: &[Line],
        known_session: Option<&str>,
        turns: &mut Turns,
    ) {
        for line in lines {
            match &line.payload {
                Ok(value) => self.take_line(profile, feed, value, line.at, known_session, turns),
                Err(why) => self.error = Some(with_visible_controls(why)),
            }
        }
    }

    fn take_line(
        &mut self,
        profile: &Profile,
        feed: &Feed,
        value: &Value,
        at: At,
        known: Option<&str>,
        turns: &mut Turns,
    ) {
        if !value.is_object() {
            self.error = Some("a line is not a JSON object".to_owned());
            return;
        }
        let mut repeated = false;
        if let Some(session) = text_at(value, feed.session.as_ref()) {
            let known = known.or(self.session_id.as_deref());
            let foreign = known.is_some_and(|known| known != session);
            if feed.known_session_only && (foreign || known.is_none()) {
                return;
            }
            repeated = self.session_id.as_ref() == Some(&session);
            if !foreign && self.session_id.is_none() && is_session_id(&session) {
                self.session_id = Some(session);
            }
        }
        self.error = None;
        let name = shown_at(value, feed.name.as_ref()).unwrap_or_default();
        self.last = Some((name, at));
        let of_subagent = text_at(value, feed.subagent.as_ref()).is_some();
        let turn = text_at(value, feed.turn.as_ref()).filter(|_| !of_subagent);
        let told = Told { value, at, turn, of_subagent };
        for rule in feed.on.iter().filter(|rule| rule.applies(value)) {
            self.usage.take(&rule.take, value);
            // The first line of a conversation can't come after others of it.
            let late = rule.first && repeated && self.turn_at != At::default();
            if late || self.is_late(rule.says, &told, turns) {
                continue;
            }
            self.apply(profile, rule, &told);
            self.note_turn(rule.says, &told, turns);
        }
    }

    /// Whether a line of this meaning comes too late to say anything about the present: its turn is over, or a newer one
    /// has begun. That something has ended is true however late it is told.
    fn is_late(&self, says: Meaning, told: &Told<'_>, turns: &Turns) -> bool {
        let Some(turn) = &told.turn else { return false };
        match says {
            Meaning::SessionStarted
            | Meaning::SessionEnded
            | Meaning::Data
            | Meaning::ToolFinished
            | Meaning::SubagentStopped => false,
            Meaning::TurnEnded | Meaning::TurnFailed | Meaning::TurnInterrupted => turns.is_past(turn),
            _ => turns.is_past(turn) || turns.is_over(turn),
        }
    }

    /// Notes which turn a line was about, and whether it ended it.
    fn note_turn(&mut self, says: Meaning, told: &Told<'_>, turns: &mut Turns) {
        let of_turn = !matches!(
            says,
            Meaning::SessionStarted
                | Meaning::SessionEnded
                | Meaning::Data
                | Meaning::ToolFinished
                | Meaning::SubagentStopped
        );
        if let Some(turn) = told.turn.as_ref().filter(|_| of_turn) {
            turns.name(turn);
            self.turn = Some(turn.clone());
        }
        let ends = matches!(says, Meaning::TurnEnded | Meaning::TurnFailed | Meaning::TurnInterrupted);
        if let Some(turn) = self.turn.as_ref().filter(|_| ends) {
            turns.end(turn);
        }
    }

    fn apply(&mut self, profile: &Profile, rule: &EventRule, told: &Told<'_>) {
        let Told { value, at, .. } = *told;
        if rule.says != Meaning::Data {
            self.alive_at = Some(at);
        }
        let take = &rule.take;
        let id = text_at(value, take.id.as_ref()).unwrap_or_default();
        match rule.says {
            Meaning::Data => {}
            Meaning::SessionStarted => {
                self.session_id = None;
                self.turn = None;
                self.forget_all_background();
                self.reset_turn();
                self.enter(Phase::Up, at);
            }
            Meaning::SessionEnded => {
                self.forget_all_background();
                self.reset_turn();
                self.enter(Phase::Left, at);
            }
            Meaning::TurnStarted => self.start_turn(told),
            Meaning::Alive => {
                self.enter_named_turn(told);
                if self.calls.is_empty() && self.activity == Some(Activity::Tool) {
                    self.activity = Some(Activity::Thinking);
                }
            }
            Meaning::Streaming => self.activity = Some(Activity::Streaming),
            Meaning::Retrying => self.activity = Some(Activity::Retrying),
            Meaning::ToolStarted => self.start_call(take, id, told),
            Meaning::ToolFinished => self.finish_call(&id),
            Meaning::Asked => self.announce(rule, told),
            Meaning::Answered => self.open.clear(),
            Meaning::SubagentStarted => {
                if !self.ended_subagents.contains(&id) {
                    self.subagents.insert(id, at);
                }
            }
            Meaning::SubagentStopped => {
                // One that was part of the turn brings nobody back.
                if self.subagents.remove(&id).is_some() && self.phase == Phase::Over {
                    self.subagent_ended_at = Some(at);
                }
                keep(&mut self.ended_subagents, id);
            }
            Meaning::CompactStarted => {
                self.activity = Some(Activity::Compacting);
                self.enter(Phase::Running, at);
            }
            Meaning::CompactFinished => self.activity = Some(Activity::Thinking),
            Meaning::TurnEnded => {
                self.end_turn();
                self.take_background(take, told);
                self.enter(Phase::Over, at);
            }
            Meaning::TurnInterrupted => {
                self.end_turn();
                self.forget_background();
                self.enter(Phase::Interrupted, at);
            }
            Meaning::TurnFailed => {
                self.end_turn();
                self.forget_background();
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

    fn start_turn(&mut self, told: &Told<'_>) {
        // A prompt that the running turn takes in, or the late report of its start.
        let known = self.phase == Phase::Running && told.turn.is_some() && self.turn == told.turn;
        if known {
            return;
        }
        if self.phase == Phase::Running {
            // Nothing has ended the turn before, so it was interrupted.
            self.forget_background();
        }
        self.reset_turn();
        self.pull_request = false;
        self.background = 0;
        self.failure = None;
        self.activity = Some(Activity::Thinking);
        self.enter(Phase::Running, told.at);
        self.turn_at = told.at;
    }

    /// A sign of life of a turn that no line has named before: a queued prompt, for example, is taken up without a line
    /// of its own.
    fn enter_named_turn(&mut self, told: &Told<'_>) {
        if told.turn.is_some() && self.turn.is_some() && told.turn != self.turn {
            self.start_turn(told);
        }
    }

    fn start_call(&mut self, take: &Take, id: String, told: &Told<'_>) {
        let tool = shown_at(told.value, take.tool.as_ref()).unwrap_or_default();
        let command = shown_at(told.value, take.command.as_ref());
        let call = Call { id, tool, command };
        let early = call.has_own_id() && self.returned.contains(&call.id);
        if !told.of_subagent {
            self.enter_named_turn(told);
            self.enter(Phase::Running, told.at);
        }
        if early || self.calls.contains(&call) {
            return;
        }
        if call.command.as_deref().is_some_and(opens_pull_request) {
            self.opening_pull_request.insert(call.id.clone());
        }
        if !told.of_subagent {
            self.activity = Some(Activity::Tool);
        }
        self.calls.retain(|known| known.id != call.id);
        self.calls.push(call);
        if self.calls.len() > KEPT {
            self.calls.remove(0);
        }
    }

    fn finish_call(&mut self, id: &str) {
        self.pull_request |= self.opening_pull_request.remove(id);
        let at = self.calls.iter().position(|call| call.id == id);
        match at.map(|at| self.calls.remove(at)) {
            Some(call) => self.open.retain(|ask| !ask.is_about(&call)),
            None => self.open.retain(|ask| ask.call.is_some()),
        }
        keep(&mut self.returned, id.to_owned());
        if self.calls.is_empty() {
            self.activity = Some(Activity::Thinking);
        }
    }

    fn announce(&mut self, rule: &EventRule, told: &Told<'_>) {
        let mut ask = Ask::read(rule, told.value, told.at);
        // The last call that it can be about: an earlier one of the same kind has been asked about before.
        let asked_about = |call: &&Call| self.open.iter().any(|ask| ask.call.as_ref() == Some(&call.id));
        let mut calls = self.calls.iter().filter(|call| call.has_own_id() && ask.is_about(call));
        ask.call =
            calls.clone().find(|call| !asked_about(call)).or(calls.next_back()).map(|call| call.id.clone());
        self.asks += 1;
        (ask.number, ask.of_subagent) = (self.asks, told.of_subagent);
        self.open.push(ask);
        if self.open.len() > KEPT {
            self.open.remove(0);
        }
    }

    /// Ends the turn and closes everything open in it.
    fn end_turn(&mut self) {
        self.calls.clear();
        self.opening_pull_request.clear();
        self.open.clear();
        self.activity = None;
    }

    /// What goes on after the turn, as far as the line says: subagents, which bring the agent back, and other tasks.
    fn take_background(&mut self, take: &Take, told: &Told<'_>) {
        if let Some(pointer) = &take.subagents {
            let count = lookup(told.value, pointer).and_then(|count| count.as_u64()).unwrap_or(0);
            self.unnamed_subagents = u32::try_from(count).unwrap_or(u32::MAX);
        }
        let Some(pointer) = &take.background else { return };
        let tasks = lookup(told.value, pointer);
        let Some(listed) = tasks.as_deref().and_then(Value::as_array) else {
            let count = tasks.as_deref().and_then(Value::as_u64).unwrap_or(0);
            self.background = u32::try_from(count).unwrap_or(u32::MAX);
            return;
        };
        let returns = |task: &&Value| !take.returns.is_empty() && all_hold(&take.returns, task);
        let (returning, others): (Vec<&Value>, Vec<&Value>) = listed.iter().partition(returns);
        self.background = u32::try_from(others.len()).unwrap_or(u32::MAX);
        if take.returns.is_empty() {
            return;
        }
        let id = |task: &&Value| text_at(task, Some(&"/id".to_owned()));
        let working = returning.iter().filter_map(id).filter(|id| !self.ended_subagents.contains(id));
        let since = |id: &String| self.subagents.get(id).copied().unwrap_or(told.at);
        self.subagents = working.map(|id| (id.clone(), since(&id))).collect();
    }

    fn forget_all_background(&mut self) {
        self.subagents.clear();
        self.unnamed_subagents = 0;
        self.subagent_ended_at = None;
        self.background = 0;
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
        self.calls.clear();
        self.opening_pull_request.clear();
        self.open.clear();
        self.activity = None;
    }
}

/// Adds an id to those that are kept.
fn keep(ids: &mut Vec<String>, id: String) {
    ids.push(id);
    if ids.len() > KEPT {
        ids.remove(0);
    }
}

/// The text at a JSON pointer, safe to show to people.
pub(super) fn shown_at(value: &Value, pointer: Option<&String>) -> Option<String> {
    text_at(value, pointer).map(|text| with_visible_controls(&text))
}

/// Whether text is a valid conversation id. It becomes part of a path, and an argument of a resume, so it must not
/// contain path separators, globs or a leading dash.
pub(crate) fn is_session_id(text: &str) -> bool {
    let inside = |c: char| c != '/' && c != '*' && !c.is_control();
    !text.is_empty() && text.len() <= ID_LIMIT && !text.starts_with(['.', '-']) && text.chars().all(inside)
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
    use super::super::ask::ASK_LIMIT;
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
        fold.take(&profile, &feed, &lines, None, &mut Turns::default());
        fold
    }

    #[test]
    fn a_command_can_not_hide_behind_escape_sequences() {
        let fold = folded(&[json!({"e": "ask", "command": "rm -rf x\r\u{1b}[2Kls"})]);
        assert_eq!(fold.open[0].command.clone().unwrap(), "rm -rf x\\r\\u{1b}[2Kls");
        assert_eq!(folded(&[json!({"e": "end", "text": "a\u{7}b"})]).message.unwrap(), "a\\u{7}b");
    }

    #[test]
    fn a_prompt_is_kept_up_to_a_length() {
        let fold = folded(&[json!({"e": "ask", "command": "x".repeat(ASK_LIMIT * 2)})]);
        assert_eq!(fold.open[0].command.clone().unwrap().chars().count(), ASK_LIMIT + 1);
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
