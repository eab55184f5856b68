//! What users write: profiles and the configuration.

use super::input;
use crate::{
    classify::{memory::Memory, profile},
    config::{Config, ENVIRONMENT, Environment},
    observe::Screens,
};
use std::{path::Path, time::Instant};

/// A screen with a bit of everything that profiles describe.
const SCREEN: &str = "\u{1b}[1m● Bash(make)\u{1b}[0m\n  ⎿  done\n\n✻ Baked for 2s\n\n────────\n Bash command\n\n   make\n\n \
                      Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend\n";

/// The text of a profile; if it loads, it is used.
pub(super) fn profiles(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let profile = match profile::parse(Path::new("mine.toml"), text) {
        Ok(profile) => profile,
        Err(error) => {
            let lines = text.split('\n').count();
            assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error} of {lines} lines");
            return;
        }
    };
    let line = crate::classify::observation::Line {
        at: crate::classify::observation::At(1_000),
        payload: Ok(
            serde_json::json!({"hook_event_name": "Stop", "session_id": "s", "type": "assistant", "message": {}}),
        ),
    };
    let mut memory = Memory::default();
    for at in [1_000, 2_000, 65_000] {
        let screens = Screens::from_reply(Some(Ok(SCREEN.as_bytes().to_vec())));
        let mut look = input::look(at, input::pane(), screens);
        look.feeds.hook.lines.push(line.clone());
        look.feeds.transcript.lines.push(line.clone());
        look.native = crate::classify::observation::Reading::Seen(serde_json::json!({"status": "busy"}));
        memory = input::judge(&profile, memory, &look).memory;
    }
    if let Some(launch) = &profile.launch {
        let values = profile::launch::Values::from([("prompt", "a {b}"), ("model", "m")]);
        let _ = launch.interactive.fill(&values, &["{args}".to_owned()]);
        let _ = launch.settings.as_ref().map(|settings| settings.render("hook"));
    }
}

/// `config.toml`, then the values of the environment variables in the order of their list.
pub(super) fn config(bytes: &[u8]) {
    let mut parts = input::parts(bytes);
    let file = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let values = parts.map(|part| String::from_utf8_lossy(part).replace('\0', ""));
    let mut pairs = vec![("HOME".to_owned(), "/nowhere".to_owned())];
    pairs.extend(ENVIRONMENT.iter().map(|variable| variable.name.to_owned()).zip(values));
    let Ok(config) = Config::load_with(&Environment::from_pairs(pairs), |_| Ok(Some(file))) else { return };
    assert!(config.state_dir.is_absolute() && config.config_dir.is_absolute(), "{config:?}");
    // These durations are added to the current time.
    for wait in [config.lock_timeout, config.process_scan_interval] {
        assert!(Instant::now().checked_add(wait).is_some(), "{wait:?} is more than a clock has");
    }
}
