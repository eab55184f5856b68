//! The terminal title, which an agent sets as it goes.

use super::Look;
use crate::evidence::{Claim, Evidence, Source};
use crate::profile::TitleSays;
use crate::words::Activity;

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
