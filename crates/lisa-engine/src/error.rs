//! The one error type: a kind that programs match on, a sentence for people, and what to do next.
//!
//! Front ends translate it and add nothing: the Nushell plugin makes `lisa::<kind>` and a help text of it, the MCP
//! server a tool error. Constructors for the failures that several modules meet live here, so that each reads the
//! same wherever it happens.

use std::{fmt, io, path::Path};

/// What went wrong, as a stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An argument makes no sense.
    InvalidArgument,
    /// No session has this name.
    SessionNotFound,
    /// A prefix or tag fits several sessions.
    AmbiguousSession,
    /// The session's name is not allowed.
    InvalidName,
    /// The session's name is in use.
    NameTaken,
    /// No profile has this id.
    UnknownAgent,
    /// The agent's program is not installed.
    AgentMissing,
    /// The agent does not offer what was asked for.
    NotOffered,
    /// A flag that switches safety off was not asked for by name.
    DangerousFlag,
    /// A policy of this installation forbids it.
    NotAllowed,
    /// The working folder does not exist or is no folder.
    InvalidCwd,
    /// tmux is not installed.
    TmuxMissing,
    /// tmux is older than what Lisa needs.
    TmuxTooOld,
    /// tmux did not answer in time.
    TmuxTimeout,
    /// tmux refused a command.
    TmuxFailed,
    /// The state folder can not be trusted.
    UnsafeStateDir,
    /// The disk is full.
    DiskFull,
    /// Some other failure of the file system.
    Io,
    /// A file of Lisa's own can not be understood.
    CorruptFile,
    /// The session limit is reached.
    SessionLimit,
    /// The nesting limit is reached.
    DepthLimit,
    /// The configuration can not be understood.
    InvalidConfig,
    /// A profile can not be understood or fails its own examples.
    InvalidProfile,
    /// The agent did not start.
    LaunchFailed,
    /// No prompt is open that could be answered.
    NoPrompt,
    /// The open prompt is not the one that was read.
    PromptChanged,
    /// The choice is none of the prompt's options.
    UnknownChoice,
    /// The answer was given, but the prompt did not go away.
    AnswerUnconfirmed,
    /// The write gate is shut.
    Refused,
    /// The event cursor is older than what the journal keeps.
    CursorExpired,
    /// The time limit passed.
    Timeout,
    /// The caller cancelled.
    Cancelled,
    /// The state lock could not be had in time.
    LockTimeout,
}

impl Kind {
    /// The stable word: what `code` is in MCP errors and what follows `lisa::` in Nushell.
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
        }
    }
}

/// A failure: what, and what to do next.
#[derive(Debug, Clone)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: String,
}

/// The result of everything that can fail here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure of a kind, with a sentence that says what happened and one that says what to do.
    pub fn new(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into() }
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

    /// An operation on a file or folder failed.
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let what = format!("could not {doing} {}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::new(
                Kind::DiskFull,
                what,
                "free some space, or point LISA_STATE_DIR at a file system that has some",
            ),
            io::ErrorKind::PermissionDenied => Self::new(
                Kind::Io,
                what,
                "check who owns it, or point LISA_STATE_DIR at a folder of your own",
            ),
            _ => Self::new(Kind::Io, what, "run `lisa doctor` to check the state folder"),
        }
    }

    /// An argument makes no sense.
    pub fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Kind::InvalidArgument, message, hint)
    }

    /// No session has this name; the nearest ones are named.
    pub fn not_found(name: &str, known: &[String]) -> Self {
        let near = near_matches(name, known);
        let hint = if near.is_empty() {
            "list the sessions to see which there are".to_owned()
        } else {
            format!("did you mean {}?", near.join(", "))
        };
        Self::new(Kind::SessionNotFound, format!("there is no session `{}`", printable(name)), hint)
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

/// A string a user gave, made safe to show in one line: control characters escaped, at most 80 characters.
pub fn printable(text: &str) -> String {
    let mut out: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        out.push('…');
    }
    out
}

/// The known words that `given` was probably meant to be: at most three, the nearest first.
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
