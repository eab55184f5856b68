//! The terminal title, as set by the agent.

use super::Look;
use crate::api::words::Activity;
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::profile::TitleSays;

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    let Some(pane) = look.pane().filter(|pane| !pane.dead) else { return Vec::new() };
    let claim = match look.title_says() {
        Some(TitleSays::Working) => Claim::Working { activity: Activity::Thinking, tool: None },
        Some(TitleSays::Idle) => Claim::TurnOver { background: false },
        Some(TitleSays::Asking) => Claim::Asking { prompt: None },
        Some(TitleSays::Nothing) | None => return Vec::new(),
    };
    vec![look.standing(Source::Title, claim, &pane.title)]
}
