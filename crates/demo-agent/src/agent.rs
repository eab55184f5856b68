//! The agent's state machine: input, external events and time in, effects out.
//!
//! It does no IO and gets the time as an argument, so whole conversations run in unit tests.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use crate::dialog::{AnsweredBy, Dialog, DialogKey, Kind, Menu, Reply};
use crate::draft::Draft;
use crate::effect::{Effect, fnv1a64};
use crate::input::{Input, Key};
use crate::screen::Entry;
use crate::step::Step;
use crate::turn::{Outcome, Turn};

/// Time since the start of the process.
pub type Now = Duration;

const EXIT_NOTE: Duration = Duration::from_secs(1);
const NOTIFY_DIALOG: Duration = Duration::from_secs(6);
const NOTIFY_IDLE: Duration = Duration::from_secs(60);
const MODELS: [&str; 3] = ["demo-large", "demo-small", "demo-nano"];

/// The agent's configuration.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The working directory.
    pub cwd: String,
    /// The process's arguments.
    pub argv: Vec<String>,
    /// The model's name.
    pub model: String,
    /// The session's id.
    pub session: String,
    /// The number of previous turns, if this session was resumed.
    pub resumed: Option<usize>,
    /// Start-up dialogs.
    pub ask_trust: bool,
    /// Start-up dialogs.
    pub ask_login: bool,
    /// Start-up dialogs ignore every key.
    pub deaf: bool,
    /// Permissions are not asked, after a warning.
    pub dangerous: bool,
    /// Runs without a screen, so dialogs cannot be answered.
    pub headless: bool,
    /// Whether there are hooks.
    pub hooks: bool,
    /// Whether the hook `PermissionRequest` may decide.
    pub hook_decides: bool,
    /// Whether Enter at the end of a burst becomes a line break.
    pub burst: bool,
    /// Characters per second of an answer; 0 means all at once.
    pub stream_cps: u32,
    /// Frames per second of the spinner; 0 means no animation.
    pub spinner_hz: u32,
    /// Steps of the next turns.
    pub script: VecDeque<Vec<Step>>,
    /// The first prompt.
    pub prompt: Option<String>,
}

/// An event from outside, other than input.
#[derive(Debug, Clone, PartialEq)]
pub enum ExternalEvent {
    /// A hook ended, with or without a decision.
    Decided {
        /// The token of the request.
        token: u64,
        /// The hook's decision, if any.
        decision: Option<Value>,
    },
    /// A command ended.
    Ran {
        /// The token of the run.
        token: u64,
        /// What it printed.
        output: String,
        /// The exit code; `None` after a signal.
        code: Option<i32>,
    },
    /// A background process ended.
    BackgroundEnded,
}

/// The status published in the state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `busy`, `idle` or `waiting`.
    pub status: &'static str,
    /// What it waits for.
    pub waiting_for: Option<&'static str>,
}

/// The agent.
#[derive(Debug)]
pub struct Agent {
    pub(crate) config: Config,
    pub(crate) turn: Option<Turn>,
    pub(crate) turns: usize,
    pub(crate) background: usize,
    pub(crate) rules: HashSet<String>,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) tokens: u64,
    effects: Vec<Effect>,
    start_dialogs: VecDeque<Dialog>,
    pub(crate) ready: bool,
    pub(crate) draft: Draft,
    pub(crate) queue: VecDeque<String>,
    prompts: u64,
    pub(crate) exit_note: Option<Now>,
    pub(crate) notify_at: Option<Now>,
}

