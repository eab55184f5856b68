//! The one error type: a kind for programs to match on, a message for people, and a hint about what to do next.
//!
//! Front ends only translate it: the Nushell plugin into `lisa::<kind>` with a help text, the MCP server into a tool
//! error. Errors that several modules return have their constructor here, so that they read the same everywhere.

use std::{fmt, io, path::Path};

/// What went wrong, as a stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An argument is invalid.
    InvalidArgument,
    /// No session has this name.
    SessionNotFound,
    /// A prefix or tag matches several sessions.
    AmbiguousSession,
    /// The session's name is invalid.
    InvalidName,
    /// The session's name is taken.
    NameTaken,
    /// No profile has this id.
    UnknownAgent,
    /// The agent's program is not installed.
    AgentMissing,
    /// The agent doesn't support what was asked for.
    NotOffered,
    /// A flag switches safety checks off, and the caller didn't ask for that explicitly.
    DangerousFlag,
    /// A policy of this installation forbids it.
    NotAllowed,
    /// The working directory doesn't exist or isn't a directory.
    InvalidCwd,
    /// tmux is not installed.
    TmuxMissing,
    /// tmux is older than the minimum version.
    TmuxTooOld,
    /// tmux didn't answer in time.
    TmuxTimeout,
    /// tmux rejected a command.
    TmuxFailed,
    /// The state directory can't be trusted.
    UnsafeStateDir,
    /// The disk is full.
    DiskFull,
    /// Any other I/O error.
    Io,
    /// One of Lisa's own files is malformed.
    CorruptFile,
    /// The session limit is reached.
    SessionLimit,
    /// The nesting limit is reached.
    DepthLimit,
    /// The configuration is malformed.
    InvalidConfig,
    /// A profile is malformed or fails its own examples.
    InvalidProfile,
    /// The agent didn't start.
    LaunchFailed,
    /// No prompt is open.
    NoPrompt,
    /// The open prompt isn't the one that the caller read.
    PromptChanged,
    /// The choice isn't one of the prompt's options.
    UnknownChoice,
    /// The answer was given, but the prompt didn't close.
    AnswerUnconfirmed,
    /// The gate before typing is shut (see `api::Refusal`).
    Refused,
    /// The event cursor is older than what the journal keeps.
    CursorExpired,
    /// The operation timed out.
    Timeout,
    /// The caller cancelled.
    Cancelled,
    /// The state lock wasn't free in time.
    LockTimeout,
    /// Lisa itself failed.
    Internal,
}

impl Kind {
    /// The stable word: `code` in MCP errors, and the part after `lisa::` in Nushell.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::SessionNotFound => "session_not_found",
            Self::AmbiguousSession => "ambiguous_session",
            Self::InvalidName => "invalid_name",
            Self::NameTaken => "name_taken",
            Self::UnknownAgent => "unknown_agent",
            Self::AgentMissing => "agent_missing",
            Self::NotOffered => "not_offered",
            Self::DangerousFlag => "dangerous_flag",
            Self::NotAllowed => "not_allowed",
            Self::InvalidCwd => "invalid_cwd",
            Self::TmuxMissing => "tmux_missing",
            Self::TmuxTooOld => "tmux_too_old",
            Self::TmuxTimeout => "tmux_timeout",
            Self::TmuxFailed => "tmux_failed",
            Self::UnsafeStateDir => "unsafe_state_dir",
            Self::DiskFull => "disk_full",
            Self::Io => "io",
            Self::CorruptFile => "corrupt_file",
            Self::SessionLimit => "session_limit",
            Self::DepthLimit => "depth_limit",
            Self::InvalidConfig => "invalid_config",
            Self::InvalidProfile => "invalid_profile",
            Self::LaunchFailed => "launch_failed",
            Self::NoPrompt => "no_prompt",
            Self::PromptChanged => "prompt_changed",
            Self::UnknownChoice => "unknown_choice",
            Self::AnswerUnconfirmed => "answer_unconfirmed",
            Self::Refused => "refused",
            Self::CursorExpired => "cursor_expired",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::LockTimeout => "lock_timeout",
            Self::Internal => "internal",
        }
    }
}

