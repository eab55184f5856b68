//! The pane as reported by tmux: its end, and what callers see of it.

use super::{Look, Sensor, failure};
use crate::api::words::{SignalError, Signals};
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::observation::Reading;

pub(super) const SENSOR: Sensor = Sensor { sense, show };

fn sense(look: &Look<'_>) -> Vec<Evidence> {
    if let Some(why) = look.obs.pane.failure() {
        return vec![look.unreadable(Source::Pane, SignalError::Tmux, why)];
    }
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

fn show(look: &Look<'_>, signals: &mut Signals) {
    signals.tmux_read_error = failure(&look.obs.pane);
    let Some(pane) = look.pane() else { return };
    let failed = pane.exit_signal.is_some() || pane.exit_status.is_some_and(|code| code != 0);
    let status = if !pane.dead {
        "alive"
    } else if failed {
        "crashed"
    } else {
        "exited"
    };
    signals.pane_status = Some(status.to_owned());
    signals.pane_command = Some(pane.command.clone()).filter(|command| !command.is_empty());
    signals.window_activity_age_ms = Some(look.now().since(pane.activity));
    signals.cursor_visible = Some(pane.cursor_visible);
    signals.in_mode = Some(pane.in_mode);
}

#[cfg(test)]
mod tests {
    use crate::classify::{
        evidence::{Claim, ClaimKind, Source},
        observation::Reading,
        sensors::testing::*,
    };

    #[test]
    fn a_dead_pane_is_claimed_with_what_tmux_knows_of_its_end() {
        for (code, signal, status) in [
            (Some(0), None, "exited"),
            (Some(7), None, "crashed"),
            (None, Some(9), "crashed"),
            (None, None, "exited"),
        ] {
            let dead = blank(1_000).pane(|pane| {
                (pane.dead, pane.exit_status, pane.exit_signal) = (true, code, signal);
            });
            let outcome = Session::new("claude").look(&dead);
            assert_eq!(from(&outcome, Source::Pane)[0].claim, Claim::PaneDead { code, signal });
            assert_eq!(outcome.signals.pane_status.as_deref(), Some(status));
        }
        let alive = Session::new("claude").look(&blank(1_000));
        assert_eq!(
            (claims(&alive, Source::Pane), alive.signals.pane_status.as_deref()),
            (vec![], Some("alive"))
        );
    }

    #[test]
    fn a_pane_that_is_gone_one_whose_server_died_and_one_that_cannot_be_read_are_three_things() {
        let mut obs = blank(1_000);
        obs.pane = Reading::Absent;
        assert_eq!(claims(&Session::new("claude").look(&obs), Source::Pane), [ClaimKind::PaneDead]);
        obs.server_died = true;
        assert_eq!(claims(&Session::new("claude").look(&obs), Source::Pane), [ClaimKind::ServerDied]);
        (obs.server_died, obs.pane) = (false, Reading::Unavailable { why: "no answer".to_owned() });
        let unread = Session::new("claude").look(&obs);
        assert_eq!(claims(&unread, Source::Pane), [ClaimKind::Unreadable]);
        assert_eq!(unread.signals.tmux_read_error.as_deref(), Some("no answer"));
    }
}
