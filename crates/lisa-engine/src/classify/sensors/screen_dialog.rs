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
