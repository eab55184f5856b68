//! Patterns of a profile: compiled once, limited in size, never matching empty text, and tested by their examples.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// Maximum size of a compiled pattern, in bytes.
const SIZE_LIMIT: usize = 1 << 20;
/// Maximum length of a pattern, in bytes.
const LENGTH_LIMIT: usize = 2_000;

/// A pattern that only extracts something; it decides nothing by itself and needs no examples.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Rx(Regex);

/// A pattern that decides something, with examples that prove it.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Proven")]
pub struct Pattern(Rx);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proven {
    regex: Rx,
    matches: Vec<String>,
    #[serde(default)]
    rejects: Vec<String>,
}

impl TryFrom<String> for Rx {
    type Error = String;

    fn try_from(source: String) -> Result<Self, String> {
        if source.trim().is_empty() {
            return Err("a pattern must not be empty".to_owned());
        }
        if source.len() > LENGTH_LIMIT {
            return Err(format!("a pattern has {} bytes, and the limit is {LENGTH_LIMIT}", source.len()));
        }
        let regex = RegexBuilder::new(&source)
            .size_limit(SIZE_LIMIT)
            .build()
            .map_err(|error| format!("the pattern `{source}` does not compile: {error}"))?;
        if regex.is_match("") {
            return Err(format!(
                "the pattern `{source}` matches an empty line, so it would match everywhere"
            ));
        }
        Ok(Self(regex))
    }
}

impl TryFrom<Proven> for Pattern {
    type Error = String;

    fn try_from(proven: Proven) -> Result<Self, String> {
        let source = proven.regex.as_str();
        if proven.matches.is_empty() {
            return Err(format!("the pattern `{source}` has no example in `matches`"));
        }
        if let Some(line) = proven.matches.iter().find(|line| !proven.regex.is_match(line)) {
            return Err(format!("the pattern `{source}` does not match its example {line:?}"));
        }
        if let Some(line) = proven.rejects.iter().find(|line| proven.regex.is_match(line)) {
            return Err(format!("the pattern `{source}` matches {line:?}, which it must reject"));
        }
        Ok(Self(proven.regex))
    }
}

impl std::ops::Deref for Rx {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.0
    }
}

impl std::ops::Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.0
    }
}
