//! What a bug report needs: the machine, the checks, and the log of one look at every session.

use super::Engine;
use crate::{
    api::{Check, ListRequest, Session},
    classify::recording::Mask,
    log,
};
use std::fmt::Write;

impl Engine {
    /// Looks at every session once and returns what that found and how long each part took, as text for a bug report:
    /// without secrets, and with `~` for the home directory. Contains no text of an agent's screen.
    pub fn trace(&self) -> String {
        let mut text = String::new();
        let tmux = self.context.tmux().version().map_or_else(|error| error.to_string(), |v| v.to_string());
        let _ = writeln!(
            text,
            "lisa {}, {} {}, tmux {tmux}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH
        );
        let env = &self.context.caller.env;
        let mut set: Vec<String> = env
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?, value.to_string_lossy())))
            .filter(|(name, _)| name.starts_with("LISA_"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        set.sort();
        set.iter().for_each(|line| {
            let _ = writeln!(text, "{line}");
        });
        self.doctor().checks.iter().for_each(|check| write_check(&mut text, check));
        let (looked, logged) = log::traced(|| self.context.look_at_all(&ListRequest::default()));
        match &looked {
            Ok(sessions) => sessions.iter().for_each(|session| write_session(&mut text, session)),
            Err(error) => {
                let _ = writeln!(text, "the look failed: {error}");
            }
        }
        text.push_str(&logged);
        Mask::new(env.text("HOME")).text(&text)
    }
}

fn write_check(text: &mut String, check: &Check) {
    let ok = if check.ok { "ok" } else { "not ok" };
    let _ = writeln!(text, "{}: {ok}, {}", check.name, check.detail);
}

fn write_session(text: &mut String, session: &Session) {
    let Session { name, agent, mode, state, reason, confidence, source, .. } = session;
    let _ = write!(text, "{name} ({agent}, {mode}): {state}, {reason}, {confidence}, by {source}");
    for signal in &session.failed_signals {
        let _ = write!(text, ", failed: {signal}");
    }
    text.push('\n');
}