impl Agent {
    /// Creates the agent. Nothing is shown before [`Agent::boot`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            turns: config.resumed.unwrap_or(0),
            config,
            turn: None,
            background: 0,
            rules: HashSet::new(),
            dialog: None,
            tokens: 0,
            effects: Vec::new(),
            start_dialogs: VecDeque::new(),
            ready: false,
            draft: Draft::default(),
            queue: VecDeque::new(),
            prompts: 0,
            exit_note: None,
            notify_at: None,
        }
    }

    /// Ends the start-up: shows the first dialog or the input box.
    pub fn boot(&mut self, now: Now) {
        let mut dialogs = Vec::new();
        if self.config.ask_trust {
            dialogs.push(Menu::trust(&self.config.cwd));
        }
        if self.config.ask_login {
            dialogs.push(Menu::login());
        }
        if self.config.dangerous {
            dialogs.push(Menu::bypass());
        }
        if !self.config.headless {
            self.start_dialogs = dialogs.into_iter().map(Dialog::Menu).collect();
        }
        self.next_start_dialog(now);
    }

    fn next_start_dialog(&mut self, now: Now) {
        if let Some(dialog) = self.start_dialogs.pop_front() {
            self.open_dialog(dialog, now);
            return;
        }
        self.ready = true;
        self.greet();
        let source = if self.config.resumed.is_some() { "resume" } else { "startup" };
        self.effect(Effect::hook("SessionStart", json!({"source": source, "model": self.config.model})));
        self.idle_since(now);
        if let Some(prompt) = self.config.prompt.take() {
            self.submit(prompt, now);
        }
    }

    fn greet(&mut self) {
        let hello = format!("demo agent {} · {}", env!("CARGO_PKG_VERSION"), self.config.model);
        self.print(Entry::Note(hello));
        self.print(Entry::Note(format!("  {}", self.config.cwd)));
        if self.config.resumed.is_some() {
            self.print(Entry::Note(format!("resumed {}", self.config.session)));
        }
    }

    /// Takes the pending effects.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn print(&mut self, entry: Entry) {
        self.effect(Effect::Print(entry));
    }

    pub(crate) fn quit(&mut self, code: i32, reason: &'static str) {
        self.effect(Effect::Quit { code, reason });
    }

    pub(crate) fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    pub(crate) fn idle_since(&mut self, now: Now) {
        self.notify_at = self.config.hooks.then_some(now + NOTIFY_IDLE);
    }

    /// Handles terminal input.
    pub fn input(&mut self, input: Input, now: Now) {
        let into = match (&self.dialog, &self.turn) {
            (Some(dialog), _) => dialog.name(),
            (None, Some(_)) => "working",
            (None, None) => "box",
        };
        self.effect(Effect::Log(match &input {
            Input::Text(text) => json!({"key": "text", "bytes": text.len(), "into": into}),
            Input::Paste(text) => json!({"key": "paste", "bytes": text.len(), "into": into}),
            Input::Key(key) => json!({"key": key.name(), "into": into}),
        }));
        if self.is_deaf() {
            return;
        }
        if self.dialog.is_some() {
            self.dialog_input(input, now);
        } else {
            self.box_input(input, now);
        }
    }

    /// Whether the open dialog ignores every key.
    fn is_deaf(&self) -> bool {
        let at_start = |dialog: &Dialog| matches!(dialog, Dialog::Menu(menu) if matches!(menu.kind, Kind::Trust | Kind::Login | Kind::Bypass));
        self.config.deaf && self.dialog.as_ref().is_some_and(at_start)
    }

    fn dialog_input(&mut self, input: Input, now: Now) {
        let presses: Vec<DialogKey> = match input {
            Input::Text(text) => text.chars().map(DialogKey::Char).collect(),
            Input::Paste(text) => vec![DialogKey::Paste(text)],
            Input::Key(key) => match key {
                Key::Enter { .. } => vec![DialogKey::Enter],
                Key::Esc | Key::CtrlC => vec![DialogKey::Esc],
                Key::Up => vec![DialogKey::Up],
                Key::Down => vec![DialogKey::Down],
                Key::Left => vec![DialogKey::Left],
                Key::Right | Key::Tab => vec![DialogKey::Right],
                Key::Backspace => vec![DialogKey::Backspace],
                _ => vec![],
            },
        };
        for press in presses {
            // If a digit closes the dialog, the rest of the same read goes into the input box.
            let Some(dialog) = self.dialog.as_mut() else {
                if let DialogKey::Char(c) = press {
                    self.draft.type_text(c.encode_utf8(&mut [0; 4]));
                }
                continue;
            };
            let reply = dialog.press(press);
            if reply != Reply::Open {
                self.answered(reply, now);
            }
        }
    }

    /// Opens a dialog in place of the input box.
    pub(crate) fn open_dialog(&mut self, dialog: Dialog, now: Now) {
        self.effect(Effect::Log(json!({"opened": dialog.name()})));
        self.notify_at = (self.config.hooks && self.ready).then_some(now + NOTIFY_DIALOG);
        self.dialog = Some(dialog);
    }

    fn answered(&mut self, reply: Reply, now: Now) {
        let Some(dialog) = self.dialog.take() else { return };
        self.notify_at = None;
        self.log_answer(&dialog, &reply);
        let start_up = !self.ready;
        match (&dialog, &reply) {
            (Dialog::Menu(menu), _) if start_up => {
                let goes_on = match (menu.kind, &reply) {
                    (Kind::Trust, Reply::Chosen(0, _)) | (Kind::Bypass, Reply::Chosen(1, _)) => true,
                    (Kind::Login, Reply::Chosen(choice, _)) => *choice < 2,
                    _ => false,
                };
                if goes_on { self.next_start_dialog(now) } else { self.quit(1, "other") }
            }
            (Dialog::Menu(menu), reply) if menu.kind == Kind::Model => {
                if let Reply::Chosen(index, _) = reply
                    && let Some(model) = menu.options.get(*index)
                {
                    self.config.model.clone_from(model);
                    self.print(Entry::Note(format!("model set to {model}")));
                }
                self.idle_since(now);
            }
            _ => self.dialog_closed(&reply, now),
        }
    }

    fn log_answer(&mut self, dialog: &Dialog, reply: &Reply) {
        let (choice, by) = match (dialog, reply) {
            (Dialog::Menu(menu), Reply::Chosen(index, by)) => {
                (json!(menu.options.get(*index).map_or("", String::as_str)), *by)
            }
            (_, Reply::Answered(answers, by)) => {
                (answers.iter().map(|a| json!({&a.header: a.chosen})).collect(), *by)
            }
            _ => (Value::Null, AnsweredBy::Esc),
        };
        self.effect(Effect::Log(json!({"dialog": dialog.name(), "choice": choice, "by": by.name()})));
    }

    fn box_input(&mut self, input: Input, now: Now) {
        let exit_note = self.exit_note.take();
        match input {
            Input::Text(text) => self.draft.type_text(&text),
            Input::Paste(text) => self.draft.paste(text),
            Input::Key(key) => match key {
                Key::Enter { burst: true } if self.config.burst => self.draft.type_text("\n"),
                Key::Enter { .. } if self.draft.is_empty() || self.draft.continue_after_backslash() => {}
                Key::Enter { .. } => {
                    let text = self.draft.take();
                    self.submit(text, now);
                }
                Key::Newline => self.draft.type_text("\n"),
                Key::Backspace => self.draft.backspace(),
                Key::CtrlU => self.draft.clear_line(),
                Key::Esc => self.interrupt(now),
                Key::CtrlC => {
                    if !self.draft.is_empty() {
                        self.draft.clear();
                    } else if self.turn.is_some() {
                        self.interrupt(now);
                    } else if exit_note.is_some_and(|until| now < until) {
                        self.quit(0, "prompt_input_exit");
                    } else {
                        self.exit_note = Some(now + EXIT_NOTE);
                    }
                }
                Key::CtrlD if self.draft.is_empty() && self.turn.is_none() => {
                    self.quit(0, "prompt_input_exit");
                }
                _ => {}
            },
        }
    }

    /// Submits a prompt.
    pub fn submit(&mut self, text: String, now: Now) {
        let queued = self.turn.is_some();
        self.prompts += 1;
        self.effect(Effect::Log(json!({
            "n": self.prompts, "bytes": text.len(), "fnv": format!("{:016x}", fnv1a64(text.as_bytes())),
            "queued": queued, "text": text,
        })));
        if queued {
            self.queue.push_back(text);
        } else {
            self.perform(text, now);
        }
    }

    fn perform(&mut self, text: String, now: Now) {
        match text.trim() {
            "" => {}
            "/exit" | "/quit" => self.quit(0, "prompt_input_exit"),
            "/clear" => self.clear_conversation(now),
            "/model" => {
                let mut models: Vec<String> = MODELS.iter().map(|m| (*m).to_owned()).collect();
                if !models.contains(&self.config.model) {
                    models.insert(0, self.config.model.clone());
                }
                self.open_dialog(Dialog::Menu(Menu::model(&models, &self.config.model)), now);
            }
            "/help" => self.print(Entry::Note(format!(
                "/model  pick a model\n/clear  new conversation\n/exit   leave\n\n{}",
                crate::step::HELP
            ))),
            _ => {
                self.notify_at = None;
                self.start_turn(text, now);
            }
        }
    }

    fn clear_conversation(&mut self, now: Now) {
        self.effect(Effect::hook("SessionEnd", json!({"reason": "clear"})));
        // Derived instead of random, so that a script always has the same ids.
        let seed = format!("{} after {}", self.config.session, self.prompts);
        let half = fnv1a64(seed.as_bytes());
        self.config.session = format!("{half:016x}{:016x}", fnv1a64(&half.to_le_bytes()));
        self.config.resumed = None;
        self.turns = 0;
        self.rules.clear();
        self.effect(Effect::Session(self.config.session.clone()));
        self.effect(Effect::ClearScreen);
        self.greet();
        self.effect(Effect::hook("SessionStart", json!({"source": "clear", "model": self.config.model})));
        self.idle_since(now);
    }

    /// Puts a withdrawn prompt and the queued prompts back into the input box.
    pub(crate) fn back_into_box(&mut self, first: Option<String>) {
        let texts: Vec<String> = first.into_iter().chain(self.queue.drain(..)).collect();
        if !texts.is_empty() {
            self.draft.restore(texts.join("\n"));
        }
    }

    /// Ends the turn and starts the next queued prompt.
    pub(crate) fn turn_over(&mut self, outcome: Outcome, now: Now) {
        if self.config.headless {
            let code = i32::from(outcome == Outcome::Failed);
            self.quit(code, "other");
            return;
        }
        self.idle_since(now);
        match outcome {
            Outcome::Stopped => self.back_into_box(None),
            Outcome::Finished | Outcome::Failed => {
                while self.turn.is_none()
                    && self.dialog.is_none()
                    && let Some(text) = self.queue.pop_front()
                {
                    self.perform(text, now);
                }
            }
        }
    }

    /// Handles an external event.
    pub fn handle_event(&mut self, event: ExternalEvent, now: Now) {
        match event {
            ExternalEvent::BackgroundEnded => self.background = self.background.saturating_sub(1),
            ExternalEvent::Decided { token, decision } => self.decided(token, decision.as_ref(), now),
            ExternalEvent::Ran { token, output, code } => self.ran(token, &output, code, now),
        }
    }

    /// Handles the passing of time.
    pub fn tick(&mut self, now: Now) {
        if self.exit_note.is_some_and(|until| now >= until) {
            self.exit_note = None;
        }
        if self.notify_at.is_some_and(|at| now >= at) {
            self.notify_at = None;
            let (kind, message) = match &self.dialog {
                Some(dialog) => ("permission_prompt", format!("Demo needs an answer: {}", dialog.name())),
                None => ("idle_prompt", "Demo is waiting for your input".to_owned()),
            };
            let fields = json!({"message": message, "notification_type": kind});
            self.effect(Effect::hook("Notification", fields));
        }
        self.advance(now);
    }
}
