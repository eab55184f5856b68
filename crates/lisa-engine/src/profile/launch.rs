//! How an agent is started: the `[launch]` table of a profile.
//!
//! A template is a list of arguments. `{args}` stands for the caller's own arguments; any other `{name}` is filled
//! in, and a group in brackets is dropped whole when one of its names has no value, so that
//! `["--model", "{model}"]` vanishes where no model was asked for.

use serde::Deserialize;
use std::collections::BTreeMap;

/// How an agent is started.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The program and how to come by it.
    pub executable: Executable,
    /// A terminal session that takes prompt after prompt.
    pub interactive: Template,
    /// One prompt, run to completion; absent where the agent has no such mode.
    pub exec: Option<Template>,
    /// The agent's own conversation taken up again; absent where the agent can not.
    pub resume: Option<Template>,
    /// Whether the agent lets its caller choose the conversation's id beforehand.
    #[serde(default)]
    pub chooses_session_id: bool,
    /// Flags that switch the agent's safety off: the first is used only when the caller asks for `dangerous`, and all
    /// are refused among a caller's arguments otherwise. A space parts a flag from a pattern for its value.
    #[serde(default)]
    pub dangerous: Vec<String>,
    /// A flag that lets hooks decide, where the agent needs one; `{decides}` while there is a policy.
    pub decides: Option<String>,
    /// Environment that the agent needs.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// A settings file that is written into the session's folder for this launch only, as `{settings}`.
    pub settings: Option<Settings>,
    /// Where the agent keeps its own files.
    #[serde(default)]
    pub files: Files,
    /// How a hook decides about a permission, where the agent lets one.
    pub decide: Option<Decide>,
}

/// How a hook decides about a permission without a key being pressed.
#[derive(Debug, Clone, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    /// Where the payload names its event (a JSON pointer), and the event that asks.
    pub event_at: String,
    /// The event that asks.
    pub event: String,
    /// Where the payload names the tool.
    pub tool: String,
    /// Where the payload may name what the tool is to do: a command, a file, an address.
    pub subject: Vec<String>,
    /// What the hook prints to allow.
    pub allow: String,
    /// What the hook prints to deny, with `{message}` for a JSON string that says why.
    pub deny: String,
}

/// Where an agent keeps the files that tell about it.
///
/// In a path, `{pid}` is the agent's process, `{session_id}` its conversation, `{folder}` the session's own folder,
/// `{NAME:default}` an environment variable of the agent or what it stands for when unset (`~` is its home), and a
/// `*` fits any one folder or file name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// The state file that it keeps about itself.
    pub native: Option<String>,
    /// Where in that file the conversation's id stands (a JSON pointer).
    pub native_session_id: Option<String>,
    /// The transcript of the conversation.
    pub transcript: Option<String>,
    /// Instead: the first file the agent's process has open whose path ends like this (`*` fits any text).
    pub transcript_open: Option<String>,
    /// Which of those, where the title tells: the beginning of the conversation's id, which the file's name has too.
    pub transcript_titled: Option<super::Pattern>,
    /// Which lines of the transcript people want to read; the first that fits a line shows it.
    pub show: Vec<Show>,
}

/// A kind of line in a transcript that people want to read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// Fields (JSON pointers) and the values they must have.
    pub when: BTreeMap<String, super::Want>,
    /// Who speaks.
    pub role: String,
    /// Where the words are (a JSON pointer).
    pub text: String,
}

/// The program and how to come by it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executable {
    /// Names to look for on PATH, in order. Empty for a profile that runs any command.
    pub names: Vec<String>,
    /// What to tell somebody who does not have it.
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

/// One element of a template.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Arg {
    /// One argument.
    One(String),
    /// Several that stand or fall together.
    Group(Vec<String>),
}

/// How the first prompt reaches the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptWay {
    /// As `{prompt}` among the arguments; one too long for that is pasted once the agent is ready.
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
    /// The file's name inside the session's folder.
    pub file: String,
    /// Hook events to register; each calls Lisa's hook command.
    pub events: Vec<String>,
    /// The file's text, with `{events}` replaced by one `entry` for each event, joined by commas.
    pub text: String,
    /// One event's entry, with `{event}` and `{hook}` (the hook command as a JSON string) filled in.
    pub entry: String,
}

/// The values that a template's names stand for; a name without one drops its group.
pub type Values<'a> = BTreeMap<&'a str, &'a str>;

impl Template {
    /// The arguments that this template makes of a caller's wishes.
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

/// A word with its `{names}` filled in; `None` where one has no value. Braces that hold no name stand for themselves.
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
