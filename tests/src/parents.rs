//! A parent agent whose model follows the loop that Lisa's instructions teach: spawn, wait, answer, read, send, kill.
//!
//! The model is scripted, but not blindly: what it calls next depends on what the last call gave back, as with a real
//! one. What it called and what it got is read from the model server's log, so a test sees what a model would have
//! seen, after the parent's program has done to it whatever it does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::agents::AgentKind;
use crate::model_server::{Exchange, Match, Reply, Request, Scenario, Step};

/// What the user says to the parent; no child is told it.
pub const TASK: &str = "PARENT: have both helpers do their part.";
/// What the parent says when all is done.
pub const DONE: &str = "Both have done their part.";
/// How what it says begins when something is not as it should be.
pub const LOST: &str = "I am lost";
/// What a child says that is not to use a server which its project offers.
pub const WITHOUT: &str = "without using this MCP server";
/// More waits than this mean that nothing comes of waiting.
const WAITS_MAX: usize = 12;

/// One child: what it is told, what it asks to run, and what it answers.
#[derive(Clone, Debug)]
pub struct Kid {
    /// The session's name.
    pub name: &'static str,
    /// The agent.
    pub kind: AgentKind,
    /// Its first prompt.
    pub prompt: &'static str,
    /// The command that it asks to be allowed. It has an effect that no other way brings about.
    pub command: &'static str,
    /// The file that the command makes.
    pub made: &'static str,
    /// What it says when the command has run.
    pub first: &'static str,
    /// Its second prompt.
    pub follow_up: &'static str,
    /// What it says to that.
    pub second: &'static str,
}

/// The children of every parent: one of each agent.
pub const KIDS: [Kid; 2] = [
    Kid {
        name: "kid-claude",
        kind: AgentKind::Claude,
        prompt: "CHILD-ONE make the first pipe",
        command: "mkfifo first.pipe",
        made: "first.pipe",
        first: "The first pipe is there, number 4711.",
        follow_up: "CHILD-ONE what is its number?",
        second: "Its number is still 4711.",
    },
    Kid {
        name: "kid-codex",
        kind: AgentKind::Codex,
        prompt: "CHILD-TWO make the second pipe",
        command: "mkfifo second.pipe",
        made: "second.pipe",
        first: "The second pipe is there, number 0815.",
        follow_up: "CHILD-TWO what is its number?",
        second: "Its number is still 0815.",
    },
];

impl Kid {
    /// The call that its model makes for the command; both agents ask before they run it.
    fn call(&self) -> Reply {
        match self.kind {
            AgentKind::Claude => {
                Reply::tool("Bash", json!({"command": self.command, "description": "Make a pipe"}))
            }
            AgentKind::Codex => Reply::tool(
                "exec_command",
                json!({"cmd": self.command, "sandbox_permissions": "require_escalated",
                    "justification": "May I make a pipe?"}),
            ),
        }
    }
}

/// The script for a parent and its children.
pub fn scenario() -> Scenario {
    let mind = Arc::new(Mutex::new(Mind::default()));
    let think = move |request: &Request| lock(&mind).next(request);
    let parent = vec![Reply::given(think); 60];
    KIDS.iter().fold(Scenario::new().on(Match::any().in_conversation(TASK), parent), |scenario, kid| {
        scenario
            .on(Match::prompt(kid.prompt), [kid.call(), Reply::text(kid.first)])
            .on(Match::prompt(kid.follow_up), kid.second)
    })
}

/// Where the parent is in the loop; a number is that of the child it is about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Stage {
    #[default]
    Begin,
    Spawn(usize),
    WaitAsked,
    Decline(usize),
    Answer(usize),
    WaitDone,
    Read(usize),
    Send(usize),
    WaitTurn(usize),
    ReadAgain(usize),
    Kill(usize),
    List,
    End,
}

impl Stage {
    /// The next stage, where all went well.
    fn after(self) -> Self {
        let next = |of: fn(usize) -> Self, kid: usize, then: Self| {
            if kid + 1 < KIDS.len() { of(kid + 1) } else { then }
        };
        match self {
            Self::Begin => Self::Spawn(0),
            Self::Spawn(kid) => next(Self::Spawn, kid, Self::WaitAsked),
            Self::WaitAsked => Self::Answer(0),
            Self::Decline(_) => Self::WaitAsked,
            Self::Answer(kid) => next(Self::Answer, kid, Self::WaitDone),
            Self::WaitDone => Self::Read(0),
            Self::Read(kid) => next(Self::Read, kid, Self::Send(0)),
            Self::Send(kid) => Self::WaitTurn(kid),
            Self::WaitTurn(kid) => next(Self::Send, kid, Self::ReadAgain(0)),
            Self::ReadAgain(kid) => next(Self::ReadAgain, kid, Self::Kill(0)),
            Self::Kill(kid) => next(Self::Kill, kid, Self::List),
            Self::List | Self::End => Self::End,
        }
    }
}

/// What the parent remembers between two calls.
#[derive(Default)]
struct Mind {
    stage: Stage,
    cursor: Option<Value>,
    /// What the last wait said of each child.
    known: BTreeMap<String, Value>,
    turn: Option<Value>,
    waits: usize,
}

impl Mind {
    fn next(&mut self, request: &Request) -> Reply {
        match self.hear(request) {
            Ok(true) => {}
            Ok(false) => return Reply::text("I wait until it calls me."),
            Err(why) => return Reply::text(&format!("{LOST}: {why}")),
        }
        match self.call() {
            Some((tool, input)) => Reply::tool(&format!("mcp__lisa__{tool}"), input),
            None => Reply::text(DONE),
        }
    }

