//! Runs the steps of a turn in order.

use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::{Agent, Now};
use crate::effect::{Effect, fnv1a64};
use crate::screen::Entry;
use crate::script::steps_of_prompt;
use crate::step::{Step, ToolRun, ToolUse};
use crate::turn::{Outcome, StatusDisplay, Stream, Turn, TurnActivity};

/// The speed of filler text if answers are not streamed.
const FILLER_CPS: u32 = 400;
const FILLER: &str = "I read the files that matter here and compared what they promise with what they do. \
The names are clear, the tests cover the common path, and two corner cases are still open. \
Next I would write one test for each of them and only then change the code.\n";

impl Agent {
    /// Starts a turn.
    pub(crate) fn start_turn(&mut self, prompt: String, now: Now) {
        self.effect(Effect::hook("UserPromptSubmit", json!({"prompt": prompt})));
        self.effect(Effect::Record(json!({"type": "user", "text": prompt})));
        let steps = match self.config.script.pop_front() {
            Some(steps) => steps,
            None => steps_of_prompt(&prompt).unwrap_or_else(|error| {
                vec![Step::Fail { kind: "invalid_request".to_owned(), message: error.to_string() }]
            }),
        };
        let steps = if steps.is_empty() { default_steps(&prompt) } else { steps };
        self.turn = Some(Turn {
            echo: Entry::prompt(&prompt),
            prompt,
            started: now,
            visible: false,
            steps: steps.into(),
            doing: TurnActivity::Next,
            step_started: now,
            last_message: String::new(),
            answered_chars: 0,
        });
        self.advance(now);
    }

    /// Prints an entry of the turn, after its prompt.
    pub(crate) fn show(&mut self, entry: Entry) {
        self.make_visible();
        self.print(entry);
    }

