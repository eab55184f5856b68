//! Session names from arguments or pipeline input.

use crate::errors::invalid_argument;
use lisa_engine::{engine::Engine, error::Error};
use nu_plugin::EvaluatedCall;
use nu_protocol::{LabeledError, Record, Span, Value};

/// A session name with its span, and the prompt and turn of the row it came from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedSession {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// The prompt id from the same row. An answer applies to this prompt only.
    pub(crate) prompt_id: Option<String>,
    /// The turn from the same row.
    pub(crate) turn: Option<String>,
}

/// The sessions to act on. No names and an empty list differ: for the first, `kill` is an error; for the second, it does
/// nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Names {
    /// No argument and no input.
    Missing,
    /// The names in order, without duplicates.
    Given(Vec<NamedSession>),
}

impl Names {
    /// Reads names from the positional arguments from `start` on, or else from the input. Arguments win, because inside
    /// `each {|row| … $row.name }` the row is also the input.
    pub(crate) fn read(call: &EvaluatedCall, start: usize, input: &Value) -> Result<Self, LabeledError> {
        let mut named = Vec::new();
        let args = call.positional.get(start..).unwrap_or_default();
        if args.is_empty() {
            if input.is_nothing() {
                return Ok(Self::Missing);
            }
            collect(input, &mut named)?;
        } else {
            for arg in args {
                collect(arg, &mut named)?;
            }
        }
        Ok(Self::Given(named))
    }

    /// The sessions. It's an error if no name was given.
    pub(crate) fn required(self, head: Span) -> Result<Vec<NamedSession>, LabeledError> {
        match self {
            Self::Given(named) => Ok(named),
            Self::Missing => Err(invalid_argument(
                "no session name given",
                "pass names as arguments, or pipe in a name, a list of names, or rows of `lisa session list`",
                head,
            )),
        }
    }

    /// The only session. It's an error if none or several names were given.
    pub(crate) fn one(self, head: Span) -> Result<NamedSession, LabeledError> {
        let mut named = self.required(head)?;
        match (named.pop(), named.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(last), false) => Err(invalid_argument(
                "this command takes one session",
                "use `each` to run it for every row",
                last.span,
            )),
            (None, _) => Err(invalid_argument("the list of sessions is empty", "pass one session", head)),
        }
    }
}

/// Checks that all sessions exist, so that nothing is done if one of the names is wrong.
pub(crate) fn check(engine: &Engine, named: &[NamedSession]) -> Result<(), LabeledError> {
    if named.is_empty() {
        return Ok(());
    }
    let known = engine.names().map_err(|error| crate::errors::labeled(&error, named[0].span))?;
    match named.iter().find(|named| !known.contains(&named.name)) {
        None => Ok(()),
        Some(unknown) => Err(crate::errors::labeled(&Error::not_found(&unknown.name, &known), unknown.span)),
    }
}

/// Converts an engine error about several sessions, labelled at the name in its message, or at the flag.
pub(crate) fn at_name(error: &Error, named: &[NamedSession], call: &EvaluatedCall) -> LabeledError {
    let meant = named.iter().find(|named| error.message().contains(&format!("`{}`", named.name)));
    crate::errors::label_argument(error, call, meant.map_or(call.head, |named| named.span))
}

fn collect(value: &Value, into: &mut Vec<NamedSession>) -> Result<(), LabeledError> {
    match value {
        Value::List { vals, .. } => vals.iter().try_for_each(|value| collect(value, into)),
        Value::Record { val, internal_span, .. } => {
            push(from_row(val, *internal_span)?, into);
            Ok(())
        }
        Value::Error { error, .. } => Err((**error).clone().into()),
        value => match text(value) {
            Some(name) if !name.is_empty() => {
                push(NamedSession { name, span: value.span(), prompt_id: None, turn: None }, into);
                Ok(())
            }
            _ => Err(invalid_argument(
                format!("expected a session name, not {}", value.get_type()),
                "names are strings; rows need a `name` column",
                value.span(),
            )),
        },
    }
}

/// A name as a string. Nushell parses a name of digits as a number.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String { val, .. } | Value::Glob { val, .. } => Some(val.clone()),
        Value::Int { val, .. } => Some(val.to_string()),
        _ => None,
    }
}

