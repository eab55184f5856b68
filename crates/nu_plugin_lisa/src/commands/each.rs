//! Runs an action on several sessions.

use crate::{
    context::CommandContext,
    errors::{interrupted, labeled},
    names::{self, NamedSession, Names},
};
use lisa_engine::error::Error;
use nu_protocol::{LabeledError, Value};

/// Runs an action on each of the named sessions and returns the results as rows.
///
/// If a session doesn't exist, it's an error and nothing is done. Otherwise every session is tried: a failed action is a
/// row of its own (`failed`), unless all actions fail, which is an error. After Ctrl-C no further action is started, and
/// the error says where it stopped.
pub(crate) fn each_session(
    lisa: &CommandContext,
    names: Names,
    act: impl Fn(&NamedSession) -> Result<Vec<Value>, Error>,
    failed: impl Fn(&NamedSession, &Error) -> Value,
) -> Result<Value, LabeledError> {
    let named = names.required(lisa.head)?;
    names::check(&lisa.engine, &named)?;
    let mut rows = Vec::new();
    let mut errors = Vec::new();
    for (at, session) in named.iter().enumerate() {
        if lisa.interrupt.is_cancelled() {
            return Err(stopped(lisa, &named, at));
        }
        match act(session) {
            Ok(done) => rows.extend(done),
            Err(error) => {
                rows.push(failed(session, &error));
                errors.push(labeled(&error, session.span));
            }
        }
    }
    if !named.is_empty() && errors.len() == named.len() {
        let mut errors = errors.into_iter();
        if let Some(first) = errors.next() {
            return Err(errors.fold(first, LabeledError::with_inner));
        }
    }
    Ok(Value::list(rows, lisa.head))
}

/// The error after Ctrl-C before the session at index `at`. It lists what was done and what was not started.
fn stopped(lisa: &CommandContext, named: &[NamedSession], at: usize) -> LabeledError {
    let names =
        |part: &[NamedSession]| part.iter().map(|named| named.name.as_str()).collect::<Vec<_>>().join(", ");
    let help = match named.split_at(at) {
        ([], _) => "nothing was done".to_owned(),
        (begun, rest) => format!("done: {}; not started: {}", names(begun), names(rest)),
    };
    interrupted(lisa.head).with_help(help)
}
