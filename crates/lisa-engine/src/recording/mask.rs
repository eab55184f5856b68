//! Masking: a recording may be shown to others, a secret in it may not.

use regex::Regex;
use serde_json::Value;

/// What stands where a secret stood.
const MASKED: &str = "[masked]";
/// Words whose values are secret, wherever they stand.
const NAMES: &str =
    r"(?:api[_-]?key|apikey|access[_-]?key|secret|token|passwd|password|credential|authorization|auth)";

/// Masks secrets in text and in JSON.
#[derive(Debug)]
pub struct Mask {
    rules: Vec<(Regex, String)>,
    secret_name: Option<Regex>,
    home: Option<String>,
}

impl Mask {
    /// A mask for secrets, and for the user's home folder where that is given.
    pub fn new(home: Option<&str>) -> Self {
        let sources = [
            (r"\bsk-[A-Za-z0-9_-]{8,}".to_owned(), MASKED.to_owned()),
            (
                r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abpr]-|AKIA|AIza|hf_|npm_)[A-Za-z0-9_-]{8,}"
                    .to_owned(),
                MASKED.to_owned(),
            ),
            (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?".to_owned(), MASKED.to_owned()),
            (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}".to_owned(), format!("$1 {MASKED}")),
            (
                format!(r#"(?i)\b([A-Za-z0-9_-]*{NAMES}[A-Za-z0-9_-]*["']?\s*[:=]\s*["']?)[^\s"',;]{{6,}}"#),
                format!("${{1}}{MASKED}"),
            ),
            (
                r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"
                    .to_owned(),
                MASKED.to_owned(),
            ),
            (r"(://[^/\s:@]+:)[^@\s/]+@".to_owned(), format!("${{1}}{MASKED}@")),
        ];
        let rules = sources.into_iter().filter_map(|(source, with)| Some((Regex::new(&source).ok()?, with)));
        Self {
            rules: rules.collect(),
            secret_name: Regex::new(&format!("(?i)^[A-Za-z0-9_-]*{NAMES}$")).ok(),
            home: home.map(|home| home.trim_end_matches('/').to_owned()).filter(|home| home.len() > 1),
        }
    }

    /// The text without its secrets.
    pub fn text(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for (pattern, with) in &self.rules {
            if pattern.is_match(&masked) {
                masked = pattern.replace_all(&masked, with.as_str()).into_owned();
            }
        }
        match &self.home {
            Some(home) => masked.replace(home.as_str(), "~"),
            None => masked,
        }
    }

    /// The value without its secrets: in every text, and whole where a field's name says that it is one.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect()),
            Value::Object(fields) => {
                let masked = fields.iter().map(|(name, field)| {
                    let secret = field.as_str().is_some_and(|text| text.len() >= 6)
                        && self.secret_name.as_ref().is_some_and(|pattern| pattern.is_match(name));
                    (name.clone(), if secret { Value::String(MASKED.to_owned()) } else { self.value(field) })
                });
                Value::Object(masked.collect())
            }
            other => other.clone(),
        }
    }
}
