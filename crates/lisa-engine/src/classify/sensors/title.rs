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

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{ClaimKind, Source},
        sensors::testing::*,
    };

    #[test]
    fn a_title_says_what_its_profile_knows_of_it_and_a_shell_s_says_nothing() {
        for (agent, title, claim, shown) in [
            ("claude", "⠂ Claude Code", vec![ClaimKind::Working], Some("working")),
            ("codex", "⠋ project", vec![ClaimKind::Working], Some("working")),
            ("codex", "[ ! ] Action Required | project", vec![ClaimKind::Asking], Some("asking")),
            ("claude", "vm", vec![], None),
        ] {
            let outcome = Session::new(agent).look(&blank(1_000).title(title));
            assert_eq!(claims(&outcome, Source::Title), claim, "{agent}: {title}");
            let signals = outcome.signals;
            assert_eq!((signals.title.as_deref(), signals.title_status.as_deref()), (Some(title), shown));
        }
    }

    #[test]
    fn a_mark_that_stands_still_from_the_start_is_idle_only_once_it_has_moved() {
        let mut session = Session::new("claude");
        let mut says = |at: i64, title: &str| claims(&session.look(&blank(at).title(title)), Source::Title);
        assert_eq!(says(1_000, "✳ Claude Code"), []);
        assert_eq!(says(2_000, "⠂ Claude Code"), [ClaimKind::Working]);
        assert_eq!(says(3_000, "✳ Claude Code"), [ClaimKind::TurnOver]);
    }

    #[test]
    fn the_title_of_a_dead_pane_is_left_over() {
        let dead = blank(1_000).title("⠂ Claude Code").pane(|pane| pane.dead = true);
        assert_eq!(claims(&Session::new("claude").look(&dead), Source::Title), []);
    }
}
