//! Sensors: small pure functions, one per signal, that turn one look into evidence.
//!
//! A new sensor is one file and one line in [`SENSORS`]. Sensors read no file, clock or environment, and decide
//! nothing. They say what one source claims, quote it, and fill in the [`Signals`] that callers see.

mod done_file;
mod events;
pub(crate) mod exec_marker;
mod input;
mod native;
mod pane;
pub(crate) mod process;
mod records;
mod screen_dialog;
mod screen_turn;
mod sent;
mod timing;
mod title;
pub(crate) mod todos;

pub(crate) use timing::OUTPUT_STALE_MS;

use crate::api::words::{Prompt, SignalError, Signals};
use crate::classify::evidence::{Claim, Evidence, Source};
use crate::classify::memory::Memory;
use crate::classify::observation::{At, Observation, Pane, Reading};
use crate::classify::profile::{NativeRule, Profile, TitleSays, all_hold};
use crate::classify::prompt;
use crate::classify::screen::{Found, Layout};

/// One sensor.
pub struct Sensor {
    /// What the look says, as evidence. A sensor whose reading failed says [`Claim::Unreadable`].
    pub sense: fn(&Look<'_>) -> Vec<Evidence>,
    /// Fills in the signals that this sensor reads.
    pub show: fn(&Look<'_>, &mut Signals),
}

/// Every sensor, strongest source first.
pub const SENSORS: &[Sensor] = &[
    pane::SENSOR,
    process::SENSOR,
    done_file::SENSOR,
    exec_marker::SENSOR,
    title::SENSOR,
    native::SENSOR,
    events::SENSOR,
    screen_dialog::SENSOR,
    screen_turn::SENSOR,
    input::SENSOR,
    todos::SENSOR,
    sent::SENSOR,
    timing::SENSOR,
    records::SENSOR,
];

/// One look, with everything that several sensors need, computed once.
pub struct Look<'a> {
    /// The agent's profile.
    pub profile: &'a Profile,
    /// The memory, already updated with the lines of this look.
    pub memory: &'a Memory,
    /// What was observed.
    pub obs: &'a Observation,
    /// The parsed screen.
    pub layout: Option<Layout<'a>>,
    /// The signs found on it.
    pub signs: Vec<Found<'a>>,
    /// The dialog on it.
    pub dialog: Option<Prompt>,
}

impl<'a> Look<'a> {
    /// Computes what several sensors need.
    pub fn new(profile: &'a Profile, memory: &'a Memory, obs: &'a Observation) -> Self {
        let pane = obs.pane.seen();
        let ansi = obs.screen_ansi.seen().map(|text| &**text);
        let layout = obs.screen.seen().map(|text| Layout::read(&profile.screen, text, ansi, pane));
        let signs = layout.as_ref().map(|layout| layout.signs(&profile.screen)).unwrap_or_default();
        let dialog = layout.as_ref().and_then(|layout| prompt::read(profile, layout, pane));
        Self { profile, memory, obs, layout, signs, dialog }
    }

    /// The time of the look.
    pub const fn now(&self) -> At {
        self.obs.at
    }

    /// The pane, if it could be read.
    pub fn pane(&self) -> Option<&Pane> {
        self.obs.pane.seen()
    }

    /// Evidence from a live channel; its age counts from when it was first seen without a break.
    fn standing(&self, source: Source, claim: Claim, quote: &str) -> Evidence {
        let since = self.memory.standing_since(source, claim.kind(), self.now());
        Evidence::new(source, since, claim, quote)
    }

    /// That a signal couldn't be read.
    fn unreadable(&self, source: Source, signal: SignalError, why: &str) -> Evidence {
        self.standing(source, Claim::Unreadable { signal }, why)
    }

    /// Whether the pane's process has ended. Then what the agent published and what its screen shows no longer count.
    fn is_dead(&self) -> bool {
        self.pane().is_some_and(|pane| pane.dead)
    }

    /// The meaning of the title.
    pub fn title_says(&self) -> Option<TitleSays> {
        let title = self.pane()?.title.as_str();
        let titles = &self.profile.terminal_title;
        if let Some(rule) = titles.on.iter().find(|rule| rule.pattern.is_match(title)) {
            let worked = self.memory.title_worked_in.as_ref() == Some(&self.obs.run_id);
            return Some(rule.says).filter(|_| worked || !rule.after_working);
        }
        let own = !title.is_empty() && self.memory.first_title.as_deref().is_some_and(|first| first != title);
        titles.otherwise.filter(|_| own)
    }

    /// The meaning of the state file.
    pub fn native_says(&self) -> Option<&NativeRule> {
        let file = self.obs.native.seen()?;
        self.profile.native.as_ref()?.on.iter().find(|rule| all_hold(&rule.when, file))
    }
}

/// Runs all sensors on one look.
pub fn sense(look: &Look<'_>) -> Vec<Evidence> {
    SENSORS.iter().flat_map(|sensor| (sensor.sense)(look)).collect()
}

/// Collects the signals of one look.
pub fn signals(look: &Look<'_>) -> Signals {
    let mut signals = Signals::default();
    for sensor in SENSORS {
        (sensor.show)(look, &mut signals);
    }
    signals
}

/// For a sensor that has nothing to say.
const fn no_evidence(_: &Look<'_>) -> Vec<Evidence> {
    Vec::new()
}

/// For a sensor that has nothing to show.
const fn nothing_to_show(_: &Look<'_>, _: &mut Signals) {}

/// Why a reading failed, if it did.
fn failure<T>(reading: &Reading<T>) -> Option<String> {
    reading.failure().map(str::to_owned)
}

#[cfg(test)]
pub(crate) mod testing {
    //! What one source says in a look.

    pub(crate) use crate::classify::testing::*;
    use crate::classify::{
        evidence::{ClaimKind, Evidence, Source},
        resolve::Outcome,
    };

    /// The evidence of one source.
    pub(crate) fn from(outcome: &Outcome, source: Source) -> Vec<&Evidence> {
        outcome.evidence.iter().filter(|item| item.source == source).collect()
    }

    /// What one source claims.
    pub(crate) fn claims(outcome: &Outcome, source: Source) -> Vec<ClaimKind> {
        from(outcome, source).into_iter().map(|item| item.claim.kind()).collect()
    }
}