/// An error: what happened, and what to do next.
#[derive(Debug, Clone)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: String,
    /// The parts of the caller's input that are wrong: values, or names of parameters.
    about: Vec<String>,
    /// What the caller may have meant.
    near: Vec<String>,
}

/// A `Result` with this error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with a message (what happened) and a hint (what to do).
    pub fn new(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), about: Vec::new(), near: Vec::new() }
    }

    /// What went wrong, as a stable word.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do next.
    pub fn hint(&self) -> &str {
        &self.hint
    }

    /// Adds to the hint.
    #[must_use]
    pub fn and_hint(mut self, more: &str) -> Self {
        let before = std::mem::take(&mut self.hint);
        self.hint = if before.is_empty() { more.to_owned() } else { format!("{before}; {more}") };
        self
    }

    /// Marks a value or parameter of the caller as wrong.
    #[must_use]
    pub fn about(mut self, given: impl Into<String>) -> Self {
        self.about.push(given.into());
        self
    }

    /// Whether this value or parameter of the caller is wrong.
    pub fn is_about(&self, given: &str) -> bool {
        self.about.iter().any(|about| about == given)
    }

    /// What the caller may have meant, most likely first.
    pub fn near(&self) -> &[String] {
        &self.near
    }

    /// An operation on a file or directory failed.
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let what = format!("could not {doing} {}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::new(
                Kind::DiskFull,
                what,
                "free some space, or point LISA_STATE_DIR at another file system",
            ),
            io::ErrorKind::PermissionDenied => Self::new(
                Kind::Io,
                what,
                "check its owner and permissions, or point LISA_STATE_DIR at a directory of your own",
            ),
            _ => Self::new(Kind::Io, what, "run `lisa doctor` to check the state directory"),
        }
    }

    /// An argument is invalid.
    pub fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Kind::InvalidArgument, message, hint)
    }

    /// No session has this name; the hint suggests similar names.
    pub fn not_found(name: &str, known: &[String]) -> Self {
        let near = near_matches(name, known);
        let hint = if near.is_empty() {
            "list the sessions to see their names".to_owned()
        } else {
            format!("did you mean {}?", near.join(", "))
        };
        let error =
            Self::new(Kind::SessionNotFound, format!("there is no session `{}`", printable(name)), hint);
        Self { near, ..error.about(name) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hint.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}; {}", self.message, self.hint)
        }
    }
}

impl std::error::Error for Error {}

/// Makes a string from a user safe to print on one line: escapes control characters, truncates to 80 characters.
pub fn printable(text: &str) -> String {
    let mut out: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        out.push('…');
    }
    out
}

/// The known words that `given` was probably meant to be: at most three, closest first.
pub fn near_matches(given: &str, known: &[String]) -> Vec<String> {
    let given = given.to_lowercase();
    let mut scored: Vec<(usize, &String)> = known
        .iter()
        .filter_map(|word| {
            let lower = word.to_lowercase();
            let distance = edit_distance(&given, &lower);
            let contained = given.len() >= 3 && (lower.contains(&given) || given.contains(&lower));
            (contained || distance <= 1 + given.chars().count() / 4).then_some((distance, word))
        })
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, word)| word.clone()).collect()
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_session_names_the_nearest_ones() {
        let known = ["fix-login", "fix-logout", "docs"].map(String::from).to_vec();
        let error = Error::not_found("fix-logn", &known);
        assert_eq!(error.kind(), Kind::SessionNotFound);
        assert_eq!(error.hint(), "did you mean fix-login, fix-logout?");
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_failures() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Error::io("write", Path::new("/x"), &full).kind(), Kind::DiskFull);
    }

    #[test]
    fn names_are_shown_without_control_characters() {
        assert_eq!(printable("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
    }
}
