//! Parses the step language.
//!
//! A step is a line that starts with `!`. An unknown step is an error instead of ordinary text, because a misspelt step
//! would otherwise invalidate a test silently.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::questions::Question;
use crate::step::{ERROR_KINDS, Step, ToolRun, ToolUse};

/// A malformed step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError(String);

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScriptError {}

fn error<T>(text: impl Into<String>) -> Result<T, ScriptError> {
    Err(ScriptError(text.into()))
}

/// The steps in a prompt; empty if there are none.
///
/// # Errors
/// If a line starts with `!` but is not a step.
pub fn steps_of_prompt(prompt: &str) -> Result<Vec<Step>, ScriptError> {
    let lines = prompt.lines().map(str::trim_start).filter(|line| line.starts_with('!'));
    let mut steps = Vec::new();
    for line in lines {
        for part in split_steps(line) {
            steps.push(parse_step(part)?);
        }
    }
    Ok(steps)
}

/// Parses a script of several turns: TOML (`[[turn]]` with `steps = [...]`) or lines of steps with `---` between turns.
///
/// # Errors
/// If the file is malformed, with the line.
pub fn parse_script(text: &str, is_toml: bool) -> Result<VecDeque<Vec<Step>>, ScriptError> {
    if is_toml {
        return parse_toml(text);
    }
    let mut turns = VecDeque::from([Vec::new()]);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line == "---" {
            turns.push_back(Vec::new());
        } else if !line.is_empty() && !line.starts_with('#') {
            for part in split_steps(line) {
                let step = parse_step(part).map_err(|e| ScriptError(format!("line {}: {e}", number + 1)))?;
                if let Some(turn) = turns.back_mut() {
                    turn.push(step);
                }
            }
        }
    }
    turns.retain(|turn| !turn.is_empty());
    Ok(turns)
}

fn parse_toml(text: &str) -> Result<VecDeque<Vec<Step>>, ScriptError> {
    let table: toml::Table = text.parse().map_err(|e| ScriptError(format!("not valid TOML: {e}")))?;
    let Some(turns) = table.get("turn").and_then(toml::Value::as_array) else {
        return error("expected [[turn]] tables");
    };
    let mut all = VecDeque::new();
    for (index, turn) in turns.iter().enumerate() {
        let steps = turn.get("steps").and_then(toml::Value::as_array);
        let Some(steps) = steps else { return error(format!("turn {}: expected steps = [...]", index + 1)) };
        let mut parsed = Vec::new();
        for step in steps {
            let Some(line) = step.as_str() else {
                return error(format!("turn {}: a step must be a string", index + 1));
            };
            for part in split_steps(line) {
                parsed.push(parse_step(part).map_err(|e| ScriptError(format!("turn {}: {e}", index + 1)))?);
            }
        }
        all.push_back(parsed);
    }
    Ok(all)
}

/// Splits at ` ; ` only before another step, so that text may contain semicolons.
fn split_steps(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(" ; !") {
        parts.push(rest[..at].trim());
        rest = &rest[at + 3..];
    }
    parts.push(rest.trim());
    parts
}

