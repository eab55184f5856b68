//! The pane's end, as reported by tmux.

use super::Look;
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::observation::Reading;

pub(super) fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if look.obs.server_died {
        return vec![look.standing(
            Source::Pane,
            Claim::ServerDied,
            "the tmux server that it ran in has died",
        )];
    }
    if matches!(look.obs.pane, Reading::Absent) {
        let gone = Claim::PaneDead { code: None, signal: None };
        return vec![look.standing(Source::Pane, gone, "the tmux session is gone")];
    }
    let Some(pane) = look.pane().filter(|pane| pane.dead) else { return Vec::new() };
    let (code, signal) = (pane.exit_status, pane.exit_signal);
    let quote = match (code, signal) {
        (_, Some(signal)) => format!("pane_dead=1 pane_dead_signal={signal}"),
        (Some(code), None) => format!("pane_dead=1 pane_dead_status={code}"),
        (None, None) => "pane_dead=1, no exit status yet".to_owned(),
    };
    vec![look.standing(Source::Pane, Claim::PaneDead { code, signal }, &quote)]
}
