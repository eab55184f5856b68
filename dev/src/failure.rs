//! Why a command could not do its work.

use std::{fmt::Display, path::Path, process::ExitCode};

/// What a command gives back.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// What went wrong, and what to do about it where that is known.
    Problem {
        /// One sentence.
        what: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Everything that there is to say was said already.
    Reported,
    /// Somebody pressed Ctrl-C, or ended this process.
    Interrupted,
}

impl Failure {
    /// A problem, in one sentence.
    pub fn new(what: impl Into<String>) -> Self {
        Self::Problem { what: what.into(), hint: None }
    }

    /// A failure of the file system.
    pub fn io(verb: &str, path: &Path, error: &dyn Display) -> Self {
        Self::new(format!("could not {verb} {}: {error}", path.display()))
    }

    /// The same, with what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Problem { what, .. } => Self::Problem { what, hint: Some(hint.into()) },
            other => other,
        }
    }

    /// What to print, if anything is left to say.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Problem { what, hint: None } => Some(format!("error: {what}")),
            Self::Problem { what, hint: Some(hint) } => Some(format!("error: {what}\n       {hint}")),
            Self::Reported => None,
            Self::Interrupted => Some("interrupted".to_owned()),
        }
    }

    /// The same in one line, for a place inside other output.
    pub fn line(&self) -> String {
        match self {
            Self::Problem { what, hint: None } => what.clone(),
            Self::Problem { what, hint: Some(hint) } => format!("{what}; {hint}"),
            Self::Reported => "failed".to_owned(),
            Self::Interrupted => "interrupted".to_owned(),
        }
    }

    /// The exit code of a command that ends with it.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Interrupted => ExitCode::from(130),
            _ => ExitCode::FAILURE,
        }
    }
}