/// Parses one step.
///
/// # Errors
/// If the step is unknown, or its arguments are missing or malformed.
pub fn parse_step(line: &str) -> Result<Step, ScriptError> {
    let Some(body) = line.strip_prefix('!') else {
        return error(format!("a step must start with `!`: {}", short(line)));
    };
    let (word, rest) = split_word(body);
    let step = match word {
        "think" => Step::Think(only_duration(word, rest)?),
        "say" => Step::Say(unescape(need(word, rest)?)),
        "stream" => Step::Stream(only_duration(word, rest)?),
        "stall" => Step::Stall(only_duration(word, rest)?),
        "silent" => Step::Silent(only_duration(word, rest)?),
        "tool" => Step::Tool(tool_run(rest)?),
        "run" => Step::Run(need(word, rest)?.to_owned()),
        "permission" => {
            let (name, arg) = split_word(need(word, rest)?);
            Step::Permission(ToolUse { name: name.to_owned(), arg: unescape(need(word, arg)?) })
        }
        "ask" => Step::Ask(vec![question(rest, QuestionKind::Single)?]),
        "ask-multi" => Step::Ask(vec![question(rest, QuestionKind::Multi)?]),
        "ask-free" => Step::Ask(vec![question(rest, QuestionKind::Free)?]),
        "ask-many" => Step::Ask(Question::list_from_json(need(word, rest)?).map_err(ScriptError)?),
        "plan" => Step::Plan(unescape(need(word, rest)?)),
        "subagent" => {
            let (name, time) = split_word(need(word, rest)?);
            Step::Subagent { name: name.to_owned(), time: only_duration(word, time)? }
        }
        "background" => Step::Background(need(word, rest)?.to_owned()),
        "todo" => Step::Todo(todos(need(word, rest)?)?),
        "compact" => Step::Compact(only_duration(word, rest)?),
        "retry" => {
            let (kind, rest) = split_word(need(word, rest)?);
            let (attempts, delay) = split_word(rest);
            let attempts = attempts
                .parse()
                .map_err(|_| ScriptError(format!("!retry {kind}: expected a number of attempts")))?;
            Step::Retry { kind: error_kind(kind)?, attempts, delay: only_duration(word, delay)? }
        }
        "fail" => {
            let (kind, message) = split_word(need(word, rest)?);
            let message = if message.is_empty() { "the request failed" } else { message };
            Step::Fail { kind: error_kind(kind)?, message: message.to_owned() }
        }
        "commit" => Step::Commit,
        "pr" => Step::PullRequest,
        "env" => Step::Env(need(word, rest)?.to_owned()),
        "argv" => Step::Argv,
        "cwd" => Step::Cwd,
        "hash" => Step::Hash,
        "exit" => Step::Exit(
            need(word, rest)?
                .parse()
                .map_err(|_| ScriptError(format!("!exit: invalid exit code: {}", short(rest))))?,
        ),
        "crash" => Step::Crash,
        "hang" => Step::Hang { hard: rest == "hard" },
        _ => return error(format!("unknown step !{}", short(word))),
    };
    Ok(step)
}

/// Parses `300ms`, `2s`, `1.5s`, `2m` or a bare number of seconds.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, factor) = match text {
        _ if text.ends_with("ms") => (&text[..text.len() - 2], 0.001),
        _ if text.ends_with('s') => (&text[..text.len() - 1], 1.0),
        _ if text.ends_with('m') => (&text[..text.len() - 1], 60.0),
        _ => (text, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * factor).ok()
}

fn split_word(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

fn need<'a>(word: &str, rest: &'a str) -> Result<&'a str, ScriptError> {
    if rest.is_empty() { error(format!("!{word} needs an argument")) } else { Ok(rest) }
}

fn only_duration(word: &str, text: &str) -> Result<Duration, ScriptError> {
    parse_duration(text).ok_or_else(|| ScriptError(format!("!{word}: invalid duration: `{}`", short(text))))
}

fn error_kind(kind: &str) -> Result<String, ScriptError> {
    if ERROR_KINDS.contains(&kind) {
        Ok(kind.to_owned())
    } else {
        error(format!("unknown error kind {}; one of {}", short(kind), ERROR_KINDS.join(" ")))
    }
}

fn tool_run(text: &str) -> Result<ToolRun, ScriptError> {
    let (name, rest) = split_word(need("tool", text)?);
    let (arg, rest) = match rest.strip_prefix('"') {
        Some(quoted) => {
            let Some((arg, rest)) = quoted.split_once('"') else {
                return error("!tool: missing closing quote");
            };
            (arg, rest.trim())
        }
        None => split_word(rest),
    };
    let (time, output) = split_word(rest);
    Ok(ToolRun {
        tool: ToolUse { name: name.to_owned(), arg: arg.to_owned() },
        time: only_duration("tool", time)?,
        output: unescape(output),
    })
}

#[derive(Clone, Copy, PartialEq)]
enum QuestionKind {
    Single,
    Multi,
    Free,
}

fn question(text: &str, shape: QuestionKind) -> Result<Question, ScriptError> {
    let mut parts = text.split('|').map(str::trim);
    let (Some(header), Some(ask)) = (parts.next(), parts.next()) else {
        return error("!ask needs `Header | Question? | option | option`");
    };
    let options: Vec<_> = parts
        .filter(|part| !part.is_empty())
        .map(|part| match part.split_once(": ") {
            Some((label, detail)) => (label.trim().to_owned(), detail.trim().to_owned()),
            None => (part.to_owned(), String::new()),
        })
        .collect();
    if options.is_empty() && shape != QuestionKind::Free {
        return error("!ask needs at least one option");
    }
    Ok(Question {
        header: header.to_owned(),
        text: ask.to_owned(),
        options,
        multi: shape == QuestionKind::Multi,
        free: shape == QuestionKind::Free,
    })
}

