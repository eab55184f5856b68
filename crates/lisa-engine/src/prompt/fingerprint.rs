//! The fingerprint of a prompt: the same while the same thing is asked, another as soon as anything else is.

use crate::words::Prompt;
use md5::{Digest, Md5};

/// Names what is asked. Which option is marked, what is typed into the option with the key `typed`, and text that runs
/// with the clock do not count.
pub fn fingerprint(prompt: &Prompt, typed: Option<&str>) -> String {
    let mut hash = Md5::new();
    let mut add = |text: &str| {
        hash.update(settle(text).as_bytes());
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

/// The text without what moves by itself: spinners, the mark of the row that is chosen (which may be one that is no
/// option, such as the one that sends a list off), and numbers that a unit of time follows.
fn settle(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let spinner = word
            .chars()
            .all(|c| matches!(c, '\u{2800}'..='\u{28ff}' | '✢' | '✳' | '✶' | '✻' | '✽' | '·' | '◦'));
        let mark = matches!(word, "❯" | "›" | "▸" | "▶");
        if !spinner && !mark {
            words.push(if is_duration(word) { "#" } else { word });
        }
    }
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
