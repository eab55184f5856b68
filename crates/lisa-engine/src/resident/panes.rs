//! Which panes deserve a look: those whose fields say that something is different.
//!
//! A working agent's spinner is no news, and neither is an idle agent's silence. What is: a process that ended, a
//! cursor that was hidden or shown, a title of another kind, output of an agent that should be silent, silence of
//! one that should not be.

use crate::{api::Session, engine::Engine, observation::At, session::find::Sighting, words::StateName};
use std::collections::HashMap;

/// How long a working agent may show nothing before it is looked at.
const SILENT_MS: u64 = 2_000;

#[derive(Debug, Default)]
struct Seen {
    dead: bool,
    cursor_visible: bool,
    in_mode: bool,
    alternate: bool,
    title_class: Option<usize>,
    activity: At,
    silent: bool,
    state: Option<StateName>,
    looked_at: At,
    run_id: String,
}

impl Seen {
    /// Whether it may change without a word at any moment.
    fn at_work(&self) -> bool {
        matches!(self.state, Some(StateName::Working | StateName::Starting) | None)
    }
}

/// What every pane looked like at the last tick.
#[derive(Debug, Default)]
pub(super) struct Panes {
    seen: HashMap<String, Seen>,
}

impl Panes {
    /// The sessions that are different from the last time, and those that nobody has looked at for long.
    pub(super) fn changed(&mut self, all: &[Sighting], engine: &Engine, tick: bool) -> Vec<String> {
        let now = crate::engine::now();
        let mut changed = Vec::new();
        self.seen.retain(|name, _| all.iter().any(|session| session.meta.name == *name));
        let scan = u64::try_from(engine.config().process_scan_interval.as_millis()).unwrap_or(8_000);
        for session in all {
            let name = &session.meta.name;
            let Some(row) = &session.pane else {
                // Its pane is gone: looked at once, and again when it comes back.
                let known = self.seen.entry(name.clone()).or_default();
                if !std::mem::replace(&mut known.dead, true) || known.run_id != session.meta.run_id {
                    known.run_id.clone_from(&session.meta.run_id);
                    changed.push(name.clone());
                }
                continue;
            };
            let pane = &row.pane;
            let title_class = title_class(engine, session, &pane.title);
            let new = !self.seen.contains_key(name);
            let seen = self.seen.entry(name.clone()).or_default();
            let working = seen.at_work();
            let moved = pane.activity > seen.activity;
            let silent = working && now.since(pane.activity) > SILENT_MS;
            let different = new
                || seen.run_id != session.meta.run_id
                || seen.dead != pane.dead
                || seen.cursor_visible != pane.cursor_visible
                || seen.in_mode != pane.in_mode
                || seen.alternate != pane.alternate
                || seen.title_class != title_class
                || (moved && !working)
                || (silent && !seen.silent);
            let due = tick && working && !pane.dead && now.since(seen.looked_at) > scan;
            *seen = Seen {
                dead: pane.dead,
                cursor_visible: pane.cursor_visible,
                in_mode: pane.in_mode,
                alternate: pane.alternate,
                title_class,
                activity: pane.activity,
                silent,
                state: seen.state,
                looked_at: if different || due { now } else { seen.looked_at },
                run_id: session.meta.run_id.clone(),
            };
            if different || due {
                changed.push(name.clone());
            }
        }
        changed
    }

    /// Whether an agent was seen past its start and the dialogs that belong to it.
    pub(super) fn is_up(&self, name: &str) -> bool {
        let state = self.seen.get(name).and_then(|seen| seen.state);
        !matches!(state, None | Some(StateName::Starting | StateName::AwaitingDialog))
    }

    /// Whether any agent is at work, or may be.
    pub(super) fn any_at_work(&self) -> bool {
        self.seen.values().any(|seen| !seen.dead && seen.at_work())
    }

    /// Remembers what a session was judged to be.
    pub(super) fn judged(&mut self, session: &Session) {
        if let Some(seen) = self.seen.get_mut(&session.name) {
            seen.state = Some(session.state);
        }
    }
}

/// Which kind of title this is, as the profile tells them apart.
fn title_class(engine: &Engine, session: &Sighting, title: &str) -> Option<usize> {
    let profile = engine.profiles().get_or_generic(&session.meta.agent)?;
    profile.terminal_title.on.iter().position(|rule| rule.pattern.is_match(title))
}
