//! The event channels: hooks, notifications, transcript.

use super::Look;
use crate::api::words::{Activity, Failure, StateName};
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::memory::{Fold, Phase};
use crate::classify::observation::At;
use crate::classify::prompt;
use crate::classify::resolve::is_expired;

pub(super) fn hooks(look: &Look<'_>) -> Vec<Evidence> {
    channel(look, &look.memory.hooks, Source::Hook)
}

pub(super) fn notify(look: &Look<'_>) -> Vec<Evidence> {
    channel(look, &look.memory.notify, Source::Notify)
}

pub(super) fn transcript(look: &Look<'_>) -> Vec<Evidence> {
    channel(look, &look.memory.transcript, Source::Transcript)
}

fn channel(look: &Look<'_>, fold: &Fold, source: Source) -> Vec<Evidence> {
    if look.pane().is_some_and(|pane| pane.dead) {
        return Vec::new();
    }
    let quote = fold.last.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
    let mut evidence = Vec::new();
    let mut say = |claim: Claim, at: At| evidence.push(Evidence::new(source, at, claim, quote));
    if let Some(ask) = &fold.ask {
        say(Claim::Asking { prompt: Some(prompt::from_ask(look.profile, ask)) }, ask.at);
    }
    match fold.phase {
        Phase::Unknown | Phase::Left => {}
        Phase::Up => say(Claim::Up, fold.phase_at),
        Phase::Running => {
            let alive = last_sign_of_life(look, fold);
            if !is_expired(StateName::Working, look.now().since(alive)) {
                say(working(fold), fold.alive_at.unwrap_or(fold.phase_at));
            }
        }
        Phase::Over => say(
            Claim::TurnOver { background: fold.background > 0 || !fold.subagents.is_empty() },
            fold.phase_at,
        ),
        Phase::Interrupted => say(Claim::Interrupted, fold.phase_at),
        Phase::Failed => {
            let unknown = || Failure {
                kind: crate::api::words::ErrorKind::Api,
                recoverable: true,
                message: String::new(),
            };
            say(Claim::Failed { failure: fold.failure.clone().unwrap_or_else(unknown) }, fold.phase_at);
        }
    }
    evidence
}

/// The last sign that the turn of this channel is still running.
fn last_sign_of_life(look: &Look<'_>, fold: &Fold) -> At {
    let told = fold.alive_at.unwrap_or(fold.phase_at);
    let screen = look.memory.output.changed_at;
    let busy = look.memory.agent.busy_at.unwrap_or(told);
    told.max(screen).max(busy)
}

fn working(fold: &Fold) -> Claim {
    let tool = fold.tools.values().next_back().filter(|tool| !tool.is_empty()).cloned();
    let activity = if fold.activity == Some(Activity::Compacting) {
        Activity::Compacting
    } else if !fold.subagents.is_empty() {
        Activity::Subagent
    } else if !fold.tools.is_empty() {
        Activity::Tool
    } else {
        fold.activity.unwrap_or(Activity::Thinking)
    };
    Claim::Working { activity, tool }
}
