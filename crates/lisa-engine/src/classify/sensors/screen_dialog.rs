//! A dialog on the screen, in the place for dialogs.

use super::Look;
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::prompt;

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.pane().is_some_and(|pane| pane.dead) {
        return Vec::new();
    }
    let Some(shown) = look.dialog.clone() else { return Vec::new() };
    let ask = [&look.memory.hooks, &look.memory.notify].into_iter().find_map(|fold| fold.ask.as_ref());
    let prompt = prompt::complete(look.profile, shown, ask);
    let quote = prompt.title.clone();
    vec![look.standing(Source::Screen, Claim::Dialog { prompt }, &quote)]
}
