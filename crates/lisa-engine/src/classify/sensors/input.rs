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

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{Claim, ClaimKind, Source},
        sensors::testing::*,
    };

    #[test]
    fn an_input_box_is_shown_with_the_text_that_is_in_it() {
        let empty = Session::new("claude").look(&blank(1_000).screen(&idle_screen()));
        assert!(claims(&empty, Source::Screen).contains(&ClaimKind::InputShown));
        assert_eq!((empty.signals.input_shown, empty.signals.draft), (true, None));
        let typed = idle_screen().replace("❯\u{a0}\n", "❯\u{a0}half a thought\n");
        let typed = Session::new("claude").look(&blank(1_000).screen(&typed));
        let draft = Some("half a thought".to_owned());
        let shown = Claim::InputShown { draft: draft.clone() };
        assert!(from(&typed, Source::Screen).iter().any(|item| item.claim == shown));
        assert_eq!(typed.signals.draft, draft);
    }

    #[test]
    fn lines_without_a_box_are_plain_text_unless_a_program_has_the_whole_screen() {
        let plain = blank(1_000).screen("one\ntwo\nthree\n");
        let says = |obs| claims(&Session::new("claude").look(&obs), Source::Screen);
        assert_eq!(says(plain.clone()), [ClaimKind::PlainText]);
        assert_eq!(says(plain.pane(|pane| pane.alternate = true)), []);
        assert_eq!(says(blank(1_000).screen("$ \n")), [], "too little to tell");
    }

    #[test]
    fn a_box_that_was_there_and_is_gone_is_covered_but_not_in_a_mode_of_tmux() {
        let covered = |in_mode: bool| {
            let mut session = Session::new("claude");
            session.look(&blank(1_000).screen(&idle_screen()));
            let pager = blank(2_000).screen("a page of text\n:\n").pane(|pane| pane.in_mode = in_mode);
            claims(&session.look(&pager), Source::Screen).contains(&ClaimKind::Covered)
        };
        assert!(covered(false) && !covered(true));
        let never = Session::new("claude").look(&blank(1_000).screen("a page of text\n:\n"));
        assert_eq!(claims(&never, Source::Screen), []);
    }
}
