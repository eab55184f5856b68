//! The visible state of the agent: screen, title, published status, and the time of the next change.

use std::time::Duration;

use crate::agent::{Agent, Now, Status};
use crate::dialog::{Dialog, Kind};
use crate::screen::{Bottom, View};

const SPINNER: [char; 8] = ['⣾', '⣽', '⣻', '⢿', '⡿', '⣟', '⣯', '⣷'];

impl Agent {
    /// The status for the state file; `None` before the input box is shown.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        let (status, waiting_for) = match (&self.dialog, &self.turn) {
            (Some(Dialog::Menu(menu)), _) if menu.kind == Kind::Model => ("waiting", Some("dialog open")),
            (Some(Dialog::Questions(_)), _) => ("waiting", Some("question")),
            (Some(Dialog::Menu(menu)), _) if menu.kind == Kind::Plan => ("waiting", Some("plan approval")),
            (Some(_), _) => ("waiting", Some("permission prompt")),
            (None, Some(_)) => ("busy", None),
            (None, None) => ("idle", None),
        };
        self.ready.then_some(Status { status, waiting_for })
    }

    /// When to call [`Agent::tick`] next; `None` if the agent is idle.
    #[must_use]
    pub fn next_tick(&self, now: Now) -> Option<Now> {
        let turn = self.turn.as_ref().and_then(|turn| {
            let due = turn.due(now);
            let frame = turn.moves().then(|| {
                let passed = now.saturating_sub(turn.started);
                let hz = if turn.label(now).is_some() { self.config.spinner_hz.max(1) } else { 1 };
                let next = (u128::from(frames(passed, hz)) + 1) * 1_000_000_000;
                let next = next.div_ceil(u128::from(hz));
                turn.started + Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX))
            });
            [due, frame].into_iter().flatten().min()
        });
        [turn, self.exit_note, self.notify_at].into_iter().flatten().min()
    }

    /// The contents of the screen.
    #[must_use]
    pub fn view(&self, now: Now) -> View<'_> {
        let mut status = None;
        let mut title = "demo".to_owned();
        let mut echo = None;
        let mut open = None;
        if let Some(turn) = &self.turn {
            let passed = turn.visible_time(now).saturating_sub(turn.started);
            let glyph = |hz: u32| SPINNER[frames(passed, hz) as usize % SPINNER.len()];
            title = format!("{} demo", glyph(1));
            status = turn.label(now).map(|label| format!("{} {label}", glyph(self.config.spinner_hz)));
            echo = (!turn.visible).then_some(&turn.echo);
            open = turn.open_line();
        }
        let bottom = match &self.dialog {
            Some(dialog) => {
                title = "[!] demo".to_owned();
                Bottom::Dialog(dialog)
            }
            None if !self.ready => Bottom::Nothing,
            None => Bottom::Box { draft: &self.draft, footer: self.footer(now) },
        };
        let queued = self.queue.iter().map(String::as_str).collect();
        View { echo, open, status, queued, bottom, title }
    }

    fn footer(&self, now: Now) -> String {
        if self.exit_note.is_some_and(|until| now < until) {
            return "  press ctrl-c again to exit".to_owned();
        }
        let mut text =
            String::from(if self.turn.is_some() { "  demo · esc to interrupt" } else { "  demo · ready" });
        match self.background {
            0 => {}
            1 => text.push_str(" · 1 background task"),
            n => text.push_str(&format!(" · {n} background tasks")),
        }
        if self.config.dangerous {
            text.push_str(" · permissions off");
        }
        text
    }
}

fn frames(passed: Duration, hz: u32) -> u32 {
    u32::try_from(passed.as_nanos() * u128::from(hz) / 1_000_000_000).unwrap_or(0)
}
