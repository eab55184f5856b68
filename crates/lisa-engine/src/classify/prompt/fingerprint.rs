//! The fingerprint of a prompt: stays the same while the same question is open, and changes with the question.

use crate::{api::words::Prompt, classify::profile::Rx};
use md5::{Digest, Md5};

/// Identifies the question. Ignores which option is selected, the text typed into the option `typed`, words that are
/// `changing` by themselves, and durations.
pub fn fingerprint(prompt: &Prompt, typed: Option<&str>, changing: Option<&Rx>) -> String {
    let mut hash = Md5::new();
    let mut add = |text: &str| {
        hash.update(settle(text, changing).as_bytes());
        hash.update([0]);
    };
    add(prompt.kind.as_str());
    add(prompt.dialog.map_or("", |dialog| dialog.as_str()));
    add(&prompt.title);
    add(&prompt.body);
    for part in [&prompt.tool, &prompt.command, &prompt.file] {
        add(part.as_deref().unwrap_or(""));
    }
    for option in &prompt.options {
        add(&option.key);
        add(if typed == Some(option.key.as_str()) { "" } else { &option.label });
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Removes what changes by itself: spinners, the mark of the selected row (even of a row that is no option, such as
/// the one that submits a list), and numbers with a unit of time.
fn settle(text: &str, changing: Option<&Rx>) -> String {
    let stays = |word: &&str| changing.is_none_or(|changing| !changing.is_match(word));
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(stays)
        .map(|word| if is_duration(word) { "#" } else { word })
        .collect();
    let mut settled: Vec<&str> = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let counts = word.bytes().all(|byte| byte.is_ascii_digit());
        let unit = words.get(at + 1).is_some_and(|next| {
            ["second", "minute", "hour", "day"].iter().any(|unit| next.starts_with(unit))
        });
        settled.push(if counts && unit { "#" } else { word });
    }
    settled.join(" ")
}

fn is_duration(word: &str) -> bool {
    let word = word.trim_matches(|c: char| matches!(c, '(' | ')' | ',' | '.' | ';'));
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &word[digits.len()..];
    !digits.is_empty()
        && matches!(unit, "s" | "ms" | "m" | "h")
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '<')
}
