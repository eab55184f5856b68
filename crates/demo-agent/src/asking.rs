//! Steps that need a permission or an answer.

use serde_json::{Value, json};

use crate::agent::{Agent, Now};
use crate::dialog::{AnsweredBy, Dialog, Menu, Reply};
use crate::effect::{Effect, Hook};
use crate::questions::{Question, Questions};
use crate::screen::Entry;
use crate::step::Step;
use crate::turn::TurnActivity;

impl Agent {
    /// Asks a permission, question or plan: decided by a rule, a hook or a dialog.
    pub(crate) fn ask(&mut self, step: Step, now: Now) {
        let (name, input) = asked(&step);
        self.effect(Effect::tool_hook("PreToolUse", &name, &input));
        self.effect(Effect::Record(json!({"type": "tool", "phase": "start", "name": name, "input": input})));
        if let Step::Permission(tool) = &step {
            let by_rule = self.rules.contains(&tool.rule());
            if by_rule || self.config.dangerous {
                let why = if by_rule { "allowed by rule" } else { "permissions are off" };
                self.settle(&step, &format!("({why})"), "ok");
                return;
            }
        }
        if self.config.headless {
            self.settle(&step, "(denied: nobody to ask)", "denied");
            return;
        }
        let decides = self.config.hook_decides.then(|| self.token());
        self.effect(Effect::Hook(Hook {
            event: "PermissionRequest",
            fields: json!({"tool_name": name, "tool_input": input}),
            decides,
        }));
        match decides {
            Some(token) => self.do_now(TurnActivity::Deciding { step, token }),
            None => self.ask_user(step, now),
        }
    }

    fn ask_user(&mut self, step: Step, now: Now) {
        let dialog = match &step {
            Step::Permission(tool) => Dialog::Menu(Menu::permission(tool)),
            Step::Plan(text) => Dialog::Menu(Menu::plan(text)),
            Step::Ask(questions) => Dialog::Questions(Questions::new(questions.clone())),
            _ => return,
        };
        self.make_visible();
        self.do_now(TurnActivity::Dialog(step));
        self.open_dialog(dialog, now);
    }

    /// Handles the end of a hook, with or without a decision.
    pub(crate) fn decided(&mut self, token: u64, decision: Option<&Value>, now: Now) {
        let Some(turn) = self.turn.as_mut() else { return };
        if !matches!(&turn.doing, TurnActivity::Deciding { token: mine, .. } if *mine == token) {
            return;
        }
        let TurnActivity::Deciding { step, .. } = std::mem::replace(&mut turn.doing, TurnActivity::Next)
        else {
            return;
        };
        let word = |key: &str| decision.and_then(|d| d.get(key)).and_then(Value::as_str);
        let answers = decision.and_then(|d| d.get("answers"));
        let verdict = word("decision").unwrap_or_default();
        let text = match (&step, verdict) {
            (Step::Ask(questions), "allow") => answers.map(|a| hook_answers(questions, a)),
            (_, "allow") => Some("(allowed by hook)".to_owned()),
            (_, "deny") => Some(match word("message") {
                Some(message) => format!("(denied by hook: {message})"),
                None => "(denied by hook)".to_owned(),
            }),
            _ => None,
        };
        let Some(text) = text else {
            self.ask_user(step, now);
            return;
        };
        let dialog = asked_dialog(&step);
        self.effect(Effect::Log(json!({"dialog": dialog, "choice": verdict, "by": AnsweredBy::Hook.name()})));
        self.settle(&step, &text, if verdict == "allow" { "ok" } else { "denied" });
        self.advance(now);
    }

    /// Handles the user's answer to the dialog of a step.
    pub(crate) fn dialog_closed(&mut self, reply: &Reply, now: Now) {
        let Some(turn) = self.turn.as_mut() else { return };
        let TurnActivity::Dialog(step) = std::mem::replace(&mut turn.doing, TurnActivity::Next) else {
            return;
        };
        let allowed = match (&step, reply) {
            (Step::Permission(_), Reply::Chosen(0, _)) => Some("(allowed once)".to_owned()),
            (Step::Permission(tool), Reply::Chosen(1, _)) => {
                self.rules.insert(tool.rule());
                Some(format!("(always allowed: {})", tool.rule()))
            }
            (Step::Plan(_), Reply::Chosen(0, _)) => Some("(approved)".to_owned()),
            (Step::Ask(_), Reply::Answered(answers, _)) => {
                let alone = answers.len() == 1;
                let line = |a: &crate::questions::Answer| match alone {
                    true => a.chosen.join(", "),
                    false => format!("{}: {}", a.header, a.chosen.join(", ")),
                };
                Some(answers.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
            _ => None,
        };
        match allowed {
            Some(text) => {
                self.settle(&step, &text, "ok");
                self.advance(now);
            }
            None => {
                let text = match &step {
                    Step::Permission(_) => "(denied)",
                    Step::Plan(_) => "(kept planning)",
                    _ => "(cancelled)",
                };
                self.settle(&step, text, "denied");
                self.stop_turn(now);
            }
        }
    }

    /// Prints the outcome of a step. If it was declined, no hook runs, as with real agents.
    fn settle(&mut self, step: &Step, text: &str, outcome: &str) {
        let (name, input) = asked(step);
        let header = match step {
            Step::Permission(tool) => tool.to_string(),
            Step::Ask(questions) => {
                let headers: Vec<&str> = questions.iter().map(|q| q.header.as_str()).collect();
                format!("Ask({})", headers.join(", "))
            }
            _ => "Plan".to_owned(),
        };
        self.show(Entry::Tool(header));
        self.show(Entry::Output(text.to_owned()));
        self.record_tool_end(&name, &input, outcome, text);
        if outcome == "ok" {
            self.effect(Effect::tool_hook("PostToolUse", &name, &input));
        }
    }
}

fn asked(step: &Step) -> (String, Value) {
    match step {
        Step::Permission(tool) => (tool.name.clone(), tool.input()),
        Step::Ask(questions) => {
            let list: Vec<Value> = questions.iter().map(Question::to_json).collect();
            ("AskUserQuestion".to_owned(), json!({"questions": list}))
        }
        Step::Plan(text) => ("ExitPlanMode".to_owned(), json!({"plan": text})),
        _ => (String::new(), Value::Null),
    }
}

fn asked_dialog(step: &Step) -> &'static str {
    match step {
        Step::Ask(_) => "question",
        Step::Plan(_) => "plan",
        _ => "permission",
    }
}

/// Formats answers from a hook: an object that maps questions (or headers) to answers.
fn hook_answers(questions: &[Question], answers: &Value) -> String {
    let lines: Vec<String> = questions
        .iter()
        .map(|q| {
            let given = answers.get(&q.text).or_else(|| answers.get(&q.header));
            let text = given.and_then(Value::as_str).unwrap_or("(no answer)");
            if questions.len() == 1 { text.to_owned() } else { format!("{}: {text}", q.header) }
        })
        .collect();
    lines.join("\n")
}
