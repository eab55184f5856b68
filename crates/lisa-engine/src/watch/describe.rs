//! Converts a verdict to the types of the API.

use super::{judge::Judged, record::timestamp};
use crate::{
    api::{Session, Usage, words::State},
    session::{find::SessionSnapshot, names},
};

/// A session as the API shows it.
pub(crate) fn describe(snapshot: &SessionSnapshot, judged: &Judged, with_signals: bool) -> Session {
    let meta = &snapshot.meta;
    let verdict = &judged.outcome.verdict;
    let signals = &judged.outcome.signals;
    let at = judged.observation.at;
    let usage = &judged.outcome.usage;
    let mut session = Session {
        name: meta.name.clone(),
        agent: meta.agent.clone(),
        status: verdict.status(),
        state: verdict.state.name(),
        attention: verdict.attention,
        reason: verdict.reason,
        confidence: verdict.confidence,
        source: verdict.source.map_or("none", |source| source.as_str()).to_owned(),
        since: timestamp(verdict.since),
        // The age of the screen counts from the first look that saw it. tmux knows about earlier output too, but also
        // counts output that changed nothing.
        idle_ms: signals
            .output_age_ms
            .max(signals.window_activity_age_ms)
            .unwrap_or_else(|| at.since(verdict.since)),
        started_at: timestamp(meta.started_at),
        activity: None,
        tool: None,
        prompt: verdict.state.prompt().cloned(),
        last_message: None,
        asks: None,
        error: None,
        exit: None,
        expected: None,
        failed_signals: Vec::new(),
        mode: meta.mode,
        cwd: meta.cwd.display().to_string(),
        project: names::project_name(&meta.project_root),
        project_hash: names::project_hash(&meta.project_root),
        tag: meta.tag.clone(),
        parent: meta.parent.clone(),
        depth: meta.depth,
        host: meta.host.clone(),
        pid: signals
            .agent_pid
            .or_else(|| snapshot.pane.as_ref().filter(|row| !row.pane.dead).map(|row| row.pane.pid)),
        run_id: meta.run_id.clone(),
        agent_session_id: judged
            .record
            .memory
            .session_id()
            .map(str::to_owned)
            .or_else(|| meta.agent_session_id.clone()),
        turn: judged.record.turn.as_ref().map(|turn| turn.id.clone()),
        subagents: signals.subagents,
        background_tasks: signals.background_tasks,
        todos: signals.todos.clone(),
        wait_estimate_s: judged.outcome.wait_estimate_s,
        usage: (*usage != crate::classify::memory::Usage::default()).then(|| Usage {
            model: usage.model.clone(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            context_tokens: usage.input_tokens,
            context_size: usage.context_window,
            cost_usd: None,
        }),
        signals: None,
    };
    // While a turn is running, the last message is from the previous turn.
    let settled = !matches!(verdict.state, State::Starting | State::Working { .. });
    if settled {
        session.last_message = judged.record.memory.last_message().map(str::to_owned);
    }
    match &verdict.state {
        State::Working { activity, tool } => {
            session.activity = Some(*activity);
            session.tool.clone_from(tool);
        }
        State::Ready { last_message, asks } => {
            if last_message.is_some() {
                session.last_message.clone_from(last_message);
            }
            session.asks = Some(*asks);
        }
        State::Error { failure } => session.error = Some(failure.clone()),
        State::Exited { exit } => session.exit = Some(exit.clone()),
        State::Stalled { expected } => session.expected = Some(expected.clone()),
        State::Unknown { failed } => session.failed_signals.clone_from(failed),
        _ => {}
    }
    if with_signals && let Ok(serde_json::Value::Object(map)) = serde_json::to_value(signals) {
        session.signals = Some(map);
    }
    session
}
