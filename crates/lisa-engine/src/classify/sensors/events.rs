//! What the agent says on its event channels: hooks, transcript, notifications.

use super::{Look, Sensor};
use crate::api::words::{Activity, ErrorKind, Failure, Signals, StateName};
use crate::classify::channel::Channel;
use crate::classify::evidence::{Claim, Evidence};
use crate::classify::memory::{Fold, Phase};
use crate::classify::observation::At;
use crate::classify::prompt;
use crate::classify::resolve::is_expired;

/// How long an agent may take to come back once its last subagent has ended.
const RETURN_MS: u64 = 5_000;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    Channel::ALL.into_iter().flat_map(|channel| told(look, channel)).collect()
}

fn show(look: &Look<'_>, signals: &mut Signals) {
    let feeds = &look.memory.feeds;
    let age = |fold: &Fold| fold.last.as_ref().map(|(_, at)| look.now().since(*at));
    signals.last_hook = feeds.hook.last.as_ref().map(|(name, _)| name.clone());
    signals.last_hook_age_ms = age(&feeds.hook);
    signals.transcript_turn_complete = match feeds.transcript.phase {
        Phase::Unknown | Phase::Up => None,
        phase => Some(phase != Phase::Running),
    };
    signals.transcript_age_ms = age(&feeds.transcript);
    signals.hook_error = error(look, Channel::Hook).map(str::to_owned);
    signals.notify_error = error(look, Channel::Notify).map(str::to_owned);
    signals.transcript_error = error(look, Channel::Transcript).map(str::to_owned);
    signals.subagents = feeds.all().iter().map(|fold| fold.working_subagents()).max().unwrap_or(0);
    signals.background_tasks = feeds.all().iter().map(|fold| fold.background).max().unwrap_or(0);
}

/// Why a channel couldn't be read, or its last line.
fn error<'a>(look: &Look<'a>, channel: Channel) -> Option<&'a str> {
    let unreadable = look.obs.feeds[channel].error.as_deref();
    unreadable.or_else(|| look.memory.feeds[channel].error.as_deref())
}

fn told(look: &Look<'_>, channel: Channel) -> Vec<Evidence> {
    let (fold, source) = (&look.memory.feeds[channel], channel.source());
    let mut evidence: Vec<Evidence> =
        error(look, channel).map(|why| look.unreadable(source, channel.error(), why)).into_iter().collect();
    if look.is_dead() {
        return evidence;
    }
    let quote = fold.last.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
    let mut say = |claim: Claim, at: At| evidence.push(Evidence::new(source, at, claim, quote));
    if let Some(ask) = fold.open.last() {
        say(Claim::Asking { prompt: Some(prompt::from_ask(look.profile, ask)) }, ask.at);
    }
    let turns = &look.memory.turns;
    if fold.turn.as_ref().is_some_and(|turn| turns.is_past(turn)) {
        return evidence;
    }
    let alive = !is_expired(StateName::Working, look.now().since(last_sign_of_life(look, fold)));
    match fold.phase {
        Phase::Unknown | Phase::Left => {}
        Phase::Up => say(Claim::Up, fold.phase_at),
        Phase::Running => {
            let over = fold.turn.as_ref().is_some_and(|turn| turns.is_over(turn));
            if alive && !over {
                say(working(fold), fold.alive_at.unwrap_or(fold.phase_at));
            }
        }
        Phase::Over if subagents_go_on(look, fold) => {
            if alive {
                say(Claim::Working { activity: Activity::Background, tool: None }, fold.phase_at);
            }
        }
        Phase::Over => say(Claim::TurnOver { background: fold.background > 0 }, fold.phase_at),
        Phase::Interrupted => say(Claim::Interrupted, fold.phase_at),
        Phase::Failed => {
            let unknown = || Failure { kind: ErrorKind::Api, recoverable: true, message: String::new() };
            say(Claim::Failed { failure: fold.failure.clone().unwrap_or_else(unknown) }, fold.phase_at);
        }
    }
    evidence
}

/// Whether subagents go on after the turn, or the last of them has just ended: the agent comes back by itself.
fn subagents_go_on(look: &Look<'_>, fold: &Fold) -> bool {
    let ended = fold.subagent_ended_at.filter(|at| *at > fold.phase_at);
    fold.working_subagents() > 0 || ended.is_some_and(|at| look.now().since(at) < RETURN_MS)
}

