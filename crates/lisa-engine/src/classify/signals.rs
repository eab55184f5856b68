//! Every signal that a verdict can be based on, with its value, age and error.

use crate::classify::memory::Fold;
use crate::classify::memory::Phase;
use crate::classify::observation::{At, Reading};
use crate::classify::profile::{NativeSays, TitleSays};
use crate::classify::sensors::{Look, exec_marker, process, todos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every signal. An absent value means that there is none; an error means that it couldn't be read.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Signals {
    /// `alive`, `exited` or `crashed`.
    pub pane_status: Option<String>,
    /// The foreground program of the pane.
    pub pane_command: Option<String>,
    /// Why tmux couldn't be read.
    pub tmux_read_error: Option<String>,
    /// Why the screen couldn't be captured.
    pub capture_error: Option<String>,
    /// The process id of the agent.
    pub agent_pid: Option<u32>,
    /// Its CPU usage since the last look, in tenths of a percent of one core.
    pub agent_cpu_permille: Option<u64>,
    /// Why processes couldn't be read.
    pub agent_scan_error: Option<String>,
    /// A hash of the screen.
    pub output_hash: Option<String>,
    /// Milliseconds since the screen changed.
    pub output_age_ms: Option<u64>,
    /// Milliseconds since the last output in the window, according to tmux.
    pub window_activity_age_ms: Option<u64>,
    /// Whether the screen shows a dialog.
    pub prompt_waiting: bool,
    /// Whether the screen shows the input box.
    pub input_shown: bool,
    /// Unsent text in the input box.
    pub draft: Option<String>,
    /// Whether the terminal's cursor is shown.
    pub cursor_visible: Option<bool>,
    /// Whether the pane is in copy mode or another mode of tmux.
    pub in_mode: Option<bool>,
    /// The terminal title.
    pub title: Option<String>,
    /// The title's meaning: `working`, `idle` or `asking`.
    pub title_status: Option<String>,
    /// The meaning of the agent's state file: `working`, `idle`, `background` or `asking`.
    pub native_status: Option<String>,
    /// Why the state file couldn't be read.
    pub native_error: Option<String>,
    /// The exit code in the marker at the end of the output.
    pub exec_marker: Option<i32>,
    /// The content of this run's done file: an exit code, or `signal N`.
    pub done_file: Option<String>,
    /// Why the done file couldn't be read.
    pub done_file_read_error: Option<String>,
    /// Milliseconds since the last heartbeat of the run's supervisor.
    pub heartbeat_age_ms: Option<u64>,
    /// Why the heartbeat couldn't be read.
    pub heartbeat_error: Option<String>,
    /// The last hook event.
    pub last_hook: Option<String>,
    /// Milliseconds since the last hook event.
    pub last_hook_age_ms: Option<u64>,
    /// Why hooks couldn't be read.
    pub hook_error: Option<String>,
    /// Whether the transcript says that the turn is over.
    pub transcript_turn_complete: Option<bool>,
    /// Milliseconds since the transcript's last line.
    pub transcript_age_ms: Option<u64>,
    /// Why the transcript couldn't be read.
    pub transcript_error: Option<String>,
    /// How many subagents are working.
    pub subagents: u32,
    /// How many background tasks are still running after the turn.
    pub background_tasks: u32,
    /// The task list on the screen.
    pub todos: Option<todos::Todos>,
    /// Milliseconds that this look waited for the state lock.
    pub state_lock_wait_ms: u64,
    /// Why the session's metadata couldn't be read.
    pub meta_read_error: Option<String>,
    /// Why the session's stored state couldn't be read.
    pub state_read_error: Option<String>,
    /// Why an event couldn't be written.
    pub events_write_error: Option<String>,
}

