//! How to start an agent: the `[launch]` table of a profile.
//!
//! A template is a list of arguments. `{args}` stands for the caller's own arguments; any other `{name}` is replaced
//! by its value. A group in brackets is dropped if one of its names has no value: `["--model", "{model}"]` disappears
//! if no model was requested.

use serde::Deserialize;
use std::collections::BTreeMap;

/// How to start an agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The program and how to find it.
    pub executable: Executable,
    /// A terminal session that takes one prompt after another.
    pub interactive: Template,
    /// Runs one prompt to completion; absent if the agent has no such mode.
    pub exec: Option<Template>,
    /// Resumes the agent's own conversation; absent if the agent can't.
    pub resume: Option<Template>,
    /// Whether the agent lets its caller choose the conversation id beforehand.
    #[serde(default)]
    pub chooses_session_id: bool,
    /// Flags that switch off the agent's safety checks. The first one is used only if the caller asks for `dangerous`;
    /// without that, all are rejected among a caller's arguments. A space separates a flag from a pattern for its
    /// value.
    #[serde(default)]
    pub dangerous: Vec<String>,
    /// A flag that lets hooks decide permissions, if the agent needs one; `{decides}` while there is a policy.
    pub decides: Option<String>,
    /// Environment variables that the agent needs.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// A settings file that is written into the session's directory for this launch only, as `{settings}`.
    pub settings: Option<Settings>,
    /// How a hook decides permissions, if the agent supports that.
    pub decide: Option<Decide>,
}

impl Launch {
    /// Whether some way to start it puts the prompt into its arguments, which every user of the machine can read.
    pub fn shows_prompts(&self) -> bool {
        let ways = [Some(&self.interactive), self.exec.as_ref(), self.resume.as_ref()];
        ways.into_iter().flatten().any(|way| way.prompt == PromptWay::Argv)
    }
}

/// How a hook decides permissions without key presses.
#[derive(Debug, Clone, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    /// Where the payload has the name of its event (a JSON pointer).
    pub event_at: String,
    /// The name of the event that asks.
    pub event: String,
    /// Where the payload has the tool's name.
    pub tool: String,
    /// Where the payload may have the subject of the tool: a command, a file, an address.
    pub subject: Vec<String>,
    /// What the hook prints to allow.
    pub allow: String,
    /// What the hook prints to deny; `{message}` is a JSON string with the reason.
    pub deny: String,
}

/// The program and how to find it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executable {
    /// Names to search on PATH, in order. Empty for a profile that runs any command.
    pub names: Vec<String>,
    /// How to install it.
    pub install: String,
    /// Arguments that make it print its version.
    #[serde(default = "version_flag")]
    pub version_args: Vec<String>,
}

fn version_flag() -> Vec<String> {
    vec!["--version".to_owned()]
}

/// The arguments of one way to start.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The arguments after the program.
    pub argv: Vec<Arg>,
    /// How the prompt reaches the agent.
    pub prompt: PromptWay,
}

/// An element of a template.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Arg {
    /// One argument.
    One(String),
    /// Several that are kept or dropped together.
    Group(Vec<String>),
}

/// How the first prompt reaches the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptWay {
    /// As `{prompt}` in the arguments; if it is too long for that, it is pasted once the agent is ready.
    Argv,
    /// On standard input.
    Stdin,
    /// Pasted once the agent is ready.
    Paste,
}

/// A settings file for one launch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The file's name in the session's directory.
    pub file: String,
    /// Hook events to register; each calls Lisa's hook command.
    pub events: Vec<String>,
    /// The file's text; `{events}` is replaced by one `entry` per event, joined by commas.
    pub text: String,
    /// The entry of one event, with `{event}` and `{hook}` (the hook command as a JSON string).
    pub entry: String,
}

/// The values of a template's names; a name without a value drops its group.
pub type Values<'a> = BTreeMap<&'a str, &'a str>;

impl Template {
    /// Fills in the template for a caller.
    pub fn fill(&self, values: &Values<'_>, args: &[String]) -> Vec<String> {
        let mut argv = Vec::new();
        for part in &self.argv {
            let group = match part {
                Arg::One(word) => std::slice::from_ref(word),
                Arg::Group(words) => words,
            };
            let filled: Option<Vec<Vec<String>>> = group
                .iter()
                .map(|word| match word.as_str() {
                    "{args}" => Some(args.to_vec()),
                    word => substitute(word, values).map(|word| vec![word]),
                })
                .collect();
            argv.extend(filled.into_iter().flatten().flatten());
        }
        argv
    }
}

/// Fills in the `{names}` of a word; `None` if one has no value. Braces without a name are literal.
fn substitute(word: &str, values: &Values<'_>) -> Option<String> {
    let mut out = String::new();
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        let (head, tail) = rest.split_at(open);
        out.push_str(head);
        let name = tail[1..].split_once('}').map(|(name, _)| name);
        match name
            .filter(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        {
            Some(name) => {
                out.push_str(values.get(name)?);
                rest = &tail[name.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &tail[1..];
            }
        }
    }
    out.push_str(rest);
    Some(out)
}

impl Settings {
    /// Whether a launch registers a hook for this event.
    pub fn registers(&self, event: &str) -> bool {
        self.events.iter().any(|registered| registered == event || registered == "*")
    }

    /// The file's text for a hook command line.
    pub fn render(&self, hook: &str) -> String {
        let hook = serde_json::Value::from(hook).to_string();
        let entries: Vec<String> = self
            .events
            .iter()
            .map(|event| self.entry.replace("{event}", event).replace("{hook}", &hook))
            .collect();
        self.text.replace("{events}", &entries.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Template {
        toml::from_str(
            r#"argv = [["--model", "{model}"], "{args}", "--x={n}", ["--", "{prompt}"]]
            prompt = "argv""#,
        )
        .unwrap()
    }

    #[test]
    fn a_group_whose_name_has_no_value_is_dropped_whole() {
        let args = ["-v".to_owned(), "{model}".to_owned()];
        let argv = template().fill(&Values::from([("prompt", "-rm {x}"), ("n", "1")]), &args);
        assert_eq!(argv, ["-v", "{model}", "--x=1", "--", "-rm {x}"]);
    }

    #[test]
    fn braces_that_hold_no_name_stand_for_themselves() {
        assert_eq!(substitute("a={\"b\"={}}", &Values::new()).unwrap(), "a={\"b\"={}}");
    }
}
