//! Engine errors as Nushell sees them: a sentence, the place in the user's own line, `lisa::<kind>`, and what to do.

use crate::speak::here;
use lisa_engine::error::{Error, Kind};
use nu_plugin::EvaluatedCall;
use nu_protocol::{LabeledError, Span, Value};

/// An engine error, labelled at the argument or command it is about.
pub(crate) fn labeled(error: &Error, span: Span) -> LabeledError {
    if error.kind() == Kind::Cancelled {
        return interrupted(span);
    }
    let mut labeled = LabeledError::new(capitalized(error.message()))
        .with_code(code(error.kind()))
        .with_label(error.kind().as_str().replace('_', " "), span);
    if !error.hint().is_empty() {
        labeled = labeled.with_help(here(error.hint()));
    }
    labeled
}

/// An engine error, labelled at the argument that its sentence quotes; without one, at `otherwise`.
pub(crate) fn about(error: &Error, call: &EvaluatedCall, otherwise: Span) -> LabeledError {
    let said = error.message();
    let quoted = |word: &str| said.contains(&format!("`{word}`"));
    // Paths stand in sentences without quotes.
    let path = |word: &str| word.starts_with('/') && said.contains(word);
    let names = |value: &Value| value.as_str().is_ok_and(|word| quoted(word) || path(word));
    let flag = call.named.iter().find_map(|(flag, value)| {
        let value = value.as_ref()?;
        (names(value) || quoted(&flag.item)).then(|| value.span())
    });
    let argument = || call.positional.iter().rev().find(|value| names(value)).map(Value::span);
    labeled(error, flag.or_else(argument).unwrap_or(otherwise))
}

/// What a command says that Ctrl-C has ended.
pub(crate) fn interrupted(span: Span) -> LabeledError {
    LabeledError::new("Operation interrupted")
        .with_code(code(Kind::Cancelled))
        .with_label("this was waiting", span)
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
    fn an_error_is_labelled_at_the_argument_that_it_quotes() {
        use nu_protocol::IntoSpanned;
        let flag = |name: &str, text: &str, span| {
            (name.to_owned().into_spanned(span), Some(Value::string(text, span)))
        };
        let mut call = EvaluatedCall::new(Span::new(0, 4));
        call.add_positional(Value::string("demo", Span::new(5, 9)));
        call.named =
            vec![flag("name", "docs", Span::new(10, 20)), flag("cwd", "/nowhere", Span::new(21, 35))];
        let at = |said: &str| about(&Error::invalid(said, ""), &call, Span::new(0, 4)).labels[0].span;
        assert_eq!(at("there is a session `docs` already"), Span::new(10, 20));
        assert_eq!(at("the working folder /nowhere does not exist"), Span::new(21, 35));
        assert_eq!(at("the agent `demo` has no such mode"), Span::new(5, 9));
        assert_eq!(at("the demo is over"), Span::new(0, 4));
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
