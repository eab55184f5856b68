//! Masking secrets, so that a recording can be shared.

use regex::{Captures, Regex};
use serde_json::Value;
use std::borrow::Cow;

/// What replaces a secret.
const MASKED: &str = "[masked]";
/// Names whose values are secret.
const NAMES: &str = r"(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|passwd|password|passphrase|credential|authorization|auth|cookie)";
/// How a secret may start: at a word boundary, or right after a colour sequence, which ends with a letter.
const START: &str = r"(?P<keep>\x1b\[[0-9;:]*m|\b)";
/// One character of a secret; the colour may change inside it.
const INNER: &str = r"(?:[A-Za-z0-9_-]|\x1b\[[0-9;:]*m)";
/// The continuation of a wrapped secret: at least 16 characters without a space.
const WRAPPED: &str = r"(?:\r?\n[ \t]*[A-Za-z0-9_./+=-]{16,})*";
/// Secrets that are recognized by their prefix.
const KINDS: &str = r"(?:sk-|[sr]k_(?:live|test)_|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|A(?:KIA|SIA)|AIza|ya29\.|GOCSPX-|hf_|npm_|pypi-|dop_v1_|SG\.)";

/// Masks secrets in text and in JSON.
#[derive(Debug, Clone)]
pub struct Mask {
    /// The groups `keep` and `after` of a match are kept.
    rules: Vec<Regex>,
    secret_name: Option<Regex>,
    flag: Option<Regex>,
    home: Option<String>,
}

