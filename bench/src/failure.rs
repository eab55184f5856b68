//! Why a command could not do its work: the tools' own failure, which the engine's errors become.

use std::{fmt::Display, path::Path};

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) lisa_dev::failure::Failure);

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(lisa_dev::failure::Failure::new(what))
    }

    /// A failure of the file system.
    pub(crate) fn io(verb: &str, path: &Path, error: &dyn Display) -> Self {
        Self(lisa_dev::failure::Failure::io(verb, path, error))
    }

    /// The same, with what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self(self.0.hint(hint))
    }

    /// The same in one line, for a place inside other output.
    pub(crate) fn line(&self) -> String {
        self.0.line()
    }
}

impl From<lisa_dev::failure::Failure> for Failure {
    fn from(failure: lisa_dev::failure::Failure) -> Self {
        Self(failure)
    }
}

impl From<lisa_engine::error::Error> for Failure {
    fn from(error: lisa_engine::error::Error) -> Self {
        Self(lisa_dev::failure::Failure::new(error.message()).hint(error.hint()))
    }
}
