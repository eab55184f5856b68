//! Doing one thing to several sessions.

use crate::{
    caller::Lisa,
    errors::{interrupted, labeled},
    names::{self, Named, Names},
};
use lisa_engine::error::Error;
use nu_protocol::{LabeledError, Value};

/// Does something to each of the named sessions, now, and returns what happened as rows.
///
/// A name that no session has is an error before anything is done. After that every session is tried: a failure
/// is a row of its own (`failed`), unless nothing could be done at all, which is an error. After Ctrl-C nothing further
/// is begun, and the error says where it stopped.
pub(crate) fn each(
    lisa: &Lisa,
    names: Names,
    act: impl Fn(&Named) -> Result<Vec<Value>, Error>,
    failed: impl Fn(&Named, &Error) -> Value,
) -> Result<Value, LabeledError> {
    let named = names.required(lisa.head)?;
    names::check(&lisa.engine, &named)?;
    let mut rows = Vec::new();
    let mut errors = Vec::new();
    for (at, session) in named.iter().enumerate() {
        if lisa.interrupt.raised() {
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

/// Ctrl-C before the session at `at`: what was done stays done, and what was not begun is named.
fn stopped(lisa: &Lisa, named: &[Named], at: usize) -> LabeledError {
    let names = |part: &[Named]| part.iter().map(|named| named.name.as_str()).collect::<Vec<_>>().join(", ");
    let help = match named.split_at(at) {
        ([], _) => "nothing was done".to_owned(),
        (begun, rest) => format!("done: {}; not begun: {}", names(begun), names(rest)),
    };
    interrupted(lisa.head).with_help(help)
}