impl Mask {
    /// A mask for secrets, and for the user's home directory if given.
    pub fn new(home: Option<&str>) -> Self {
        let value = r#"[^\s"',;]{6,}"#;
        let sources = [
            format!("{START}{KINDS}{INNER}{{8,}}{WRAPPED}"),
            format!(r"{START}eyJ{INNER}{{8,}}\.{INNER}{{8,}}(?:\.{INNER}*)?{WRAPPED}"),
            format!(r#"(?i)(?P<keep>\bauthorization["']?\s*[:=]\s*["']?[A-Za-z]+[ \t]+){value}"#),
            format!(r"(?i)(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{{8,}}{WRAPPED}"),
            format!(r#"(?i)(?P<keep>\b[A-Za-z0-9_-]*{NAMES}[A-Za-z0-9_-]*["']?\s*[:=]\s*["']?){value}"#),
            format!(r#"(?i)(?P<keep>(?:^|\s)--?[A-Za-z0-9_-]*{NAMES}[ \t]+["']?){value}"#),
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)".to_owned(),
            r"(?P<keep>://[^/\s:@]*:)[^@\s/]+(?P<after>@)".to_owned(),
        ];
        Self {
            rules: sources.into_iter().filter_map(|source| Regex::new(&source).ok()).collect(),
            secret_name: Regex::new(&format!("(?i)^[A-Za-z0-9_-]*{NAMES}s?$")).ok(),
            flag: Regex::new(&format!("(?i)^--?[A-Za-z0-9_-]*{NAMES}$")).ok(),
            home: home.map(|home| home.trim_end_matches('/').to_owned()).filter(|home| home.len() > 1),
        }
    }

    /// The text without its secrets. Rows and colours keep their places.
    pub fn text(&self, text: &str) -> String {
        let mut masked = Cow::Borrowed(text);
        for pattern in &self.rules {
            if let Cow::Owned(changed) = pattern.replace_all(&masked, replaced) {
                masked = Cow::Owned(changed);
            }
        }
        match &self.home {
            Some(home) => masked.replace(home.as_str(), "~"),
            None => masked.into_owned(),
        }
    }

    /// Arguments without their secrets; an argument may be a secret because of the one before.
    pub fn args(&self, args: &[String]) -> Vec<String> {
        let is_flag = |arg: &String| self.flag.as_ref().is_some_and(|flag| flag.is_match(arg));
        let before = std::iter::once(None).chain(args.iter().map(Some));
        args.iter()
            .zip(before)
            .map(|(arg, before)| if before.is_some_and(is_flag) { MASKED.to_owned() } else { self.text(arg) })
            .collect()
    }

    /// The value without its secrets: masked in every text, and completely if a field's name says that it is secret.
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

/// The replacement for a secret; keeps line breaks and colour sequences, so that the screen's layout stays the same.
fn replaced(found: &Captures<'_>) -> String {
    let (keep, after) = (found.name("keep"), found.name("after"));
    let whole = found.get(0).map_or("", |whole| whole.as_str());
    let from = keep.map_or(0, |keep| keep.len());
    let secret = whole.get(from..whole.len() - after.map_or(0, |after| after.len())).unwrap_or_default();
    let mut text = format!("{}{MASKED}", keep.map_or("", |keep| keep.as_str()));
    let mut in_escape = false;
    for character in secret.chars() {
        in_escape |= character == '\u{1b}';
        if in_escape || character == '\n' {
            text.push(character);
        }
        in_escape &= !character.is_ascii_alphabetic();
    }
    text + after.map_or("", |after| after.as_str())
}

#[cfg(test)]
mod tests {
    use super::Mask;
    use serde_json::json;

    /// Checks that nothing of a secret is left, whatever surrounds it.
    fn hides(secret: &str, text: &str) {
        let masked = Mask::new(None).text(text);
        assert!(!masked.contains(secret), "{secret} in {masked:?}");
        assert_eq!(masked.lines().count(), text.lines().count(), "{masked:?}");
    }

    #[test]
    fn keys_are_known_by_how_they_begin() {
        for key in [
            "sk-ant-api03-AbCdEf012345_-xyz",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "AKIAIOSFODNN7EXAMPLE",
            "ASIAIOSFODNN7EXAMPLE",
            "sk_live_abcdefghijklmnop",
            "xoxb-123456789012-abcdefghij",
        ] {
            hides(key, &format!("it is {key}."));
            hides(key, &format!("\u{1b}[38;5;246m{key}\u{1b}[39m done"));
            hides(&key[9..], &format!("{}\u{1b}[7m{}\u{1b}[0m", &key[..9], &key[9..]));
        }
    }

    #[test]
    fn names_tell_of_what_follows_them() {
        for (secret, text) in [
            ("wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY"),
            ("hunter22", "mysql --password hunter22 -u me"),
            ("hunter22", "export DB_PASSWORD='hunter22'"),
            ("0123456789abcdef", "Authorization: token 0123456789abcdef"),
            ("dXNlcjpwYXNz", "authorization: Basic dXNlcjpwYXNz"),
            ("abc.def.ghi", "Bearer abc.def.ghi-jkl"),
            ("s3cr3t!", "postgres://me:s3cr3t!@db/x"),
            ("s3cr3t!", "redis://:s3cr3t!@cache:6379"),
            ("sessionid12345", "Cookie: sessionid12345"),
        ] {
            hides(secret, text);
        }
    }

    #[test]
    fn a_key_that_is_too_long_for_its_row_is_masked_on_the_next_one_too() {
        hides(
            "restofthekey0123456789",
            "● It is sk-ant-api03-beginning\n  restofthekey0123456789\n  and so on",
        );
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq1w2e3r4\n-----END RSA PRIVATE KEY-----\nafter";
        hides("q1w2e3r4", pem);
        assert!(Mask::new(None).text(pem).ends_with("\nafter"));
    }

    #[test]
    fn colours_do_not_run_on_behind_a_secret() {
        let masked = Mask::new(None).text("\u{1b}[31msk-ant-abcdefgh\u{1b}[39m ok");
        assert_eq!(masked, "\u{1b}[31m[masked]\u{1b}[39m ok");
    }

    #[test]
    fn arguments_and_fields_are_masked_by_their_names() {
        let mask = Mask::new(None);
        let args = ["--api-key", "abcdefgh", "--model", "opus"].map(str::to_owned);
        assert_eq!(mask.args(&args), ["--api-key", "[masked]", "--model", "opus"]);
        let masked = mask.value(&json!({"privateKey": "abcdefgh", "cookies": "abcdefgh", "tokens": 12}));
        assert_eq!(masked, json!({"privateKey": "[masked]", "cookies": "[masked]", "tokens": 12}));
    }

    #[test]
    fn what_is_no_secret_stays() {
        let text = "✻ Baked for 12s · ↓ 26 tokens\n  ? for shortcuts\n  tokens used: 3,380\n  https://example.com:8080/x@y";
        assert_eq!(Mask::new(None).text(text), text);
    }
}