fn from_row(row: &Record, span: Span) -> Result<NamedSession, LabeledError> {
    let text = |record: &Record, column: &str| record.get(column).and_then(text);
    // Rows of `lisa watch` name their session in `session`.
    let name = text(row, "name").or_else(|| text(row, "session")).ok_or_else(|| {
        let columns: Vec<&str> = row.columns().map(String::as_str).collect();
        invalid_argument(
            "this row has no session name",
            format!("rows need a `name` column; this one has {}", columns.join(", ")),
            span,
        )
    })?;
    let prompt_id =
        row.get("prompt").and_then(|prompt| prompt.as_record().ok()).and_then(|prompt| text(prompt, "id"));
    Ok(NamedSession { name, span, prompt_id, turn: text(row, "turn") })
}

fn push(named: NamedSession, into: &mut Vec<NamedSession>) {
    if into.iter().all(|other| other.name != named.name) {
        into.push(named);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nu_protocol::record;

    fn read(args: &[&str], input: Value) -> Result<Names, LabeledError> {
        let mut call = EvaluatedCall::new(Span::test_data());
        for arg in args {
            call.add_positional(Value::test_string(*arg));
        }
        Names::read(&call, 0, &input)
    }

    fn names(names: Names) -> Vec<String> {
        names.required(Span::test_data()).unwrap().into_iter().map(|named| named.name).collect()
    }

    fn row(name: &str) -> Value {
        Value::test_record(
            record! { "name" => Value::test_string(name), "status" => Value::test_string("x") },
        )
    }

    #[test]
    fn names_are_arguments_strings_lists_records_or_tables() {
        assert_eq!(names(read(&["a", "b"], Value::test_nothing()).unwrap()), ["a", "b"]);
        assert_eq!(names(read(&[], Value::test_string("a")).unwrap()), ["a"]);
        let list = Value::test_list(vec![Value::test_string("a"), Value::test_string("b")]);
        assert_eq!(names(read(&[], list).unwrap()), ["a", "b"]);
        assert_eq!(names(read(&[], row("a")).unwrap()), ["a"]);
        assert_eq!(names(read(&[], Value::test_list(vec![row("a"), row("b")])).unwrap()), ["a", "b"]);
    }

    #[test]
    fn arguments_win_over_input() {
        assert_eq!(names(read(&["a"], row("b")).unwrap()), ["a"]);
    }

    #[test]
    fn a_name_given_twice_counts_once() {
        assert_eq!(names(read(&["a", "b", "a"], Value::test_nothing()).unwrap()), ["a", "b"]);
    }

    #[test]
    fn no_name_is_an_error_but_an_empty_list_is_not() {
        let error = read(&[], Value::test_nothing()).unwrap().required(Span::test_data()).unwrap_err();
        assert_eq!(error.code.as_deref(), Some("lisa::invalid_argument"));
        assert!(names(read(&[], Value::test_list(vec![])).unwrap()).is_empty());
    }

    #[test]
    fn a_row_has_the_prompt_id_and_the_turn() {
        let prompt = Value::test_record(record! { "id" => Value::test_string("p1") });
        let row = Value::test_record(record! {
            "name" => Value::test_string("a"), "prompt" => prompt, "turn" => Value::test_string("t9"),
        });
        let named = read(&[], row).unwrap().one(Span::test_data()).unwrap();
        assert_eq!((named.prompt_id.as_deref(), named.turn.as_deref()), (Some("p1"), Some("t9")));
    }

    #[test]
    fn journal_rows_have_the_name_in_session() {
        let row = Value::test_record(record! { "session" => Value::test_string("a") });
        assert_eq!(names(read(&[], row).unwrap()), ["a"]);
    }

    #[test]
    fn a_row_without_a_name_lists_its_columns() {
        let row = Value::test_record(record! { "nane" => Value::test_string("a") });
        let error = read(&[], row).unwrap_err();
        assert!(error.help.as_deref().is_some_and(|help| help.contains("nane")), "{error:?}");
    }

    #[test]
    fn a_command_for_one_session_rejects_two() {
        assert!(read(&["a", "b"], Value::test_nothing()).unwrap().one(Span::test_data()).is_err());
    }

    #[test]
    fn an_error_is_labelled_at_the_name_it_is_about() {
        let Names::Given(mut named) = read(&["a", "b"], Value::test_nothing()).unwrap() else {
            panic!("no names")
        };
        named[1].span = Span::new(5, 6);
        let call = EvaluatedCall::new(Span::unknown());
        let error = at_name(&Error::not_found("b", &[]), &named, &call);
        assert_eq!(error.labels[0].span, Span::new(5, 6));
        let error = at_name(&Error::not_found("c", &[]), &named, &call);
        assert_eq!(error.labels[0].span, Span::unknown());
    }

    #[test]
    fn anything_else_is_an_error() {
        assert!(read(&[], Value::test_list(vec![Value::test_date(Default::default())])).is_err());
        assert!(read(&[], Value::test_string("")).is_err());
    }
}
