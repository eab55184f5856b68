//! A dialog on the screen, in the place for dialogs.

use super::{Look, Sensor};
use crate::api::words::Signals;
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::prompt;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.prompt_waiting = look.dialog.is_some();
}

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.is_dead() {
        return Vec::new();
    }
    let Some(shown) = look.dialog.clone() else { return Vec::new() };
    let open = look.memory.announced().iter().rev().filter(|ask| !look.memory.was_answered(ask));
    let prompt = prompt::complete(look.profile, shown, open);
    let quote = prompt.title.clone();
    vec![look.standing(Source::Screen, Claim::Dialog { prompt }, &quote)]
}

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{Claim, ClaimKind, Source},
        sensors::testing::*,
    };

    #[test]
    fn a_dialog_in_its_place_is_a_prompt_with_its_options() {
        let outcome = Session::new("claude").look(&blank(1_000).screen(&permission_screen("make")));
        let said = from(&outcome, Source::Screen);
        let Some(Claim::Dialog { prompt }) = said.first().map(|item| &item.claim) else { panic!("{said:?}") };
        assert_eq!((prompt.command.as_deref(), prompt.options.len()), (Some("make"), 3));
        assert!(outcome.signals.prompt_waiting);
    }

    #[test]
    fn the_same_words_in_a_message_are_none_nor_is_what_a_dead_pane_shows() {
        let quoted = format!("● It asked:\n\n{}", permission_screen("make").replace('\n', "\n  "));
        let quoted = Session::new("claude").look(&blank(1_000).screen(&conversation(&quoted, "")));
        assert!(!claims(&quoted, Source::Screen).contains(&ClaimKind::Dialog), "{:?}", quoted.evidence);
        let dead = blank(1_000).screen(&permission_screen("make")).pane(|pane| pane.dead = true);
        assert_eq!(claims(&Session::new("claude").look(&dead), Source::Screen), []);
    }
}
