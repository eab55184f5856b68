//! The input box, and a draft that somebody left in it; or plain text where neither box nor dialog is.

use super::Look;
use crate::evidence::{Claim, Evidence, Source};

/// How many lines make a text; fewer are a warning, or the echo of what somebody typed.
const PLAIN_LINES: usize = 3;

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.pane().is_some_and(|pane| pane.dead) {
        return Vec::new();
    }
    let Some(layout) = &look.layout else { return Vec::new() };
    let Some(input) = layout.input() else {
        let lines = layout.rows().iter().filter(|row| !row.trim().is_empty()).count();
        let plain =
            lines >= PLAIN_LINES && look.dialog.is_none() && look.pane().is_some_and(|pane| !pane.alternate);
        let last = layout.rows().last().copied().unwrap_or_default();
        return plain
            .then(|| look.standing(Source::Screen, Claim::PlainText, last.trim()))
            .into_iter()
            .collect();
    };
    let quote = input.draft.as_deref().unwrap_or("an empty input box").to_owned();
    vec![look.standing(Source::Screen, Claim::InputShown { draft: input.draft.clone() }, &quote)]
}