/// The last sign that the turn of this channel is still running.
fn last_sign_of_life(look: &Look<'_>, fold: &Fold) -> At {
    let told = fold.alive_at.unwrap_or(fold.phase_at);
    let screen = look.memory.output.changed_at;
    let busy = look.memory.agent.busy_at.unwrap_or(told);
    told.max(screen).max(busy)
}

fn working(fold: &Fold) -> Claim {
    let tool = fold.last_tool().map(str::to_owned);
    let activity = if fold.activity == Some(Activity::Compacting) {
        Activity::Compacting
    } else if !fold.subagents.is_empty() {
        Activity::Subagent
    } else if !fold.calls.is_empty() {
        Activity::Tool
    } else {
        fold.activity.unwrap_or(Activity::Thinking)
    };
    Claim::Working { activity, tool }
}

#[cfg(test)]
mod tests {
    use crate::{
        api::words::Activity,
        classify::{
            evidence::{Claim, ClaimKind, Source},
            sensors::testing::*,
        },
    };
    use serde_json::json;

    fn hook(name: &str) -> serde_json::Value {
        json!({"hook_event_name": name, "session_id": "s", "tool_name": "Bash", "tool_use_id": "t"})
    }

    #[test]
    fn a_turn_is_working_from_its_first_hook_to_its_last() {
        let mut session = Session::new("claude");
        assert_eq!(
            claims(&session.look(&blank(1_000).hook(hook("SessionStart"))), Source::Hook),
            [ClaimKind::Up]
        );
        let tool = session.look(&blank(2_000).hook(hook("UserPromptSubmit")).hook(hook("PreToolUse")));
        let working = Claim::Working { activity: Activity::Tool, tool: Some("Bash".to_owned()) };
        assert_eq!(from(&tool, Source::Hook)[0].claim, working);
        assert_eq!(
            (tool.signals.last_hook.as_deref(), tool.signals.last_hook_age_ms),
            (Some("PreToolUse"), Some(0))
        );
        let over = session.look(&blank(3_000).hook(hook("PostToolUse")).hook(hook("Stop")));
        assert_eq!(claims(&over, Source::Hook), [ClaimKind::TurnOver]);
    }

    #[test]
    fn a_channel_that_cannot_be_read_says_why() {
        let mut obs = blank(1_000);
        obs.feeds.transcript.error = Some("permission denied".to_owned());
        let outcome = Session::new("claude").look(&obs);
        assert_eq!(claims(&outcome, Source::Transcript), [ClaimKind::Unreadable]);
        assert_eq!(outcome.signals.transcript_error.as_deref(), Some("permission denied"));
    }

    #[test]
    fn what_an_agent_said_does_not_count_once_its_pane_is_dead() {
        let dead = blank(1_000).hook(hook("UserPromptSubmit")).pane(|pane| pane.dead = true);
        assert_eq!(claims(&Session::new("claude").look(&dead), Source::Hook), []);
    }

    #[test]
    fn a_turn_without_any_sign_of_life_for_a_minute_is_not_claimed_any_more() {
        let mut session = Session::new("claude");
        session.look(&blank(1_000).hook(hook("UserPromptSubmit")));
        assert_eq!(claims(&session.look(&blank(60_000)), Source::Hook), [ClaimKind::Working]);
        assert_eq!(claims(&session.look(&blank(62_000)), Source::Hook), []);
    }

    #[test]
    fn an_agent_whose_subagents_go_on_is_working_after_its_turn() {
        let mut session = Session::new("claude");
        let subagent = |name: &str| json!({"hook_event_name": name, "session_id": "s", "agent_id": "a"});
        let begun = blank(1_000).hook(hook("UserPromptSubmit")).hook(subagent("SubagentStart"));
        session.look(&begun);
        let over = session.look(&blank(2_000).hook(hook("Stop")));
        let background = Claim::Working { activity: Activity::Background, tool: None };
        assert_eq!(from(&over, Source::Hook)[0].claim, background);
        session.look(&blank(3_000).hook(subagent("SubagentStop")));
        assert_eq!(claims(&session.look(&blank(9_000)), Source::Hook), [ClaimKind::TurnOver]);
    }
}
