//! Permission policies: given at a spawn, applied by the agent's own hook.
//!
//! The hook must answer within milliseconds, so its data is written next to the session when the session starts.

use super::{SessionDir, files::fits};
use crate::{
    api::{PermissionPolicy, SpawnRequest},
    classify::profile::launch::{Decide, Launch},
    disk,
    error::{Error, Kind, Result, printable},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

const FILE: &str = "policy.json";

/// The file that the hook reads.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    policy: PermissionPolicy,
    decide: Decide,
}

/// A decision of the policy.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it allowed.
    pub allowed: bool,
    /// The tool.
    pub tool: String,
    /// The tool's command or file.
    pub subject: String,
    /// The pattern that decided.
    pub pattern: String,
    /// What the hook prints.
    pub answer: String,
}

/// Validates a policy, and that the agent supports it.
pub fn check(request: &SpawnRequest, launch: &Launch) -> Result<()> {
    let Some(policy) = &request.policy else { return Ok(()) };
    if launch.decide.is_none() || launch.settings.is_none() {
        return Err(Error::new(
            Kind::NotOffered,
            format!("`{}` cannot apply a policy: it has no hook that decides permissions", request.agent),
            "remove the policy and answer its prompts, or use the agent's own permission settings",
        )
        .about(&request.agent));
    }
    let bad = policy.allow.iter().chain(&policy.deny).find(|pattern| parse(pattern).is_none());
    match bad {
        Some(bad) => Err(Error::invalid(
            format!("`{}` is not a valid pattern", printable(bad)),
            "give a tool's name (Read), or a tool with a pattern: Bash(git status*)",
        )
        .about(bad)),
        None => Ok(()),
    }
}

/// Writes what the session's hook needs; removes the file of an earlier run.
pub fn write(dir: &SessionDir, launch: &Launch, policy: Option<&PermissionPolicy>) -> Result<()> {
    let path = dir.file(FILE);
    let (Some(policy), Some(decide)) = (policy, &launch.decide) else {
        let _ = std::fs::remove_file(&path);
        return Ok(());
    };
    let written = Written { policy: policy.clone(), decide: decide.clone() };
    let text = serde_json::to_vec(&written)
        .map_err(|error| Error::invalid(format!("the policy cannot be written: {error}"), "report this"))?;
    disk::write_atomic(&path, &text)
}

/// What the policy of a session says about a hook's payload; `None` means ask.
pub fn decide(dir: &Path, payload: &Value) -> Option<Decision> {
    let bytes = disk::read(&dir.join(FILE)).ok()??;
    let Written { policy, decide } = serde_json::from_slice(&bytes).ok()?;
    judge(&policy, &decide, payload)
}

fn judge(policy: &PermissionPolicy, decide: &Decide, payload: &Value) -> Option<Decision> {
    let text = |pointer: &String| payload.pointer(pointer).and_then(Value::as_str);
    if text(&decide.event_at) != Some(decide.event.as_str()) {
        return None;
    }
    let tool = text(&decide.tool)?;
    let subject = decide.subject.iter().find_map(text).unwrap_or_default();
    let (allowed, pattern) = match policy.deny.iter().find(|pattern| denies(pattern, tool, subject)) {
        Some(pattern) => (false, pattern.clone()),
        None => (true, policy.allow.iter().find(|pattern| allows(pattern, tool, subject))?.clone()),
    };
    let message = Value::from(format!("the policy of this session denies {pattern}")).to_string();
    let answer = if allowed { decide.allow.clone() } else { decide.deny.replace("{message}", &message) };
    Some(Decision { allowed, tool: tool.to_owned(), subject: subject.to_owned(), pattern, answer })
}

fn parse(pattern: &str) -> Option<(&str, Option<&str>)> {
    let (tool, subject) = match pattern.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
        None => (pattern, None),
    };
    let named = !tool.is_empty() && tool.chars().all(|c| c.is_alphanumeric() || "_-.*".contains(c));
    named.then_some((tool, subject))
}

/// Characters that start, end or redirect a shell command.
const SHELL_SIGNS: &[char] = &['&', '|', ';', '<', '>', '`', '\n', '\r'];

