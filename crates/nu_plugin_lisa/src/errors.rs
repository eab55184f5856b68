//! Engine errors as Nushell sees them: a sentence, the place in the user's own line, `lisa::<kind>`, and what to do.

use crate::speak::here;
use lisa_engine::error::{Error, Kind};
use nu_protocol::{LabeledError, Span};

/// An engine error, labelled at the argument or command it is about.
pub(crate) fn labeled(error: &Error, span: Span) -> LabeledError {
    if error.kind() == Kind::Cancelled {
        return LabeledError::new("Operation interrupted")
            .with_code(code(Kind::Cancelled))
            .with_label("this was waiting", span);
    }
    let mut labeled = LabeledError::new(capitalized(error.message()))
        .with_code(code(error.kind()))
        .with_label(error.kind().as_str().replace('_', " "), span);
    if !error.hint().is_empty() {
        labeled = labeled.with_help(here(error.hint()));
    }
    labeled
}

/// The code that scripts match on: `$e.details.code`.
pub(crate) fn code(kind: Kind) -> String {
    format!("lisa::{}", kind.as_str())
}

/// An argument that makes no sense, labelled where it stands.
pub(crate) fn invalid(message: impl Into<String>, hint: impl Into<String>, span: Span) -> LabeledError {
    labeled(&Error::invalid(message, hint), span)
}

/// Puts a place to an engine error.
pub(crate) trait At<T> {
    /// The value, or the error labelled at `span`.
    fn at(self, span: Span) -> Result<T, LabeledError>;
}

impl<T> At<T> for lisa_engine::error::Result<T> {
    fn at(self, span: Span) -> Result<T, LabeledError> {
        self.map_err(|error| labeled(&error, span))
    }
}

fn capitalized(sentence: &str) -> String {
    let mut chars = sentence.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_error_keeps_its_kind_its_sentence_and_its_hint() {
        let span = Span::new(3, 7);
        let error = labeled(&Error::not_found("fix-logn", &["fix-login".into()]), span);
        assert_eq!(error.code.as_deref(), Some("lisa::session_not_found"));
        assert_eq!(error.msg, "There is no session `fix-logn`");
        assert_eq!(error.help.as_deref(), Some("did you mean fix-login?"));
        assert_eq!(error.labels[0].span, span);
        assert_eq!(error.labels[0].text, "session not found");
    }

    #[test]
    fn a_cancelled_wait_reads_like_any_other_interrupt() {
        let error = labeled(&Error::new(Kind::Cancelled, "stopped", ""), Span::test_data());
        assert_eq!(
            (error.msg.as_str(), error.code.as_deref()),
            ("Operation interrupted", Some("lisa::cancelled"))
        );
    }

    #[test]
    fn an_error_without_a_hint_has_no_empty_help() {
        assert_eq!(labeled(&Error::new(Kind::Io, "x", ""), Span::test_data()).help, None);
    }
}