    /// Takes in what the last call gave back; false where that is still to come.
    fn hear(&mut self, request: &Request) -> Result<bool, String> {
        if matches!(self.stage, Stage::Begin) {
            self.stage = Stage::Spawn(0);
            return Ok(true);
        }
        let text = heard(request);
        let answer = object_in(&text);
        match self.stage {
            Stage::Read(_) | Stage::ReadAgain(_) => {}
            Stage::WaitAsked | Stage::WaitDone | Stage::WaitTurn(_) if answer["timed_out"].is_null() => {
                // A wait that went into the background: its answer comes by itself.
                return if text.contains("background") { Ok(false) } else { Err(text) };
            }
            _ if answer["next"].is_null() => return Err(text),
            _ => {}
        }
        if answer["cursor"].is_u64() {
            self.cursor = Some(answer["cursor"].clone());
        }
        if answer["turn"].is_string() {
            self.turn = Some(answer["turn"].clone());
        }
        for session in answer["sessions"].as_array().into_iter().flatten() {
            self.known.insert(session["name"].as_str().unwrap_or_default().to_owned(), session.clone());
        }
        let again = match self.stage {
            Stage::WaitAsked => KIDS.iter().any(|kid| self.known(kid)["prompt"]["kind"] != "permission"),
            Stage::WaitDone => KIDS.iter().any(|kid| self.known(kid)["state"] != "ready"),
            Stage::WaitTurn(kid) => answer["timed_out"] == true || self.known(&KIDS[kid])["state"] != "ready",
            _ => false,
        };
        self.waits += usize::from(again);
        if self.waits > WAITS_MAX {
            return Err(format!("waiting leads nowhere: {text}"));
        }
        if let Stage::Decline(kid) | Stage::Answer(kid) = self.stage {
            // What was known of it is over.
            self.known.remove(KIDS[kid].name);
        }
        if !again {
            self.stage = self.stage.after();
        } else if let Some(kid) = KIDS.iter().position(|kid| self.known(kid)["prompt"]["kind"] == "dialog") {
            self.stage = Stage::Decline(kid);
        }
        Ok(true)
    }

    fn known(&self, kid: &Kid) -> &Value {
        self.known.get(kid.name).unwrap_or(&Value::Null)
    }

    /// The call that this stage is for.
    fn call(&self) -> Option<(&'static str, Value)> {
        let both: Vec<_> = KIDS.iter().map(|kid| kid.name).collect();
        Some(match self.stage {
            Stage::Spawn(kid) => {
                let Kid { name, kind, prompt, .. } = KIDS[kid];
                ("spawn_session", json!({"agent": kind.command(), "name": name, "prompt": prompt}))
            }
            Stage::WaitAsked | Stage::WaitDone => {
                ("wait_sessions", json!({"sessions": both, "mode": "all", "since": self.cursor}))
            }
            Stage::Decline(kid) => {
                let prompt = &self.known(&KIDS[kid])["prompt"];
                let labels =
                    prompt["options"].as_array().into_iter().flatten().map(|option| &option["label"]);
                let without =
                    labels.into_iter().filter_map(Value::as_str).find(|label| label.contains(WITHOUT));
                let (session, id) = (KIDS[kid].name, &prompt["id"]);
                ("answer_prompt", json!({"session": session, "choice": without, "prompt_id": id}))
            }
            Stage::Answer(kid) => {
                let id = &self.known(&KIDS[kid])["prompt"]["id"];
                let session = KIDS[kid].name;
                ("answer_prompt", json!({"session": session, "choice": "allow_once", "prompt_id": id}))
            }
            Stage::Read(kid) | Stage::ReadAgain(kid) => ("read_session", json!({"session": KIDS[kid].name})),
            Stage::Send(kid) => {
                ("send_input", json!({"session": KIDS[kid].name, "text": KIDS[kid].follow_up}))
            }
            Stage::WaitTurn(kid) => {
                let sessions = [KIDS[kid].name];
                ("wait_sessions", json!({"sessions": sessions, "turn": self.turn, "since": self.cursor}))
            }
            Stage::Kill(kid) => ("kill_session", json!({"session": KIDS[kid].name})),
            Stage::List => ("list_sessions", json!({})),
            Stage::Begin | Stage::End => return None,
        })
    }
}

/// What a request brings that the model has not seen: tool results, or what woke it.
fn heard(request: &Request) -> String {
    request.results.last().cloned().unwrap_or_else(|| request.prompt.clone())
}

/// The JSON object in a text that has one, else null.
fn object_in(text: &str) -> Value {
    let begin = text.find('{').unwrap_or(text.len());
    let mut found = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
    found.next().and_then(Result::ok).unwrap_or_default()
}

/// One call of the parent's model and what it got back.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool, without the server's name.
    pub tool: String,
    /// What was asked.
    pub input: Value,
    /// What the model was shown: at once, and later where the answer came in the background.
    pub shown: Vec<String>,
}

impl Call {
    /// The answer as data, null for text.
    pub fn answer(&self) -> Value {
        self.shown.last().map(|text| object_in(text)).unwrap_or_default()
    }
}

/// The parent's calls, from the server's log.
pub fn calls(exchanges: &[Exchange]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for exchange in exchanges.iter().filter(|item| item.request.said.iter().any(|said| said.contains(TASK))) {
        if let Some(call) = calls.last_mut() {
            call.shown.push(heard(&exchange.request));
        }
        calls.extend(exchange.steps.iter().filter_map(|(_, step)| match step {
            Step::Call { name, input } => Some(Call {
                tool: name.trim_start_matches("mcp__lisa__").to_owned(),
                input: input.clone(),
                shown: Vec::new(),
            }),
            _ => None,
        }));
    }
    calls
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