/// Whether a pattern allows this. A `*` only matches plain text: a pattern for the start of a command isn't meant to
/// allow another command chained to it, or a path that climbs out of its directory.
fn allows(pattern: &str, tool: &str, subject: &str) -> bool {
    let plain = |gap: &str| {
        !gap.contains(SHELL_SIGNS) && !gap.contains("$(") && !gap.split('/').any(|part| part == "..")
    };
    let whole = |wanted: &str| wanted == "*" || fits_with(subject, wanted, &plain);
    parse(pattern).is_some_and(|(wanted, rest)| fits(tool, wanted) && rest.is_none_or(whole))
}

/// Whether a pattern denies this, as a whole or any command that it chains.
fn denies(pattern: &str, tool: &str, subject: &str) -> bool {
    let parts = || subject.split(SHELL_SIGNS).flat_map(|part| part.split("$("));
    let any = |wanted: &str| {
        let bare = |part: &str| part.trim_matches([' ', '\t', '(', ')', '{', '}', '"']).to_owned();
        fits(subject, wanted) || parts().any(|part| fits(&bare(part), wanted))
    };
    parse(pattern).is_some_and(|(wanted, rest)| fits(tool, wanted) && rest.is_none_or(any))
}

/// Whether text matches a pattern in which `*` matches any text that passes the check.
fn fits_with(text: &str, pattern: &str, passes: &dyn Fn(&str) -> bool) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(tail) = text.strip_prefix(head) else { return false };
    let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
    ends.take_while(|at| passes(&tail[..*at])).any(|at| fits_with(&tail[at..], rest, passes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(allow: &[&str], deny: &[&str], tool: &str, subject: &str) -> Option<bool> {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let policy = PermissionPolicy { allow: list(allow), deny: list(deny) };
        let decide = Decide {
            event_at: "/e".into(),
            event: "Ask".into(),
            tool: "/tool".into(),
            subject: vec!["/input/command".into(), "/input/file".into()],
            allow: "yes".into(),
            deny: "no {message}".into(),
        };
        let payload = serde_json::json!({"e": "Ask", "tool": tool, "input": {"command": subject}});
        judge(&policy, &decide, &payload).map(|decision| decision.allowed)
    }

    #[test]
    fn what_neither_list_names_is_asked() {
        assert_eq!(decision(&["Read"], &["Bash(rm *)"], "Bash", "ls"), None);
        assert_eq!(decision(&[], &[], "Bash", "ls"), None);
    }

    #[test]
    fn deny_wins_over_allow() {
        assert_eq!(decision(&["Bash"], &["Bash(rm *)"], "Bash", "rm -rf /"), Some(false));
        assert_eq!(decision(&["Bash"], &["Bash(rm *)"], "Bash", "ls"), Some(true));
    }

    #[test]
    fn a_command_that_chains_another_is_not_what_a_beginning_allows() {
        let allowed = |command: &str| decision(&["Bash(git status*)"], &[], "Bash", command);
        assert_eq!(allowed("git status --short"), Some(true));
        for more in
            ["; rm -rf /", " && rm x", " & rm x", " | sh", "\nrm x", " $(rm x)", " `rm x`", " > ~/.bashrc"]
        {
            assert_eq!(allowed(&format!("git status{more}")), None, "{more}");
        }
        let both = |command: &str| decision(&["Bash(git add * && git commit *)"], &[], "Bash", command);
        assert_eq!(both("git add . && git commit -m x"), Some(true));
        assert_eq!(both("git add . ; rm x && git commit -m x"), None);
        assert_eq!(decision(&["Bash(*)"], &[], "Bash", "anything; at all"), Some(true), "all is all");
        assert_eq!(decision(&["Write(src/*)"], &[], "Write", "src/../../etc/passwd"), None);
        assert_eq!(decision(&["Write(src/*)"], &[], "Write", "src/a..b.rs"), Some(true));
    }

    #[test]
    fn a_command_that_is_denied_is_denied_behind_another_too() {
        for command in ["rm -rf /; ls", "ls && rm -rf /", "ls\nrm -rf /", "echo $(rm x)", "(rm x)", "ls|rm x"]
        {
            assert_eq!(decision(&["Bash"], &["Bash(rm *)"], "Bash", command), Some(false), "{command}");
        }
        assert_eq!(decision(&["Bash"], &["Bash(rm *)"], "Bash", "cat form letter"), Some(true));
    }

    #[test]
    fn a_pattern_that_is_not_closed_is_none() {
        assert!(parse("Bash(git").is_none() && parse("").is_none() && parse("a b").is_none());
    }
}
