//! Tab completion of session names, agents and prompt options.
//!
//! A command declares with [`completes!`] which of its arguments take which suggestions. Errors give no suggestions: an
//! error message must never appear while somebody types.

use crate::context::CommandContext;
use lisa_engine::api::{
    ListRequest, Session, SessionRequest,
    words::{Effect, Prompt},
};
use nu_plugin::{DynamicCompletionCall, EngineInterface};
use nu_protocol::{DynamicSuggestion, engine::ArgType};

/// An argument of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arg {
    /// The positional argument with this index.
    Nth(usize),
    /// The positional arguments from this index on.
    From(usize),
    /// A flag, by its long name.
    Flag(&'static str),
}

/// What to suggest for an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// Session names.
    Sessions,
    /// Names of sessions that are blocked on a prompt.
    BlockedSessions,
    /// Agent ids.
    Agents,
    /// Options of the first named session's prompt. Without a name: what all open prompts have in common.
    Options,
}

/// Effects can answer a prompt whatever the labels of its options are.
const EFFECTS: [Effect; 3] = [Effect::AllowOnce, Effect::AllowAlways, Effect::Deny];

/// Implements `get_dynamic_completion` from a table of arguments and sources.
macro_rules! completes {
    ($($arg:expr => $source:expr),+ $(,)?) => {
        #[expect(deprecated, reason = "ExperimentalMarker is deprecated to mark an unstable interface")]
        fn get_dynamic_completion(
            &self,
            _plugin: &$crate::LisaPlugin,
            interface: &nu_plugin::EngineInterface,
            call: nu_plugin::DynamicCompletionCall,
            arg: nu_protocol::engine::ArgType,
            _experimental: nu_protocol::engine::ExperimentalMarker,
        ) -> Option<Vec<nu_protocol::DynamicSuggestion>> {
            $crate::complete::suggest(interface, &call, &arg, &[$(($arg, $source)),+])
        }
    };
}
pub(crate) use completes;

/// The suggestions for an argument. `None` falls back to Nushell's own completion.
pub(crate) fn suggest(
    interface: &EngineInterface,
    call: &DynamicCompletionCall,
    arg: &ArgType,
    table: &[(Arg, Source)],
) -> Option<Vec<DynamicSuggestion>> {
    let source = table.iter().find(|(at, _)| matches_argument(*at, arg)).map(|(_, source)| *source)?;
    let lisa = CommandContext::open_at(interface, call.call.head).ok()?;
    let found = match source {
        Source::Sessions => sessions(&lisa, &typed_arguments(call, interface), |_| true)?,
        Source::BlockedSessions => {
            sessions(&lisa, &typed_arguments(call, interface), |session| session.prompt.is_some())?
        }
        Source::Agents => {
            let agents = lisa.engine.agents().ok()?;
            agents.into_iter().map(|agent| suggestion(agent.id, Some(agent.title))).collect()
        }
        Source::Options => match typed_arguments(call, interface).into_iter().next() {
            Some(session) => options(&lisa.engine.status(&SessionRequest { session }).ok()?.prompt?),
            // The names come from the pipeline, which hasn't run yet.
            None => {
                let sessions = lisa.engine.sessions(&ListRequest::default()).ok()?;
                let prompts: Vec<&Prompt> =
                    sessions.iter().filter_map(|session| session.prompt.as_ref()).collect();
                options_of_all(&prompts)
            }
        },
    };
    Some(found)
}

/// Sessions that haven't been typed yet, described by what each is doing.
fn sessions(
    lisa: &CommandContext,
    named: &[String],
    which: impl Fn(&Session) -> bool,
) -> Option<Vec<DynamicSuggestion>> {
    let sessions = lisa.engine.sessions(&ListRequest::default()).ok()?;
    let wanted = sessions.into_iter().filter(|session| which(session) && !named.contains(&session.name));
    Some(wanted.map(|session| suggestion(session.name.clone(), Some(activity(&session)))).collect())
}

/// A short description of what a session is doing: its state, and its prompt or tool.
fn activity(session: &Session) -> String {
    let prompt = session.prompt.as_ref();
    let what = prompt
        .and_then(|prompt| prompt.command.as_deref().or(prompt.file.as_deref()).or(Some(&prompt.title)))
        .or(session.tool.as_deref());
    match what.and_then(|what| what.lines().next()).filter(|what| !what.is_empty()) {
        Some(what) => format!("{}: {what}", session.state.as_str()),
        None => session.state.as_str().to_owned(),
    }
}

