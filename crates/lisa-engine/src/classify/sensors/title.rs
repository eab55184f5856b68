//! The terminal title, as set by the agent.

use super::{Look, Sensor};
use crate::api::words::{Activity, Signals};
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::profile::TitleSays;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    let Some(pane) = look.pane().filter(|pane| !pane.dead) else { return Vec::new() };
    let claim = match look.title_says() {
        Some(TitleSays::Working) => Claim::Working { activity: Activity::Thinking, tool: None },
        Some(TitleSays::Idle) => Claim::TurnOver { background: false },
        Some(TitleSays::Asking) => Claim::Asking { prompt: None },
        Some(TitleSays::Nothing) | None => return Vec::new(),
    };
    vec![look.standing(Source::Title, claim, &pane.title)]
}

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.title = look.pane().map(|pane| pane.title.clone());
    signals.title_status = look.title_says().and_then(|says| match says {
        TitleSays::Working => Some("working".to_owned()),
        TitleSays::Idle => Some("idle".to_owned()),
        TitleSays::Asking => Some("asking".to_owned()),
        TitleSays::Nothing => None,
    });
}
