//! The input box, and unsent text in it. Or what is in its place: plain text, or something unknown.

use super::{Look, Sensor};
use crate::api::words::Signals;
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::prompt;
use crate::classify::screen::Layout;

/// Minimum number of lines that count as plain text; fewer are a warning, or the echo of what somebody typed.
const PLAIN_LINES: usize = 3;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn show(look: &Look<'_>, signals: &mut Signals) {
    let input = look.layout.as_ref().and_then(|layout| layout.input());
    signals.input_shown = input.is_some();
    signals.draft = input.and_then(|input| input.draft.clone());
}

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.is_dead() {
        return Vec::new();
    }
    let Some(layout) = &look.layout else { return Vec::new() };
    let Some(input) = layout.input() else {
        return plain(look, layout).into_iter().chain(covered(look, layout)).collect();
    };
    let quote = input.draft.as_deref().unwrap_or("an empty input box").to_owned();
    vec![look.standing(Source::Screen, Claim::InputShown { draft: input.draft.clone() }, &quote)]
}

fn plain(look: &Look<'_>, layout: &Layout<'_>) -> Option<Evidence> {
    let lines = layout.rows().iter().filter(|row| !row.trim().is_empty()).count();
    let plain =
        lines >= PLAIN_LINES && look.dialog.is_none() && look.pane().is_some_and(|pane| !pane.alternate);
    let last = layout.rows().last().copied().unwrap_or_default();
    plain.then(|| look.standing(Source::Screen, Claim::PlainText, last.trim()))
}

/// An input box that was visible and no longer is counts as covered: by a pager, an editor, a new dialog. In a mode of
/// tmux the cursor is tmux's own and says nothing about the box.
fn covered(look: &Look<'_>, layout: &Layout<'_>) -> Option<Evidence> {
    let pane = look.pane().filter(|pane| !pane.in_mode)?;
    let was_there = look.memory.input_shown_at.is_some() && !layout.is_blank() && look.dialog.is_none();
    was_there.then(|| {
        let prompt = prompt::unknown(look.profile, layout);
        let quote = format!(
            "{} (the cursor is {})",
            prompt.title,
            if pane.cursor_visible { "shown" } else { "hidden" }
        );
        look.standing(Source::Screen, Claim::Covered { prompt }, &quote)
    })
}