fn matches_argument(at: Arg, arg: &ArgType) -> bool {
    match (at, arg) {
        (Arg::Nth(want), ArgType::Positional(index)) => want == *index,
        (Arg::From(start), ArgType::Positional(index)) => *index >= start,
        (Arg::Flag(name), ArgType::Flag(flag)) => flag.trim_start_matches('-') == name,
        _ => false,
    }
}

/// The options for several prompts at once: only effects, because a key means something different in each prompt.
fn options_of_all(prompts: &[&Prompt]) -> Vec<DynamicSuggestion> {
    match prompts {
        [] => Vec::new(),
        [only] => options(only),
        many => {
            let known = |effect: &&Effect| {
                many.iter().any(|prompt| prompt.options.iter().any(|option| option.effect == **effect))
            };
            EFFECTS.iter().filter(known).map(|effect| suggestion(effect.as_str().to_owned(), None)).collect()
        }
    }
}

/// The options by effect (if the effect is unambiguous), then all options by key.
fn options(prompt: &Prompt) -> Vec<DynamicSuggestion> {
    let mut found = Vec::new();
    for effect in EFFECTS {
        let mut with = prompt.options.iter().filter(|option| option.effect == effect);
        if let (Some(only), None) = (with.next(), with.next()) {
            found.push(suggestion(effect.as_str().to_owned(), Some(only.label.clone())));
        }
    }
    found.extend(
        prompt.options.iter().map(|option| suggestion(option.key.clone(), Some(option.label.clone()))),
    );
    found
}

/// The positional arguments typed so far, without the one at the cursor.
fn typed_arguments(call: &DynamicCompletionCall, interface: &EngineInterface) -> Vec<String> {
    call.call
        .positional_iter()
        .filter(|expression| !expression.span.contains(call.pos) && expression.span.end != call.pos)
        .filter_map(|expression| match expression.as_string() {
            Some(word) => Some(word),
            None => interface
                .get_span_contents(expression.span)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok()),
        })
        .collect()
}

fn suggestion(value: String, description: Option<String>) -> DynamicSuggestion {
    DynamicSuggestion { value, description, ..DynamicSuggestion::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisa_engine::api::words::{PromptKind, PromptOption};

    #[test]
    fn arguments_match_by_position_or_flag() {
        assert!(matches_argument(Arg::From(1), &ArgType::Positional(3)));
        assert!(!matches_argument(Arg::From(1), &ArgType::Positional(0)));
        assert!(matches_argument(Arg::Nth(0), &ArgType::Positional(0)));
        assert!(matches_argument(Arg::Flag("agent"), &ArgType::Flag("agent".into())));
        assert!(!matches_argument(Arg::Flag("agent"), &ArgType::Flag("args".into())));
    }

    #[test]
    fn options_are_suggested_by_unambiguous_effect_and_by_key() {
        let option = |key: &str, effect| PromptOption {
            key: key.into(),
            label: format!("option {key}"),
            selected: false,
            checked: None,
            effect,
        };
        let prompt = Prompt {
            id: "p".into(),
            kind: PromptKind::Permission,
            dialog: None,
            title: "May I?".into(),
            body: String::new(),
            tool: None,
            command: None,
            file: None,
            options: vec![
                option("1", Effect::AllowOnce),
                option("2", Effect::AllowAlways),
                option("3", Effect::AllowAlways),
                option("4", Effect::Deny),
            ],
            multi: false,
            free_text: false,
            truncated: false,
            step: None,
            disagrees: false,
        };
        let values: Vec<_> = options(&prompt).into_iter().map(|suggestion| suggestion.value).collect();
        assert_eq!(values, ["allow_once", "deny", "1", "2", "3", "4"]);
        let values = |prompts: &[&Prompt]| -> Vec<String> {
            options_of_all(prompts).into_iter().map(|suggestion| suggestion.value).collect()
        };
        assert_eq!(values(&[&prompt]), ["allow_once", "deny", "1", "2", "3", "4"]);
        let other = Prompt { options: vec![option("1", Effect::Choose)], ..prompt.clone() };
        assert_eq!(values(&[&prompt, &other]), ["allow_once", "allow_always", "deny"]);
    }
}
