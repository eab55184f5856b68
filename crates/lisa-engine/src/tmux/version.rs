//! tmux's version, as `tmux -V` prints it.

use std::fmt;

/// The minimum version: it has an environment per session, exact sizes, and a safe way to leave copy mode.
pub const MINIMUM: Version = Version::new(3, 2);

/// A version such as `3.3a`; a development build counts as the release that it precedes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
    letter: u8,
}

impl Version {
    /// A release without a letter.
    pub(super) const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor, letter: 0 }
    }

    /// Parses the output of `tmux -V`: `tmux 3.3a`, `tmux next-3.5`, `tmux openbsd-7.5`.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.trim();
        let text = text.strip_prefix("tmux ")?;
        if text.starts_with("openbsd-") || text == "master" {
            return Some(MINIMUM);
        }
        let text = text.strip_prefix("next-").unwrap_or(text);
        let (major, rest) = text.split_once('.')?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (minor, tail) = rest.split_at(digits);
        let letter = tail.bytes().next().filter(u8::is_ascii_lowercase).unwrap_or(0);
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()?, letter })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.letter != 0 {
            write!(f, "{}", char::from(self.letter))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_letters_and_development_builds_are_ordered() {
        let parse = |text: &str| Version::parse(text.as_bytes());
        assert!(parse("tmux 3.3a\n") > parse("tmux 3.3"));
        assert!(parse("tmux 3.10") > parse("tmux 3.9"));
        assert!(parse("tmux next-3.5") >= Some(MINIMUM));
        assert!(parse("tmux 2.9a") < Some(MINIMUM));
        assert_eq!(parse("tmux 3.3a").unwrap().to_string(), "3.3a");
    }

    #[test]
    fn anything_else_is_no_version() {
        assert_eq!(Version::parse(b"zellij 0.40"), None);
        assert_eq!(Version::parse(b"tmux \xff"), None);
        assert_eq!(Version::parse(b""), None);
    }
}