    pub(crate) fn make_visible(&mut self) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.visible) {
            turn.visible = true;
            let echo = turn.echo.clone();
            self.print(echo);
        }
    }

    /// Runs everything that is due.
    pub(crate) fn advance(&mut self, now: Now) {
        while let Some(turn) = self.turn.as_mut() {
            match &mut turn.doing {
                TurnActivity::Next => match turn.steps.pop_front() {
                    Some(step) => {
                        turn.step_started = now;
                        self.begin(step, now);
                    }
                    None => self.finish_turn(now),
                },
                TurnActivity::Wait { until, .. } if now >= *until => {
                    if let TurnActivity::Wait { step, .. } =
                        std::mem::replace(&mut turn.doing, TurnActivity::Next)
                    {
                        self.end(step);
                    }
                }
                TurnActivity::Stream(stream) => {
                    let lines = stream.grow(now);
                    let finished = stream.finished();
                    if stream.shown > 0 {
                        self.make_visible();
                    }
                    lines.into_iter().for_each(|line| self.print(line));
                    if !finished {
                        return;
                    }
                    self.end_answer();
                }
                TurnActivity::Retry { attempt, of, delay, until, .. } if now >= *until => {
                    if attempt == of {
                        turn.doing = TurnActivity::Next;
                    } else {
                        *attempt += 1;
                        *until = now + *delay;
                    }
                }
                _ => return,
            }
        }
    }

    fn begin(&mut self, step: Step, now: Now) {
        match &step {
            Step::Think(time) => self.wait(now, *time, step, "Thinking".to_owned()),
            Step::Compact(time) => {
                self.effect(Effect::hook("PreCompact", json!({"trigger": "manual"})));
                self.wait(now, *time, step, "Compacting".to_owned());
            }
            Step::Stall(time) => self.wait_as(now, *time, step, StatusDisplay::Still),
            Step::Silent(time) => self.wait_as(now, *time, step, StatusDisplay::Frozen),
            Step::Say(text) => self.answer(text.clone(), self.config.stream_cps, now),
            Step::Stream(time) => {
                let cps = if self.config.stream_cps == 0 { FILLER_CPS } else { self.config.stream_cps };
                let length = (time.as_secs_f64() * f64::from(cps)) as usize;
                self.answer(FILLER.chars().cycle().take(length).collect(), cps, now);
            }
            Step::Tool(ToolRun { tool, time, .. }) => {
                let verb = format!("Running {}", tool.name);
                self.use_tool(tool);
                self.show(Entry::Tool(tool.to_string()));
                self.wait(now, *time, step, verb);
            }
            Step::Run(command) => self.run(command.clone()),
            Step::Commit => {
                self.run(format!("git commit --allow-empty -m 'Demo turn {}'", self.turns + 1));
            }
            Step::Subagent { name, time } => {
                self.show(Entry::Tool(format!("Task({name})")));
                let fields = json!({"agent_id": self.agent_id(), "agent_type": name});
                self.effect(Effect::hook("SubagentStart", fields));
                let verb = format!("Running subagent {name}");
                self.wait(now, *time, step, verb);
            }
            Step::Background(command) => {
                self.show(Entry::Tool(format!("Background({command})")));
                self.show(Entry::Output("started".to_owned()));
                self.background += 1;
                self.effect(Effect::Background(command.clone()));
            }
            Step::Todo(items) => self.todos(items),
            Step::Retry { kind, attempts, delay } if *attempts > 0 => self.do_now(TurnActivity::Retry {
                kind: kind.clone(),
                attempt: 1,
                of: *attempts,
                delay: *delay,
                until: now + *delay,
            }),
            Step::Retry { .. } => {}
            Step::Permission(_) | Step::Ask(_) | Step::Plan(_) => self.ask(step, now),
            Step::Fail { kind, message } => self.fail_turn(kind, message, now),
            Step::PullRequest => self.pull_request(),
            Step::Env(name) => {
                let line = match std::env::var(name) {
                    Ok(value) => format!("{name}={value}"),
                    Err(_) => format!("{name} is not set"),
                };
                self.answer(line, 0, now);
            }
            Step::Argv => self.answer(json!(self.config.argv).to_string(), 0, now),
            Step::Cwd => self.answer(self.config.cwd.clone(), 0, now),
            Step::Hash => {
                let prompt = self.turn.as_ref().map_or("", |turn| turn.prompt.as_str());
                let line = format!("{} bytes, fnv1a64 {:016x}", prompt.len(), fnv1a64(prompt.as_bytes()));
                self.answer(line, 0, now);
            }
            Step::Exit(code) => {
                self.do_now(TurnActivity::Gone);
                self.quit(*code, "other");
            }
            Step::Crash => {
                self.do_now(TurnActivity::Gone);
                self.effect(Effect::Abort);
            }
            Step::Hang { hard } => {
                self.do_now(TurnActivity::Gone);
                self.effect(Effect::Hang { hard: *hard });
            }
        }
    }

    pub(crate) fn do_now(&mut self, doing: TurnActivity) {
        if let Some(turn) = &mut self.turn {
            turn.doing = doing;
        }
    }

    fn wait(&mut self, now: Now, time: Duration, step: Step, verb: String) {
        self.wait_as(now, time, step, StatusDisplay::Status(verb));
    }

    fn wait_as(&mut self, now: Now, time: Duration, step: Step, look: StatusDisplay) {
        if let Some(turn) = &mut self.turn {
            turn.wait(now, time, step, look);
        }
    }

    fn answer(&mut self, text: String, cps: u32, now: Now) {
        self.do_now(TurnActivity::Stream(Stream::new(text, cps, now)));
    }

    /// Ends a step that took time.
    fn end(&mut self, step: Step) {
        match step {
            Step::Tool(ToolRun { tool, output, .. }) => self.tool_done(&tool, &output, "ok"),
            Step::Subagent { name, .. } => {
                self.show(Entry::Output("done".to_owned()));
                let fields = json!({"agent_id": self.agent_id(), "agent_type": name});
                self.effect(Effect::hook("SubagentStop", fields));
            }
            Step::Compact(_) => {
                self.show(Entry::Note("conversation compacted".to_owned()));
                self.effect(Effect::hook("PostCompact", json!({"trigger": "manual"})));
            }
            _ => {}
        }
    }

    fn agent_id(&self) -> String {
        format!("agent-{}", self.turns + 1)
    }

    fn end_answer(&mut self) {
        let Some(turn) = self.turn.as_mut() else { return };
        let TurnActivity::Stream(stream) = std::mem::replace(&mut turn.doing, TurnActivity::Next) else {
            return;
        };
        let text = stream.text.trim_end_matches('\n').to_owned();
        turn.answered_chars += text.chars().count();
        turn.last_message.clone_from(&text);
        let more = turn.steps.iter().any(|step| !matches!(step, Step::Stall(_) | Step::Silent(_)));
        let stop = if more { "tool_use" } else { "end_turn" };
        if let Some(last) = stream.open() {
            self.show(last);
        }
        self.effect(Effect::Record(json!({"type": "assistant", "text": text, "stop": stop})));
    }

    fn use_tool(&mut self, tool: &ToolUse) {
        self.effect(Effect::tool_hook("PreToolUse", &tool.name, &tool.input()));
        self.effect(Effect::Record(json!({
            "type": "tool", "phase": "start", "name": tool.name, "input": tool.input(),
        })));
    }

    fn tool_done(&mut self, tool: &ToolUse, output: &str, outcome: &str) {
        let shown = if output.is_empty() { "(no output)" } else { output };
        self.show(Entry::Output(shown.to_owned()));
        self.effect(Effect::tool_hook("PostToolUse", &tool.name, &tool.input()));
        self.record_tool_end(&tool.name, &tool.input(), outcome, output);
    }

    pub(crate) fn record_tool_end(&mut self, name: &str, input: &Value, outcome: &str, output: &str) {
        self.effect(Effect::Record(json!({
            "type": "tool", "phase": "end", "name": name, "input": input,
            "outcome": outcome, "output": output,
        })));
    }

    fn run(&mut self, command: String) {
        let tool = ToolUse { name: "Bash".to_owned(), arg: command.clone() };
        self.use_tool(&tool);
        self.show(Entry::Tool(tool.to_string()));
        let token = self.token();
        self.do_now(TurnActivity::Command { tool, token });
        self.effect(Effect::Run { token, command });
    }

    /// Handles the end of a command.
    pub(crate) fn ran(&mut self, token: u64, output: &str, code: Option<i32>, now: Now) {
        let Some(turn) = self.turn.as_mut() else { return };
        if !matches!(&turn.doing, TurnActivity::Command { token: mine, .. } if *mine == token) {
            return;
        }
        let TurnActivity::Command { tool, .. } = std::mem::replace(&mut turn.doing, TurnActivity::Next)
        else {
            return;
        };
        let end = match code {
            Some(0) => String::new(),
            Some(code) => format!("(exit code {code})"),
            None => "(ended by a signal)".to_owned(),
        };
        let parts = [output.trim_end(), &end];
        let text: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let outcome = if code == Some(0) { "ok" } else { "failed" };
        self.tool_done(&tool, &text.join("\n"), outcome);
        self.advance(now);
    }

    fn todos(&mut self, items: &[(bool, String)]) {
        let line = |(done, text): &(bool, String)| format!("[{}] {text}", if *done { 'x' } else { ' ' });
        self.show(Entry::Tool("Todos".to_owned()));
        self.show(Entry::Output(items.iter().map(line).collect::<Vec<_>>().join("\n")));
        let list: Vec<_> = items.iter().map(|(done, text)| json!({"text": text, "done": done})).collect();
        self.effect(Effect::Record(json!({"type": "todos", "items": list})));
    }

    fn pull_request(&mut self) {
        let url = format!("https://github.com/example/demo/pull/{}", self.turns + 1);
        let tool = ToolUse { name: "Bash".to_owned(), arg: "gh pr create --fill".to_owned() };
        let say = Step::Say(format!("Opened pull request {url}"));
        let run = Step::Tool(ToolRun { tool, time: Duration::from_millis(100), output: url });
        if let Some(turn) = &mut self.turn {
            turn.steps.push_front(say);
            turn.steps.push_front(run);
        }
    }

    /// Handles Esc or Ctrl-C. Before any output, the turn leaves no trace and the prompt goes back into the input box.
    pub(crate) fn interrupt(&mut self, now: Now) {
        let Some(turn) = &self.turn else { return };
        let run = match &turn.doing {
            TurnActivity::Command { token, .. } => Some(*token),
            _ => None,
        };
        if turn.visible {
            let open = turn.open_line();
            if let Some(line) = open {
                self.print(line);
            }
            if let Some(token) = run {
                self.effect(Effect::StopRun(token));
            }
            self.stop_turn(now);
        } else if let Some(turn) = self.turn.take() {
            self.back_into_box(Some(turn.prompt));
            self.idle_since(now);
        }
    }

    pub(crate) fn stop_turn(&mut self, now: Now) {
        self.show(Entry::Error("Interrupted".to_owned()));
        self.effect(Effect::Record(json!({"type": "interrupted"})));
        self.close_turn("interrupted");
        self.turn_over(Outcome::Stopped, now);
    }

    fn fail_turn(&mut self, kind: &str, message: &str, now: Now) {
        let text = format!("API error: {kind}: {message}");
        self.show(Entry::Error(text.clone()));
        self.effect(Effect::Record(json!({"type": "assistant", "text": text, "stop": "error"})));
        self.close_turn("error");
        self.effect(Effect::hook("StopFailure", json!({"error": kind, "message": message})));
        self.turn_over(Outcome::Failed, now);
    }

    fn finish_turn(&mut self, now: Now) {
        let Some(turn) = &mut self.turn else { return };
        let seconds = now.saturating_sub(turn.started).as_secs_f64();
        let last = std::mem::take(&mut turn.last_message);
        self.show(Entry::Done(format!("Done in {seconds:.1}s")));
        self.close_turn("end_turn");
        let fields = json!({"last_assistant_message": last, "background_tasks": self.background});
        self.effect(Effect::hook("Stop", fields));
        self.turn_over(Outcome::Finished, now);
    }

    fn close_turn(&mut self, outcome: &str) {
        let Some(turn) = self.turn.take() else { return };
        self.turns += 1;
        let tokens =
            json!({"input": turn.prompt.len().div_ceil(4), "output": turn.answered_chars.div_ceil(4)});
        self.effect(Effect::Record(json!({
            "type": "turn_end", "turn": self.turns, "outcome": outcome, "tokens": tokens,
        })));
    }
}

fn default_steps(prompt: &str) -> Vec<Step> {
    let start: String = prompt.trim().chars().take(60).map(|c| if c == '\n' { ' ' } else { c }).collect();
    vec![Step::Think(Duration::from_millis(300)), Step::Say(format!("You said: {start}"))]
}