fn todos(text: &str) -> Result<Vec<(bool, String)>, ScriptError> {
    text.split(" / ")
        .map(|item| match item.trim().split_at_checked(3) {
            Some(("[x]", label)) => Ok((true, label.trim().to_owned())),
            Some(("[ ]", label)) => Ok((false, label.trim().to_owned())),
            _ => error(format!("!todo: expected `[x] text` or `[ ] text`, got {}", short(item))),
        })
        .collect()
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n")
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::HELP;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn steps_come_one_per_line_or_with_semicolons() {
        let steps = steps_of_prompt("please\n!think 2s ; !say a ; b\n  !stream 1s\nthanks").unwrap();
        assert_eq!(steps, [Step::Think(secs(2)), Step::Say("a ; b".into()), Step::Stream(secs(1))]);
    }

    #[test]
    fn an_ordinary_prompt_has_no_steps() {
        assert_eq!(steps_of_prompt("fix the bug!\nnow").unwrap(), []);
    }

    #[test]
    fn a_misspelt_step_is_an_error_not_text() {
        assert_eq!(steps_of_prompt("!thnik 2s").unwrap_err().to_string(), "unknown step !thnik");
        assert_eq!(parse_step("!think soon").unwrap_err().to_string(), "!think: invalid duration: `soon`");
        assert!(
            parse_step("!fail gremlins oh no").unwrap_err().to_string().starts_with("unknown error kind")
        );
        assert!(parse_step("!say").is_err());
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("300ms"), Some(Duration::from_millis(300)));
        assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2m"), Some(secs(120)));
        assert_eq!(parse_duration("3"), Some(secs(3)));
        for bad in ["", "s", "-1s", "fast", "NaN", "inf", "1e99s"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn tools_take_a_word_or_a_quoted_argument() {
        let quoted = parse_step(r#"!tool Bash "cargo test" 2s 3 passed\n0 failed"#).unwrap();
        let tool = ToolUse { name: "Bash".into(), arg: "cargo test".into() };
        assert_eq!(quoted, Step::Tool(ToolRun { tool, time: secs(2), output: "3 passed\n0 failed".into() }));
        let Step::Tool(bare) = parse_step("!tool Read src/main.rs 1s").unwrap() else { panic!() };
        assert_eq!((bare.tool.arg.as_str(), bare.output.as_str()), ("src/main.rs", ""));
    }

    #[test]
    fn questions_have_options_with_descriptions() {
        let Step::Ask(questions) = parse_step("!ask Db | Which one? | SQLite: one file | Postgres").unwrap()
        else {
            panic!()
        };
        assert_eq!(questions[0].header, "Db");
        assert_eq!(questions[0].options[0], ("SQLite".into(), "one file".into()));
        assert_eq!(questions[0].options[1], ("Postgres".into(), String::new()));
        assert!(parse_step("!ask Db | Which?").is_err());
        assert!(parse_step("!ask-free Name | Which name?").is_ok());
    }

    #[test]
    fn permission_rules_cover_a_program_or_one_file() {
        let tool = |name: &str, arg: &str| ToolUse { name: name.into(), arg: arg.into() };
        assert_eq!(tool("Bash", "rm -rf build").rule(), "Bash(rm:*)");
        assert_eq!(tool("Write", "src/main.rs").rule(), "Write(src/main.rs)");
        assert_eq!(tool("Write", "a").input(), serde_json::json!({"file_path": "a"}));
    }

    #[test]
    fn scripts_in_both_formats_say_the_same() {
        let lines = parse_script("# one\n!think 1s\n!say a\n---\n\n!say b\n---\n", false).unwrap();
        let toml = parse_script(
            "[[turn]]\nsteps = [\"!think 1s ; !say a\"]\n[[turn]]\nsteps = [\"!say b\"]\n",
            true,
        );
        assert_eq!(lines.len(), 2);
        assert_eq!(lines, toml.unwrap());
        assert_eq!(
            parse_script("!say a\n!oops", false).unwrap_err().to_string(),
            "line 2: unknown step !oops"
        );
    }

    #[test]
    fn every_step_word_is_in_the_help() {
        for word in [
            "think",
            "say",
            "stream",
            "stall",
            "silent",
            "tool",
            "run",
            "permission",
            "ask",
            "ask-multi",
            "ask-free",
            "ask-many",
            "plan",
            "subagent",
            "background",
            "todo",
            "compact",
            "retry",
            "fail",
            "commit",
            "pr",
            "env",
            "argv",
            "cwd",
            "hash",
            "exit",
            "crash",
            "hang",
        ] {
            assert!(HELP.contains(&format!("!{word}")), "{word}");
        }
    }
}
