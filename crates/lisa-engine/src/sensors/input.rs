//! The input box, and a draft that somebody left in it.

use super::Look;
use crate::evidence::{Claim, Evidence, Source};

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.pane().is_some_and(|pane| pane.dead) {
        return Vec::new();
    }
    let Some(input) = look.layout.as_ref().and_then(|layout| layout.input()) else { return Vec::new() };
    let quote = input.draft.as_deref().unwrap_or("an empty input box").to_owned();
    vec![look.standing(Source::Screen, Claim::InputShown { draft: input.draft.clone() }, &quote)]
}
