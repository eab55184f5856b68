//! Converts engine errors to Nushell's `LabeledError`: message, span, code `lisa::<kind>`, and help text.

use lisa_engine::error::{Error, Kind};
use nu_plugin::EvaluatedCall;
use nu_protocol::{LabeledError, Span, Value};

/// Converts an engine error, labelled at `span`.
pub(crate) fn labeled(error: &Error, span: Span) -> LabeledError {
    if error.kind() == Kind::Cancelled {
        return interrupted(span);
    }
    let mut labeled = LabeledError::new(capitalized(error.message()))
        .with_code(code(error.kind()))
        .with_label(error.kind().as_str().replace('_', " "), span);
    if !error.hint().is_empty() {
        labeled = labeled.with_help(error.hint());
    }
    labeled
}

/// Converts an engine error, labelled at the argument it's about, or at `otherwise`.
pub(crate) fn label_argument(error: &Error, call: &EvaluatedCall, otherwise: Span) -> LabeledError {
    let given = |value: &Value| value.as_str().is_ok_and(|word| error.is_about(word));
    let flag = call.named.iter().find_map(|(flag, value)| match value {
        Some(value) if given(value) => Some(value.span()),
        value => error.is_about(&flag.item).then(|| value.as_ref().map_or(flag.span, Value::span)),
    });
    let argument = || call.positional.iter().rev().find(|value| given(value)).map(Value::span);
    labeled(error, flag.or_else(argument).unwrap_or(otherwise))
}

/// The error of a command that was interrupted with Ctrl-C.
pub(crate) fn interrupted(span: Span) -> LabeledError {
    LabeledError::new("Operation interrupted")
        .with_code(code(Kind::Cancelled))
        .with_label("interrupted here", span)
}

/// The error code for scripts: `$e.details.code`.
pub(crate) fn code(kind: Kind) -> String {
    format!("lisa::{}", kind.as_str())
}

/// An error about an invalid argument, labelled at `span`.
pub(crate) fn invalid_argument(
    message: impl Into<String>,
    hint: impl Into<String>,
    span: Span,
) -> LabeledError {
    labeled(&Error::invalid(message, hint), span)
}

/// Adds a span to engine errors.
pub(crate) trait At<T> {
    /// Labels the error at `span`.
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
    fn an_engine_error_keeps_kind_message_and_hint() {
        let span = Span::new(3, 7);
        let error = labeled(&Error::not_found("fix-logn", &["fix-login".into()]), span);
        assert_eq!(error.code.as_deref(), Some("lisa::session_not_found"));
        assert_eq!(error.msg, "There is no session `fix-logn`");
        assert_eq!(error.help.as_deref(), Some("did you mean fix-login?"));
        assert_eq!(error.labels[0].span, span);
        assert_eq!(error.labels[0].text, "session not found");
    }

    #[test]
    fn an_error_is_labelled_at_the_argument_it_is_about() {
        use nu_protocol::IntoSpanned;
        let flag = |name: &str, text: &str, span| {
            (name.to_owned().into_spanned(span), Some(Value::string(text, span)))
        };
        let mut call = EvaluatedCall::new(Span::new(0, 4));
        call.add_positional(Value::string("demo", Span::new(5, 9)));
        call.named =
            vec![flag("name", "docs", Span::new(10, 20)), flag("cwd", "/nowhere", Span::new(21, 35))];
        let at = |given: &str| {
            label_argument(&Error::invalid("no", "").about(given), &call, Span::new(0, 4)).labels[0].span
        };
        assert_eq!(at("docs"), Span::new(10, 20), "the value of a flag");
        assert_eq!(at("cwd"), Span::new(21, 35), "a flag by its name");
        assert_eq!(at("demo"), Span::new(5, 9), "an argument");
        assert_eq!(at("elsewhere"), Span::new(0, 4), "not an argument");
    }

    #[test]
    fn a_cancelled_wait_is_reported_as_an_interrupt() {
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