impl Signals {
    /// Collects the signals of one look.
    pub fn read(look: &Look<'_>) -> Self {
        let (obs, memory, now) = (look.obs, look.memory, look.now());
        let shape = look.profile.screen.todos.as_ref();
        let pane = look.pane();
        let stream =
            |name: &str| obs.stream_errors.iter().find(|(of, _)| *of == name).map(|(_, why)| why.clone());
        let folds = [&memory.hooks, &memory.notify, &memory.transcript];
        let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let input = look.layout.as_ref().and_then(|layout| layout.input());
        let done = obs.done.seen().filter(|done| done.run_id == obs.run_id);
        let agent = pane.zip(obs.procs.seen());
        let agent = agent.and_then(|(pane, procs)| process::find_agent(look.profile, pane.pid, procs));
        Self {
            pane_status: pane.map(|pane| {
                let failed = pane.exit_signal.is_some() || pane.exit_status.is_some_and(|code| code != 0);
                let word = if !pane.dead {
                    "alive"
                } else if failed {
                    "crashed"
                } else {
                    "exited"
                };
                word.to_owned()
            }),
            pane_command: pane.map(|pane| pane.command.clone()).filter(|command| !command.is_empty()),
            tmux_read_error: why(&obs.pane),
            capture_error: why(&obs.screen),
            agent_pid: agent.map(|agent| agent.pid),
            agent_cpu_permille: memory.agent.cpu_permille.filter(|_| memory.agent.at == now),
            agent_scan_error: why(&obs.procs),
            output_hash: memory.output.hash.clone(),
            output_age_ms: memory.output.hash.as_ref().map(|_| now.since(memory.output.changed_at)),
            window_activity_age_ms: pane.map(|pane| now.since(pane.activity)),
            prompt_waiting: look.dialog.is_some(),
            input_shown: input.is_some(),
            draft: input.and_then(|input| input.draft.clone()),
            cursor_visible: pane.map(|pane| pane.cursor_visible),
            in_mode: pane.map(|pane| pane.in_mode),
            title: pane.map(|pane| pane.title.clone()),
            title_status: look.title_says().and_then(|says| match says {
                TitleSays::Working => Some("working".to_owned()),
                TitleSays::Idle => Some("idle".to_owned()),
                TitleSays::Asking => Some("asking".to_owned()),
                TitleSays::Nothing => None,
            }),
            native_status: look.native_says().map(|rule| {
                let word = match rule.says {
                    NativeSays::Working => "working",
                    NativeSays::Idle => "idle",
                    NativeSays::Background => "background",
                    NativeSays::Asking => "asking",
                };
                word.to_owned()
            }),
            native_error: why(&obs.native),
            exec_marker: obs.screen.seen().and_then(|screen| exec_marker::find(screen)),
            done_file: done.map(|done| match (done.signal, done.code) {
                (Some(signal), _) => format!("signal {signal}"),
                (None, Some(code)) => code.to_string(),
                (None, None) => "unknown".to_owned(),
            }),
            done_file_read_error: why(&obs.done),
            heartbeat_age_ms: obs.heartbeat.seen().map(|at| now.since(*at)),
            heartbeat_error: why(&obs.heartbeat),
            last_hook: memory.hooks.last.as_ref().map(|(name, _)| name.clone()),
            last_hook_age_ms: age(&memory.hooks, now),
            hook_error: stream("hook_error").or_else(|| memory.hooks.error.clone()),
            transcript_turn_complete: match memory.transcript.phase {
                Phase::Unknown | Phase::Up => None,
                phase => Some(phase != Phase::Running),
            },
            transcript_age_ms: age(&memory.transcript, now),
            transcript_error: stream("transcript_error").or_else(|| memory.transcript.error.clone()),
            subagents: folds.iter().map(|fold| count(fold.subagents.len())).max().unwrap_or(0),
            background_tasks: folds.iter().map(|fold| fold.background).max().unwrap_or(0),
            todos: shape.zip(obs.screen.seen()).and_then(|(shape, screen)| todos::read(shape, screen)),
            state_lock_wait_ms: obs.lock_wait_ms,
            meta_read_error: stream("meta_read_error"),
            state_read_error: stream("state_read_error"),
            events_write_error: stream("events_write_error"),
        }
    }
}

impl Signals {
    /// Adds an error that occurred after the look itself.
    pub fn note_error(&mut self, name: &str, why: &str) {
        let slot = match name {
            "meta_read_error" => &mut self.meta_read_error,
            "state_read_error" => &mut self.state_read_error,
            "events_write_error" => &mut self.events_write_error,
            _ => return,
        };
        *slot = Some(why.to_owned());
    }
}

fn why<T>(reading: &Reading<T>) -> Option<String> {
    reading.failure().map(str::to_owned)
}

fn age(fold: &Fold, now: At) -> Option<u64> {
    fold.last.as_ref().map(|(_, at)| now.since(*at))
}
